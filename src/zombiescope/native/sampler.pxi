# What the records of the rings mean: samples, tracepoints, and the lives of tasks beside them.

cdef struct Core:
    uint64_t got
    uint64_t idle
    uint64_t last_ns
    uint64_t max_gap_ns
    uint64_t lost

cdef struct Share:
    uint32_t samples
    uint32_t kernel

cdef struct Shares:
    Share* items
    size_t used, room


@cython.final
cdef class Sampler(Rings):
    """Turns stack samples into rows of small numbers, counts per core, and hands everything else to Python as tuples."""

    cdef readonly StackRows rows
    cdef Core* cores
    cdef Layout stack_layout, raw_layout
    cdef dict kinds                      # event id -> 0 for the sampler, 1.. for tracepoints
    cdef bint host_pids
    cdef Shares shares                   # by task number
    cdef uint32_t next_task, zero_task
    cdef list new_tasks, tracepoints, cgroups

    def __cinit__(self, KernelSymbols symbols not None, int cpus, bint has_period=False, bint has_cgroup=False,
                  bint host_pids=True, bint has_build_id=False):
        cdef size_t count = max(cpus, 1)
        self._lay_out(count)
        self.build_ids = has_build_id
        self.cores = <Core*>PyMem_Calloc(count, sizeof(Core))
        if self.cores == NULL:
            raise MemoryError
        self.rows = StackRows(symbols, has_period)
        self.kinds = {}
        self.stack_layout = _ring_layout(
            PERF_SAMPLE_CALLCHAIN | (PERF_SAMPLE_PERIOD if has_period else 0) | (PERF_SAMPLE_CGROUP if has_cgroup else 0)
        )
        self.raw_layout = _ring_layout(PERF_SAMPLE_RAW)
        self.host_pids = host_pids
        self.new_tasks, self.tracepoints, self.cgroups = [], [], []
        self.next_task = 1

    def __dealloc__(self):
        PyMem_Free(self.cores)
        zs_free(&self.shares)

    cdef void _ring_changed(self, uint32_t cpu) noexcept:
        self.cores[cpu].last_ns = 0

    def register(self, uint64_t event_id, int kind):
        """Tells what an event id means: 0 the stack sampler, n the n-th tracepoint."""
        self.kinds[event_id] = kind

    cdef void _lose(self, uint64_t count, uint32_t source) noexcept:
        self.lost += count
        self.cores[source].lost += count

    cdef int _cgroup(self, uint64_t number, bytes path) except -1:
        self.cgroups.append((number, path))
        return 0

    cdef int _kernel_symbol(self, uint64_t address, uint32_t length, str name) except -1:
        if name is None:
            self.rows.symbols.remove(address)
        else:
            self.rows.symbols.add(address, length, name)
        self.rows.frames.forget_range(KERNEL_SPACE, address, length)
        return 0

    cdef int _sample(self, const uint8_t* at, size_t size, uint64_t time, const Layout* layout, uint32_t source) except -1:
        kind = self.kinds.get(zs_u64(at + layout.id))
        if kind is None:
            self.malformed += 1
            return 0
        return self._stack_sample(at, size, time, source) if kind == 0 else self._raw_sample(at, size, time, source, kind)

    cdef int _raw_sample(self, const uint8_t* at, size_t size, uint64_t time, uint32_t cpu, kind) except -1:
        cdef Sample sample
        cdef size_t end = 0
        if read_sample(&self.raw_layout, at, size, &sample):
            end = behind_raw(at, sample.rest, size)
        if end == 0:
            self.malformed += 1
            return 0
        raw = (<const char*>(at + sample.rest + 4))[:end - sample.rest - 4]
        self.tracepoints.append((kind, time, cpu, sample.pid, sample.tid, raw))
        return 0

    cdef int _stack_sample(self, const uint8_t* at, size_t size, uint64_t time, uint32_t cpu) except -1:
        cdef Core* core = &self.cores[cpu]
        cdef Sample sample
        cdef uint64_t cgroup = 0
        cdef size_t place
        core.got += 1
        if core.last_ns and time > core.last_ns:
            core.max_gap_ns = max(core.max_gap_ns, time - core.last_ns)
        core.last_ns = max(core.last_ns, time)
        if not read_sample(&self.stack_layout, at, size, &sample):
            self.malformed += 1
            return 0
        if self.stack_layout.sample_type & PERF_SAMPLE_CGROUP:
            place = find_cgroup(&self.stack_layout, at, sample.rest, size)
            if place == 0:
                self.malformed += 1
                return 0
            cgroup = zs_u64(at + place)
        return self._keep(&sample, time, cpu, cgroup, self.rows.read_chain(sample.chain, sample.depth))

    cdef int _keep(self, const Sample* sample, uint64_t time, uint32_t cpu, uint64_t cgroup, uint8_t context) except -1:
        cdef Task* task
        cdef uint32_t number, space = 0
        if sample.pid == 0 and sample.tid == 0 and self.rows.chain_user == 0 and self._is_idle(context):
            self.cores[cpu].idle += 1
            return 0
        if sample.tid == 0:
            number = self._zero_task()
        else:
            task = self.tasks.make(sample.pid, sample.tid)
            number = 0 if task == NULL else self._task_number(task, cgroup)
            if self.rows.chain_user:
                space = self._space_of(sample.pid)
        self._share(number, self.rows.chain_kernel > 0)
        return self.rows.commit(time, sample.period, cpu, number, sample.pid, space)

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
                (self.zero_task, 0, 0, "swapper" if self.host_pids else "(outside this PID namespace)", None, None, None)
            )
        return self.zero_task

    cdef uint32_t _task_number(self, Task* task, uint64_t cgroup) except? 0:
        cdef Task* leader
        # A task that moved to another cgroup gets a new number: its earlier samples stay where they belong.
        if task.cgroup != cgroup:
            task.cgroup = cgroup
            task.number = 0
        if task.number == 0:
            task.number = self.next_task
            self.next_task += 1
            comm = task.comm[:strlen(task.comm)].decode("utf-8", "replace") if task.named else None
            ppid = task.ppid if task.born_in and task.ppid and task.ppid != NOBODY else None
            leader = self.tasks.get(task.pid)
            born_ns = leader.born_ns if leader != NULL and leader.born_ns else None
            self.new_tasks.append((task.number, task.pid, task.tid, comm, ppid, cgroup or None, born_ns))
        return task.number

    cdef uint32_t _space_of(self, uint32_t pid) except? 0:
        cdef Task* leader = self.tasks.make(pid, pid)
        return 0 if leader == NULL else leader.space

    cdef int _share(self, uint32_t number, bint kernel) except -1:
        zs_extend(&self.shares, <size_t>number + 1)
        self.shares.items[number].samples += 1
        self.shares.items[number].kernel += kernel
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

    def task_number(self, uint32_t pid, uint32_t tid, str comm):
        """The number of a task that other records than samples tell of; 0 when the table is full."""
        cdef Task* task = self.tasks.make(pid, tid)
        if task == NULL:
            return 0
        if not task.named and comm:
            name = comm.encode("utf-8", "replace")[:15]
            memset(task.comm, 0, 16)
            memcpy(task.comm, PyBytes_AS_STRING(name), len(name))
            task.named = True
        return self._task_number(task, task.cgroup)

    def take_tasks(self):
        """Tasks that were sampled for the first time since the last call: [(task, pid, tid, comm, ppid, cgroup id, when
        its process was forked)]; None where that was not seen."""
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
        for i in range(self.shares.used):
            if self.shares.items[i].samples:
                taken.append((i, self.shares.items[i].samples, self.shares.items[i].kernel))
                self.shares.items[i] = Share(samples=0, kernel=0)
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
        cdef uint32_t born_before = self.rounds - young_drains if self.rounds > young_drains else 0
        self.tasks.sweep(self.rounds - 1, born_before)

    def next_segment(self):
        """Starts numbering anew. Samples still held back would lose their frames: take them all first."""
        self.rows.next_segment()
        self.tasks.forget_numbers()
        self.shares.used = 0
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
            self.rows.nbytes + self.tasks.nbytes() + self.arena.room + self.shares.room * sizeof(Share)
            + (self.index.room + self.spare.room) * sizeof(zs_record)
        )
