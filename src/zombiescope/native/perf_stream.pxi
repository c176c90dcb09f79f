# perf.data as a stream of records, read in the order of time.
#
# perf writes the rings of all CPUs one after the other, so records of two CPUs are not in the order of time; a
# FINISHED_ROUND record promises that nothing older than the round before will come. Records wait in `index` until a round
# says so, and are then handed to `_record`. Records without a time (made up by perf at its start) are read at once.
#
# Every length is checked before it is believed. Where a header makes no sense, the next place is searched from which
# several records follow each other; what lies between is counted in `damaged_bytes`.

from cpython.memoryview cimport PyMemoryView_FromMemory

cdef extern from "Python.h":
    int PyBUF_WRITE

cdef enum:
    MAX_LAYOUTS = 65536
    PROOF = 4                        # records that must follow each other for a place to be believed

cdef size_t MAX_WAITING_BYTES = 512 << 20
cdef uint64_t INNER = <uint64_t>1 << 63


cdef struct Layouts:
    Layout* items
    size_t used, room

cdef struct Input:                   # a vector
    uint8_t* items
    size_t used, room, parsed
    uint64_t skip                    # bytes still to be passed over
    bint lost                        # inside damage


cdef class PerfStream(Records):
    """Give it events (add_event) and bytes (fill or feed), then pump(); finish() at the end, and pump() again."""

    cdef Layouts layouts
    cdef IdMap ids
    cdef Input outer, inner          # the file; what its compressed records hold
    cdef size_t flush_at, flush_end  # the part of `index` whose time has come
    cdef uint64_t oldest_sample, newest, flush_until, last_time
    cdef size_t waiting_bytes
    cdef uint64_t id_place, end_id_place      # where all layouts have their id; NO_TIME: they do not agree
    cdef object meaning
    cdef readonly uint64_t damaged, damaged_bytes, unknown_records, unknown_events

    def __cinit__(self, meaning, *args, **options):
        self.ids = IdMap()
        self.meaning = meaning
        self.oldest_sample = NO_TIME

    def __dealloc__(self):
        zs_free(&self.layouts)
        zs_free(&self.outer)
        zs_free(&self.inner)

    cdef void _foresee(self, size_t at) noexcept:
        """A record that will come soon, by its place in `index`: what it needs may be fetched into the CPU's caches."""

    cdef bint _is_full(self) noexcept:
        """Whether what was made of the records must be taken before more are read."""
        return False

    # --- events --------------------------------------------------------------------------------------------------------

    def add_event(self, uint64_t sample_type, uint64_t read_format, bint sample_id_all, uint64_t branch_type,
                  uint64_t regs_user, uint64_t regs_intr, uint64_t period, uint32_t event, ids, bint build_ids=True):
        """What perf_event_attr says of one event; `event` is the number its samples get, `ids` are those in the records."""
        cdef Layout* layout
        if self.layouts.used >= MAX_LAYOUTS:
            raise ValueError("too many events")
        zs_reserve(&self.layouts, 1)
        layout = &self.layouts.items[self.layouts.used]
        memset(layout, 0, sizeof(Layout))
        layout.sample_type, layout.read_format, layout.branch_type = sample_type, read_format, branch_type
        layout.regs_user, layout.regs_intr, layout.period, layout.event = regs_user, regs_intr, period, event
        self.build_ids |= build_ids
        lay_sample(layout)
        if sample_id_all:
            lay_trailer(layout)
        if self.layouts.used == 0:
            self.id_place, self.end_id_place = layout.id, layout.end_id
        if self.id_place != layout.id:
            self.id_place = NO_TIME
        if self.end_id_place != layout.end_id:
            self.end_id_place = NO_TIME
        for number in ids:
            self.ids.set(number, <uint32_t>self.layouts.used)
        self.layouts.used += 1

    cdef Py_ssize_t _layout_of(self, const uint8_t* at, uint32_t kind, size_t size) noexcept:
        """Number of the layout of a record; -1: its event is not known."""
        cdef uint64_t number = 0
        cdef const uint32_t* layout
        if self.layouts.used == 1:
            return 0
        if kind == PERF_RECORD_SAMPLE:
            if self.id_place == NO_TIME or self.id_place == 0 or self.id_place + 8 > size:
                return -1
            number = zs_u64(at + self.id_place)
        elif self.end_id_place != NO_TIME and self.end_id_place and self.end_id_place + PERF_HEADER_BYTES <= size:
            number = zs_u64(at + size - self.end_id_place)
        elif self.layouts.used == 0:
            return -1
        if number == 0:              # made up by perf
            return 0 if self.layouts.used else -1
        layout = self.ids.find(number)
        if layout != NULL:
            return layout[0]
        return -1 if kind == PERF_RECORD_SAMPLE else 0

    # --- bytes ---------------------------------------------------------------------------------------------------------

    def fill(self, file, size_t limit):
        """Reads up to `limit` bytes of a file: how many came; 0 at its end."""
        self._make_room(&self.outer, limit, 0)
        view = PyMemoryView_FromMemory(<char*>(self.outer.items + self.outer.used), limit, PyBUF_WRITE)
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
        zs_copy(into.items + into.used, data, length)
        into.used += length
        return 0

    cdef int _make_room(self, Input* into, size_t more, uint64_t mark) except -1:
        """Room at the end; moves what is still needed to the front when that is the smaller part."""
        cdef size_t first = into.parsed, i
        if more <= into.room - into.used:
            return 0
        for i in range(self.flush_at, self.index.used):
            if (self.index.items[i].offset & INNER) == mark and (self.index.items[i].offset & ~INNER) < first:
                first = <size_t>(self.index.items[i].offset & ~INNER)
        if first and first >= into.used - first:
            zs_copy(into.items, into.items + first, into.used - first)
            into.used -= first
            into.parsed -= first
            for i in range(self.flush_at, self.index.used):
                if (self.index.items[i].offset & INNER) == mark:
                    self.index.items[i].offset -= first
        return zs_reserve(into, more)

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
        return (self.inner.items if entry.offset & INNER else self.outer.items) + (entry.offset & ~INNER)

    cdef int _hand_on(self, size_t at) except -1:
        cdef zs_record* entry = &self.index.items[at]
        cdef const uint8_t* record = self._place_of(entry)
        self.waiting_bytes -= entry.size
        self.last_time = entry.time
        return self._record(record, entry.size, entry.time, &self.layouts.items[entry.source], 0)

    cdef int _flush(self, uint64_t until) except -1:
        """Sorts what waits and marks what is not later than `until` as due."""
        cdef size_t low = 0, high = self.index.used, middle
        if self.index.used == 0 or self.flush_end:
            return 0
        self._sort()
        while low < high:
            middle = (low + high) >> 1
            if self.index.items[middle].time <= until:
                low = middle + 1
            else:
                high = middle
        self.flush_at, self.flush_end = 0, low
        return 0

    cdef int _drop_flushed(self) except -1:
        self.index.used -= self.flush_end
        zs_copy(self.index.items, self.index.items + self.flush_end, self.index.used * sizeof(zs_record))
        self.flush_at = self.flush_end = 0
        self.rounds += 1
        if self.tasks.tasks.used > MAX_TASKS // 2:
            self.tasks.sweep(self.rounds - 1, 0)
        return 0

    cdef bint _parse(self, Input* source, uint64_t mark) except -1:
        """Reads records until the bytes end (False) or something must be done first (True)."""
        cdef const uint8_t* at
        cdef uint32_t kind
        cdef size_t left
        cdef Py_ssize_t size
        while True:
            left = source.used - source.parsed
            if source.skip:
                left = min(left, <size_t>source.skip)
                source.parsed += left
                source.skip -= left
                if source.skip:
                    return False
                continue
            if left < PERF_HEADER_BYTES:
                return False
            at = source.items + source.parsed
            kind = zs_u32(at)
            size = whole_record(at, left)
            if source.lost or size < 0 or not _is_kind(kind):
                if not self._find_record(source):
                    return False
                continue
            if size == 0:
                return False
            source.parsed += size
            if kind >= PERF_RECORD_USER_TYPE_START:
                if self._user_record(at, kind, size, source):
                    return True
            elif kind >= PERF_RECORD_MAX:
                self.unknown_records += 1
            elif self._kernel_record(at, kind, size, (source.parsed - size) | mark):
                return True

    cdef bint _kernel_record(self, const uint8_t* at, uint32_t kind, size_t size, uint64_t offset) except -1:
        """A record with a time waits for its round, one without is read; True when what was made must be taken."""
        cdef Py_ssize_t layout
        cdef uint64_t time
        self.records += 1
        layout = self._layout_of(at, kind, size)
        if layout < 0:
            self.unknown_events += kind == PERF_RECORD_SAMPLE
            return False
        time = time_of(&self.layouts.items[layout], at, size)
        if time == 0 or time == NO_TIME:
            self._record(at, size, time, &self.layouts.items[layout], 0)
            return self._is_full()
        if kind == PERF_RECORD_SAMPLE:
            self.oldest_sample = min(self.oldest_sample, time)
        self._queue(time, offset, <uint32_t>layout, size)
        self.waiting_bytes += size
        self.newest = max(self.newest, time)
        return False

    cdef bint _user_record(self, const uint8_t* at, uint32_t kind, size_t size, Input* source) except -1:
        if kind == PERF_RECORD_FINISHED_ROUND:
            self._flush(self.flush_until)
            self.flush_until = self.newest
            return self.flush_end > 0
        if kind == PERF_RECORD_COMPRESSED or kind == PERF_RECORD_COMPRESSED2:
            return self._compressed(at, kind, size, source)
        if kind == PERF_RECORD_HEADER_TRACING_DATA and size >= 12:
            source.skip = zs_u32(at + 8)
        elif kind == PERF_RECORD_AUXTRACE and size >= 16:
            source.skip = zs_u64(at + 8)
        elif kind in (
            PERF_RECORD_HEADER_ATTR, PERF_RECORD_HEADER_EVENT_TYPE, PERF_RECORD_HEADER_BUILD_ID, PERF_RECORD_EVENT_UPDATE,
            PERF_RECORD_HEADER_FEATURE,
        ):
            self.meaning.header_record(kind, zs_u16(at + 4), (<const char*>at)[:size])
        elif kind >= PERF_RECORD_HEADER_MAX:
            self.unknown_records += 1
        return False

    cdef bint _compressed(self, const uint8_t* at, uint32_t kind, size_t size, Input* source) except -1:
        cdef size_t first = PERF_HEADER_BYTES, length = size - PERF_HEADER_BYTES
        cdef bytes data
        if source == &self.inner:
            self.malformed += 1
            return False
        if kind == PERF_RECORD_COMPRESSED2:
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
        while at + PERF_HEADER_BYTES <= source.used and not _is_proved(source.items + at, source.used - at):
            at += 1
        self.damaged_bytes += at - source.parsed
        source.parsed = at
        source.lost = at + PERF_HEADER_BYTES > source.used
        return not source.lost


