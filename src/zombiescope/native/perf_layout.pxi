# Where things stand in a record. A sample's fields of fixed length come first, and their places follow from the bits of
# its event; those of changing length come behind, and every place among them is checked before it is read. Any other
# record ends with some of the same fields.

cdef uint64_t NO_TIME = <uint64_t>-1
cdef uint32_t NOBODY = 0xFFFFFFFF


cdef struct Layout:
    # What decoding needs of a perf_event_attr. Places in a sample count from its header; 0 = not there.
    uint64_t sample_type, read_format, branch_type, regs_user, regs_intr, period
    uint32_t ip, tid, time, id, cpu, period_at, rest
    uint32_t end_time, end_id        # the same in any other record, counted from its end
    uint32_t trailer                 # bytes of it
    uint32_t event


cdef struct Sample:
    uint32_t pid, tid                # NOBODY: not said
    int32_t cpu                      # -1: not said
    uint64_t period
    size_t values                    # the place of its counters; 0: none
    const uint8_t* chain
    size_t depth
    size_t rest                      # the place behind the chain


cdef inline Py_ssize_t whole_record(const uint8_t* at, size_t left) noexcept nogil:
    """The size of the record that begins here; 0: its end is not here yet; -1: it is none."""
    cdef size_t size
    if left < PERF_HEADER_BYTES:
        return 0
    size = zs_u16(at + 6)
    if size < PERF_HEADER_BYTES:
        return -1
    return <Py_ssize_t>size if size <= left else 0


cdef void lay_sample(Layout* layout) noexcept nogil:
    cdef uint64_t bits = layout.sample_type
    cdef uint32_t at = PERF_HEADER_BYTES
    if bits & PERF_SAMPLE_IDENTIFIER:
        layout.id = at
        at += 8
    if bits & PERF_SAMPLE_IP:
        layout.ip = at
        at += 8
    if bits & PERF_SAMPLE_TID:
        layout.tid = at
        at += 8
    if bits & PERF_SAMPLE_TIME:
        layout.time = at
        at += 8
    if bits & PERF_SAMPLE_ADDR:
        at += 8
    if bits & PERF_SAMPLE_ID:
        if layout.id == 0:
            layout.id = at
        at += 8
    if bits & PERF_SAMPLE_STREAM_ID:
        at += 8
    if bits & PERF_SAMPLE_CPU:
        layout.cpu = at
        at += 8
    if bits & PERF_SAMPLE_PERIOD:
        layout.period_at = at
        at += 8
    layout.rest = at


cdef void lay_trailer(Layout* layout) noexcept nogil:
    cdef uint64_t bits = layout.sample_type
    cdef uint32_t at = 0
    if bits & PERF_SAMPLE_IDENTIFIER:
        at += 8
        layout.end_id = at
    if bits & PERF_SAMPLE_CPU:
        at += 8
    if bits & PERF_SAMPLE_STREAM_ID:
        at += 8
    if bits & PERF_SAMPLE_ID:
        at += 8
        if layout.end_id == 0:
            layout.end_id = at
    if bits & PERF_SAMPLE_TIME:
        at += 8
        layout.end_time = at
    if bits & PERF_SAMPLE_TID:
        at += 8
    layout.trailer = at


cdef inline uint64_t time_of(const Layout* layout, const uint8_t* at, size_t size) noexcept nogil:
    if zs_u32(at) == PERF_RECORD_SAMPLE:
        return zs_u64(at + layout.time) if layout.time and layout.time + 8 <= size else NO_TIME
    if layout.end_time and layout.trailer + PERF_HEADER_BYTES <= size:
        return zs_u64(at + size - layout.end_time)
    return NO_TIME


