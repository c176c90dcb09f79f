# Dictionaries of many parts become one: functions that have the same name, module and kind get one number, and so do
# stacks of the same functions. Both tables keep what they saw in one arena, and only ever grow.

cdef inline uint64_t _hash_bytes(uint64_t seed, const uint8_t* data, size_t length) noexcept nogil:
    cdef uint64_t word, hash = seed ^ (length * <uint64_t>0x9e3779b97f4a7c15)
    while length >= 8:
        memcpy(&word, data, 8)
        hash = (hash ^ word) * <uint64_t>0xff51afd7ed558ccd
        hash ^= hash >> 32
        data += 8
        length -= 8
    if length:
        word = 0
        memcpy(&word, data, length)
        hash = (hash ^ word) * <uint64_t>0xff51afd7ed558ccd
        hash ^= hash >> 32
    return hash


cdef class RunSet:
    """Runs of bytes, each kept once: run i is arena[start[i]:start[i + 1]]. Hashes are kept, so growing reads no run."""

    cdef uint8_t* arena
    cdef size_t arena_used, arena_room
    cdef size_t* start
    cdef uint64_t* hashes
    cdef size_t count, room
    cdef uint32_t* slots         # number + 1; 0 is free
    cdef size_t slot_mask

    def __cinit__(self):
        self.room = 1024
        self.arena_room = 65536
        self.slot_mask = 4095
        self.arena = <uint8_t*>PyMem_Malloc(self.arena_room)
        self.start = <size_t*>PyMem_Malloc((self.room + 1) * sizeof(size_t))
        self.hashes = <uint64_t*>PyMem_Malloc(self.room * sizeof(uint64_t))
        self.slots = <uint32_t*>PyMem_Malloc((self.slot_mask + 1) * sizeof(uint32_t))
        if self.arena == NULL or self.start == NULL or self.hashes == NULL or self.slots == NULL:
            raise MemoryError
        memset(self.slots, 0, (self.slot_mask + 1) * sizeof(uint32_t))
        self.start[0] = 0

    def __dealloc__(self):
        PyMem_Free(self.arena)
        PyMem_Free(self.start)
        PyMem_Free(self.hashes)
        PyMem_Free(self.slots)

    cdef uint8_t* room_for(self, size_t length) except NULL:
        """Where the next run is written before it is put."""
        cdef void* grown
        if self.arena_used + length > self.arena_room:
            self.arena_room = (self.arena_used + length) * 3 // 2
            grown = PyMem_Realloc(self.arena, self.arena_room)
            if grown == NULL:
                raise MemoryError
            self.arena = <uint8_t*>grown
        return self.arena + self.arena_used

    cdef int64_t put(self, size_t length) except -1:
        """The number of the run that was written to room_for(length); it is kept only when it is new."""
        cdef const uint8_t* run = self.arena + self.arena_used
        cdef uint64_t hash = _hash_bytes(0, run, length)
        cdef size_t slot = hash & self.slot_mask, number
        while self.slots[slot]:
            number = self.slots[slot] - 1
            if (
                self.hashes[number] == hash
                and self.start[number + 1] - self.start[number] == length
                and memcmp(self.arena + self.start[number], run, length) == 0
            ):
                return <int64_t>number
            slot = (slot + 1) & self.slot_mask
        if self.count + 1 > self.room:
            self._more_runs()
        number = self.count
        self.arena_used += length
        self.hashes[number] = hash
        self.start[number + 1] = self.arena_used
        self.count += 1
        self.slots[slot] = <uint32_t>(number + 1)
        if self.count * 2 > self.slot_mask:
            self._more_slots()
        return <int64_t>number

    cdef int _more_runs(self) except -1:
        cdef size_t room = self.room * 2
        cdef void* grown = PyMem_Realloc(self.start, (room + 1) * sizeof(size_t))
        if grown == NULL:
            raise MemoryError
        self.start = <size_t*>grown
        grown = PyMem_Realloc(self.hashes, room * sizeof(uint64_t))
        if grown == NULL:
            raise MemoryError
        self.hashes = <uint64_t*>grown
        self.room = room
        return 0

    cdef int _more_slots(self) except -1:
        cdef size_t mask = self.slot_mask * 4 + 3, slot, number
        cdef uint32_t* slots = <uint32_t*>PyMem_Malloc((mask + 1) * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        memset(slots, 0, (mask + 1) * sizeof(uint32_t))
        for number in range(self.count):
            slot = self.hashes[number] & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = <uint32_t>(number + 1)
        PyMem_Free(self.slots)
        self.slots = slots
        self.slot_mask = mask
        return 0

    def __len__(self):
        return self.count


cdef class FunctionSet(RunSet):
    """Functions by name, module and kind. A frame without a name is "?", one without a kind "unknown"."""

    def add(self, rows, name, module, kind):
        """Each column as (offsets, bytes), as Arrow has strings. The number of each row, as array('i'), and the rows
        that brought a new function, as a list in the order of their numbers."""
        cdef size_t count = rows, row, before
        cdef const int32_t[::1] name_at = name[0], module_at = module[0], kind_at = kind[0]
        cdef const uint8_t[::1] name_data = name[1], module_data = module[1], kind_data = kind[1]
        cdef uint8_t* run
        cdef uint8_t* first
        numbers = _array("i", bytes(4 * count))
        cdef int32_t[::1] out
        cdef list new = []
        if not count:
            return numbers, new
        out = numbers
        for row in range(count):
            before = self.count
            first = run = self.room_for(
                (name_at[row + 1] - name_at[row]) + (module_at[row + 1] - module_at[row])
                + (kind_at[row + 1] - kind_at[row]) + 16
            )
            run = self._text(run, name_data, name_at[row], name_at[row + 1], b"?", 1)
            run = self._text(run, module_data, module_at[row], module_at[row + 1], b"", 0)
            run = self._text(run, kind_data, kind_at[row], kind_at[row + 1], b"unknown", 7)
            out[row] = <int32_t>self.put(run - first)
            if self.count > before:
                new.append(row)
        return numbers, new

    cdef uint8_t* _text(
        self, uint8_t* run, const uint8_t[::1] data, int32_t start, int32_t end, const char* instead, size_t instead_length
    ) noexcept:
        """The text and a zero byte, which no name has inside."""
        if end > start:
            memcpy(run, &data[start], end - start)
            run += end - start
        else:
            memcpy(run, instead, instead_length)
            run += instead_length
        run[0] = 0
        return run + 1


cdef class StackSet(RunSet):
    """Stacks as runs of function numbers (int32)."""

    def add(self, const int32_t[::1] offsets, const int32_t[::1] frames, const int32_t[::1] number_of):
        """The number of each stack as array('i'). Stack s is frames[offsets[s]:offsets[s + 1]], and number_of says which
        function a frame is; a frame that it does not know is function 0. An empty stack is the stack of function 0."""
        cdef size_t stacks = offsets.shape[0] - 1, stack, length, i
        cdef int32_t known = <int32_t>number_of.shape[0], frame
        cdef int32_t* run
        numbers = _array("i", bytes(4 * stacks))
        cdef int32_t[::1] out
        if not stacks:
            return numbers
        out = numbers
        for stack in range(stacks):
            length = offsets[stack + 1] - offsets[stack]
            run = <int32_t*>self.room_for(4 * length + 4)
            for i in range(length):
                frame = frames[offsets[stack] + i]
                run[i] = number_of[frame] if 0 <= frame < known else 0
            if length == 0:
                run[0] = 0
                length = 1
            out[stack] = <int32_t>self.put(4 * length)
        return numbers

    def runs(self):
        """All stacks: where each begins (one more than there are, array('q')), and their functions (array('i'))."""
        starts, flat = _array("q", bytes(8 * (self.count + 1))), _array("i")
        cdef int64_t[::1] out = starts
        cdef size_t i
        for i in range(self.count + 1):
            out[i] = <int64_t>(self.start[i] // 4)
        flat.frombytes(<const uint8_t[:self.arena_used]>self.arena if self.arena_used else b"")
        return starts, flat
