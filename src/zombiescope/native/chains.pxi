# Call chains as they lie in a file, and what became of them. Where the CPU was (the leaf) differs from sample to sample; how it
# came there is mostly known already, and comparing thirty words costs less than looking up thirty addresses.

cdef struct Chain:
    uint64_t mode                # the context of the leaf
    uint64_t leaf
    const uint8_t* callers       # what follows the leaf
    size_t depth


cdef inline bint _is_context(uint64_t word) noexcept nogil:
    """Whether a word of a chain says whose addresses follow. A user's stack may hold any number: others are not believed."""
    return word >= PERF_CONTEXT_MAX and (
        word == PERF_CONTEXT_KERNEL or word == PERF_CONTEXT_USER or word == PERF_CONTEXT_HV or word == PERF_CONTEXT_USER_DEFERRED
        or word == CONTEXT_ENDED or word == PERF_CONTEXT_GUEST or word == PERF_CONTEXT_GUEST_KERNEL or word == PERF_CONTEXT_GUEST_USER
    )


cdef inline bint _split(const uint8_t* chain, size_t depth, Chain* parts) noexcept nogil:
    """Parts a chain into its leaf and the rest; False when it has no address."""
    cdef size_t step
    parts.mode, parts.leaf = PERF_CONTEXT_USER, 0
    while depth and _is_context(zs_u64(chain)):
        parts.mode = zs_u64(chain)
        # What follows this one is a number, not an address.
        step = 2 if parts.mode == PERF_CONTEXT_USER_DEFERRED and depth > 1 else 1
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
    if parts.mode == PERF_CONTEXT_USER:
        return True
    while i:
        i -= 1
        if zs_u64(parts.callers + 8 * i) == PERF_CONTEXT_USER:
            return True
    return False


cdef inline uint64_t _context_of_mode(uint16_t misc) noexcept nogil:
    cdef uint16_t mode = misc & PERF_RECORD_MISC_CPUMODE_MASK
    if mode == PERF_RECORD_MISC_KERNEL:
        return PERF_CONTEXT_KERNEL
    if mode == PERF_RECORD_MISC_USER or mode == 0:
        return PERF_CONTEXT_USER
    return PERF_CONTEXT_HV if mode == PERF_RECORD_MISC_HYPERVISOR else PERF_CONTEXT_GUEST


cdef inline uint64_t _mode_number(uint64_t context) noexcept nogil:
    if context == PERF_CONTEXT_KERNEL:
        return 1
    return 0 if context == PERF_CONTEXT_USER else 3 if context == PERF_CONTEXT_HV else 2


cdef struct ChainHead:           # an entry is its key, this, and the words of the chain
    uint32_t tail                # number in the StackInterner of callers
    uint16_t length              # words of the chain
    uint8_t context
    uint8_t has_user
    uint32_t leaf                # the function in which a sample with these callers was last, and the stack that was
    uint32_t stack               # 0 = none yet

cdef enum:
    ENTRY_WORDS = 3              # before the words of the chain

cdef size_t MAX_CHAIN_WORDS = 32 << 20


@cython.final
cdef class ChainCache:
    """(key, chain) -> tail. The key says in which program images the addresses were looked up. The table gives the place of
    an entry in `words`."""

    cdef zs_table table
    cdef Longs words
    cdef size_t free_slot        # where the search for the chain asked for last ended

    def __cinit__(self):
        zs_begin(&self.table, 8192)
        self.clear()

    def __dealloc__(self):
        zs_free_table(&self.table)
        zs_free(&self.words)

    cdef int clear(self) except -1:
        zs_clear(&self.table)
        zs_reserve(&self.words, 1)
        self.words.used = 1      # no entry has the place 0
        return 0

    cdef inline void fetch_slot(self, uint64_t hash) noexcept nogil:
        zs_fetch(zs_slot_at(&self.table, hash, sizeof(zs_slot)))

    cdef inline void fetch_entry(self, uint64_t hash) noexcept nogil:
        cdef const uint64_t* entry = self.words.items + zs_slot_at(&self.table, hash, sizeof(zs_slot)).number
        cdef int line
        for line in range(5):
            zs_fetch(entry + 8 * line)

    cdef inline int prepare(self) except -1:
        """Bounds the cache; what find() gave before does not hold any more."""
        return self.clear() if self.words.used > MAX_CHAIN_WORDS else 0

    cdef inline ChainHead* find(self, uint64_t hash, uint64_t key, const uint8_t* chain, size_t length) noexcept nogil:
        """What is known of this chain, whose hash is given, or NULL: then store() may follow."""
        cdef size_t at = hash
        cdef uint32_t place = zs_probe(&self.table, hash, &at)
        cdef uint64_t* entry
        while place:
            entry = self.words.items + place
            if entry[0] == key and (<ChainHead*>(entry + 1)).length == length and memcmp(
                entry + ENTRY_WORDS, chain, length * 8
            ) == 0:
                return <ChainHead*>(entry + 1)
            place = zs_probe(&self.table, hash, &at)
        self.free_slot = at
        return NULL

    cdef ChainHead* store(self, uint64_t hash, uint64_t key, const uint8_t* chain, size_t length, uint32_t tail,
                          uint8_t context, bint has_user) except NULL:
        """Keeps the chain that find() did not find; nothing else was asked for since."""
        cdef uint64_t* entry
        cdef ChainHead* head
        zs_reserve(&self.words, length + ENTRY_WORDS)
        zs_insert(&self.table, self.free_slot, hash, <uint32_t>self.words.used)
        entry = self.words.items + self.words.used
        entry[0] = key
        head = <ChainHead*>(entry + 1)
        head.tail, head.length, head.context, head.has_user = tail, <uint16_t>length, context, has_user
        head.leaf = head.stack = 0
        memcpy(entry + ENTRY_WORDS, chain, length * 8)
        self.words.used += length + ENTRY_WORDS
        return head
