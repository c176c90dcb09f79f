# Stack samples on their way to rows: chains become runs of frame numbers, and a sample waits until its user frames have names.

cdef enum:
    MAX_DEPTH = 512

cdef uint32_t KERNEL_SPACE = 0xFFFFFFFE


cdef struct Pending:
    uint64_t time
    uint64_t period
    uint32_t cpu
    uint32_t task
    uint32_t space
    uint32_t first            # into pending_frames: kernel frame ids, then user addresses, both leaf first
    uint16_t kernel
    uint16_t user

cdef struct PendingRows:
    Pending* items
    size_t used, room


@cython.final
cdef class StackRows:
    """Numbers functions and stacks within a segment, and gives out samples as arrays of numbers."""

    cdef KernelSymbols symbols
    cdef readonly StackInterner stacks
    cdef FrameTable frames
    cdef bint has_period
    cdef PendingRows pending
    cdef Longs pending_frames
    cdef size_t chain_kernel, chain_user     # the chain read last, not yet committed
    cdef uint32_t next_frame
    cdef uint32_t blanks[8]                  # frames of kind "unknown": a run of one of them says no more than one
    cdef dict frame_numbers
    cdef list new_frames
    cdef dict wanted                         # space -> (pid, [addresses])
    cdef readonly uint64_t garbage_frames, unresolved_kernel

    def __cinit__(self, KernelSymbols symbols not None, bint has_period):
        self.symbols = symbols
        self.stacks = StackInterner()
        self.frames = FrameTable()
        self.has_period = has_period
        self._start_numbers()

    def __dealloc__(self):
        zs_free(&self.pending)
        zs_free(&self.pending_frames)

    cdef void _start_numbers(self):
        self.next_frame = 1
        memset(self.blanks, 0, sizeof(self.blanks))
        self.frame_numbers = {}
        self.new_frames = []
        self.wanted = {}

    cdef uint8_t read_chain(self, const uint8_t* chain, size_t depth) except? 255:
        """Reads a call chain and says its context: ZS_IDLE, ZS_INTERRUPT or 0. Nothing is kept before commit()."""
        cdef uint64_t* out
        cdef uint64_t address, context = 0
        cdef size_t i
        cdef bint leaf = True
        cdef uint8_t flags = 0, seen = 0
        depth = min(depth, <size_t>MAX_DEPTH)
        zs_reserve(&self.pending, 1)
        zs_reserve(&self.pending_frames, depth)
        self.chain_kernel = self.chain_user = 0
        out = self.pending_frames.items + self.pending_frames.used
        for i in range(depth):
            address = zs_u64(chain + 8 * i)
            if address >= PERF_CONTEXT_MAX:
                context = address
                leaf = True
                continue
            # Only a leaf is where the CPU was; the others are return addresses, which may belong to the next function.
            if not leaf and address:
                address -= 1
            leaf = False
            if context == PERF_CONTEXT_KERNEL:
                out[self.chain_kernel] = self._kernel_frame(address, &flags)
                self.chain_kernel += 1
                # From the leaf outwards, the first of the two decides: an interrupt frame is work on top of idle.
                if seen == 0:
                    seen = flags
            elif context == PERF_CONTEXT_USER:
                out[self.chain_kernel + self.chain_user] = address
                self.chain_user += 1
        return seen

    cdef int commit(self, uint64_t time, uint64_t period, uint32_t cpu, uint32_t task, uint32_t pid,
                    uint32_t space) except -1:
        """Makes a sample of the chain read last."""
        cdef Pending* row = &self.pending.items[self.pending.used]
        if self.chain_user:
            self._ask_for(pid, space, self.pending_frames.items + self.pending_frames.used + self.chain_kernel, self.chain_user)
        row.time, row.period, row.cpu = time, period, cpu
        row.task, row.space, row.first = task, space, <uint32_t>self.pending_frames.used
        row.kernel, row.user = <uint16_t>self.chain_kernel, <uint16_t>self.chain_user
        self.pending.used += 1
        self.pending_frames.used += self.chain_kernel + self.chain_user
        return 0

    cdef uint32_t _kernel_frame(self, uint64_t address, uint8_t* flags) except? 0:
        """The frame number of a kernel address; `flags` says whether it means idle or interrupt."""
        cdef uint32_t frame = self.frames.find(KERNEL_SPACE, address)
        if frame >= FRAME_PENDING:
            frame = self._resolve_kernel(address)
            self.frames.set(KERNEL_SPACE, address, frame)
        # Two flags fit above a frame number; frames are far fewer than 2^30.
        flags[0] = <uint8_t>(frame >> 30)
        return frame & 0x3FFFFFFF

    cdef uint32_t _resolve_kernel(self, uint64_t address) except? 0:
        cdef Py_ssize_t index
        for start, (end, name) in self.symbols.extra.items():
            if start <= address < end:
                return self.frame(name, "bpf", "bpf")
        index = self.symbols._find(address)
        if index < 0:
            self.unresolved_kernel += 1
            return self.frame("[kernel]" if self.symbols.hidden else "[unknown kernel code]", "", "kernel")
        if self.symbols.frame_of.items[index] == 0:
            name, module = self.symbols._name(index)
            self.symbols.frame_of.items[index] = self.frame(
                name, module, "kernel" if not module else "bpf" if module == "bpf" else "module"
            )
        return self.symbols.frame_of.items[index] | <uint32_t>self.symbols.symbols.items[index].flags << 30

    cdef int _ask_for(self, uint32_t pid, uint32_t space, const uint64_t* addresses, size_t count) except -1:
        cdef size_t i
        if space == 0:
            return 0
        for i in range(count):
            if self.frames.find(space, addresses[i]) == FRAME_NONE:
                self.frames.set(space, addresses[i], FRAME_PENDING)
                entry = self.wanted.get(space)
                if entry is None:
                    entry = self.wanted[space] = (pid, [])
                entry[1].append(addresses[i])
        return 0

    def frame(self, str name not None, str module not None, str kind not None):
        """The number of a function in this segment; a new one is put on the list of new frames."""
        key = (name, module, kind)
        number = self.frame_numbers.get(key)
        if number is None:
            number = self.frame_numbers[key] = self.next_frame
            self.next_frame += 1
            self.new_frames.append((number, name, module, kind))
            if kind == "unknown":
                self._note_blank(number)
        return number

    cdef void _note_blank(self, uint32_t frame) noexcept:
        cdef int i
        for i in range(8):
            if self.blanks[i] == 0:
                self.blanks[i] = frame
                return

    def take_wanted(self):
        """User addresses to resolve: [(space, pid, [addresses])]."""
        wanted, self.wanted = self.wanted, {}
        return [(space, pid, addresses) for space, (pid, addresses) in wanted.items()]

    def answer(self, uint32_t space, uint64_t address, frame):
        """Tells what an address is: a frame number, or None for an address in no mapping (dropped from stacks)."""
        if self.frames.find(space, address) != FRAME_NONE:
            self.frames.set(space, address, FRAME_GARBAGE if frame is None else frame)

    def take_samples(self, int64_t offset_ns, uint64_t give_up_before_ns):
        """Rows whose frames are all known, or that were taken before `give_up_before_ns`: arrays of time_us, cpu, task,
        stack and, for events with a period, period. `offset_ns` is wall clock minus monotonic clock."""
        cdef size_t i, kept = 0, kept_frames = 0, out = 0, j, ready = 0
        cdef Pending* row
        cdef uint32_t* stack = NULL
        for i in range(self.pending.used):
            ready += self._is_ready(&self.pending.items[i], give_up_before_ns)
        times, cpus, tasks, stacks, periods = (_array("q", bytes(8 * ready)) for _ in range(5))
        if self.pending.used == 0:
            return times, cpus, tasks, stacks, (periods if self.has_period else None)
        cdef int64_t[::1] time_view, cpu_view, task_view, stack_view, period_view
        if ready:
            time_view, cpu_view, task_view, stack_view, period_view = times, cpus, tasks, stacks, periods
        stack = <uint32_t*>PyMem_Malloc(2 * MAX_DEPTH * sizeof(uint32_t))
        if stack == NULL:
            raise MemoryError
        try:
            for i in range(self.pending.used):
                row = &self.pending.items[i]
                if self._is_ready(row, give_up_before_ns):
                    time_view[out] = (<int64_t>row.time + offset_ns) // 1000
                    cpu_view[out] = row.cpu
                    task_view[out] = row.task
                    period_view[out] = <int64_t>row.period
                    stack_view[out] = self._intern(row, stack)
                    out += 1
                    continue
                # Held back: close the ranks, in place.
                for j in range(row.kernel + row.user):
                    self.pending_frames.items[kept_frames + j] = self.pending_frames.items[row.first + j]
                self.pending.items[kept] = row[0]
                self.pending.items[kept].first = <uint32_t>kept_frames
                kept_frames += row.kernel + row.user
                kept += 1
        finally:
            PyMem_Free(stack)
        self.pending.used = kept
        self.pending_frames.used = kept_frames
        return times, cpus, tasks, stacks, (periods if self.has_period else None)

    cdef bint _is_ready(self, Pending* row, uint64_t give_up_before_ns) except -1:
        cdef size_t i
        if row.time < give_up_before_ns or row.space == 0:
            return True
        for i in range(row.user):
            if self.frames.find(row.space, self.pending_frames.items[row.first + row.kernel + i]) == FRAME_PENDING:
                return False
        return True

    cdef uint32_t _intern(self, Pending* row, uint32_t* stack) except? 0:
        cdef size_t i, used = 0
        cdef uint32_t frame
        cdef uint64_t* frames = self.pending_frames.items + row.first
        for i in range(row.user):
            frame = FRAME_PENDING
            if row.space:
                frame = self.frames.find(row.space, frames[row.kernel + row.user - 1 - i])
            if frame >= FRAME_PENDING:
                frame = self._unresolved()
            if frame == FRAME_GARBAGE:
                self.garbage_frames += 1
                continue
            if used and stack[used - 1] == frame and self._is_blank(frame):
                continue
            stack[used] = frame
            used += 1
        for i in range(row.kernel):
            stack[used] = <uint32_t>frames[row.kernel - 1 - i]
            used += 1
        return self.stacks.put(stack, used * sizeof(uint32_t))

    cdef uint32_t _unresolved(self) except? 0:
        return self.frame("[unresolved]", "", "unknown")

    cdef bint _is_blank(self, uint32_t frame) noexcept nogil:
        cdef int i
        for i in range(8):
            if self.blanks[i] == frame:
                return True
        return False

    def take_frames(self):
        """Functions that got a number since the last call: [(frame, name, module, kind)]."""
        taken, self.new_frames = self.new_frames, []
        return taken

    def replace_symbols(self, KernelSymbols symbols not None):
        """Uses another reading of kallsyms (a module was loaded); only right before next_segment."""
        if self.pending.used:
            raise RuntimeError("samples are pending")
        symbols.extra.update(self.symbols.extra)
        self.symbols = symbols
        self.unresolved_kernel = 0

    cdef int next_segment(self) except -1:
        if self.pending.used:
            raise RuntimeError("samples are pending")
        self.stacks.clear()
        self.frames.clear()
        self.symbols._forget_frames()
        self._start_numbers()
        return 0

    def __len__(self):
        """Samples that still wait."""
        return self.pending.used

    @property
    def nbytes(self):
        return (
            self.stacks.nbytes + zs_table_bytes(&self.frames.table) + self.pending.room * sizeof(Pending)
            + self.pending_frames.room * sizeof(uint64_t)
        )
