# Whole call chains from a copy of a stack: registers and some kilobytes of memory, as PERF_SAMPLE_STACK_USER gives them.
#
# From the address where the thread was, the rule of its function (call_frames.pxi) says where the frame ends and where the
# return address is; that is the next address, and so on. A walk goes towards higher addresses only, reads nothing outside
# of the copy, and is at most MAX_UNWOUND long, so it ends whatever the copy and the rules say. It says why it ended:
#
#     finished      the function that nobody called: _start, or the first of a thread
#     copy ended    the frame reaches beyond the copy
#     no table      code without .eh_frame, whose rbp leads nowhere either
#     no code       the return address is in no code
#     contradiction a frame that would not end above the one before it, or a rule of an unknown kind
#     too deep
#
# Code without a rule (made by a JIT, written by hand) is left by its frame pointer, if what stands there is an address of
# code. Addresses are given as a call chain of the kernel gives them: the leaf where it was, all others as return
# addresses. What a signal interrupted was called by nobody: its address is given as if it had, one byte further on.

cdef enum:
    MAX_UNWOUND = 256
    # struct rt_sigframe, seen from __restore_rt: ucontext at rsp, its registers 40 bytes in (linux/asm/sigcontext.h)
    SIGNAL_RBP = 40 + 10 * 8
    SIGNAL_RSP = 40 + 15 * 8
    SIGNAL_RIP = 40 + 16 * 8

cdef enum:
    UNWOUND_FINISHED = 0
    UNWOUND_COPY_ENDED = 1
    UNWOUND_NO_TABLE = 2
    UNWOUND_NO_CODE = 3
    UNWOUND_CONTRADICTION = 4
    UNWOUND_TOO_DEEP = 5

UNWOUND = ("finished", "copy ended", "no table", "no code", "contradiction", "too deep")

cdef enum:
    PLACE_NOWHERE = 0
    PLACE_NO_TABLE = 1
    PLACE_FOUND = 2
    PLACE_UNASKED = 3                # its file may have a table: the walk must not guess

# Places in the registers of a sample, by PERF_REG_X86_* (asm/perf_regs.h), for the numbers that DWARF gives them.
cdef uint8_t[17] PERF_REGISTER = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8]
cdef uint64_t UNWIND_NEEDS = 1 << 6 | 1 << 7 | 1 << 8

cdef struct StackCopy:
    uint64_t registers[16]           # by DWARF's numbers; only of the leaf
    uint32_t known                   # which of them
    uint64_t ip
    const uint8_t* bytes_
    uint64_t size


cdef inline bint copy_of(const Layout* layout, const uint8_t* at, size_t place, size_t size, StackCopy* out) noexcept nogil:
    """Registers and stack of a sample, given the place behind its chain. False where it has none: a kernel thread has no
    user registers, and a 32-bit program is not unwound."""
    cdef uint64_t mask = layout.regs_user, count
    cdef uint64_t values[64]
    cdef uint32_t i, used = 0
    if not layout.sample_type & PERF_SAMPLE_STACK_USER or not layout.sample_type & PERF_SAMPLE_REGS_USER:
        return False
    if layout.sample_type & PERF_SAMPLE_RAW:
        place = behind_raw(at, place, size)
    if place == 0 or layout.sample_type & PERF_SAMPLE_BRANCH_STACK or mask & UNWIND_NEEDS != UNWIND_NEEDS:
        return False
    if size < place + 8 or zs_u64(at + place) != 2:      # PERF_SAMPLE_REGS_ABI_64
        return False
    place += 8
    for i in range(64):
        if mask >> i & 1:
            if size < place + 8:
                return False
            values[i] = zs_u64(at + place)
            place += 8
    out.known = 0
    for i in range(16):
        if mask >> PERF_REGISTER[i] & 1:
            out.registers[i] = values[PERF_REGISTER[i]]
            out.known |= <uint32_t>1 << i
    out.ip = values[8]
    if size < place + 8 or zs_u64(at + place) > size - place - 8:
        return False
    count = zs_u64(at + place)
    out.bytes_, out.size = at + place + 8, count
    # Behind the copy stands how much of it the kernel could read.
    if count and size - place - 8 - count >= 8:
        out.size = min(count, zs_u64(at + place + 8 + <size_t>count))
    return True


