# What the records of the rings mean: samples, tracepoints, and the lives of tasks beside them.

cdef enum:
    RECORD_LOST = 2
    RECORD_COMM = 3
    RECORD_EXIT = 4
    RECORD_THROTTLE = 5
    RECORD_FORK = 7
    RECORD_MMAP2 = 10
    RECORD_LOST_SAMPLES = 13
    RECORD_KSYMBOL = 17
    RECORD_CGROUP = 19


cdef struct Core:
    uint64_t got
    uint64_t idle
    uint64_t last_ns
    uint64_t max_gap_ns
    uint64_t lost

cdef struct Share:
    uint32_t samples
    uint32_t kernel


cdef class Sampler(Rings):
    """Turns stack samples into rows of small numbers, counts per core, and hands everything else to Python as tuples."""

    cdef readonly StackRows rows
    cdef TaskTable tasks
    cdef Core* cores
    cdef dict kinds                      # event id -> 0 for the sampler, 1.. for tracepoints
    cdef bint has_period, has_cgroup, host_pids
    cdef Share* shares                   # by task number
    cdef size_t share_room
    cdef uint32_t next_task, zero_task
    cdef list new_tasks, tracepoints, cgroups
    cdef readonly uint64_t lost, throttled

    def __cinit__(self, KernelSymbols symbols not None, int cpus, bint has_period=False, bint has_cgroup=False,
                  bint host_pids=True):
        cdef size_t count = max(cpus, 1)
        self._lay_out(count)
        self.cores = <Core*>PyMem_Malloc(count * sizeof(Core))
        if self.cores == NULL:
            raise MemoryError
        memset(self.cores, 0, count * sizeof(Core))
        self.rows = StackRows(symbols, has_period)
        self.tasks = TaskTable()
        self.kinds = {}
        self.has_period = has_period
        self.has_cgroup = has_cgroup
        self.host_pids = host_pids
        self.new_tasks, self.tracepoints, self.cgroups = [], [], []
        self.next_task = 1

    def __dealloc__(self):
        PyMem_Free(self.cores)
        PyMem_Free(self.shares)

    cdef void _ring_changed(self, uint32_t cpu) noexcept:
        self.cores[cpu].last_ns = 0

    def register(self, uint64_t event_id, int kind):
        """Tells what an event id means: 0 the stack sampler, n the n-th tracepoint."""
        self.kinds[event_id] = kind

    cdef int _record(self, zs_record* record) except -1:
        cdef const uint8_t* at = self.arena + record.offset
        cdef const uint8_t* body = at + HEAD_BYTES
        cdef size_t length = record.size - HEAD_BYTES - TRAILER
        cdef uint32_t kind
        cdef uint32_t words[4]
        cdef uint16_t misc
        cdef uint64_t number
        memcpy(&kind, at, 4)
        memcpy(&misc, at + 4, 2)
        if kind == RECORD_SAMPLE:
            return self._sample(record, at)
        if kind == RECORD_FORK or kind == RECORD_EXIT:
            if length < 24:
                self.malformed += 1
                return 0
            memcpy(words, body, 16)
            if kind == RECORD_FORK:
                return self.tasks.forked(words[0], words[1], words[2], words[3], self.drains)
            return self._exited(words[2])
        if kind == RECORD_COMM:
            self.malformed += not self.tasks.read_comm(body, length, misc, self.drains)
            return 0
        if kind == RECORD_MMAP2:
            self.malformed += not self.tasks.read_mmap2(body, length, misc)
            return 0
        if kind == RECORD_LOST and length >= 16:
            memcpy(&number, body + 8, 8)
            self.lost += number
            self.cores[record.cpu].lost += number
        elif kind == RECORD_LOST_SAMPLES and length >= 8:
            memcpy(&number, body, 8)
            self.lost += number
            self.cores[record.cpu].lost += number
        elif kind == RECORD_THROTTLE:
            self.throttled += 1
        elif kind == RECORD_KSYMBOL:
            self._ksymbol(body, length)
        elif kind == RECORD_CGROUP and length > 8:
            memcpy(&number, body, 8)
            self.cgroups.append((number, _text(body + 8, length - 8)))
        return 0

    cdef int _exited(self, uint32_t tid) except -1:
        cdef Task* task = self.tasks.get(tid)
        if task != NULL:
            task.exited_in = self.drains
        return 0

    cdef int _ksymbol(self, const uint8_t* body, size_t length) except -1:
        cdef uint64_t address
        cdef uint32_t size
        cdef uint16_t flags
        if length < 17:
            self.malformed += 1
            return 0
        memcpy(&address, body, 8)
        memcpy(&size, body + 8, 4)
        memcpy(&flags, body + 14, 2)
        name = _text(body + 16, length - 16).decode("utf-8", "replace")
        if flags & 1:
            self.rows.symbols.remove(address)
        else:
            self.rows.symbols.add(address, size, name)
        self.rows.frames.forget_range(KERNEL_SPACE, address, size)
        return 0

    cdef int _sample(self, zs_record* record, const uint8_t* at) except -1:
        cdef uint64_t event_id
        cdef uint32_t ids[2]
        cdef uint32_t size
        memcpy(&event_id, at + 8, 8)
        memcpy(ids, at + 16, 8)
        kind = self.kinds.get(event_id)
        if kind is None:
            self.malformed += 1
            return 0
        if kind == 0:
            return self._stack_sample(record, at, ids[0], ids[1])
        if record.size < SAMPLE_HEAD + 4:
            self.malformed += 1
            return 0
        memcpy(&size, at + SAMPLE_HEAD, 4)
        if size > record.size - SAMPLE_HEAD - 4:
            self.malformed += 1
            return 0
        self.tracepoints.append(
            (kind, record.time, record.cpu, ids[0], ids[1], (<const char*>(at + SAMPLE_HEAD + 4))[:size])
        )
        return 0

    cdef int _stack_sample(self, zs_record* record, const uint8_t* at, uint32_t pid, uint32_t tid) except -1:
        cdef Core* core = &self.cores[record.cpu]
        cdef size_t offset = SAMPLE_HEAD
        cdef uint64_t period = 1, depth, cgroup = 0
        cdef const uint8_t* chain
        core.got += 1
        if core.last_ns and record.time > core.last_ns:
            core.max_gap_ns = max(core.max_gap_ns, record.time - core.last_ns)
        core.last_ns = max(core.last_ns, record.time)
        if self.has_period:
            if record.size < offset + 8:
                self.malformed += 1
                return 0
            memcpy(&period, at + offset, 8)
            offset += 8
        if record.size < offset + 8:
            self.malformed += 1
            return 0
        memcpy(&depth, at + offset, 8)
        chain = at + offset + 8
        if depth > (record.size - offset - 8) >> 3:
            self.malformed += 1
            return 0
        if self.has_cgroup:
            if record.size < offset + 16 + 8 * depth:
                self.malformed += 1
                return 0
            memcpy(&cgroup, chain + 8 * depth, 8)
        return self._keep(record, pid, tid, period, cgroup, self.rows.read_chain(chain, depth))

    cdef int _keep(self, zs_record* record, uint32_t pid, uint32_t tid, uint64_t period, uint64_t cgroup,
                   uint8_t context) except -1:
        cdef Task* task
        cdef uint32_t number, space = 0
        if pid == 0 and tid == 0 and self.rows.chain_user == 0 and self._is_idle(context):
            self.cores[record.cpu].idle += 1
            return 0
        if tid == 0:
            number = self._zero_task()
        else:
            task = self.tasks.make(pid, tid)
            number = 0 if task == NULL else self._task_number(task, cgroup)
            if self.rows.chain_user:
                space = self._space_of(pid)
        self._share(number, self.rows.chain_kernel > 0)
        return self.rows.commit(record.time, period, record.cpu, number, pid, space)

    cdef bint _is_idle(self, uint8_t context) noexcept:
        # Without kernel symbols the context cannot be read: pid 0 of the host is then idle as far as we can know.
        if self.rows.symbols.hidden:
            return self.host_pids
        return context == ZS_IDLE

    cdef uint32_t _zero_task(self) except? 0:
        if self.zero_task == 0:
            self.zero_task = self.next_task
            self.next_task += 1
            self.new_tasks.append(
                (self.zero_task, 0, 0, "swapper" if self.host_pids else "(outside this PID namespace)", None, None)
            )
        return self.zero_task

    cdef uint32_t _task_number(self, Task* task, uint64_t cgroup) except? 0:
        # A task that moved to another cgroup gets a new number: its earlier samples stay where they belong.
        if task.cgroup != cgroup:
            task.cgroup = cgroup
            task.number = 0
        if task.number == 0:
            task.number = self.next_task
            self.next_task += 1
            comm = task.comm[:strlen(task.comm)].decode("utf-8", "replace") if task.named else None
            ppid = task.ppid if task.born_in and task.ppid else None
            self.new_tasks.append((task.number, task.pid, task.tid, comm, ppid, cgroup or None))
        return task.number

    cdef uint32_t _space_of(self, uint32_t pid) except? 0:
        cdef Task* leader = self.tasks.make(pid, pid)
        return 0 if leader == NULL else leader.space

    cdef int _share(self, uint32_t number, bint kernel) except -1:
        cdef void* grown
        if number >= self.share_room:
            grown = PyMem_Realloc(self.shares, (number * 2 + 256) * sizeof(Share))
            if grown == NULL:
                raise MemoryError
            self.shares = <Share*>grown
            memset(self.shares + self.share_room, 0, (number * 2 + 256 - self.share_room) * sizeof(Share))
            self.share_room = number * 2 + 256
        self.shares[number].samples += 1
        self.shares[number].kernel += kernel
        return 0

    def mappings(self, uint32_t pid):
        """Code maps seen in MMAP2 records since exec: [(start, end, pgoff, (path, build_id, major, minor, inode))] or None."""
        return self.tasks.mappings(pid)

    def comm(self, uint32_t tid):
        """The name of a task as far as COMM and FORK records told it, or None."""
        cdef Task* task = self.tasks.get(tid)
        if task == NULL or not task.named:
            return None
        return task.comm[:strlen(task.comm)].decode("utf-8", "replace")

    def take_tasks(self):
        """Tasks that were sampled for the first time since the last call: [(task, pid, tid, comm, ppid, cgroup id)]."""
        taken, self.new_tasks = self.new_tasks, []
        return taken

    def take_tracepoints(self):
        """[(kind, monotonic_ns, cpu, pid, tid, raw)] in the order of time."""
        taken, self.tracepoints = self.tracepoints, []
        return taken

    def take_cgroups(self):
        """[(cgroup id, path)] from CGROUP records."""
        taken, self.cgroups = self.cgroups, []
        return taken

    def take_shares(self):
        """Samples by task number since the last call: [(task, samples, samples in the kernel)]."""
        cdef size_t i
        taken = []
        for i in range(self.share_room):
            if self.shares[i].samples:
                taken.append((i, self.shares[i].samples, self.shares[i].kernel))
                self.shares[i] = Share(samples=0, kernel=0)
        return taken

    def take_cores(self, uint64_t now_ns):
        """Per CPU with a ring: {cpu: (samples, idle samples, largest gap in ns, records lost)} since the last call. A gap
        that is still open counts as far as it has come."""
        cdef size_t i
        cdef Core* core
        taken = {}
        for i in range(self.ring_count):
            core = &self.cores[i]
            if not self.rings[i].open and core.got == 0 and core.last_ns == 0:
                continue
            if core.last_ns and now_ns > core.last_ns:
                core.max_gap_ns = max(core.max_gap_ns, now_ns - core.last_ns)
            taken[i] = (core.got, core.idle, core.max_gap_ns if core.last_ns else None, core.lost)
            core.got = core.idle = core.max_gap_ns = core.lost = 0
        return taken

    def sweep(self, uint32_t young_drains):
        """Forgets tasks that left before the last drain, and code maps of processes older than so many drains."""
        cdef uint32_t born_before = self.drains - young_drains if self.drains > young_drains else 0
        self.tasks.sweep(self.drains - 1, born_before)

    def next_segment(self):
        """Starts numbering anew. Samples still held back would lose their frames: take them all first."""
        self.rows.next_segment()
        self.tasks.forget_numbers()
        if self.shares != NULL:
            memset(self.shares, 0, self.share_room * sizeof(Share))
        self.next_task = 1
        self.zero_task = 0
        self.new_tasks = []

    @property
    def files(self):
        """Mapped files that are remembered."""
        return len(self.tasks.files)

    @property
    def nbytes(self):
        return (
            self.rows.nbytes + (self.tasks.mask + 1) * sizeof(Task) + self.tasks.maps_total * sizeof(CodeMap)
            + self.arena_room + self.index_room * sizeof(zs_record) + self.share_room * sizeof(Share)
        )
