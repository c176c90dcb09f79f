# Copies of the stacks of some threads, a ring each: rare, large, and unwound by whoever takes them.

cdef uint64_t COPY_REGISTERS = 1 << 6 | 1 << 7 | 1 << 8        # rbp, rsp, rip (PERF_REG_X86_*)
cdef size_t MAX_COPIES = 4096


@cython.final
cdef class StackCopies(Rings):
    """`rings`: how many there may be. Records are in the form of the recorder's rings (IDENTIFIER, TID, TIME, CPU), with
    CALLCHAIN, REGS_USER of COPY_REGISTERS and STACK_USER."""

    cdef Layout copy_layout
    cdef list taken
    cdef readonly uint64_t dropped       # nobody took them in time

    def __cinit__(self, int rings):
        self._lay_out(max(rings, 1))
        self.tasks = TaskTable()
        self.copy_layout = _ring_layout(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
        self.copy_layout.regs_user = COPY_REGISTERS
        self.taken = []

    cdef int _sample(self, const uint8_t* at, size_t size, uint64_t time, const Layout* layout, uint32_t source) except -1:
        cdef Sample sample
        cdef StackCopy copy
        cdef size_t i, depth = 0
        cdef bint is_user = False
        if not read_sample(&self.copy_layout, at, size, &sample):
            self.malformed += 1
            return 0
        if not copy_of(&self.copy_layout, at, sample.rest, size, &copy):
            return 0                     # a task that has no user memory (any more)
        if len(self.taken) >= MAX_COPIES:
            self.dropped += 1
            return 0
        for i in range(sample.depth):
            if zs_u64(sample.chain + 8 * i) >= PERF_CONTEXT_MAX:
                is_user = zs_u64(sample.chain + 8 * i) == PERF_CONTEXT_USER
            else:
                depth += is_user
        self.taken.append((
            source, time, sample.pid, sample.tid, copy.ip, copy.registers[DWARF_RSP], copy.registers[DWARF_RBP],
            (<const char*>copy.bytes_)[:copy.size], depth,
        ))
        return 0

    def take(self):
        """[(ring, monotonic_ns, pid, tid, rip, rsp, rbp, the stack from rsp on, depth by frame pointers)]"""
        taken, self.taken = self.taken, []
        return taken