cdef class Unwinder:
    """Walks copies of stacks. Who knows where code is says so in _locate."""

    cdef uint64_t[MAX_UNWOUND] chain
    cdef size_t depth
    cdef CallFrames found            # what _locate found
    cdef uint64_t found_at           # the address in that file
    cdef readonly list ended         # how many walks ended how, in the order of UNWOUND

    def __cinit__(self, *args, **options):
        self.ended = [0] * 6

    cdef int _locate(self, uint64_t address) except -1:
        return PLACE_NOWHERE

    cdef int walk(self, const StackCopy* copy) except -1:
        """Fills `chain` and `depth`; why it ended."""
        cdef int why = self._walk(copy)
        self.ended[why] += 1
        return why

    cdef int _walk(self, const StackCopy* copy) except -1:
        cdef uint64_t base = copy.registers[DWARF_RSP]
        cdef uint64_t ip = copy.ip, sp = base, bp = copy.registers[DWARF_RBP], cfa = 0, next_ip = 0, next_bp = 0
        cdef const FrameRule* rule
        cdef bint exact = True       # `ip` is where it was, not where it will go on
        cdef int place
        self.depth = 0
        while self.depth < MAX_UNWOUND:
            self.chain[self.depth] = ip + 1 if exact and self.depth else ip
            self.depth += 1
            place = self._locate(ip if exact else ip - 1)
            if place == PLACE_NOWHERE:
                self.depth -= self.depth > 1
                return UNWOUND_NO_CODE
            if place == PLACE_UNASKED:
                return UNWOUND_NO_TABLE
            rule = self.found._find(self.found_at) if place == PLACE_FOUND else NULL
            if rule == NULL or rule.cfa == CFA_UNKNOWN:
                place = self._by_frame_pointer(copy, base, &ip, &sp, &bp)
                if place >= 0:
                    return place
                exact = False
                continue
            if rule.cfa == CFA_SIGNAL:
                place = _interrupted(copy, base, &ip, &sp, &bp)
                if place >= 0:
                    return place
                exact = True
                continue
            if rule.ra == SAVED_UNDEFINED:
                return UNWOUND_FINISHED
            place = _frame_end(copy, base, rule, ip, sp, bp, exact and self.depth == 1, &cfa)
            if place >= 0:
                return place
            if rule.ra != SAVED_AT or cfa <= sp:
                return UNWOUND_CONTRADICTION
            place = _word(copy, base, cfa + <int64_t>rule.ra_offset, &next_ip)
            next_bp = bp
            # In an epilogue the table still says where rbp was saved; what lies below the stack was popped into it.
            if place < 0 and rule.bp == SAVED_AT and cfa + <int64_t>rule.bp_offset >= sp:
                place = _word(copy, base, cfa + <int64_t>rule.bp_offset, &next_bp)
            elif place < 0 and rule.bp == SAVED_AT_RBP:
                place = _word(copy, base, bp, &next_bp)
            if place >= 0:
                return place
            ip, sp, bp, exact = next_ip, cfa, next_bp, False
            if ip == 0:
                return UNWOUND_FINISHED
        return UNWOUND_TOO_DEEP

    cdef int _by_frame_pointer(self, const StackCopy* copy, uint64_t base, uint64_t* ip, uint64_t* sp, uint64_t* bp) except -2:
        """-1: it led to a caller."""
        cdef uint64_t next_ip = 0, next_bp = 0
        if bp[0] < sp[0] or bp[0] & 7 or _word(copy, base, bp[0] + 8, &next_ip) >= 0 or _word(copy, base, bp[0], &next_bp) >= 0:
            return UNWOUND_NO_TABLE
        if next_ip == 0:
            return UNWOUND_FINISHED
        if self._locate(next_ip - 1) == PLACE_NOWHERE:
            return UNWOUND_NO_TABLE
        ip[0], sp[0], bp[0] = next_ip, bp[0] + 16, next_bp
        return -1


cdef inline int _word(const StackCopy* copy, uint64_t base, uint64_t address, uint64_t* out) noexcept nogil:
    """-1: it was read; else why not."""
    if address < base:
        return UNWOUND_CONTRADICTION
    if copy.size < 8 or address - base > copy.size - 8:
        return UNWOUND_COPY_ENDED
    out[0] = zs_u64(copy.bytes_ + (address - base))
    return -1


cdef int _frame_end(const StackCopy* copy, uint64_t base, const FrameRule* rule, uint64_t ip, uint64_t sp, uint64_t bp,
                    bint is_leaf, uint64_t* cfa) noexcept nogil:
    """-1: `cfa` is where the frame ends; else why that is not known."""
    cdef uint64_t start
    if rule.cfa == CFA_PLT:
        cfa[0] = sp + 8 + (8 if (ip & 15) >= <uint64_t>rule.cfa_offset else 0)
        return -1
    if rule.cfa != CFA_REGISTER and rule.cfa != CFA_STORED:
        return UNWOUND_CONTRADICTION
    if rule.cfa_register == DWARF_RSP:
        start = sp
    elif rule.cfa_register == DWARF_RBP:
        start = bp
    elif is_leaf and copy.known >> rule.cfa_register & 1:
        start = copy.registers[rule.cfa_register]
    else:
        return UNWOUND_CONTRADICTION
    cfa[0] = start + <int64_t>rule.cfa_offset
    return _word(copy, base, cfa[0], cfa) if rule.cfa == CFA_STORED else -1


