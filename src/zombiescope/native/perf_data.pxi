# What the records of a perf.data file mean: samples become rows of numbers, everything else says who ran which code when.
#
# Functions have one number through the whole file; tasks and stacks are numbered anew in each batch of rows, and so are the
# functions when a batch is taken, so that a batch can be read alone.

cdef enum:
    RECORD_MMAP = 1
    SAMPLE_RAW = 1 << 10
    SAMPLE_BRANCH_STACK = 1 << 11
    SAMPLE_REGS_USER = 1 << 12
    SAMPLE_STACK_USER = 1 << 13
    SAMPLE_WEIGHT = 1 << 14
    SAMPLE_DATA_SRC = 1 << 15
    SAMPLE_TRANSACTION = 1 << 17
    SAMPLE_REGS_INTR = 1 << 18
    SAMPLE_PHYS_ADDR = 1 << 19
    SAMPLE_CGROUP = 1 << 21
    SAMPLE_WEIGHT_STRUCT = 1 << 24
    READ_ENABLED = 1
    READ_RUNNING = 2
    READ_ID = 4
    READ_GROUP = 8
    READ_LOST = 16
    BRANCH_INDEX = 1 << 17
    BRANCH_COUNTERS = 1 << 19
    MISC_KERNEL = 1
    MISC_USER = 2
    MISC_CPUMODE = 7
    MISC_MMAP_DATA = 1 << 13
    MAX_CHAIN = 8192
    MAX_INLINED = 256
    MANY_CPUS = 8192
    AHEAD = 12
    AHEAD_ROOM = 16

cdef uint64_t CONTEXT_USER_DEFERRED = <uint64_t>-640
cdef uint64_t CONTEXT_HYPERVISOR = <uint64_t>-32
cdef uint64_t CONTEXT_GUEST = <uint64_t>-2048
cdef uint64_t CONTEXT_GUEST_KERNEL = <uint64_t>-2176
cdef uint64_t CONTEXT_GUEST_USER = <uint64_t>-2560
cdef uint32_t NOBODY = 0xFFFFFFFF
cdef size_t MANY_FRAMES = 1 << 22
cdef uint32_t FRAME_MASK = 0x3FFFFFFF
cdef Py_ssize_t MAX_FRAMES = 0x3FFFFFF0


cdef struct Chain:
    uint64_t mode                # the context of the leaf
    uint64_t leaf
    const uint8_t* callers       # what follows the leaf
    size_t depth

cdef struct Foreseen:
    const uint8_t* record
    uint64_t key, hash
    bint has_user


