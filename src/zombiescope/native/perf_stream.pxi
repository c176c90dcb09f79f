# perf.data as a stream of records, read in the order of time.
#
# perf writes the rings of all CPUs one after the other, so records of two CPUs are not in the order of time; a
# FINISHED_ROUND record promises that nothing older than the round before will come. Records wait in `index` until a round
# says so, and are then handed to `_record`. Records without a time (made up by perf at its start) are read at once.
#
# Every length is checked before it is believed. Where a header makes no sense, the next place is searched from which
# several records follow each other; what lies between is counted in `damaged_bytes`.

cdef extern from *:
    """
    /* Merges what is already in order: the records of one CPU are, so this is a merge of a few long runs. `spare` has
       room for as many. Stable. Gives the one of the two that holds the result. */
    static zs_record *zs_merge_records(zs_record *all, zs_record *spare, size_t count) {
        for (;;) {
            size_t at = 0, runs = 0;
            while (at < count) {
                size_t a = at, middle, b, end, out = at;
                for (middle = a + 1; middle < count && all[middle - 1].time <= all[middle].time; middle++) {}
                if (middle == count) {
                    if (a == 0) return all;
                    memcpy(spare + a, all + a, (count - a) * sizeof *all);
                    runs++;
                    break;
                }
                for (end = middle + 1; end < count && all[end - 1].time <= all[end].time; end++) {}
                for (b = middle; a < middle && b < end;) spare[out++] = all[b].time < all[a].time ? all[b++] : all[a++];
                if (a < middle) memcpy(spare + out, all + a, (middle - a) * sizeof *all);
                else memcpy(spare + out, all + b, (end - b) * sizeof *all);
                at = end;
                runs++;
            }
            zs_record *swap = all; all = spare; spare = swap;
            if (runs <= 1) return all;
        }
    }
    static inline uint64_t zs_u64(const uint8_t *at) { uint64_t value; memcpy(&value, at, 8); return value; }
    static inline uint32_t zs_u32(const uint8_t *at) { uint32_t value; memcpy(&value, at, 4); return value; }
    static inline uint16_t zs_u16(const uint8_t *at) { uint16_t value; memcpy(&value, at, 2); return value; }
    """
    zs_record* zs_merge_records(zs_record* all, zs_record* spare, size_t count) nogil
    uint64_t zs_u64(const uint8_t* at) nogil
    uint32_t zs_u32(const uint8_t* at) nogil
    uint16_t zs_u16(const uint8_t* at) nogil

from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.string cimport memmove

cdef extern from "Python.h":
    int PyBUF_WRITE

cdef enum:
    SAMPLE_IP = 1
    SAMPLE_TID = 2
    SAMPLE_TIME = 4
    SAMPLE_ADDR = 8
    SAMPLE_READ = 16
    SAMPLE_CALLCHAIN = 32
    SAMPLE_ID = 64
    SAMPLE_CPU = 128
    SAMPLE_PERIOD = 256
    SAMPLE_STREAM_ID = 512
    SAMPLE_IDENTIFIER = 65536
    USER_RECORDS = 64                # from here on they are perf's own
    RECORD_ATTR = 64
    RECORD_EVENT_TYPE = 65
    RECORD_TRACING_DATA = 66
    RECORD_BUILD_ID = 67
    RECORD_ROUND = 68
    RECORD_AUXTRACE = 71
    RECORD_EVENT_UPDATE = 78
    RECORD_FEATURE = 80
    RECORD_COMPRESSED = 81
    RECORD_COMPRESSED2 = 83
    LAST_KERNEL_RECORD = 22          # known ones; a later kernel may add some
    LAST_USER_RECORD = 84
    MAX_LAYOUTS = 65536
    PROOF = 4                        # records that must follow each other for a place to be believed

cdef uint64_t NO_TIME = <uint64_t>-1
cdef size_t MAX_WAITING_BYTES = 512 << 20
cdef uint64_t INNER = <uint64_t>1 << 63


cdef struct Layout:
    # What decoding needs of a perf_event_attr. Places in a sample count from its header; 0 = not there.
    uint64_t sample_type, read_format, branch_type, regs_user, regs_intr, period
    uint32_t ip, tid, time, id, cpu, period_at, rest
    uint32_t end_time, end_id        # the same in any other record, counted from its end
    uint32_t trailer                 # bytes of it
    uint32_t event


