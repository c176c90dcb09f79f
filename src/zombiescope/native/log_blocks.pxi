# Blocks of the log (store/log.py says how they are on disk), many at once: where each ends and whether it is whole,
# and all blocks of one table as whole columns. A segment has a hundred blocks of a table of fifteen columns, with a row
# or two in each: a call and an object for every column of every block cost more than what is in them.

cdef enum:  # letters of schema.Table.kinds
    _TIME = 116
    _TEXT = 115
    _LISTS = 108


cdef class _BlockColumn:
    """One column of all blocks. `numbers`: the values, or how long each text or list is; zeros where there is none."""
    cdef uint8_t kind
    cdef int64_t[::1] numbers
    cdef uint8_t[::1] there
    cdef object numbers_held, there_held
    cdef bint sparse
    cdef list pieces

    def __cinit__(self, uint8_t kind, Py_ssize_t rows):
        self.kind = kind
        self.numbers_held = _array("q", bytes(8 * rows))
        self.there_held = bytearray(rows)
        if rows:
            self.numbers = self.numbers_held
            self.there = self.there_held
        self.pieces = []

    cdef tuple result(self):
        held = self.there_held if self.sparse else None
        if self.kind == _TEXT:
            return self.numbers_held, b"".join(self.pieces), held
        if self.kind == _LISTS:
            flat = _array("q")
            for piece in self.pieces:
                flat.extend(piece)
            return self.numbers_held, flat, held
        return self.numbers_held, None, held


cdef struct _BlockSums:
    int64_t texts
    int64_t elements
    int64_t lowest
    int64_t highest
    bint any


cdef const uint8_t* _block_numbers(
    const uint8_t* at, const uint8_t* end, const uint8_t* bitmap, Py_ssize_t rows, Py_ssize_t count, int64_t base,
    bint plain, int64_t* out, _BlockSums* sums,
) noexcept nogil:
    """`count` numbers for the rows that have one, differences unless they are plain; NULL where they are cut short."""
    cdef uint64_t raw
    cdef int64_t value = base
    cdef Py_ssize_t row
    if count > end - at:
        return NULL
    for row in range(rows):
        if bitmap != NULL and not bitmap[row >> 3] >> (row & 7) & 1:
            continue
        at = _get_varint(at, end, &raw)
        if at == NULL:
            return NULL
        if plain:
            value = <int64_t>raw
        else:
            value = <int64_t>(<uint64_t>value + <uint64_t>_unzigzag(raw))
        if out != NULL:
            out[row] = value
        if sums != NULL:
            if not sums.any or value < sums.lowest:
                sums.lowest = value
            if not sums.any or value > sums.highest:
                sums.highest = value
            sums.any = True
    return at


cdef const uint8_t* _block_lengths(
    const uint8_t* at, const uint8_t* end, const uint8_t* bitmap, Py_ssize_t rows, Py_ssize_t count, bint plain,
    int64_t* out, int64_t* total,
) noexcept nogil:
    """Likewise for lengths, added up; NULL also where one is below 0 or more than what is left of the frame."""
    cdef uint64_t raw
    cdef int64_t value = 0
    cdef Py_ssize_t row
    if count > end - at:
        return NULL
    total[0] = 0
    for row in range(rows):
        if bitmap != NULL and not bitmap[row >> 3] >> (row & 7) & 1:
            continue
        at = _get_varint(at, end, &raw)
        if at == NULL:
            return NULL
        value = <int64_t>raw if plain else <int64_t>(<uint64_t>value + <uint64_t>_unzigzag(raw))
        if value < 0 or value > end - at:
            return NULL
        total[0] += value
        if out != NULL:
            out[row] = value
    return at if total[0] <= end - at else NULL


