# Text that comes again and again gets a number: a hash that reads sixteen bytes a step, and a table of what was seen.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t zs_fold(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    /* Sixteen bytes a step; the last bytes are read together with some that were read before. */
    static inline uint64_t zs_hash_text(const uint8_t *text, size_t length, uint64_t seed) {
        const uint64_t k1 = 0x9e3779b97f4a7c15ULL, k2 = 0xe7037ed1a0b428dbULL;
        uint64_t hash = seed ^ k1, a = 0, b = 0;
        size_t left = length;
        while (left > 16) {
            memcpy(&a, text, 8);
            memcpy(&b, text + 8, 8);
            hash = zs_fold(a ^ k1, b ^ hash);
            text += 16;
            left -= 16;
        }
        a = b = 0;
        if (left >= 8) {
            memcpy(&a, text, 8);
            memcpy(&b, text + left - 8, 8);
        } else if (left >= 4) {
            uint32_t x, y;
            memcpy(&x, text, 4);
            memcpy(&y, text + left - 4, 4);
            a = x;
            b = y;
        } else if (left) {
            a = text[0] | (uint64_t)text[left >> 1] << 8 | (uint64_t)text[left - 1] << 16;
        }
        return zs_fold(a ^ k2 ^ length, b ^ hash);
    }
    static inline int zs_is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }
    static inline int zs_is_hex(uint8_t c) { return zs_is_digit(c) || (uint8_t)((c | 32) - 'a') < 6; }
    """
    uint64_t zs_hash_text(const uint8_t* text, size_t length, uint64_t seed) noexcept nogil
    bint zs_is_digit(uint8_t c) noexcept nogil
    bint zs_is_hex(uint8_t c) noexcept nogil
    const void* memrchr(const void* text, int byte, size_t length) noexcept nogil

cdef struct TextSlot:
    uint64_t hash
    size_t at
    uint32_t length
    uint32_t value                  # 0: the slot is free


cdef class TextTable:
    """Pieces of text, each with a number above 0."""

    cdef TextSlot* slots
    cdef size_t mask, used
    cdef uint8_t* arena
    cdef size_t arena_used, arena_room

    def __cinit__(self):
        self.mask = 1023
        self.arena_room = 1 << 16
        self.slots = <TextSlot*>PyMem_Malloc((self.mask + 1) * sizeof(TextSlot))
        self.arena = <uint8_t*>PyMem_Malloc(self.arena_room)
        if self.slots == NULL or self.arena == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.slots)
        PyMem_Free(self.arena)

    cdef void clear(self) noexcept:
        memset(self.slots, 0, (self.mask + 1) * sizeof(TextSlot))
        self.used = self.arena_used = 0

    cdef inline TextSlot* find(self, const uint8_t* text, size_t length, uint64_t hash) noexcept nogil:
        """The slot of this text; its value is 0 when the text is new."""
        cdef size_t at = hash & self.mask
        cdef TextSlot* slot
        while True:
            slot = &self.slots[at]
            if slot.value == 0:
                return slot
            if slot.hash == hash and slot.length == length and memcmp(self.arena + slot.at, text, length) == 0:
                return slot
            at = (at + 1) & self.mask

    cdef inline TextSlot* find2(
        self, const uint8_t* a, size_t a_length, const uint8_t* b, size_t b_length, uint64_t hash
    ) noexcept nogil:
        """The slot of a text that lies in two pieces; `hash` tells where the one ends."""
        cdef size_t at = hash & self.mask
        cdef TextSlot* slot
        while True:
            slot = &self.slots[at]
            if slot.value == 0 or (
                slot.hash == hash and slot.length == a_length + b_length
                and memcmp(self.arena + slot.at, a, a_length) == 0
                and memcmp(self.arena + slot.at + a_length, b, b_length) == 0
            ):
                return slot
            at = (at + 1) & self.mask

    cdef int add(self, const uint8_t* text, size_t length, uint64_t hash, uint32_t value) except -1:
        cdef TextSlot* slot
        cdef void* grown
        if (self.used + 1) * 2 > self.mask:
            self._widen()
        if self.arena_used + length > self.arena_room:
            grown = PyMem_Realloc(self.arena, (self.arena_used + length) * 2)
            if grown == NULL:
                raise MemoryError
            self.arena = <uint8_t*>grown
            self.arena_room = (self.arena_used + length) * 2
        slot = self.find(text, length, hash)
        slot.hash, slot.at, slot.length, slot.value = hash, self.arena_used, <uint32_t>length, value
        memcpy(self.arena + self.arena_used, text, length)
        self.arena_used += length
        self.used += 1
        return 0

    cdef int _widen(self) except -1:
        cdef size_t mask = self.mask * 4 + 3, i, at
        cdef TextSlot* wide = <TextSlot*>PyMem_Malloc((mask + 1) * sizeof(TextSlot))
        if wide == NULL:
            raise MemoryError
        memset(wide, 0, (mask + 1) * sizeof(TextSlot))
        for i in range(self.mask + 1):
            if self.slots[i].value:
                at = self.slots[i].hash & mask
                while wide[at].value:
                    at = (at + 1) & mask
                wide[at] = self.slots[i]
        PyMem_Free(self.slots)
        self.slots, self.mask = wide, mask
        return 0