cdef int _interrupted(const StackCopy* copy, uint64_t base, uint64_t* ip, uint64_t* sp, uint64_t* bp) noexcept nogil:
    """From a signal handler's frame to what it interrupted. -1: done."""
    cdef uint64_t next_sp = 0, frame = sp[0]
    cdef int why = _word(copy, base, frame + SIGNAL_RIP, ip)
    if why < 0:
        why = _word(copy, base, frame + SIGNAL_RBP, bp)
    if why < 0:
        why = _word(copy, base, frame + SIGNAL_RSP, &next_sp)
    if why >= 0:
        return why
    # A handler on a stack of its own (sigaltstack) interrupted something on another one, of which there is no copy.
    if next_sp <= frame or next_sp - base >= copy.size:
        return UNWOUND_COPY_ENDED
    sp[0] = next_sp
    return -1


cdef struct CodeRegion:
    uint64_t start, end
    uint64_t shift               # address in the process minus address in the file
    uint32_t table               # index + 1; 0: none
    bint asked                   # whether there is none is known

cdef struct CodeRegions:
    CodeRegion* items
    size_t used, room


cdef bint _mapped_at(CallFrames table, uint64_t offset, uint64_t length, uint64_t* vaddr) noexcept:
    """The address in the file of a mapping's first byte: a segment may begin in the middle of a page, which is mapped whole."""
    cdef uint32_t i
    cdef const ElfSegment* segment
    for i in range(table.segment_count):
        segment = &table.segments[i]
        if segment.offset < offset + length and offset < segment.offset + segment.file_size:
            vaddr[0] = segment.vaddr + offset - segment.offset
            return True
    return False


@cython.final
cdef class ProcessUnwinder(Unwinder):
    """Walks the stacks of one process, whose mappings of code are given in the order of their addresses."""

    cdef CodeRegions regions
    cdef list tables

    def __init__(self, regions):
        """[(start, end, offset in the file, CallFrames or None, whether its file was asked for one)]"""
        cdef uint64_t start, end, offset, before = 0, vaddr = 0
        cdef CodeRegion* region
        self.tables = []
        for start, end, offset, table, asked in regions:
            if start < before or end <= start:
                raise ValueError("regions overlap, or are not in order")
            before = end
            zs_reserve(&self.regions, 1)
            region = &self.regions.items[self.regions.used]
            region[0] = CodeRegion(start=start, end=end, shift=0, table=0, asked=asked)
            if table is not None and _mapped_at(<CallFrames?>table, offset, end - start, &vaddr):
                self.tables.append(table)
                region.shift, region.table = start - vaddr, <uint32_t>len(self.tables)
            self.regions.used += 1

    def __dealloc__(self):
        zs_free(&self.regions)

    cdef int _locate(self, uint64_t address) except -1:
        cdef size_t low = 0, high = self.regions.used, middle
        cdef const CodeRegion* region
        while low < high:
            middle = low + (high - low) // 2
            if self.regions.items[middle].start <= address:
                low = middle + 1
            else:
                high = middle
        if low == 0 or address >= self.regions.items[low - 1].end:
            return PLACE_NOWHERE
        region = &self.regions.items[low - 1]
        if region.table == 0:
            return PLACE_NO_TABLE if region.asked else PLACE_UNASKED
        self.found = <CallFrames>self.tables[region.table - 1]
        self.found_at = address - region.shift
        return PLACE_FOUND

    def unwind(self, uint64_t ip, uint64_t sp, uint64_t bp, const uint8_t[::1] stack not None):
        """([addresses, leaf first], why it ended: one of UNWOUND)"""
        cdef StackCopy copy
        cdef int why
        copy.ip, copy.known = ip, 1 << DWARF_RSP | 1 << DWARF_RBP
        copy.registers[DWARF_RSP], copy.registers[DWARF_RBP] = sp, bp
        copy.bytes_ = &stack[0] if stack.shape[0] else <const uint8_t*>b""
        copy.size = stack.shape[0]
        why = self.walk(&copy)
        return [self.chain[i] for i in range(self.depth)], UNWOUND[why]
