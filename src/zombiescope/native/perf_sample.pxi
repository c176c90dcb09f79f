# A sample's insides: the fields of changing length, and the parts of a call chain. Every place is checked before it is read.

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
