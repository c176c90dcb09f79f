# Dictionaries of many parts become one: functions that have the same name, module and kind get one number, and so do
# stacks of the same functions. From outside, numbers start at 0.


@cython.final
cdef class FunctionSet(RunTable):
    """Functions by name, module and kind. A frame without a name is "?", one without a kind "unknown"."""

    def add(self, rows, name, module, kind):
        """Each column as (offsets, bytes), as Arrow has strings. The number of each row, as array('i'), and the rows
        that brought a new function, as a list in the order of their numbers."""
        cdef size_t count = rows, row, before, length
        cdef const int32_t[::1] name_at = name[0], module_at = module[0], kind_at = kind[0]
        cdef const uint8_t[::1] name_data = name[1], module_data = module[1], kind_data = kind[1]
        numbers = _array("i", bytes(4 * count))
        cdef int32_t[::1] out
        cdef list new = []
        if not count:
            return numbers, new
        out = numbers
        for row in range(count):
            before = self.count()
            length = self._text(0, name_data, name_at[row], name_at[row + 1], b"?", 1)
            length = self._text(length, module_data, module_at[row], module_at[row + 1], b"", 0)
            length = self._text(length, kind_data, kind_at[row], kind_at[row + 1], b"unknown", 7)
            out[row] = <int32_t>self.put(self.arena.items + self.arena.used, length) - 1
            if self.count() > before:
                new.append(row)
        return numbers, new

    cdef size_t _text(self, size_t length, const uint8_t[::1] data, int32_t start, int32_t end, const char* instead,
                      size_t instead_length) except 0:
        """Writes a text and a zero byte, which no name has inside, behind the arena and `length`: the length then."""
        cdef const void* text = instead
        if end > start:
            if start < 0 or end > data.shape[0]:
                raise ValueError("a text ends outside its column")
            text, instead_length = &data[start], end - start
        zs_reserve(&self.arena, length + instead_length + 1)
        zs_copy(self.arena.items + self.arena.used + length, text, instead_length)
        self.arena.items[self.arena.used + length + instead_length] = 0
        return length + instead_length + 1


@cython.final
cdef class StackSet(RunTable):
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
            if offsets[stack] < 0 or offsets[stack + 1] < offsets[stack] or offsets[stack + 1] > frames.shape[0]:
                raise ValueError("a stack ends outside its column")
            length = offsets[stack + 1] - offsets[stack]
            zs_reserve(&self.arena, 4 * length + 4)
            run = <int32_t*>(self.arena.items + self.arena.used)
            for i in range(length):
                frame = frames[offsets[stack] + i]
                run[i] = number_of[frame] if 0 <= frame < known else 0
            if length == 0:
                run[0] = 0
                length = 1
            out[stack] = <int32_t>self.put(run, 4 * length) - 1
        return numbers

    def runs(self):
        """All stacks: where each begins (one more than there are, array('q')), and their functions (array('i'))."""
        starts, flat = _array("q", bytes(8 * (self.count() + 1))), _array("i")
        cdef int64_t[::1] out = starts
        cdef size_t i
        for i in range(self.count() + 1):
            out[i] = <int64_t>(self.starts.items[i + 1] // 4)
        if self.arena.used:
            flat.frombytes(<const uint8_t[:self.arena.used]>self.arena.items)
        return starts, flat