cdef Py_ssize_t _block_column(
    uint8_t kind, const uint8_t* start, Py_ssize_t offset, Py_ssize_t size, Py_ssize_t rows, int64_t wall_us,
    _BlockColumn out, Py_ssize_t first, _BlockSums* sums, bint is_first,
) except -1:
    """The offset behind one column of one block; `out` takes what is in it from its row `first` on."""
    cdef const uint8_t* at = start + offset
    cdef const uint8_t* end = start + size
    cdef const uint8_t* bitmap = NULL
    cdef int64_t* numbers = NULL
    cdef Py_ssize_t count = rows, row, piece
    cdef int64_t total = 0
    cdef bint wanted = out is not None and rows > 0
    if at >= end:
        raise ValueError("block cut short")
    cdef uint8_t mode = at[0]
    at += 1
    if mode == 0:
        if out is not None:
            out.sparse = out.sparse or rows > 0
        return at - start
    if mode > 2:
        raise ValueError(f"column mode {mode}")
    if mode == 2:
        if (rows + 7) // 8 > end - at:
            raise ValueError("bitmap cut short")
        bitmap = at
        at += (rows + 7) // 8
        count = 0
        for row in range(rows):
            count += bitmap[row >> 3] >> (row & 7) & 1
    if wanted:
        numbers = &out.numbers[first]
        if mode == 1:
            memset(&out.there[first], 1, rows)
        else:
            out.sparse = True
            for row in range(rows):
                out.there[first + row] = bitmap[row >> 3] >> (row & 7) & 1
    if kind == _TEXT or kind == _LISTS:
        at = _block_lengths(at, end, bitmap, rows, count, kind == _TEXT, numbers, &total)
        if at == NULL:
            raise ValueError("strings cut short" if kind == _TEXT else "more elements than bytes")
        piece = at - start
        if kind == _TEXT:
            sums.texts += count
            if wanted:
                out.pieces.append(PyBytes_FromStringAndSize(<const char*>at, total))
            return piece + total
        sums.elements += total
        if wanted:
            elements = _array("q", bytes(8 * total))
            at = _block_elements(at, end, total, elements)
        else:
            elements = None
            at = _block_numbers(at, end, NULL, total, total, 0, False, NULL, NULL)
        if at == NULL:
            raise ValueError("number cut short")
        if wanted:
            out.pieces.append(elements)
        return at - start
    at = _block_numbers(
        at, end, bitmap, rows, count, wall_us if kind == _TIME else 0, False, numbers, sums if is_first else NULL
    )
    if at == NULL:
        raise ValueError("number cut short")
    return at - start


cdef const uint8_t* _block_elements(const uint8_t* at, const uint8_t* end, Py_ssize_t count, held):
    cdef int64_t[::1] elements
    if count == 0:
        return at
    elements = held
    return _block_numbers(at, end, NULL, count, count, 0, False, &elements[0], NULL)


def check_block(
    bytes kinds not None, const uint8_t[::1] body not None, Py_ssize_t offset, Py_ssize_t rows, int64_t wall_us
):
    """Whether a block is whole, with nothing made of it: (offset behind it, texts in it, elements of its lists, lowest and
    highest number of its first column; 0 and -1 where that has none). ValueError where it is not."""
    cdef _BlockSums sums
    cdef Py_ssize_t size = body.shape[0], column
    cdef const uint8_t* all_kinds = <const uint8_t*>PyBytes_AS_STRING(kinds)
    sums.texts = sums.elements = sums.lowest = 0
    sums.highest = -1
    sums.any = False
    if offset < 0 or rows < 0 or offset >= size:
        raise ValueError("block cut short")
    for column in range(len(kinds)):
        offset = _block_column(
            all_kinds[column], &body[0], offset, size, rows, wall_us, None, 0, &sums, column == 0
        )
    return offset, sums.texts, sums.elements, sums.lowest, sums.highest


def decode_blocks(bytes kinds not None, tuple wanted not None, list blocks not None):
    """Columns `wanted` (by number) of all blocks of one table, each (body, rows, wall_us), in their order: (numbers, what they
    measure out, which rows have a value). Numbers are array('q'): the values, or lengths of texts (bytes) or of lists
    (array('q')); of rows a byte each, None where all have one. ValueError where one is not whole."""
    cdef Py_ssize_t rows = 0, first = 0, column, offset, here
    cdef const uint8_t* all_kinds = <const uint8_t*>PyBytes_AS_STRING(kinds)
    cdef const uint8_t[::1] body
    cdef _BlockSums sums
    cdef int64_t wall_us
    sums.texts = sums.elements = 0
    sums.any = False
    for block in blocks:
        rows += block[1]
    made = {number: _BlockColumn(all_kinds[number], rows) for number in wanted}
    outputs = [made.get(number) for number in range(len(kinds))]
    for block in blocks:
        body, here, wall_us = block
        if body.shape[0] == 0:
            raise ValueError("block cut short")
        offset = 0
        for column in range(len(kinds)):
            offset = _block_column(
                all_kinds[column], &body[0], offset, body.shape[0], here, wall_us, outputs[column], first, &sums, False
            )
        first += here
    return [(<_BlockColumn>made[number]).result() for number in wanted]
