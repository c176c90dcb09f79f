# Frame lines of `perf script`: "address symbol+0x1c (dso)". What stands behind the address is looked up whole, without the offset;
# it is handed to Python only when it is new.

cdef extern from *:
    """
    static inline int zs_is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }
    static inline int zs_is_hex(uint8_t c) { return zs_is_digit(c) || (uint8_t)((c | 32) - 'a') < 6; }
    """
    bint zs_is_digit(uint8_t c) noexcept nogil
    bint zs_is_hex(uint8_t c) noexcept nogil
    const void* memrchr(const void* text, int byte, size_t length) noexcept nogil

cdef enum:
    MOST_CACHED_LINES = 1 << 19
    FRAME_INLINED = 4               # beside ZS_IDLE and ZS_INTERRUPT


@cython.final
cdef class ScriptFrames:
    """Numbers functions from 1; `flags` and `places` are by that number."""

    cdef object place
    cdef TextTable lines, functions
    cdef FrameTable inlined         # (frame, place of the outer one) -> frame
    cdef Bytes flags
    cdef Words places               # which (module, kind)
    cdef list rows
    cdef dict numbers, place_numbers
    cdef bint saw_dso

    def __cinit__(self, place not None):
        self.place = place
        self.lines, self.functions, self.inlined = TextTable(), TextTable(), FrameTable()
        self.clear()

    def __dealloc__(self):
        zs_free(&self.flags)
        zs_free(&self.places)

    cdef void clear(self):
        self.lines.clear()
        self.functions.clear()
        self.inlined.clear()
        self.rows, self.numbers, self.place_numbers = [], {}, {}

    cdef inline uint32_t number(self, const uint8_t* at, const uint8_t* end) except 0:
        """The number of the function in a line; an address may stand before it."""
        cdef const uint8_t* begin = at
        cdef const uint8_t* word
        cdef const uint8_t* dso
        cdef bint high = False
        while at < end and (at[0] == 32 or at[0] == 9):
            at += 1
        word = at
        while word < end and zs_is_hex(word[0]):
            word += 1
        # A function may be called "add": an address is 16 wide with its spaces, and a name follows it.
        if word > at and (word == end or word[0] == 32) and not (
            word - begin < 16 and (word == end or end - word < 2 or word[1] == 40)
        ):
            high = word - at == 16 and at[0] > 55
            at = word
            while at < end and at[0] == 32:
                at += 1
        dso = <const uint8_t*>memrchr(at, 32, end - at)
        if dso != NULL and dso[1] == 40 and <const uint8_t*>memchr(dso + 1, 41, end - dso - 1) == end - 1:
            return self._function(at, dso, dso + 1, end, high)
        return self._odd_frame(at, end, high)

    cdef uint32_t _odd_frame(self, const uint8_t* at, const uint8_t* end, bint high) except 0:
        """A line without a DSO, or with one that holds spaces or brackets."""
        cdef uint64_t hash = zs_hash_bytes(at, end - at, high)
        cdef uint32_t number = self.lines.find(at, end - at, at, 0, hash)
        cdef const uint8_t* dso
        if number:
            return number
        dso = self._dso(at, end)
        number = self._function(at, end if dso == NULL else dso, end if dso == NULL else dso, end, high)
        if self.lines.count() > MOST_CACHED_LINES:
            self.lines.clear()
        self.lines.set(at, end - at, at, 0, hash, number)
        return number

    cdef inline uint32_t _function(
        self, const uint8_t* name, const uint8_t* name_end, const uint8_t* dso, const uint8_t* dso_end, bint high
    ) except 0:
        """The offset behind the name tells lines apart that are one function: without it there are a hundred times fewer
        of them, and the table stays in the cache."""
        cdef const uint8_t* digits
        cdef uint64_t hash
        cdef uint32_t number
        while name_end > name and (name_end - 1)[0] == 32:
            name_end -= 1
        digits = name_end
        while digits > name and zs_is_hex((digits - 1)[0]):
            digits -= 1
        if digits < name_end and digits - name > 3 and memcmp(digits - 3, b"+0x", 3) == 0:
            name_end = digits - 3
        hash = zs_hash_bytes(dso, dso_end - dso, zs_hash_bytes(name, name_end - name, high))
        number = self.functions.find(name, name_end - name, dso, dso_end - dso, hash)
        if number:
            return number
        return self._new_function(<bytes>name[:name_end - name], <bytes>dso[:dso_end - dso], high, hash)

    cdef uint32_t _new_function(self, bytes name, bytes dso, bint high, uint64_t hash) except 0:
        cdef uint32_t number
        where = dso[1:len(dso) - 1] if dso else None
        if where is not None:
            self.saw_dso = True
        shown, module, kind = self.place(name, where, high)
        number = self._new_frame(shown, module, kind, where == b"inlined")
        self.functions.set(name, len(name), dso, len(dso), hash, number)
        return number

    cdef const uint8_t* _dso(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """The bracket that opens the last parenthesis. A path may hold some of its own: (/usr/lib/a (deleted))."""
        cdef const uint8_t* open = end
        cdef int depth = 0
        if end == at or (end - 1)[0] != 41:
            return NULL
        while open > at:
            open -= 1
            if open[0] == 41:
                depth += 1
            elif open[0] == 40:
                depth -= 1
                if depth == 0:
                    break
        if depth == 0 and (open == at or (open - 1)[0] == 32):
            return open
        open = end - 2
        while open - at > 1:  # what stands before it is looked at, too
            open -= 1
            if open[0] == 40 and (open - 1)[0] == 32 and (open[1] == 47 or open[1] == 91):
                return open
        return NULL

    cdef uint32_t _new_frame(self, str name, str module, str kind, bint inlined) except 0:
        cdef uint32_t number
        key = (name, module, kind, inlined)
        known = self.numbers.get(key)
        if known is not None:
            return known
        self.rows.append((name, module, kind))
        number = <uint32_t>len(self.rows)
        self.numbers[key] = number
        zs_extend(&self.flags, <size_t>number + 1)
        zs_extend(&self.places, <size_t>number + 1)
        self.flags.items[number] = FRAME_INLINED if inlined else 0
        if kind in ("kernel", "module", "bpf"):
            self.flags.items[number] |= <uint8_t>context_of(name)
        self.places.items[number] = self.place_numbers.setdefault((module, kind), len(self.place_numbers))
        return number

    cdef uint32_t placed(self, uint32_t frame, uint32_t outer) except 0:
        """An inlined function is where the function is that it was put into, which stands below it in the text."""
        cdef uint32_t number = self.inlined.find(frame, self.places.items[outer])
        if number != FRAME_NONE:
            return number
        _, module, kind = self.rows[outer - 1]
        number = self._new_frame(self.rows[frame - 1][0], module, kind, False)
        self.inlined.set(frame, self.places.items[outer], number)
        return number
