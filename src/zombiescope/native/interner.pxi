# Interning: a stack of frame ids gets one number, a (space, address) of user code gets one frame id. Both live for one
# segment and are forgotten at its end, which bounds them.

cdef extern from *:
    """
    static inline void zs_fetch(const void *at) { __builtin_prefetch(at); }
    """
    void zs_fetch(const void* at) nogil


cdef inline uint64_t _mix(uint64_t x) noexcept nogil:
    x ^= x >> 33
    x *= <uint64_t>0xff51afd7ed558ccd
    x ^= x >> 33
    x *= <uint64_t>0xc4ceb9fe1a85ec53
    return x ^ (x >> 33)


cdef class StackInterner:
    """Stacks as runs of u32 in one arena; a number for each distinct run, starting at 1."""

    cdef uint32_t* arena
    cdef size_t arena_used, arena_room
    cdef size_t* start           # start[i] .. start[i+1] is stack i
    cdef size_t count, room      # count includes the unused number 0
    cdef uint32_t* slots
    cdef size_t slot_mask
    cdef size_t given            # stacks below this were handed out by take_new

    def __cinit__(self):
        self.room = 1024
        self.arena_room = 16384
        self.slot_mask = 4095
        self.arena = <uint32_t*>PyMem_Malloc(self.arena_room * sizeof(uint32_t))
        self.start = <size_t*>PyMem_Malloc((self.room + 1) * sizeof(size_t))
        self.slots = <uint32_t*>PyMem_Malloc((self.slot_mask + 1) * sizeof(uint32_t))
        if self.arena == NULL or self.start == NULL or self.slots == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.arena)
        PyMem_Free(self.start)
        PyMem_Free(self.slots)

    cpdef void clear(self):
        memset(self.slots, 0, (self.slot_mask + 1) * sizeof(uint32_t))
        self.arena_used = 0
        self.count = 1
        self.given = 1
        self.start[0] = self.start[1] = 0

    cdef uint32_t put(self, const uint32_t* frames, size_t length) except? 0:
        cdef uint64_t hash = _mix(length)
        cdef size_t i, slot
        cdef uint32_t number
        for i in range(length):
            hash = _mix(hash ^ frames[i])
        slot = hash & self.slot_mask
        while self.slots[slot]:
            number = self.slots[slot]
            if self.start[number + 1] - self.start[number] == length and memcmp(
                self.arena + self.start[number], frames, length * sizeof(uint32_t)
            ) == 0:
                return number
            slot = (slot + 1) & self.slot_mask
        self._make_room(length)
        number = <uint32_t>self.count
        memcpy(self.arena + self.arena_used, frames, length * sizeof(uint32_t))
        self.arena_used += length
        self.count += 1
        self.start[self.count] = self.arena_used
        self.slots[slot] = number
        if self.count * 2 > self.slot_mask:
            self._rehash()
        return number

    cdef int _make_room(self, size_t length) except -1:
        cdef void* grown
        if self.arena_used + length > self.arena_room:
            self.arena_room = (self.arena_used + length) * 3 // 2
            grown = PyMem_Realloc(self.arena, self.arena_room * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.arena = <uint32_t*>grown
        if self.count + 1 > self.room:
            self.room = self.room * 3 // 2
            grown = PyMem_Realloc(self.start, (self.room + 1) * sizeof(size_t))
            if grown == NULL:
                raise MemoryError
            self.start = <size_t*>grown
        return 0

    cdef int _rehash(self) except -1:
        cdef size_t mask = self.slot_mask * 4 + 3, slot, number, i
        cdef uint64_t hash
        cdef uint32_t* slots = <uint32_t*>PyMem_Malloc((mask + 1) * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        memset(slots, 0, (mask + 1) * sizeof(uint32_t))
        for number in range(1, self.count):
            hash = _mix(self.start[number + 1] - self.start[number])
            for i in range(self.start[number], self.start[number + 1]):
                hash = _mix(hash ^ self.arena[i])
            slot = hash & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = <uint32_t>number
        PyMem_Free(self.slots)
        self.slots = slots
        self.slot_mask = mask
        return 0

    def take_new(self):
        """Stacks that appeared since the last call: (first number, lengths, all frames), the last two as array('q')."""
        cdef size_t first = self.given, number, i, at = 0
        lengths = _column(self.count - first)
        flat = _column(self.arena_used - self.start[first])
        cdef int64_t[::1] length_view, flat_view
        if self.count > first:
            length_view = lengths
            for number in range(first, self.count):
                length_view[number - first] = <int64_t>(self.start[number + 1] - self.start[number])
        if len(flat):
            flat_view = flat
            for i in range(self.start[first], self.arena_used):
                flat_view[at] = self.arena[i]
                at += 1
        self.given = self.count
        return first, lengths, flat

    def intern(self, frames):
        """The number of a stack given as a sequence of frame ids (for importers and tests; the recorder calls put)."""
        cdef list ids = list(frames)
        cdef uint32_t* run = <uint32_t*>PyMem_Malloc((len(ids) + 1) * sizeof(uint32_t))
        cdef size_t i
        if run == NULL:
            raise MemoryError
        try:
            for i in range(<size_t>len(ids)):
                run[i] = ids[i]
            return self.put(run, len(ids))
        finally:
            PyMem_Free(run)

    def __len__(self):
        return self.count - 1

    @property
    def nbytes(self):
        return (self.arena_room + self.slot_mask + 1) * sizeof(uint32_t) + self.room * sizeof(size_t)


cdef struct UserFrame:
    uint64_t address
    uint32_t space
    uint32_t frame

cdef uint32_t FRAME_PENDING = 0xFFFFFFFF
cdef uint32_t FRAME_GARBAGE = 0


cdef inline uint64_t _slot_of(uint32_t space, uint64_t address) noexcept nogil:
    return _mix(address ^ (<uint64_t>space << 40))


cdef class UserFrames:
    """(space, address) -> frame id. A space is one program image of one process: it changes at exec and at pid reuse."""

    cdef UserFrame* slots
    cdef size_t mask, used

    def __cinit__(self):
        self.mask = 4095
        self.slots = <UserFrame*>PyMem_Malloc((self.mask + 1) * sizeof(UserFrame))
        if self.slots == NULL:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.slots)

    cdef void clear(self) noexcept:
        memset(self.slots, 0, (self.mask + 1) * sizeof(UserFrame))
        self.used = 0

    cdef UserFrame* find(self, uint32_t space, uint64_t address) except NULL:
        """The slot of this key; a new one has `space` 0 until the caller fills it."""
        cdef size_t slot
        if self.used * 2 > self.mask:
            self._grow()
        slot = _slot_of(space, address) & self.mask
        while self.slots[slot].space:
            if self.slots[slot].space == space and self.slots[slot].address == address:
                return &self.slots[slot]
            slot = (slot + 1) & self.mask
        return &self.slots[slot]

    cdef void fetch(self, uint32_t space, uint64_t address) noexcept:
        """Has the CPU fetch the slot of this key: find() will be called soon."""
        zs_fetch(&self.slots[_slot_of(space, address) & self.mask])

    cdef void forget_range(self, uint32_t space, uint64_t start, uint64_t length) noexcept:
        """Marks what lies in a range of one space as to be resolved again."""
        cdef size_t i
        for i in range(self.mask + 1):
            if self.slots[i].space == space and self.slots[i].address - start < length:
                self.slots[i].frame = FRAME_PENDING

    cdef int _grow(self) except -1:
        cdef UserFrame* old = self.slots
        cdef size_t old_mask = self.mask, i
        # A large table does not fit the CPU's caches: the sparser it is, the more of it is missed.
        cdef size_t room = (old_mask + 1) * (4 if old_mask < 65536 else 2)
        self.slots = <UserFrame*>PyMem_Malloc(room * sizeof(UserFrame))
        if self.slots == NULL:
            self.slots = old
            raise MemoryError
        self.mask = room - 1
        self.clear()
        for i in range(old_mask + 1):
            if old[i].space:
                self.find(old[i].space, old[i].address)[0] = old[i]
                self.used += 1
        PyMem_Free(old)
        return 0


cdef struct IdSlot:
    uint64_t key
    uint32_t value
    uint32_t state           # 0 free, 1 taken, 2 removed


cdef class IdMap:
    """u64 -> u32 in 16 bytes an entry: 70,000 cgroup ids in 2 MB where a dict takes ten."""

    cdef IdSlot* slots
    cdef size_t mask, used, filled

    def __cinit__(self):
        self.mask = 1023
        self.slots = <IdSlot*>PyMem_Malloc((self.mask + 1) * sizeof(IdSlot))
        if self.slots == NULL:
            raise MemoryError
        memset(self.slots, 0, (self.mask + 1) * sizeof(IdSlot))

    def __dealloc__(self):
        PyMem_Free(self.slots)

    cdef Py_ssize_t _find(self, uint64_t key) noexcept nogil:
        cdef size_t slot = _mix(key) & self.mask
        while self.slots[slot].state:
            if self.slots[slot].state == 1 and self.slots[slot].key == key:
                return <Py_ssize_t>slot
            slot = (slot + 1) & self.mask
        return -1

    def get(self, uint64_t key):
        """The value, or None."""
        cdef Py_ssize_t slot = self._find(key)
        return None if slot < 0 else self.slots[slot].value

    def set(self, uint64_t key, uint32_t value):
        cdef Py_ssize_t at = self._find(key)
        cdef size_t slot
        if at >= 0:
            self.slots[at].value = value
            return
        if self.filled * 2 > self.mask:
            self._lay_anew()
        slot = _mix(key) & self.mask
        while self.slots[slot].state == 1:
            slot = (slot + 1) & self.mask
        self.filled += self.slots[slot].state == 0
        self.used += 1
        self.slots[slot] = IdSlot(key=key, value=value, state=1)

    def pop(self, uint64_t key):
        """Removes the key; its value, or None."""
        cdef Py_ssize_t slot = self._find(key)
        if slot < 0:
            return None
        self.slots[slot].state = 2
        self.used -= 1
        return self.slots[slot].value

    cdef int _lay_anew(self) except -1:
        cdef size_t mask = 1023, i, slot
        cdef IdSlot* fresh
        while self.used * 4 > mask:
            mask = mask * 2 + 1
        fresh = <IdSlot*>PyMem_Malloc((mask + 1) * sizeof(IdSlot))
        if fresh == NULL:
            raise MemoryError
        memset(fresh, 0, (mask + 1) * sizeof(IdSlot))
        for i in range(self.mask + 1):
            if self.slots[i].state == 1:
                slot = _mix(self.slots[i].key) & mask
                while fresh[slot].state:
                    slot = (slot + 1) & mask
                fresh[slot] = self.slots[i]
        PyMem_Free(self.slots)
        self.slots = fresh
        self.mask = mask
        self.filled = self.used
        return 0

    def items(self):
        """(keys as array('Q'), values as array('I')), in no order."""
        cdef size_t i, at = 0
        keys, values = _array("Q", bytes(8 * self.used)), _array("I", bytes(4 * self.used))
        cdef uint64_t[::1] key_view
        cdef unsigned int[::1] value_view
        if self.used:
            key_view, value_view = keys, values
            for i in range(self.mask + 1):
                if self.slots[i].state == 1:
                    key_view[at] = self.slots[i].key
                    value_view[at] = self.slots[i].value
                    at += 1
        return keys, values

    def __len__(self):
        return self.used

    @property
    def nbytes(self):
        return (self.mask + 1) * sizeof(IdSlot)
