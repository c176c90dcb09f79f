# Runs of bytes that come again and again, each kept once under a number: stacks of frame numbers, names, lines of text.

cimport cython


cdef class RunTable:
    """Numbers start at 1: run i is arena[starts[i]:starts[i + 1]]."""

    cdef Bytes arena
    cdef Offsets starts
    cdef zs_table table

    def __cinit__(self):
        zs_begin(&self.table, 0)
        zs_extend(&self.starts, 2)

    def __dealloc__(self):
        zs_free(&self.arena)
        zs_free(&self.starts)
        zs_free_table(&self.table)

    cpdef void clear(self):
        zs_clear(&self.table)
        self.arena.used = 0
        self.starts.used = 2

    @cython.final
    cdef inline size_t count(self) noexcept nogil:
        return self.starts.used - 2

    @cython.final
    cdef inline size_t length(self, uint32_t number) noexcept nogil:
        return self.starts.items[number + 1] - self.starts.items[number]

    @cython.final
    cdef inline const uint8_t* run(self, uint32_t number) noexcept nogil:
        return self.arena.items + self.starts.items[number]

    @cython.final
    cdef inline uint32_t put(self, const void* run, size_t length) except 0:
        """The number of a run, which is kept if it is new."""
        cdef uint64_t hash = zs_hash_bytes(run, length, 0)
        cdef size_t at = hash
        cdef uint32_t number = zs_probe(&self.table, hash, &at)
        while number and (self.length(number) != length or not zs_same(self.run(number), run, length)):
            number = zs_probe(&self.table, hash, &at)
        if number:
            return number
        zs_reserve(&self.arena, length)
        zs_copy(self.arena.items + self.arena.used, run, length)
        return self.keep(length, hash, at)

    @cython.final
    cdef uint32_t keep(self, size_t length, uint64_t hash, size_t at) except 0:
        """Makes a run of the bytes behind the last one; `at` is where the search for it ended."""
        cdef size_t number = self.starts.used - 1
        if number > 0x7FFFFFFF:
            raise MemoryError
        zs_reserve(&self.starts, 1)
        zs_insert(&self.table, at, hash, <uint32_t>number)
        self.arena.used += length
        self.starts.items[self.starts.used] = self.arena.used
        self.starts.used += 1
        return <uint32_t>number

    def __len__(self):
        return self.count()

    @property
    def nbytes(self):
        return self.arena.room + self.starts.room * sizeof(size_t) + zs_table_bytes(&self.table)


@cython.final
cdef class StackInterner(RunTable):
    """Stacks as runs of u32."""

    cdef size_t given            # stacks below this were handed out by take_new

    def __cinit__(self):
        self.given = 1

    cpdef void clear(self):
        RunTable.clear(self)
        self.given = 1

    def take_new(self):
        """Stacks that appeared since the last call: (first number, lengths, all frames), the last two as array('q')."""
        cdef size_t first = self.given, end = self.count() + 1, i
        cdef c_array.array lengths = _column(end - first)
        cdef c_array.array flat = _column((self.arena.used - self.starts.items[first]) // sizeof(uint32_t))
        cdef const uint32_t* frames = <const uint32_t*>self.run(<uint32_t>first)
        for i in range(first, end):
            lengths.data.as_longlongs[i - first] = <int64_t>(self.length(<uint32_t>i) // sizeof(uint32_t))
        for i in range(<size_t>len(flat)):
            flat.data.as_longlongs[i] = frames[i]
        self.given = end
        return first, lengths, flat

    def intern(self, frames):
        """The number of a stack given as a sequence of frame ids (for importers and tests; the recorder calls put)."""
        cdef c_array.array run = _array("I", frames)
        return self.put(run.data.as_voidptr, len(run) * sizeof(uint32_t))


@cython.final
cdef class TextTable(RunTable):
    """Pieces of text, each with a value above 0. A text may lie in two pieces; where the first ends is part of it."""

    cdef Words values            # by number

    def __dealloc__(self):
        zs_free(&self.values)

    cdef inline uint32_t find(self, const uint8_t* a, size_t a_length, const uint8_t* b, size_t b_length,
                              uint64_t hash) noexcept nogil:
        """The value of a text, or 0."""
        cdef size_t at = hash
        cdef uint32_t number = zs_probe(&self.table, hash, &at)
        while number and not self._is(number, a, a_length, b, b_length):
            number = zs_probe(&self.table, hash, &at)
        return self.values.items[number] if number else 0

    cdef inline bint _is(self, uint32_t number, const uint8_t* a, size_t a_length, const uint8_t* b,
                         size_t b_length) noexcept nogil:
        cdef const uint8_t* run = self.run(number)
        return (
            self.length(number) == 4 + a_length + b_length and zs_u32(run) == a_length
            and zs_same(run + 4, a, a_length) and zs_same(run + 4 + a_length, b, b_length)
        )

    cdef int set(self, const uint8_t* a, size_t a_length, const uint8_t* b, size_t b_length, uint64_t hash,
                 uint32_t value) except -1:
        """Gives a text that is not there its value."""
        cdef size_t at = hash
        cdef uint32_t number, first = <uint32_t>a_length
        cdef uint8_t* run
        zs_reserve(&self.arena, 4 + a_length + b_length)
        zs_extend(&self.values, self.starts.used)
        run = self.arena.items + self.arena.used
        memcpy(run, &first, 4)
        zs_copy(run + 4, a, a_length)
        zs_copy(run + 4 + a_length, b, b_length)
        while zs_probe(&self.table, hash, &at):
            pass
        number = self.keep(4 + a_length + b_length, hash, at)
        self.values.items[number] = value
        return 0
