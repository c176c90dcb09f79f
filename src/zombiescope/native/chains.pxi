# Call chains as they lie in a file, and what became of them: most samples bring a chain that came before, and comparing
# thirty words with it costs less than looking up thirty addresses.

cdef struct KnownChain:
    uint64_t hash
    size_t first                 # into words; the first word is the key
    uint32_t length              # words of the chain
    uint32_t stack               # number in StackInterner; 0 = a free slot
    uint8_t context
    bint has_user

cdef size_t MAX_CHAIN_WORDS = 32 << 20


cdef inline uint64_t _hash_chain(uint64_t key, const uint8_t* chain, size_t length) noexcept nogil:
    # Two sums side by side: a multiplication waits for the one before it, not for its neighbour.
    cdef uint64_t even = key ^ <uint64_t>0x9E3779B97F4A7C15, odd = length
    cdef size_t i = 0
    while i + 2 <= length:
        even = (even ^ zs_u64(chain + 8 * i)) * <uint64_t>0xff51afd7ed558ccd
        odd = (odd ^ zs_u64(chain + 8 * i + 8)) * <uint64_t>0xc4ceb9fe1a85ec53
        even ^= even >> 29
        odd ^= odd >> 31
        i += 2
    if i < length:
        even = (even ^ zs_u64(chain + 8 * i)) * <uint64_t>0xff51afd7ed558ccd
    return _mix(even ^ (odd << 1))


cdef class ChainCache:
    """(key, chain) -> stack. The key says in which program images the addresses were looked up."""

    cdef KnownChain* slots
    cdef size_t mask, used
    cdef uint64_t* words
    cdef size_t words_used, words_room

    def __cinit__(self):
        self.mask = 4095
        self.words_room = 65536
        self.slots = <KnownChain*>PyMem_Malloc((self.mask + 1) * sizeof(KnownChain))
        self.words = <uint64_t*>PyMem_Malloc(self.words_room * sizeof(uint64_t))
        if self.slots == NULL or self.words == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.slots)
        PyMem_Free(self.words)

    cdef void clear(self) noexcept:
        memset(self.slots, 0, (self.mask + 1) * sizeof(KnownChain))
        self.used = self.words_used = 0

    cdef KnownChain* find(self, uint64_t key, const uint8_t* chain, size_t length) except NULL:
        """The slot of this chain; a new one has stack 0 until the caller fills it, with store()."""
        cdef uint64_t hash = _hash_chain(key, chain, length)
        cdef size_t slot
        cdef KnownChain* known
        if self.words_used > MAX_CHAIN_WORDS:
            self.clear()
        if self.used * 2 > self.mask:
            self._grow()
        slot = hash & self.mask
        while self.slots[slot].stack:
            known = &self.slots[slot]
            if known.hash == hash and known.length == length and self.words[known.first] == key and memcmp(
                self.words + known.first + 1, chain, length * 8
            ) == 0:
                return known
            slot = (slot + 1) & self.mask
        self.slots[slot].hash = hash
        return &self.slots[slot]

    cdef int store(self, KnownChain* slot, uint64_t key, const uint8_t* chain, size_t length, uint32_t stack,
                   uint8_t context, bint has_user) except -1:
        """Fills the slot that find() gave for this chain."""
        cdef void* grown
        if self.words_used + length + 1 > self.words_room:
            grown = PyMem_Realloc(self.words, (self.words_used + length + 1) * 2 * sizeof(uint64_t))
            if grown == NULL:
                raise MemoryError
            self.words = <uint64_t*>grown
            self.words_room = (self.words_used + length + 1) * 2
        self.words[self.words_used] = key
        memcpy(self.words + self.words_used + 1, chain, length * 8)
        slot.first, slot.length, slot.stack = self.words_used, <uint32_t>length, stack
        slot.context, slot.has_user = context, has_user
        self.words_used += length + 1
        self.used += 1
        return 0

    cdef int _grow(self) except -1:
        cdef KnownChain* old = self.slots
        cdef size_t old_mask = self.mask, mask = old_mask * 4 + 3, i, slot
        cdef KnownChain* fresh
        fresh = <KnownChain*>PyMem_Malloc((mask + 1) * sizeof(KnownChain))
        if fresh == NULL:
            raise MemoryError
        memset(fresh, 0, (mask + 1) * sizeof(KnownChain))
        for i in range(old_mask + 1):
            if old[i].stack:
                slot = old[i].hash & mask
                while fresh[slot].stack:
                    slot = (slot + 1) & mask
                fresh[slot] = old[i]
        PyMem_Free(old)
        self.slots = fresh
        self.mask = mask
        return 0