cdef struct Input:
    uint8_t* data
    size_t used, parsed, room
    uint64_t skip                    # bytes still to be passed over
    bint lost                        # inside damage


cdef class PerfStream:
    """Give it events (add_event) and bytes (fill or feed), then pump(); finish() at the end, and pump() again."""

    cdef Layout* layouts
    cdef size_t layout_count
    cdef IdMap ids
    cdef Input outer, inner          # the file; what its compressed records hold
    cdef zs_record* index
    cdef zs_record* spare
    cdef size_t index_used, index_room
    cdef size_t flush_at, flush_end  # the part of `index` whose time has come
    cdef uint64_t oldest_sample, newest, flush_until
    cdef size_t waiting_bytes
    cdef uint32_t rounds
    cdef uint64_t id_place, end_id_place      # where all layouts have their id; NO_TIME: they do not agree
    cdef object meaning
    cdef readonly uint64_t records, damaged, damaged_bytes, malformed, unknown_records, unknown_events

    def __cinit__(self, meaning, *args, **options):
        self.ids = IdMap()
        self.meaning = meaning
        self.rounds = 1
        self.oldest_sample = NO_TIME

    def __dealloc__(self):
        PyMem_Free(self.layouts)
        PyMem_Free(self.outer.data)
        PyMem_Free(self.inner.data)
        PyMem_Free(self.index)
        PyMem_Free(self.spare)

    cdef int _record(self, const uint8_t* at, uint32_t kind, size_t size, uint64_t time, uint32_t layout) except -1:
        """One record of the kernel, for the class that knows what it means."""
        return 0

    cdef void _foresee(self, size_t at) noexcept:
        """A record that will come soon, by its place in `index`: what it needs may be fetched into the CPU's caches."""

    cdef bint _is_full(self) noexcept:
        """Whether what was made of the records must be taken before more are read."""
        return False

    # --- events --------------------------------------------------------------------------------------------------------

    def add_event(self, uint64_t sample_type, uint64_t read_format, bint sample_id_all, uint64_t branch_type,
                  uint64_t regs_user, uint64_t regs_intr, uint64_t period, uint32_t event, ids):
        """What perf_event_attr says of one event; `event` is the number its samples get, `ids` are those in the records."""
        cdef void* grown = PyMem_Realloc(self.layouts, (self.layout_count + 1) * sizeof(Layout))
        cdef Layout* layout
        if grown == NULL:
            raise MemoryError
        self.layouts = <Layout*>grown
        if self.layout_count >= MAX_LAYOUTS:
            raise ValueError("too many events")
        layout = &self.layouts[self.layout_count]
        memset(layout, 0, sizeof(Layout))
        layout.sample_type, layout.read_format, layout.branch_type = sample_type, read_format, branch_type
        layout.regs_user, layout.regs_intr, layout.period, layout.event = regs_user, regs_intr, period, event
        _lay_sample(layout)
        if sample_id_all:
            _lay_trailer(layout)
        if self.layout_count == 0:
            self.id_place, self.end_id_place = layout.id, layout.end_id
        if self.id_place != layout.id:
            self.id_place = NO_TIME
        if self.end_id_place != layout.end_id:
            self.end_id_place = NO_TIME
        for number in ids:
            self.ids.set(number, <uint32_t>self.layout_count)
        self.layout_count += 1

    cdef Py_ssize_t _layout_of(self, const uint8_t* at, uint32_t kind, size_t size) noexcept:
        """Number of the layout of a record; -1: its event is not known."""
        cdef uint64_t number = 0
        cdef Py_ssize_t slot
        if self.layout_count == 1:
            return 0
        if kind == RECORD_SAMPLE:
            if self.id_place == NO_TIME or self.id_place == 0 or self.id_place + 8 > size:
                return -1
            number = zs_u64(at + self.id_place)
        elif self.end_id_place != NO_TIME and self.end_id_place and self.end_id_place + HEAD_BYTES <= size:
            number = zs_u64(at + size - self.end_id_place)
        elif self.layout_count == 0:
            return -1
        if number == 0:              # made up by perf
            return 0 if self.layout_count else -1
        slot = self.ids._find(number)
        if slot >= 0:
            return self.ids.slots[slot].value
        return -1 if kind == RECORD_SAMPLE else 0

    # --- bytes ---------------------------------------------------------------------------------------------------------

    def fill(self, file, size_t limit):
        """Reads up to `limit` bytes of a file: how many came; 0 at its end."""
        self._make_room(&self.outer, limit, 0)
        view = PyMemoryView_FromMemory(<char*>(self.outer.data + self.outer.used), limit, PyBUF_WRITE)
        try:
            got = file.readinto(view) or 0
        finally:
            view.release()
        if not 0 <= got <= limit:
            raise ValueError("a file gave more than was asked for")
        self.outer.used += <size_t>got
        return got

    def feed(self, const uint8_t[::1] data not None):
        """The same for bytes at hand."""
        if data.shape[0]:
            self._append(&self.outer, &data[0], data.shape[0], 0)

    cdef int _append(self, Input* into, const uint8_t* data, size_t length, uint64_t mark) except -1:
        self._make_room(into, length, mark)
        memcpy(into.data + into.used, data, length)
        into.used += length
        return 0

    cdef int _make_room(self, Input* into, size_t more, uint64_t mark) except -1:
        """Room at the end; moves what is still needed to the front when that is the smaller part."""
        cdef size_t first = into.parsed, i
        cdef void* grown
        if into.used + more <= into.room:
            return 0
        for i in range(self.flush_at, self.index_used):
            if (self.index[i].offset & INNER) == mark and (self.index[i].offset & ~INNER) < first:
                first = <size_t>(self.index[i].offset & ~INNER)
        if first and first >= into.used - first:
            memmove(into.data, into.data + first, into.used - first)
            into.used -= first
            into.parsed -= first
            for i in range(self.flush_at, self.index_used):
                if (self.index[i].offset & INNER) == mark:
                    self.index[i].offset -= first
        if into.used + more > into.room:
            grown = PyMem_Realloc(into.data, (into.used + more) * 3 // 2)
            if grown == NULL:
                raise MemoryError
            into.data = <uint8_t*>grown
            into.room = (into.used + more) * 3 // 2
        return 0

    # --- records -------------------------------------------------------------------------------------------------------

    def pump(self):
        """Goes on until more bytes are needed (False) or what was made must be taken (True)."""
        while True:
            while self.flush_at < self.flush_end:
                self._foresee(self.flush_at)
                self._hand_on(self.flush_at)
                self.flush_at += 1
                if self._is_full():
                    return True
            if self.flush_end:
                self._drop_flushed()
            if self._is_full():
                return True
            if self._parse(&self.inner, INNER) or self._parse(&self.outer, 0):
                continue
            if self.waiting_bytes <= MAX_WAITING_BYTES:
                return False
            # No round for so long: a file without any. What waits is as good as in order.
            self._flush(NO_TIME)

    def finish(self):
        """No more bytes will come: (bytes of a record that was cut off, bytes that a record announced and did not bring).
        pump() hands on what waited."""
        self._flush(NO_TIME)
        cut = self.outer.used - self.outer.parsed + self.inner.used - self.inner.parsed
        missing = self.outer.skip + self.inner.skip
        self.outer.parsed, self.inner.parsed = self.outer.used, self.inner.used
        self.outer.skip = self.inner.skip = 0
        return cut, missing

    def span_ns(self):
        """(time of the first sample, time of the last record), in the file's clock; None where there was none."""
        return None if self.oldest_sample == NO_TIME else self.oldest_sample, self.newest or None

    cdef const uint8_t* _place_of(self, const zs_record* entry) noexcept:
        return (self.inner.data if entry.offset & INNER else self.outer.data) + (entry.offset & ~INNER)

    cdef int _hand_on(self, size_t at) except -1:
        cdef zs_record* entry = &self.index[at]
        cdef const uint8_t* record = self._place_of(entry)
        self.waiting_bytes -= entry.size
        return self._record(record, zs_u32(record), entry.size, entry.time, entry.cpu)

    cdef int _flush(self, uint64_t until) except -1:
        """Sorts what waits and marks what is not later than `until` as due."""
        cdef zs_record* sorted_index
        cdef size_t low = 0, high = self.index_used, middle
        if self.index_used == 0 or self.flush_end:
            return 0
        sorted_index = zs_merge_records(self.index, self.spare, self.index_used)
        if sorted_index != self.index:
            self.spare, self.index = self.index, sorted_index
        while low < high:
            middle = (low + high) >> 1
            if self.index[middle].time <= until:
                low = middle + 1
            else:
                high = middle
        self.flush_at, self.flush_end = 0, low
        return 0

    cdef void _drop_flushed(self) noexcept:
        self.index_used -= self.flush_end
        memmove(self.index, self.index + self.flush_end, self.index_used * sizeof(zs_record))
        self.flush_at = self.flush_end = 0
        self.rounds += 1

    cdef bint _parse(self, Input* source, uint64_t mark) except -1:
        """Reads records until the bytes end (False) or something must be done first (True)."""
        cdef const uint8_t* at
        cdef uint32_t kind
        cdef size_t size, left
        cdef uint64_t time
        cdef Py_ssize_t layout
        while True:
            left = source.used - source.parsed
            if source.skip:
                left = min(left, <size_t>source.skip)
                source.parsed += left
                source.skip -= left
                if source.skip:
                    return False
                continue
            if left < HEAD_BYTES:
                return False
            at = source.data + source.parsed
            kind = zs_u32(at)
            size = zs_u16(at + 6)
            if source.lost or size < HEAD_BYTES or not _is_kind(kind):
                if not self._find_record(source):
                    return False
                continue
            if size > left:
                return False
            source.parsed += size
            if kind >= USER_RECORDS:
                if self._user_record(at, kind, size, source):
                    return True
                continue
            if kind > LAST_KERNEL_RECORD:
                self.unknown_records += 1
                continue
            self.records += 1
            layout = self._layout_of(at, kind, size)
            if layout < 0:
                self.unknown_events += kind == RECORD_SAMPLE
                continue
            time = _time_of(&self.layouts[layout], at, kind, size)
            if time and time != NO_TIME:
                if kind == RECORD_SAMPLE:
                    self.oldest_sample = min(self.oldest_sample, time)
                self._queue(time, (source.parsed - size) | mark, <uint32_t>layout, <uint32_t>size)
                continue
            self._record(at, kind, size, time, <uint32_t>layout)
            if self._is_full():
                return True

    cdef int _queue(self, uint64_t time, uint64_t offset, uint32_t layout, uint32_t size) except -1:
        cdef void* grown
        cdef void* grown_spare
        cdef size_t room
        if self.index_used == self.index_room:
            room = self.index_room * 2 + 4096
            grown = PyMem_Realloc(self.index, room * sizeof(zs_record))
            if grown == NULL:
                raise MemoryError
            self.index = <zs_record*>grown
            grown_spare = PyMem_Realloc(self.spare, room * sizeof(zs_record))
            if grown_spare == NULL:
                raise MemoryError
            self.spare = <zs_record*>grown_spare
            self.index_room = room
        self.index[self.index_used] = zs_record(time=time, offset=offset, cpu=layout, size=size)
        self.index_used += 1
        self.waiting_bytes += size
        self.newest = max(self.newest, time)
        return 0

    cdef bint _user_record(self, const uint8_t* at, uint32_t kind, size_t size, Input* source) except -1:
        if kind == RECORD_ROUND:
            self._flush(self.flush_until)
            self.flush_until = self.newest
            return self.flush_end > 0
        if kind == RECORD_COMPRESSED or kind == RECORD_COMPRESSED2:
            return self._compressed(at, kind, size, source)
        if kind == RECORD_TRACING_DATA and size >= 12:
            source.skip = zs_u32(at + 8)
        elif kind == RECORD_AUXTRACE and size >= 16:
            source.skip = zs_u64(at + 8)
        elif kind in (RECORD_ATTR, RECORD_EVENT_TYPE, RECORD_BUILD_ID, RECORD_EVENT_UPDATE, RECORD_FEATURE):
            self.meaning.header_record(kind, zs_u16(at + 4), (<const char*>at)[:size])
        elif kind > LAST_USER_RECORD:
            self.unknown_records += 1
        return False

    cdef bint _compressed(self, const uint8_t* at, uint32_t kind, size_t size, Input* source) except -1:
        cdef size_t first = HEAD_BYTES, length = size - HEAD_BYTES
        cdef bytes data
        if source == &self.inner:
            self.malformed += 1
            return False
        if kind == RECORD_COMPRESSED2:
            if length < 8 or zs_u64(at + 8) > length - 8:
                self.malformed += 1
                return False
            first, length = 16, <size_t>zs_u64(at + 8)
        data = self.meaning.decompress((<const char*>(at + first))[:length])
        if not data:
            return False
        self._append(&self.inner, <const uint8_t*>PyBytes_AS_STRING(data), len(data), INNER)
        return True

    # --- damage --------------------------------------------------------------------------------------------------------

    cdef bint _find_record(self, Input* source) noexcept:
        """Goes to the next place from which records follow each other; False when the bytes end before."""
        cdef size_t at = source.parsed
        if not source.lost:
            self.damaged += 1
            source.lost = True
            at += 1
        while at + HEAD_BYTES <= source.used and not _is_proved(source.data + at, source.used - at):
            at += 1
        self.damaged_bytes += at - source.parsed
        source.parsed = at
        source.lost = at + HEAD_BYTES > source.used
        return not source.lost


cdef inline bint _is_kind(uint32_t kind) noexcept nogil:
    return 0 < kind < 48 or USER_RECORDS <= kind < 128


cdef bint _is_proved(const uint8_t* at, size_t left) noexcept nogil:
    """Whether some records that make sense follow each other here, or fill the rest."""
    cdef uint32_t kind
    cdef size_t size
    cdef int seen = 0
    while seen < PROOF and left >= HEAD_BYTES:
        kind = zs_u32(at)
        size = zs_u16(at + 6)
        if kind == 0 or (LAST_KERNEL_RECORD < kind < USER_RECORDS) or kind > LAST_USER_RECORD or size < HEAD_BYTES:
            return False
        if size & 7 and kind != RECORD_COMPRESSED and kind != RECORD_TRACING_DATA:
            return False
        if (zs_u16(at + 4) & 7) > 5 or (kind == RECORD_ROUND) != (size == HEAD_BYTES):
            return False
        if size > left:
            return seen > 1
        at += size
        left -= size
        seen += 1
    return seen > 1 or (seen == 1 and left == 0)


cdef void _lay_sample(Layout* layout) noexcept nogil:
    cdef uint64_t bits = layout.sample_type
    cdef uint32_t at = HEAD_BYTES
    if bits & SAMPLE_IDENTIFIER:
        layout.id = at
        at += 8
    if bits & SAMPLE_IP:
        layout.ip = at
        at += 8
    if bits & SAMPLE_TID:
        layout.tid = at
        at += 8
    if bits & SAMPLE_TIME:
        layout.time = at
        at += 8
    if bits & SAMPLE_ADDR:
        at += 8
    if bits & SAMPLE_ID:
        if layout.id == 0:
            layout.id = at
        at += 8
    if bits & SAMPLE_STREAM_ID:
        at += 8
    if bits & SAMPLE_CPU:
        layout.cpu = at
        at += 8
    if bits & SAMPLE_PERIOD:
        layout.period_at = at
        at += 8
    layout.rest = at


cdef void _lay_trailer(Layout* layout) noexcept nogil:
    cdef uint64_t bits = layout.sample_type
    cdef uint32_t at = 0
    if bits & SAMPLE_IDENTIFIER:
        at += 8
        layout.end_id = at
    if bits & SAMPLE_CPU:
        at += 8
    if bits & SAMPLE_STREAM_ID:
        at += 8
    if bits & SAMPLE_ID:
        at += 8
        if layout.end_id == 0:
            layout.end_id = at
    if bits & SAMPLE_TIME:
        at += 8
        layout.end_time = at
    if bits & SAMPLE_TID:
        at += 8
    layout.trailer = at


cdef uint64_t _time_of(const Layout* layout, const uint8_t* at, uint32_t kind, size_t size) noexcept nogil:
    if kind == RECORD_SAMPLE:
        return zs_u64(at + layout.time) if layout.time and layout.time + 8 <= size else NO_TIME
    if layout.end_time and layout.trailer + HEAD_BYTES <= size:
        return zs_u64(at + size - layout.end_time)
    return NO_TIME