cdef inline bint read_sample(const Layout* layout, const uint8_t* at, size_t size, Sample* out) noexcept nogil:
    """False when the record is too short for what it says it holds."""
    cdef size_t place = layout.rest
    if size < place:
        return False
    out.pid, out.tid, out.cpu, out.period = NOBODY, NOBODY, -1, layout.period
    out.values, out.chain, out.depth = 0, at, 0
    if layout.tid:
        out.pid, out.tid = zs_u32(at + layout.tid), zs_u32(at + layout.tid + 4)
    if layout.cpu:
        out.cpu = <int32_t>min(zs_u32(at + layout.cpu), <uint32_t>0x7FFFFFFF)
    if layout.period_at:
        out.period = zs_u64(at + layout.period_at)
    if layout.sample_type & PERF_SAMPLE_READ:
        out.values = place
        place = _behind_read(layout, at, place, size)
        if place == 0:
            return False
    if layout.sample_type & PERF_SAMPLE_CALLCHAIN:
        if size < place + 8 or zs_u64(at + place) > (size - place - 8) >> 3:
            return False
        out.depth, out.chain = <size_t>zs_u64(at + place), at + place + 8
        place += 8 + 8 * out.depth
    out.rest = place
    return True


cdef size_t _behind_read(const Layout* layout, const uint8_t* at, size_t place, size_t size) noexcept nogil:
    """The place behind the counters in a sample; 0: they do not fit."""
    cdef uint64_t form = layout.read_format, count = 1, length
    cdef uint64_t clocks = clock_bytes(form)
    cdef uint64_t each = 8 + 8 * ((form & PERF_FORMAT_ID) != 0) + 8 * ((form & PERF_FORMAT_LOST) != 0)
    if form & PERF_FORMAT_GROUP:
        if size < place + 8:
            return 0
        count = zs_u64(at + place)
        if count > size:
            return 0
        clocks += 8
    length = clocks + count * each
    return place + <size_t>length if length <= size - place else 0


cdef inline size_t clock_bytes(uint64_t read_format) noexcept nogil:
    return 8 * ((read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0) + 8 * (
        (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0
    )


cdef inline size_t behind_raw(const uint8_t* at, size_t place, size_t size) noexcept nogil:
    """The place behind raw data, whose length stands in the four bytes before it; 0: it does not fit."""
    if size < place + 4 or zs_u32(at + place) > size - place - 4:
        return 0
    return place + 4 + zs_u32(at + place)


cdef inline size_t find_cgroup(const Layout* layout, const uint8_t* at, size_t place, size_t size) noexcept nogil:
    """Where the cgroup of a sample stands, given the place behind its chain; 0: not there."""
    cdef uint64_t bits = layout.sample_type, count
    if not bits & PERF_SAMPLE_CGROUP:
        return 0
    if bits & PERF_SAMPLE_RAW:
        place = behind_raw(at, place, size)
    if place and bits & PERF_SAMPLE_BRANCH_STACK:
        if size < place + 8 or zs_u64(at + place) > size:
            return 0
        count = zs_u64(at + place)
        place += 8 + (8 if layout.branch_type & PERF_SAMPLE_BRANCH_HW_INDEX else 0)
        place += <size_t>count * (32 if layout.branch_type & PERF_SAMPLE_BRANCH_COUNTERS else 24)
    if place and bits & PERF_SAMPLE_REGS_USER:
        place = _behind_registers(at, place, size, layout.regs_user)
    if place and bits & PERF_SAMPLE_STACK_USER:
        if size < place + 8 or zs_u64(at + place) > size - place - 8:
            return 0
        count = zs_u64(at + place)
        place += 8 + <size_t>count + (8 if count else 0)
    if place and bits & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT):
        place += 8
    if place and bits & PERF_SAMPLE_DATA_SRC:
        place += 8
    if place and bits & PERF_SAMPLE_TRANSACTION:
        place += 8
    if place and bits & PERF_SAMPLE_REGS_INTR:
        place = _behind_registers(at, place, size, layout.regs_intr)
    if place and bits & PERF_SAMPLE_PHYS_ADDR:
        place += 8
    return place if place and place + 8 <= size else 0


cdef size_t _behind_registers(const uint8_t* at, size_t place, size_t size, uint64_t mask) noexcept nogil:
    if size < place + 8:
        return 0
    if zs_u64(at + place):
        while mask:
            place += 8 * (mask & 1)
            mask >>= 1
    return place + 8