cdef class PerfData(PerfStream):
    """`meaning` answers what C does not know:

        user_frames((path, build id, major, minor, inode), offset) -> [(name, module, kind)], the innermost of what was
            inlined there first; at least one
        kernel_frame(address) -> (name, module, kind)
        kernel_map(start, length, pgoff, path, build id)
        header_record(kind, misc, record), decompress(data) -> bytes
        first_sample(): all that stands before the samples was read
    """

    cdef KernelSymbols symbols
    cdef uint64_t kernel_shift           # what was recorded minus what `symbols` say
    cdef uint64_t text_start, text_end   # `symbols` hold for these addresses
    cdef uint64_t extra_start, extra_end # KSYMBOL records told of something between
    cdef uint32_t kernel_space
    cdef TaskTable tasks
    cdef StackInterner stacks, tails     # a tail is a stack without its leaf
    cdef ChainCache chains
    cdef UserFrames pairs                # (tail, leaf) -> stack
    cdef UserFrames addresses            # (space, address) -> frame
    cdef UserFrames offsets              # (file, offset) -> frame
    cdef list frames
    cdef dict frame_numbers
    cdef dict inlined                    # frame that stands for several -> those, innermost first
    cdef c_array.array times, cpus, row_tasks, row_stacks, periods, events
    cdef size_t row_count, row_room, max_rows
    cdef int64_t first_us, last_us
    cdef uint8_t cpu_seen[MANY_CPUS]
    cdef set more_cpus
    cdef dict event_numbers, leaving
    cdef int64_t last_event, last_event_number
    cdef list task_rows
    cdef dict cgroups, counts
    cdef int32_t idle_task
    cdef uint64_t idle_samples
    cdef Foreseen foreseen[AHEAD_ROOM]   # by place in `index`
    cdef size_t foreseen_at
    cdef uint32_t* run                   # frames of the chain at hand; room for two of them
    cdef bint tail_has_user
    cdef readonly uint64_t lost, throttled, user_stacks, timeless, samples
    cdef uint64_t last_time

    def __cinit__(self, meaning, size_t max_rows):
        self.symbols = KernelSymbols()
        self.symbols.finish()
        self.tasks = TaskTable(True)
        self.stacks, self.tails = StackInterner(), StackInterner()
        self.chains = ChainCache()
        self.addresses, self.offsets, self.pairs = UserFrames(), UserFrames(), UserFrames()
        self.frames, self.frame_numbers, self.inlined, self.cgroups, self.counts = [], {}, {}, {}, {}
        self.kernel_space = KERNEL_SPACE
        self.extra_start = NO_TIME
        self.max_rows = max(max_rows, 1)
        self.run = <uint32_t*>PyMem_Malloc(2 * MAX_CHAIN * sizeof(uint32_t))
        if self.run == NULL:
            raise MemoryError
        self._start_rows()

    def __dealloc__(self):
        PyMem_Free(self.run)

    cdef void _start_rows(self):
        self.row_count = self.row_room = 0
        self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events = (
            _column(0) for _ in range(6)
        )
        self.first_us, self.last_us = 0x7FFFFFFFFFFFFFFF, -0x7FFFFFFFFFFFFFFF
        memset(self.cpu_seen, 0, MANY_CPUS)
        self.more_cpus, self.event_numbers, self.leaving, self.last_event = set(), {}, {}, -1
        self.idle_samples = 0
        self.task_rows = []
        self.idle_task = -1

    cdef bint _is_full(self) noexcept:
        return self.row_count >= self.max_rows

    def use_kernel(self, KernelSymbols symbols not None, uint64_t shift, uint64_t text_start, uint64_t text_end):
        """Names of the kernel's functions from here on. `shift`: recorded address minus the one in `symbols`, modulo 2^64;
        they hold between the two addresses."""
        symbols.extra.update(self.symbols.extra)
        symbols._forget_frames()
        self.symbols = symbols
        self.kernel_shift, self.text_start, self.text_end = shift, text_start, text_end
        self._kernel_changed()

    cdef int _kernel_changed(self) except -1:
        """What was looked up before does not hold any more: kernel addresses get another space."""
        self.kernel_space -= 1
        if self.kernel_space < 0xF0000000:
            self.kernel_space = KERNEL_SPACE
            self.addresses.clear()
            self.chains.clear()
        return 0

    # --- records -------------------------------------------------------------------------------------------------------

    cdef int _record(self, const uint8_t* at, uint32_t kind, size_t size, uint64_t time, uint32_t number) except -1:
        cdef const Layout* layout = &self.layouts[number]
        cdef const uint8_t* body = at + HEAD_BYTES
        cdef uint16_t misc = zs_u16(at + 4)
        cdef size_t length = size - HEAD_BYTES
        if time and time != NO_TIME:
            self.last_time = time
        if kind == RECORD_SAMPLE:
            return self._sample(at, misc, size, time, layout)
        if length < layout.trailer:
            self.malformed += 1
            return 0
        length -= layout.trailer
        if kind == RECORD_MMAP2 or kind == RECORD_MMAP:
            return self._mapped(body, length, misc, kind)
        if kind == RECORD_COMM:
            self.malformed += not self.tasks.read_comm(body, length, misc, self.rounds)
        elif kind == RECORD_FORK or kind == RECORD_EXIT:
            return self._forked(body, length, misc, kind)
        elif kind == RECORD_LOST and length >= 16:
            self.lost += zs_u64(body + 8)
        elif kind == RECORD_LOST_SAMPLES and length >= 8:
            self.lost += zs_u64(body)
        elif kind == RECORD_THROTTLE:
            self.throttled += 1
        elif kind == RECORD_KSYMBOL:
            return self._ksymbol(body, length)
        elif kind == RECORD_CGROUP and length > 8:
            self.cgroups[zs_u64(body)] = _text(body + 8, length - 8).decode("utf-8", "replace")
        return 0

    cdef int _forked(self, const uint8_t* body, size_t length, uint16_t misc, uint32_t kind) except -1:
        cdef Task* task
        if length < 24:
            self.malformed += 1
            return 0
        if kind == RECORD_FORK:
            return self.tasks.forked(
                zs_u32(body), zs_u32(body + 4), zs_u32(body + 8), zs_u32(body + 12), self.rounds, not misc & MISC_FORK_EXEC
            )
        task = self.tasks.get(zs_u32(body + 8))
        if task != NULL:
            task.exited_in = self.rounds
        if self.tasks.used > MAX_TASKS // 2 and self.rounds > 2:
            self.tasks.sweep(self.rounds - 1, 0)
        return 0

    cdef int _mapped(self, const uint8_t* body, size_t length, uint16_t misc, uint32_t kind) except -1:
        cdef uint32_t pid
        if length < (65 if kind == RECORD_MMAP2 else 33):
            self.malformed += 1
            return 0
        pid = zs_u32(body)
        if pid == NOBODY or (misc & MISC_CPUMODE) == MISC_KERNEL:
            if kind == RECORD_MMAP2:
                path, build_id = _mapped_file(body, length, misc)[:2]
            else:
                path, build_id = _text(body + 32, length - 32), None
            self.meaning.kernel_map(zs_u64(body + 8), zs_u64(body + 16), zs_u64(body + 24), path, build_id)
            return 0
        if kind == RECORD_MMAP2:
            self.tasks.read_mmap2(body, length, misc)
        elif not misc & MISC_MMAP_DATA:
            key = (_text(body + 32, length - 32), None, 0, 0, 0)
            self.tasks.mapped(pid, zs_u64(body + 8), zs_u64(body + 16), zs_u64(body + 24), key)
        return 0

    cdef int _ksymbol(self, const uint8_t* body, size_t length) except -1:
        cdef uint64_t address
        cdef uint32_t size
        if length < 17:
            self.malformed += 1
            return 0
        address, size = zs_u64(body), zs_u32(body + 8)
        if zs_u16(body + 14) & 1:
            self.symbols.remove(address)
        else:
            self.symbols.add(address, size, _text(body + 16, length - 16).decode("utf-8", "replace"))
            self.extra_start = min(self.extra_start, address)
            self.extra_end = max(self.extra_end, address + size)
        return self._kernel_changed() if self.samples else 0

    # --- samples -------------------------------------------------------------------------------------------------------

    cdef int _sample(self, const uint8_t* at, uint16_t misc, size_t size, uint64_t time, const Layout* layout) except -1:
        cdef uint32_t pid = NOBODY, tid = NOBODY
        cdef int32_t cpu = -1, task, stack
        cdef size_t place = layout.rest, chain = 0, depth = 0, values = 0
        cdef uint64_t cgroup = 0, period = layout.period
        if size < place:
            self.malformed += 1
            return 0
        if layout.tid:
            pid, tid = zs_u32(at + layout.tid), zs_u32(at + layout.tid + 4)
        if layout.cpu:
            cpu = <int32_t>min(zs_u32(at + layout.cpu), <uint32_t>0x7FFFFFFF)
        if layout.period_at:
            period = zs_u64(at + layout.period_at)
        if layout.sample_type & SAMPLE_READ:
            values = place
            place = _behind_read(layout, at, place, size)
        if place and layout.sample_type & SAMPLE_CALLCHAIN:
            if size < place + 8 or zs_u64(at + place) > (size - place - 8) >> 3:
                self.malformed += 1
                return 0
            depth, chain = <size_t>zs_u64(at + place), place + 8
            place = chain + 8 * depth
        if place == 0:
            self.malformed += 1
            return 0
        if layout.sample_type & SAMPLE_CGROUP:
            place = _find_cgroup(layout, at, place, size)
            cgroup = zs_u64(at + place) if place else 0
        if self.samples == 0:
            self.meaning.first_sample()
        self.user_stacks += (layout.sample_type & SAMPLE_STACK_USER) != 0
        self.samples += 1
        if time == 0 or time == NO_TIME:
            self.timeless += 1
            time = self.last_time
        task = self._task(pid, tid, cgroup)
        stack = self._stack(at, misc, layout.ip, at + chain, min(depth, <size_t>MAX_CHAIN - 1), pid, tid)
        if values and layout.read_format & READ_ID:
            return self._members(layout, at, values, time, cpu, task, stack)
        return self._row(time, period, cpu, task, stack, layout.event)

    cdef int _row(self, uint64_t time, uint64_t period, int32_t cpu, int32_t task, int32_t stack, uint32_t event) except -1:
        cdef size_t at = self.row_count
        cdef int64_t time_us = <int64_t>(time // 1000)
        if at == self.row_room:
            self._resize(self.row_room * 2 + 16384)
        if event != self.last_event:
            self.last_event = event
            self.last_event_number = self.event_numbers.setdefault(event, len(self.event_numbers))
        self.times.data.as_longlongs[at] = time_us
        self.cpus.data.as_longlongs[at] = cpu
        self.row_tasks.data.as_longlongs[at] = task
        self.row_stacks.data.as_longlongs[at] = stack
        self.periods.data.as_longlongs[at] = <int64_t>min(period, <uint64_t>0x7FFFFFFFFFFFFFFF)
        self.events.data.as_longlongs[at] = self.last_event_number
        self.first_us, self.last_us = min(self.first_us, time_us), max(self.last_us, time_us)
        if 0 <= cpu < MANY_CPUS:
            self.cpu_seen[cpu] = 1
        elif cpu >= 0:
            self.more_cpus.add(cpu)
        self.row_count += 1
        return 0

    cdef int _resize(self, size_t room) except -1:
        cdef c_array.array column
        for column in (self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events):
            c_array.resize(column, room)
        self.row_room = room
        return 0

    cdef int _members(self, const Layout* layout, const uint8_t* at, size_t place, uint64_t time, int32_t cpu, int32_t task,
                      int32_t stack) except -1:
        """A sample that reads counters stands for a sample of each that moved since it was read last."""
        cdef uint64_t count = 1, i, value, number
        cdef size_t step = 16 + (8 if layout.read_format & READ_LOST else 0)
        cdef size_t clocks = 8 * ((layout.read_format & READ_ENABLED) != 0) + 8 * ((layout.read_format & READ_RUNNING) != 0)
        cdef Py_ssize_t slot
        if layout.read_format & READ_GROUP:
            count = zs_u64(at + place)
            place += 8 + clocks
        for i in range(count):
            value = zs_u64(at + place)
            number = zs_u64(at + place + 8 + (0 if layout.read_format & READ_GROUP else clocks))
            place += step
            slot = self.ids._find(number)
            if slot < 0:
                self.unknown_events += 1
                continue
            before = self.counts.get(number, 0)
            self.counts[number] = value
            if value > before:
                self._row(time, value - <uint64_t>before, cpu, task, stack, self.layouts[self.ids.slots[slot].value].event)
        return 0

    # --- who -----------------------------------------------------------------------------------------------------------

    cdef int32_t _task(self, uint32_t pid, uint32_t tid, uint64_t cgroup) except -2:
        cdef Task* task
        if tid == NOBODY:
            return self._leaving(pid)
        if tid == 0:
            if self.idle_task < 0:
                self.idle_task = self._new_task((0, 0, "swapper", None, None))
            return self.idle_task
        task = self.tasks.make(pid, tid)
        if task == NULL:
            return -1
        if task.pid != pid:          # the number was given to another task, and its fork record is missing
            task.pid, task.number, task.named, task.born_in = pid, 0, False, 0
        if task.cgroup != cgroup:
            task.cgroup = cgroup
            task.number = 0
        if task.number == 0:
            comm = task.comm[:strlen(task.comm)].decode("utf-8", "replace") if task.named else None
            task.number = <uint32_t>self._new_task(
                (pid, tid, comm, self._parent(pid), self.cgroups.get(cgroup) if cgroup else None)
            ) + 1
        return <int32_t>task.number - 1

    cdef int32_t _leaving(self, uint32_t pid) except -2:
        """A thread that has left already has no number; its process may have one still."""
        if pid == NOBODY:
            return -1
        number = self.leaving.get(pid)
        if number is None:
            number = self.leaving[pid] = self._new_task((pid, None, None, self._parent(pid), None))
        return number

    cdef int32_t _new_task(self, tuple row) except -1:
        self.task_rows.append(row)
        return <int32_t>len(self.task_rows) - 1

    cdef object _parent(self, uint32_t pid):
        cdef Task* leader = self.tasks.get(pid)
        return leader.ppid if leader != NULL and leader.born_in and leader.ppid and leader.ppid != NOBODY else None

    # --- where ---------------------------------------------------------------------------------------------------------

    cdef int32_t _stack(self, const uint8_t* at, uint16_t misc, uint32_t ip, const uint8_t* chain, size_t depth,
                        uint32_t pid, uint32_t tid) except -2:
        """Number of the stack; counts it if the CPU idles in it."""
        cdef Task* leader = NULL
        cdef uint64_t key = 0, hash
        cdef Chain parts
        cdef ChainHead* known
        cdef uint32_t frame, tail
        cdef uint8_t context = 0
        if not _split(chain, depth, &parts):
            if ip == 0:
                return -1
            # The chain is empty or was not asked for: the address alone is the stack.
            parts.leaf, parts.mode = zs_u64(at + ip), _context_of_mode(misc)
        if pid != NOBODY and pid:
            leader = self.tasks.make(pid, pid)
        self.chains.prepare()
        hash = self._hash(at, &parts, leader, &key)
        known = self.chains.find(hash, key, parts.callers, parts.depth)
        if known == NULL:
            tail = self._read_tail(parts.callers, parts.depth, parts.mode, leader, &context)
            known = self.chains.store(key, parts.callers, parts.depth, tail, context, self.tail_has_user)
        frame = self._frame_at(parts.mode, parts.leaf, leader)
        context = <uint8_t>(frame >> 30) if parts.mode == CONTEXT_KERNEL and frame >> 30 else known.context
        if tid == 0 and pid == 0 and not known.has_user and parts.mode != CONTEXT_USER and (
            context == ZS_IDLE or self.symbols.hidden
        ):
            self.idle_samples += 1
        frame &= FRAME_MASK
        if known.stack == 0 or known.leaf != frame:
            known.leaf, known.stack = frame, self._join(known.tail, frame)
        return <int32_t>known.stack - 1

    cdef uint64_t _key(self, const Chain* parts, const Task* leader, bint has_user) noexcept:
        """In which program images the addresses of a chain are looked up."""
        cdef uint64_t key = <uint64_t>(self.kernel_space & 0x0FFFFFFF) << 34 | _mode_number(parts.mode) << 32
        return key | leader.space if has_user and leader != NULL else key

    cdef uint64_t _hash(self, const uint8_t* at, const Chain* parts, const Task* leader, uint64_t* key) noexcept:
        """Key and hash of a chain; mostly they were foreseen."""
        cdef const Foreseen* seen = &self.foreseen[self.foreseen_at % AHEAD_ROOM]
        cdef bint is_foreseen = seen.record == at
        key[0] = self._key(parts, leader, seen.has_user if is_foreseen else _has_user(parts))
        return seen.hash if is_foreseen and seen.key == key[0] else _hash_chain(key[0], parts.callers, parts.depth)

    cdef void _foresee(self, size_t at) noexcept:
        # Tables of many megabytes are hit at random by every sample: fetch what the next ones will need while this one is
        # worked on. A wrong guess costs nothing but time.
        cdef size_t soon = at + 2 * AHEAD, line = 0
        if soon < self.flush_end:
            while line < self.index[soon].size and line < 384:
                zs_fetch(self._place_of(&self.index[soon]) + line)
                line += 64
        soon = at + AHEAD
        if at == 0:
            memset(self.foreseen, 0, sizeof(self.foreseen))
        if soon < self.flush_end:
            self._foresee_sample(&self.index[soon], &self.foreseen[soon % AHEAD_ROOM])
        soon = at + AHEAD // 2
        if soon < self.flush_end and self.foreseen[soon % AHEAD_ROOM].record == self._place_of(&self.index[soon]):
            self.chains.fetch_entry(self.foreseen[soon % AHEAD_ROOM].hash)
        self.foreseen_at = at

    cdef void _foresee_sample(self, const zs_record* entry, Foreseen* seen) noexcept:
        cdef const uint8_t* at = self._place_of(entry)
        cdef const Layout* layout = &self.layouts[entry.cpu]
        cdef size_t place = layout.rest
        cdef Chain parts
        cdef uint32_t pid
        cdef Task* leader
        seen.record = NULL
        if zs_u32(at) != RECORD_SAMPLE or layout.tid == 0 or entry.size < place + 16 or (
            layout.sample_type & (SAMPLE_READ | SAMPLE_CALLCHAIN)
        ) != SAMPLE_CALLCHAIN or zs_u64(at + place) > (entry.size - place - 8) >> 3:
            return
        if not _split(at + place + 8, <size_t>zs_u64(at + place), &parts):
            return
        pid = zs_u32(at + layout.tid)
        leader = self.tasks.get(pid) if pid else NULL
        seen.record, seen.has_user = at, _has_user(&parts)
        seen.key = self._key(&parts, leader, seen.has_user)
        seen.hash = _hash_chain(seen.key, parts.callers, parts.depth)
        self.chains.fetch_slot(seen.hash)
        if parts.mode == CONTEXT_KERNEL:
            self.addresses.fetch(self.kernel_space, parts.leaf)
        elif leader != NULL:
            self.addresses.fetch(leader.space, parts.leaf)

    cdef uint32_t _join(self, uint32_t tail, uint32_t leaf) except? 0:
        cdef UserFrame* known = self.pairs.find(tail, leaf)
        cdef size_t length
        cdef uint32_t stack
        if known.space:
            return known.frame
        length = self.tails.start[tail + 1] - self.tails.start[tail]
        memcpy(self.run, self.tails.arena + self.tails.start[tail], length * sizeof(uint32_t))
        if self.inlined and leaf in self.inlined:
            for one in reversed(self.inlined[leaf]):
                self.run[length] = one
                length += 1
        else:
            self.run[length] = leaf
            length += 1
        stack = self.stacks.put(self.run, length)
        known.space, known.address, known.frame = tail, leaf, stack
        self.pairs.used += 1
        return stack

    cdef uint32_t _read_tail(self, const uint8_t* chain, size_t depth, uint64_t mode, Task* leader,
                             uint8_t* context) except? 0:
        """Number of the callers, outermost first; `context` is what they say of idleness."""
        cdef uint64_t address
        cdef size_t i, used = 0
        cdef uint32_t frame
        cdef bint is_leaf = False
        self.tail_has_user = False
        for i in range(depth):
            address = zs_u64(chain + 8 * i)
            if _is_context(address):
                mode = address
                is_leaf = True
                continue
            if mode == CONTEXT_USER_DEFERRED:        # what follows is a number, not an address
                continue
            # Only a leaf is where the CPU was; the others are return addresses, which may belong to the next function.
            if not is_leaf and address:
                address -= 1
            is_leaf = False
            frame = self._frame_at(mode, address, leader)
            self.tail_has_user |= mode == CONTEXT_USER
            # From the leaf outwards, the first that says something decides: an interrupt is work on top of idle.
            if mode == CONTEXT_KERNEL and context[0] == 0:
                context[0] = <uint8_t>(frame >> 30)
            used = self._put_frame(frame & FRAME_MASK, used)
        for i in range(used):
            self.run[MAX_CHAIN + i] = self.run[used - 1 - i]
        return self.tails.put(self.run + MAX_CHAIN, used)

    cdef size_t _put_frame(self, uint32_t frame, size_t used) except? 0:
        """Puts a frame into `run`, and what was inlined there before it: the run goes outwards."""
        if self.inlined and frame in self.inlined:
            for one in self.inlined[frame]:
                if used < MAX_CHAIN:
                    self.run[used] = one
                    used += 1
            return used
        if used < MAX_CHAIN:
            self.run[used] = frame
            used += 1
        return used

    cdef uint32_t _frame_at(self, uint64_t mode, uint64_t address, Task* leader) except? 0:
        if mode == CONTEXT_KERNEL:
            return self._kernel_frame(address)
        if mode == CONTEXT_USER:
            return self._user_frame(leader, address)
        return self.frame("[hypervisor]" if mode == CONTEXT_HYPERVISOR else "[guest]", "", "unknown")

    cdef uint32_t _kernel_frame(self, uint64_t address) except? 0:
        cdef UserFrame* known = self._known(self.kernel_space, address)
        cdef uint32_t frame
        if known.space:
            return known.frame
        frame = self._resolve_kernel(address)
        return self._remember(known, self.kernel_space, address, frame)

    cdef uint32_t _user_frame(self, Task* leader, uint64_t address) except? 0:
        cdef UserFrame* known
        cdef CodeMap* code
        cdef uint32_t frame
        if leader == NULL:
            return self.frame("[unknown]", "", "unknown")
        known = self._known(leader.space, address)
        if known.space:
            return known.frame
        code = self.tasks.find_map(leader, address)
        if code == NULL:
            leader.has_holes = True
            frame = self.frame("[unknown]", "", "unknown")
        else:
            frame = self._file_frame(code.file, address - code.start + code.pgoff)
        return self._remember(known, leader.space, address, frame)

    cdef uint32_t _file_frame(self, uint32_t file, uint64_t offset) except? 0:
        cdef UserFrame* known = self.offsets.find(file + 1, offset)
        if known.space == 0:
            known.space, known.address = file + 1, offset
            known.frame = self._one_of(self.meaning.user_frames(self.tasks.files[file], offset))
            self.offsets.used += 1
        return known.frame

    cdef uint32_t _one_of(self, list found) except? 0:
        """One number for some functions that were inlined into one another."""
        numbers = tuple([self.frame(name, module, kind) for name, module, kind in found[:MAX_INLINED]])
        if len(numbers) == 1:
            return numbers[0]
        number = self.frame(f"inlined {numbers}", "", "")
        self.inlined[number] = numbers
        return number

    cdef UserFrame* _known(self, uint32_t space, uint64_t address) except NULL:
        if self.addresses.used > MANY_FRAMES:
            self.addresses.clear()
        return self.addresses.find(space, address)

    cdef uint32_t _remember(self, UserFrame* slot, uint32_t space, uint64_t address, uint32_t frame) noexcept:
        slot.space, slot.address, slot.frame = space, address, frame
        self.addresses.used += 1
        return frame

    cdef uint32_t _resolve_kernel(self, uint64_t address) except? 0:
        """The frame of a kernel address; the two bits above it say whether it means idle or interrupt."""
        cdef Py_ssize_t index = -1
        if self.extra_start <= address < self.extra_end:
            for start, (end, name) in self.symbols.extra.items():
                if start <= address < end:
                    return self.frame(name, "bpf", "bpf")
        if self.text_start <= address < self.text_end:
            index = self.symbols._find(address - self.kernel_shift)
        if index < 0 or self.symbols.symbols[index].module:
            name, module, kind = self.meaning.kernel_frame(address)
            return self.frame(name, module, kind)
        if self.symbols.frame_of[index] == 0:
            self.symbols.frame_of[index] = <uint32_t>self.frame(self.symbols._name(index)[0], "", "kernel") + 1
        return (self.symbols.frame_of[index] - 1) | <uint32_t>self.symbols.symbols[index].flags << 30

    cdef uint32_t frame(self, str name, str module, str kind) except? 0:
        """The number of a function, from 0."""
        key = (name, module, kind)
        number = self.frame_numbers.get(key)
        if number is None:
            if len(self.frames) >= MAX_FRAMES:
                raise MemoryError
            number = self.frame_numbers[key] = len(self.frames)
            self.frames.append(key)
        return number

    # --- taking --------------------------------------------------------------------------------------------------------

    def take(self):
        """What was made since the last call: (time_us, cpu, task, stack, period, event, stack lengths, stack frames,
        frames, tasks, idle samples, first and last time or None, CPUs, events), the columns as array('q'). `event` counts
        in the events given last."""
        cdef int cpu
        self._resize(self.row_count)
        _, lengths, flat = self.stacks.take_new()
        taken = (
            self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events, lengths, flat,
            self._number_frames(flat), self.task_rows, self.idle_samples,
            (self.first_us, self.last_us) if self.row_count else None,
            frozenset([cpu for cpu in range(MANY_CPUS) if self.cpu_seen[cpu]]) | self.more_cpus,
            list(self.event_numbers),
        )
        self.stacks.clear()
        self.tails.clear()
        self.chains.clear()
        self.pairs.clear()
        self.tasks.forget_numbers()
        self._start_rows()
        return taken

    cdef list _number_frames(self, c_array.array flat):
        """Numbers the functions of these stacks from 0, in place; gives them in that order."""
        cdef size_t i, count = len(flat)
        cdef int64_t* run = <int64_t*>flat.data.as_longlongs
        cdef int64_t next_number = 0
        cdef int64_t* numbers = <int64_t*>PyMem_Malloc((len(self.frames) + 1) * sizeof(int64_t))
        if numbers == NULL:
            raise MemoryError
        used = []
        try:
            memset(numbers, 0xFF, (len(self.frames) + 1) * sizeof(int64_t))
            for i in range(count):
                if numbers[run[i]] < 0:
                    numbers[run[i]] = next_number
                    next_number += 1
                    used.append(self.frames[run[i]])
                run[i] = numbers[run[i]]
        finally:
            PyMem_Free(numbers)
        return used

    @property
    def refused(self):
        """Tasks and maps that were not followed because there were too many."""
        return self.tasks.refused

    @property
    def waiting_rows(self):
        return self.row_count


cdef inline bint _is_context(uint64_t word) noexcept nogil:
    """Whether a word of a chain says whose addresses follow. A user's stack may hold any number: others are not believed."""
    return word >= CONTEXT_MAX and (
        word == CONTEXT_KERNEL or word == CONTEXT_USER or word == CONTEXT_HYPERVISOR or word == CONTEXT_USER_DEFERRED
        or word == CONTEXT_GUEST or word == CONTEXT_GUEST_KERNEL or word == CONTEXT_GUEST_USER
    )


cdef inline bint _split(const uint8_t* chain, size_t depth, Chain* parts) noexcept nogil:
    """Parts a chain into its leaf and the rest; False when it has no address."""
    cdef size_t step
    parts.mode, parts.leaf = CONTEXT_USER, 0
    while depth and _is_context(zs_u64(chain)):
        parts.mode = zs_u64(chain)
        # What follows this one is a number, not an address.
        step = 2 if parts.mode == CONTEXT_USER_DEFERRED and depth > 1 else 1
        chain += 8 * step
        depth -= step
    parts.callers, parts.depth = chain, 0
    if depth == 0:
        return False
    parts.leaf = zs_u64(chain)
    parts.callers, parts.depth = chain + 8, depth - 1
    return True


cdef inline bint _has_user(const Chain* parts) noexcept nogil:
    """Whether some of it may be of a user's program. From the end: the user's part stands behind the kernel's."""
    cdef size_t i = parts.depth
    if parts.mode == CONTEXT_USER:
        return True
    while i:
        i -= 1
        if zs_u64(parts.callers + 8 * i) == CONTEXT_USER:
            return True
    return False


cdef inline uint64_t _context_of_mode(uint16_t misc) noexcept nogil:
    cdef uint16_t mode = misc & MISC_CPUMODE
    if mode == MISC_KERNEL:
        return CONTEXT_KERNEL
    if mode == MISC_USER or mode == 0:
        return CONTEXT_USER
    return CONTEXT_HYPERVISOR if mode == 3 else CONTEXT_GUEST


cdef inline uint64_t _mode_number(uint64_t context) noexcept nogil:
    if context == CONTEXT_KERNEL:
        return 1
    return 0 if context == CONTEXT_USER else 3 if context == CONTEXT_HYPERVISOR else 2


cdef size_t _behind_read(const Layout* layout, const uint8_t* at, size_t place, size_t size) noexcept nogil:
    """The place behind the counters in a sample; 0: they do not fit."""
    cdef uint64_t form = layout.read_format, count = 1, length
    cdef uint64_t clocks = 8 * ((form & READ_ENABLED) != 0) + 8 * ((form & READ_RUNNING) != 0)
    cdef uint64_t each = 8 + 8 * ((form & READ_ID) != 0) + 8 * ((form & READ_LOST) != 0)
    if form & READ_GROUP:
        if size < place + 8:
            return 0
        count = zs_u64(at + place)
        if count > size:
            return 0
        clocks += 8
    length = clocks + count * each
    return place + <size_t>length if length <= size - place else 0


cdef size_t _find_cgroup(const Layout* layout, const uint8_t* at, size_t place, size_t size) noexcept nogil:
    """Where the cgroup of a sample stands, given the place behind its chain; 0: not there."""
    cdef uint64_t bits = layout.sample_type, count
    if bits & SAMPLE_RAW:
        if size < place + 4 or zs_u32(at + place) > size - place - 4:
            return 0
        place += 4 + zs_u32(at + place)
    if bits & SAMPLE_BRANCH_STACK:
        if size < place + 8 or zs_u64(at + place) > size:
            return 0
        count = zs_u64(at + place)
        place += 8 + (8 if layout.branch_type & BRANCH_INDEX else 0)
        place += <size_t>count * (32 if layout.branch_type & BRANCH_COUNTERS else 24)
    if bits & SAMPLE_REGS_USER:
        place = _behind_registers(at, place, size, layout.regs_user)
    if place and bits & SAMPLE_STACK_USER:
        if size < place + 8 or zs_u64(at + place) > size - place - 8:
            return 0
        count = zs_u64(at + place)
        place += 8 + <size_t>count + (8 if count else 0)
    if place and bits & (SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT):
        place += 8
    if place and bits & SAMPLE_DATA_SRC:
        place += 8
    if place and bits & SAMPLE_TRANSACTION:
        place += 8
    if place and bits & SAMPLE_REGS_INTR:
        place = _behind_registers(at, place, size, layout.regs_intr)
    if place and bits & SAMPLE_PHYS_ADDR:
        place += 8
    return place if place and place + 8 <= size else 0


cdef size_t _behind_registers(const uint8_t* at, size_t place, size_t size, uint64_t mask) noexcept nogil:
    if size < place + 8:
        return 0
    if zs_u64(at + place):
        while mask:
            place += 8 * (mask & 1)
            mask >>= 1
    return place + 8
