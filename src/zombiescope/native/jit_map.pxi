# Code that no file holds, by address: what compilers in running programs say of it, in perf maps and jitdumps.
#
# 24 bytes an entry; names stay in the file that told of them. Code comes and goes: of entries that cover an address
# the latest is right. When the map is full the oldest quarter goes.

cdef enum:
    JIT_MAP_MAX_NAME_BYTES = 4095
    JIT_MAP_NAME_SHIFT = 12
    JIT_MAP_MAX_OUTWARD = 16
    JIT_MAP_MIN_ENTRIES = 16

cdef struct JitEntry:
    uint64_t start
    uint64_t name  # offset in the file, and the length in the lowest bits
    uint32_t size
    uint32_t order

cdef struct JitEntries:
    JitEntry* items
    size_t used, room


cdef int jit_by_address(const void* left, const void* right) noexcept nogil:
    cdef const JitEntry* a = <const JitEntry*>left
    cdef const JitEntry* b = <const JitEntry*>right
    if a.start != b.start:
        return -1 if a.start < b.start else 1
    return (a.order > b.order) - (a.order < b.order)


cdef int jit_by_order(const void* left, const void* right) noexcept nogil:
    cdef const JitEntry* a = <const JitEntry*>left
    cdef const JitEntry* b = <const JitEntry*>right
    return (a.order > b.order) - (a.order < b.order)


cdef int jit_hex(const uint8_t** at, const uint8_t* end, uint64_t* out) noexcept nogil:
    # Hexadecimal digits up to one blank, which is skipped; 0 when there are none or too many.
    cdef const uint8_t* p = at[0]
    cdef uint64_t value = 0
    cdef int digits = 0, digit
    if end - p > 2 and p[0] == c"0" and (p[1] == c"x" or p[1] == c"X"):
        p += 2
    while p < end and p[0] != c" ":
        if c"0" <= p[0] <= c"9":
            digit = p[0] - c"0"
        elif c"a" <= p[0] | 32 <= c"f":
            digit = (p[0] | 32) - c"a" + 10
        else:
            return 0
        digits += 1
        if digits > 16:
            return 0
        value = value << 4 | <uint64_t>digit
        p += 1
    if digits == 0 or p == end:
        return 0
    at[0], out[0] = p + 1, value
    return 1


@cython.final
cdef class JitMap:
    """Entries (start, size, where the name is), at most max_entries of them."""

    cdef JitEntries entries
    cdef uint32_t limit, order
    cdef bint settled
    cdef readonly uint64_t malformed

    def __init__(self, uint32_t max_entries):
        self.limit = max(max_entries, <uint32_t>JIT_MAP_MIN_ENTRIES)
        self.settled = True

    def __dealloc__(self):
        zs_free(&self.entries)

    def __len__(self):
        return self.entries.used

    @property
    def nbytes(self):
        """Bytes of memory this map holds."""
        return object.__sizeof__(self) + self.entries.room * sizeof(JitEntry)

    def add(self, uint64_t start, uint64_t size, uint64_t name_offset, uint64_t name_length):
        """Take the latest word about code at an address."""
        if not self._add(start, size, name_offset, name_length):
            self.malformed += 1

    def feed(self, const uint8_t[::1] text, uint64_t offset):
        """Take lines of a perf map (START SIZE NAME), which stand at `offset` of their file.

        The number of bytes taken is returned: those of whole lines.
        """
        cdef const uint8_t* at
        cdef const uint8_t* end
        cdef const uint8_t* line_end
        cdef const uint8_t* base
        if text.shape[0] == 0:
            return 0
        base = at = &text[0]
        end = at + text.shape[0]
        with nogil:
            while at < end:
                line_end = <const uint8_t*>memchr(at, c"\n", <size_t>(end - at))
                if line_end == NULL:
                    break
                if line_end > at and not self._line(at, line_end, offset + <uint64_t>(at - base)):
                    self.malformed += 1
                at = line_end + 1
        return at - base

    cdef bint _line(self, const uint8_t* at, const uint8_t* end, uint64_t offset) noexcept nogil:
        cdef const uint8_t* line = at
        cdef uint64_t start = 0, size = 0
        if not jit_hex(&at, end, &start) or not jit_hex(&at, end, &size) or at == end:
            return False
        return self._add(start, size, offset + <uint64_t>(at - line), <uint64_t>(end - at))

    cdef bint _add(self, uint64_t start, uint64_t size, uint64_t name_offset, uint64_t name_length) noexcept nogil:
        cdef JitEntry* out
        # Half of the address space is the kernel's, and no compiler makes a function of 2 GB.
        if start == 0 or start >> 63 or size == 0 or size >> 31 or name_length == 0 or name_offset >> 52:
            return False
        if self.order == <uint32_t>0xFFFFFFFF or not self._room():
            return False
        out = &self.entries.items[self.entries.used]
        out.start, out.size, out.order = start, <uint32_t>size, self.order
        out.name = name_offset << JIT_MAP_NAME_SHIFT | min(name_length, <uint64_t>JIT_MAP_MAX_NAME_BYTES)
        self.order += 1
        self.entries.used += 1
        self.settled = False
        return True

    cdef bint _room(self) noexcept nogil:
        if self.entries.used == self.limit:
            self._settle()
            if self.entries.used > self.limit // 4 * 3:
                self._forget_oldest()
        return zs_try_reserve(&self.entries, 1)

    cdef void _forget_oldest(self) noexcept nogil:
        cdef size_t i, gone = self.limit // 4
        qsort(self.entries.items, self.entries.used, sizeof(JitEntry), jit_by_order)
        for i in range(gone, self.entries.used):
            self.entries.items[i - gone] = self.entries.items[i]
        self.entries.used -= gone
        self.settled = False
        self._settle()

    cdef void _settle(self) noexcept nogil:
        cdef size_t i, kept = 0
        if self.settled or self.entries.used == 0:
            return
        qsort(self.entries.items, self.entries.used, sizeof(JitEntry), jit_by_address)
        for i in range(self.entries.used):
            if i + 1 < self.entries.used and self.entries.items[i + 1].start == self.entries.items[i].start:
                continue
            self.entries.items[kept] = self.entries.items[i]
            kept += 1
        self.entries.used = kept
        self.settled = True

    def find(self, uint64_t address):
        """(start, size, offset of the name, its length) of the code at this address, or None."""
        cdef JitEntry* found
        cdef int64_t at
        with nogil:
            self._settle()
            at = self._find(address)
        if at < 0:
            return None
        found = &self.entries.items[at]
        return found.start, found.size, found.name >> JIT_MAP_NAME_SHIFT, found.name & JIT_MAP_MAX_NAME_BYTES

    cdef int64_t _find(self, uint64_t address) noexcept nogil:
        cdef size_t low = 0, high = self.entries.used, middle
        cdef int64_t best = -1
        cdef int outward
        while low < high:
            middle = low + (high - low) // 2
            if self.entries.items[middle].start <= address:
                low = middle + 1
            else:
                high = middle
        for outward in range(JIT_MAP_MAX_OUTWARD):
            if low == 0:
                break
            low -= 1
            if address - self.entries.items[low].start < self.entries.items[low].size:
                if best < 0 or self.entries.items[low].order > self.entries.items[best].order:
                    best = low
        return best
