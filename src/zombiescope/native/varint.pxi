# Integers on disk: each is the difference to the one before, zigzag-folded (small negatives stay small), then written
# seven bits a byte with the high bit meaning "more follows". A column that rises slowly costs a byte a row.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc

from array import array as _array

from cpython cimport array as c_array

cdef c_array.array _LONGS = c_array.array("q", [])


cdef c_array.array _column(size_t length):
    """An array('q') of that length; what stands in it is not set."""
    return c_array.clone(_LONGS, length, False)


cdef inline uint8_t* _put_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline uint64_t _zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int64_t _unzigzag(uint64_t value) noexcept nogil:
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef inline const uint8_t* _get_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """Reads one number; NULL when the input ends inside it or it is longer than 64 bits."""
    cdef uint64_t result = 0
    cdef int shift = 0
    while at < end and shift < 64:
        result |= <uint64_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            value[0] = result
            return at + 1
        at += 1
        shift += 7
    return NULL


def encode_ints(values, int64_t base=0, bytes lead not None=b""):
    """The values as zigzag varints of differences, the first against `base`; `lead` stands before them."""
    cdef Py_ssize_t count = len(values), i
    cdef uint8_t* buffer
    cdef uint8_t* at
    cdef int64_t value, previous = base
    if isinstance(values, _array) and values.typecode == "q":
        return _encode_column(values, count, base, lead)
    buffer = at = <uint8_t*>PyMem_Malloc(10 * count + 1)
    if buffer == NULL:
        raise MemoryError
    try:
        for i in range(count):
            value = values[i]
            at = _put_varint(at, _zigzag(<int64_t>(<uint64_t>value - <uint64_t>previous)))
            previous = value
        return lead + PyBytes_FromStringAndSize(<char*>buffer, at - buffer)
    finally:
        PyMem_Free(buffer)


cdef bytes _encode_column(values, Py_ssize_t count, int64_t base, bytes lead):
    """The same for an array('q'): measured first, so that nothing is copied and no memory is taken in vain."""
    cdef const int64_t[::1] column
    cdef int64_t previous = base
    cdef uint64_t folded
    cdef Py_ssize_t i, length = len(lead)
    cdef bytes encoded
    cdef uint8_t* at
    if count == 0:
        return lead
    column = values
    for i in range(count):
        folded = _zigzag(<int64_t>(<uint64_t>column[i] - <uint64_t>previous)) >> 7
        previous = column[i]
        length += 1
        while folded:
            length += 1
            folded >>= 7
    encoded = PyBytes_FromStringAndSize(NULL, length)
    at = <uint8_t*>PyBytes_AS_STRING(encoded)
    memcpy(at, PyBytes_AS_STRING(lead), len(lead))
    at += len(lead)
    previous = base
    for i in range(count):
        at = _put_varint(at, _zigzag(<int64_t>(<uint64_t>column[i] - <uint64_t>previous)))
        previous = column[i]
    return encoded


def decode_ints(const uint8_t[::1] data not None, Py_ssize_t offset, Py_ssize_t count, int64_t base=0):
    """`count` numbers that encode_ints wrote at `offset`: (array('q'), offset behind them). ValueError when cut short."""
    if offset < 0 or count < 0 or offset > data.shape[0] or count > data.shape[0] - offset:
        raise ValueError("column is longer than its frame")
    result = _array("q", bytes(8 * count))
    if count == 0:
        return result, offset
    cdef int64_t[::1] out = result
    cdef const uint8_t* start = &data[0]
    cdef const uint8_t* at = start + offset
    cdef const uint8_t* end = start + data.shape[0]
    cdef uint64_t raw
    cdef int64_t value = base
    cdef Py_ssize_t i
    for i in range(count):
        at = _get_varint(at, end, &raw)
        if at == NULL:
            raise ValueError("number cut short")
        value = <int64_t>(<uint64_t>value + <uint64_t>_unzigzag(raw))
        out[i] = value
    return result, at - start


def shift_ints(values not None, int64_t by):
    """Adds a number to every element of an array('q'), in place; wraps around as C does."""
    cdef int64_t[::1] column
    cdef Py_ssize_t i
    if len(values):
        column = values
        for i in range(column.shape[0]):
            column[i] = <int64_t>(<uint64_t>column[i] + <uint64_t>by)


def has_negative(values not None):
    """Whether an array('q') holds a number below 0."""
    cdef const int64_t[::1] column
    cdef int64_t all_bits = 0
    cdef Py_ssize_t i
    if len(values):
        column = values
        for i in range(column.shape[0]):
            all_bits |= column[i]
    return all_bits < 0
