# The callers in call chains as they lie in a file, and what became of them. Where the CPU was (the leaf) differs from
# sample to sample; how it came there is mostly known already, and comparing thirty words costs less than looking up thirty
# addresses.

cdef struct ChainSlot:
    uint32_t tag                 # upper half of the hash
    uint32_t place               # of the entry in words; 0 = a free slot
# An entry: its key, its head, then the words of the chain.

cdef struct ChainHead:
    uint32_t tail                # number in the StackInterner of callers
    uint16_t length              # words of the chain
    uint8_t context
    uint8_t has_user
    uint32_t leaf                # the function in which a sample with these callers was last, and the stack that was
    uint32_t stack               # 0 = none yet

cdef enum:
    ENTRY_WORDS = 3              # before the words of the chain

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
    """(key, chain) -> tail. The key says in which program images the addresses were looked up. The table is kept small (8
    bytes a chain) because it is hit at random, once a sample."""

    cdef ChainSlot* slots
    cdef size_t mask, used
    cdef uint64_t* words
    cdef size_t words_used, words_room
    cdef uint64_t last_hash      # of the chain asked for last, and where it belongs
    cdef size_t last_slot

    def __cinit__(self):
        self.mask = 16383
        self.words_room = 65536
        self.slots = <ChainSlot*>PyMem_Malloc((self.mask + 1) * sizeof(ChainSlot))
        self.words = <uint64_t*>PyMem_Malloc(self.words_room * sizeof(uint64_t))
        if self.slots == NULL or self.words == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.slots)
        PyMem_Free(self.words)

    cdef void clear(self) noexcept:
        memset(self.slots, 0, (self.mask + 1) * sizeof(ChainSlot))
        self.used = 0
        self.words_used = 1      # place 0 means free

    cdef void fetch_slot(self, uint64_t hash) noexcept:
        zs_fetch(&self.slots[hash & self.mask])

    cdef void fetch_entry(self, uint64_t hash) noexcept:
        cdef const uint64_t* entry = self.words + self.slots[hash & self.mask].place
        cdef int line
        for line in range(5):
            zs_fetch(entry + 8 * line)

    cdef int prepare(self) except -1:
        """Makes room for one more chain; what find() gave before does not hold any more."""
        if self.words_used > MAX_CHAIN_WORDS:
            self.clear()
        if self.used * 2 > self.mask:
            self._grow()
        return 0

    cdef ChainHead* find(self, uint64_t hash, uint64_t key, const uint8_t* chain, size_t length) noexcept:
        """What is known of this chain, whose hash is given, or NULL: then store() may follow."""
        cdef uint32_t tag = <uint32_t>(hash >> 32)
        cdef size_t slot = hash & self.mask
        cdef uint64_t* entry
        while self.slots[slot].place:
            if self.slots[slot].tag == tag:
                entry = self.words + self.slots[slot].place
                if entry[0] == key and (<ChainHead*>(entry + 1)).length == length and memcmp(
                    entry + ENTRY_WORDS, chain, length * 8
                ) == 0:
                    return <ChainHead*>(entry + 1)
            slot = (slot + 1) & self.mask
        self.last_hash, self.last_slot = hash, slot
        return NULL

    cdef ChainHead* store(self, uint64_t key, const uint8_t* chain, size_t length, uint32_t tail, uint8_t context,
                          bint has_user) except NULL:
        """Keeps the chain that find() did not find; nothing else was asked for since."""
        cdef void* grown
        cdef uint64_t* entry
        cdef ChainHead* head
        if self.words_used + length + ENTRY_WORDS > self.words_room:
            grown = PyMem_Realloc(self.words, (self.words_used + length + ENTRY_WORDS) * 2 * sizeof(uint64_t))
            if grown == NULL:
                raise MemoryError
            self.words = <uint64_t*>grown
            self.words_room = (self.words_used + length + ENTRY_WORDS) * 2
        entry = self.words + self.words_used
        entry[0] = key
        head = <ChainHead*>(entry + 1)
        head.tail, head.length, head.context, head.has_user = tail, <uint16_t>length, context, has_user
        head.leaf = head.stack = 0
        memcpy(entry + ENTRY_WORDS, chain, length * 8)
        self.slots[self.last_slot] = ChainSlot(tag=<uint32_t>(self.last_hash >> 32), place=<uint32_t>self.words_used)
        self.words_used += length + ENTRY_WORDS
        self.used += 1
        return head

    cdef int _grow(self) except -1:
        cdef ChainSlot* old = self.slots
        cdef size_t old_mask = self.mask, mask = old_mask * 4 + 3, i, slot
        cdef uint64_t* entry
        cdef ChainSlot* fresh = <ChainSlot*>PyMem_Malloc((mask + 1) * sizeof(ChainSlot))
        if fresh == NULL:
            raise MemoryError
        memset(fresh, 0, (mask + 1) * sizeof(ChainSlot))
        for i in range(old_mask + 1):
            if old[i].place:
                entry = self.words + old[i].place
                slot = _hash_chain(entry[0], <const uint8_t*>(entry + ENTRY_WORDS), (<ChainHead*>(entry + 1)).length) & mask
                while fresh[slot].place:
                    slot = (slot + 1) & mask
                fresh[slot] = old[i]
        PyMem_Free(old)
        self.slots = fresh
        self.mask = mask
        return 0
