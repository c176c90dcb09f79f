# What an address is: (space, address) -> frame, for one segment or one file. A space is one program image of one process: it
# changes at exec and at pid reuse.

cdef struct FrameSlot:
    zs_slot slot                 # number: frame + 1
    uint64_t address

cdef enum:
    FRAME_GARBAGE = 0

cdef uint32_t FRAME_PENDING = 0xFFFFFFFE
cdef uint32_t FRAME_NONE = 0xFFFFFFFF


cdef inline uint32_t _frame_hash(uint32_t space, uint64_t address) noexcept nogil:
    """Another one for each space of one address: address and hash are the whole key, in a slot of 16 bytes."""
    return <uint32_t>zs_hash_word(address) ^ space * <uint32_t>0x9E3779B1


@cython.final
cdef class FrameTable:
    cdef zs_table table

    def __cinit__(self):
        zs_begin_wide(&self.table, 0, sizeof(FrameSlot))

    def __dealloc__(self):
        zs_free_table(&self.table)

    cdef void clear(self) noexcept:
        zs_clear(&self.table)

    cdef inline FrameSlot* _slot(self, size_t at) noexcept nogil:
        return <FrameSlot*>zs_slot_at(&self.table, at, sizeof(FrameSlot))

    cdef inline uint32_t find(self, uint32_t space, uint64_t address) noexcept nogil:
        """The frame, or FRAME_NONE."""
        cdef uint32_t hash = _frame_hash(space, address)
        cdef size_t at = hash
        cdef uint32_t number = zs_probe_wide(&self.table, hash, &at, sizeof(FrameSlot))
        while number and self._slot(at - 1).address != address:
            number = zs_probe_wide(&self.table, hash, &at, sizeof(FrameSlot))
        return number - 1

    cdef int set(self, uint32_t space, uint64_t address, uint32_t frame) except -1:
        cdef uint32_t hash = _frame_hash(space, address)
        cdef size_t at = hash
        cdef FrameSlot* slot
        while zs_probe_wide(&self.table, hash, &at, sizeof(FrameSlot)):
            if self._slot(at - 1).address == address:
                self._slot(at - 1).slot.number = frame + 1
                return 0
        slot = <FrameSlot*>zs_insert_wide(&self.table, at, hash, frame + 1, sizeof(FrameSlot))
        slot.address = address
        return 0

    cdef void fetch(self, uint32_t space, uint64_t address) noexcept nogil:
        """Has the CPU fetch the slot of this key: find() will be called soon."""
        zs_fetch(self._slot(_frame_hash(space, address)))

    cdef void forget_range(self, uint32_t space, uint64_t start, uint64_t length) noexcept nogil:
        """Marks what lies in a range of one space as to be resolved again."""
        cdef size_t i
        cdef FrameSlot* slot
        for i in range(self.table.mask + 1):
            slot = self._slot(i)
            if slot.slot.number and slot.address - start < length and slot.slot.hash == _frame_hash(space, slot.address):
                slot.slot.number = FRAME_PENDING + 1