cdef inline bint _is_kind(uint32_t kind) noexcept nogil:
    return 0 < kind < 48 or PERF_RECORD_USER_TYPE_START <= kind < 128


cdef bint _is_proved(const uint8_t* at, size_t left) noexcept nogil:
    """Whether some records that make sense follow each other here, or fill the rest."""
    cdef uint32_t kind
    cdef size_t size
    cdef int seen = 0
    while seen < PROOF and left >= PERF_HEADER_BYTES:
        kind = zs_u32(at)
        size = zs_u16(at + 6)
        if kind == 0 or (PERF_RECORD_MAX <= kind < PERF_RECORD_USER_TYPE_START) or kind >= PERF_RECORD_HEADER_MAX or size < PERF_HEADER_BYTES:
            return False
        if size & 7 and kind != PERF_RECORD_COMPRESSED and kind != PERF_RECORD_HEADER_TRACING_DATA:
            return False
        if (zs_u16(at + 4) & PERF_RECORD_MISC_CPUMODE_MASK) > PERF_RECORD_MISC_GUEST_USER or (kind == PERF_RECORD_FINISHED_ROUND) != (size == PERF_HEADER_BYTES):
            return False
        if size > left:
            return seen > 1
        at += size
        left -= size
        seen += 1
    return seen > 1 or (seen == 1 and left == 0)
