# The rings: one per CPU, written by the kernel, drained here. A drain copies what is there and frees the ring at once,
# then reads the copies in the order of time over all CPUs, because a fork on one CPU names a sample on another.
#
# Every event of a ring has IDENTIFIER, TID, TIME and CPU, so a sample starts with
#     u64 id, u32 pid, u32 tid, u64 time, u32 cpu, u32 reserved
# and every other record ends with
#     u32 pid, u32 tid, u64 time, u32 cpu, u32 reserved, u64 id.
# Every length is checked against its record, every record against its ring; what does not fit is counted in `malformed`.

cdef extern from *:
    """
    typedef struct { uint64_t time; uint64_t offset; uint32_t cpu; uint32_t size; } zs_record;

    static uint64_t zs_load(const void *at) { return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE); }
    static void zs_store(void *at, uint64_t value) { __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); }

    static int zs_by_time(const void *a, const void *b) {
        const zs_record *x = a, *y = b;
        if (x->time != y->time) return x->time < y->time ? -1 : 1;
        return x->offset < y->offset ? -1 : x->offset > y->offset;
    }
    static void zs_sort_records(zs_record *all, size_t count) { qsort(all, count, sizeof *all, zs_by_time); }
    """
    ctypedef struct zs_record:
        uint64_t time
        uint64_t offset
        uint32_t cpu
        uint32_t size
    uint64_t zs_load(const void* at) nogil
    void zs_store(void* at, uint64_t value) nogil
    void zs_sort_records(zs_record* all, size_t count) nogil

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

cdef enum:
    HEAD_BYTES = 8
    SAMPLE_HEAD = 40          # header, id, pid/tid, time, cpu
    TRAILER = 32
    DATA_HEAD = 1024          # offsets in the ring's first page
    DATA_TAIL = 1032
    RECORD_SAMPLE = 9


cdef struct Ring:
    Py_buffer view
    uint8_t* page
    uint8_t* data
    uint64_t size
    uint64_t tail
    uint32_t cpu
    bint open


cdef class Rings:
    """Copies records out of the rings and hands them to `_record` in the order of time."""

    cdef Ring* rings
    cdef size_t ring_count               # one place per possible CPU
    cdef uint8_t* arena
    cdef size_t arena_used, arena_room
    cdef zs_record* index
    cdef size_t index_used, index_room
    cdef uint32_t drains
    cdef readonly uint64_t records, malformed

    cdef int _lay_out(self, size_t cpus) except -1:
        self.rings = <Ring*>PyMem_Malloc(cpus * sizeof(Ring))
        if self.rings == NULL:
            raise MemoryError
        self.ring_count = cpus
        memset(self.rings, 0, cpus * sizeof(Ring))
        self.drains = 1
        return 0

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.ring_count):
            if self.rings[i].open:
                PyBuffer_Release(&self.rings[i].view)
        PyMem_Free(self.rings)
        PyMem_Free(self.arena)
        PyMem_Free(self.index)

    cdef int _record(self, zs_record* record) except -1:
        """One record, for the class that knows what it means."""
        return 0

    cdef void _ring_changed(self, uint32_t cpu) noexcept:
        """A ring came or went."""

    def add_ring(self, int cpu, memory, size_t page_size):
        """Follows the ring in `memory`, a writable mapping of one page and a power of two of data pages."""
        cdef Ring* ring
        if not 0 <= cpu < <int>self.ring_count:
            raise ValueError(f"cpu {cpu} is outside 0..{self.ring_count - 1}")
        ring = &self.rings[cpu]
        if ring.open:
            raise ValueError(f"cpu {cpu} has a ring already")
        PyObject_GetBuffer(memory, &ring.view, PyBUF_SIMPLE | PyBUF_WRITABLE)
        ring.size = ring.view.len - page_size
        if ring.view.len <= <Py_ssize_t>page_size or ring.size & (ring.size - 1):
            PyBuffer_Release(&ring.view)
            raise ValueError("a ring's data must be a power of two")
        ring.page = <uint8_t*>ring.view.buf
        ring.data = ring.page + page_size
        ring.tail = zs_load(ring.page + DATA_TAIL)
        ring.cpu = cpu
        ring.open = True
        self._ring_changed(cpu)

    def remove_ring(self, int cpu):
        """Lets go of a ring (its CPU went away); what was not drained is drained first."""
        if 0 <= cpu < <int>self.ring_count and self.rings[cpu].open:
            self.drain()
            self.rings[cpu].open = False
            self._ring_changed(cpu)
            PyBuffer_Release(&self.rings[cpu].view)

    def drain(self):
        """Takes everything out of all rings. Gives the number of records."""
        cdef size_t i
        cdef uint64_t before = self.records
        self.arena_used = 0
        self.index_used = 0
        for i in range(self.ring_count):
            if self.rings[i].open:
                self._copy_ring(&self.rings[i])
        self._process()
        return self.records - before

    def feed(self, int cpu, const uint8_t[::1] data not None):
        """The same for bytes that did not come from a ring (tests, replays)."""
        if not 0 <= cpu < <int>self.ring_count:
            raise ValueError("no such cpu")
        self.arena_used = 0
        self.index_used = 0
        if data.shape[0]:
            self._room_in_arena(data.shape[0])
            memcpy(self.arena, &data[0], data.shape[0])
            self.arena_used = data.shape[0]
            self._index_records(0, data.shape[0], cpu)
        self._process()

    cdef int _room_in_arena(self, size_t more) except -1:
        cdef void* grown
        if self.arena_used + more > self.arena_room:
            grown = PyMem_Realloc(self.arena, self.arena_used + more + 65536)
            if grown == NULL:
                raise MemoryError
            self.arena = <uint8_t*>grown
            self.arena_room = self.arena_used + more + 65536
        return 0

    cdef int _copy_ring(self, Ring* ring) except -1:
        cdef uint64_t head = zs_load(ring.page + DATA_HEAD), length = head - ring.tail, start, first
        cdef size_t base = self.arena_used
        if length == 0:
            return 0
        if length > ring.size:   # cannot happen with a kernel that keeps its word
            self.malformed += 1
            ring.tail = head
            zs_store(ring.page + DATA_TAIL, head)
            return 0
        self._room_in_arena(length)
        start = ring.tail & (ring.size - 1)
        first = min(length, ring.size - start)
        memcpy(self.arena + base, ring.data + start, first)
        memcpy(self.arena + base + first, ring.data, length - first)
        ring.tail = head
        zs_store(ring.page + DATA_TAIL, head)
        self.arena_used += length
        return self._index_records(base, base + length, ring.cpu)

    cdef int _index_records(self, size_t at, size_t end, uint32_t cpu) except -1:
        cdef uint32_t kind
        cdef uint16_t size
        cdef uint64_t time
        cdef void* grown
        while at + HEAD_BYTES <= end:
            memcpy(&kind, self.arena + at, 4)
            memcpy(&size, self.arena + at + 6, 2)
            if size < HEAD_BYTES or size > end - at or size & 7:
                self.malformed += 1
                return 0
            if kind == RECORD_SAMPLE:
                if size < SAMPLE_HEAD:
                    self.malformed += 1
                    at += size
                    continue
                memcpy(&time, self.arena + at + 24, 8)
            else:
                if size < HEAD_BYTES + TRAILER:
                    self.malformed += 1
                    at += size
                    continue
                memcpy(&time, self.arena + at + size - 24, 8)
            if self.index_used == self.index_room:
                grown = PyMem_Realloc(self.index, (self.index_room * 2 + 1024) * sizeof(zs_record))
                if grown == NULL:
                    raise MemoryError
                self.index = <zs_record*>grown
                self.index_room = self.index_room * 2 + 1024
            self.index[self.index_used] = zs_record(time=time, offset=at, cpu=cpu, size=size)
            self.index_used += 1
            at += size
        if at != end:
            self.malformed += 1
        return 0

    cdef int _process(self) except -1:
        cdef size_t i
        zs_sort_records(self.index, self.index_used)
        for i in range(self.index_used):
            self._record(&self.index[i])
        self.records += self.index_used
        self.drains += 1
        return 0


cdef extern from "<sys/syscall.h>" nogil:
    long SYS_perf_event_open

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

from libc.errno cimport errno


def perf_event_open(bytes attr not None, int pid, int cpu, int group, unsigned long flags):
    """perf_event_open(2): a file descriptor. Raises OSError."""
    cdef long fd = syscall(SYS_perf_event_open, PyBytes_AS_STRING(attr), pid, cpu, group, flags)
    cdef int why = errno
    if fd < 0:
        raise OSError(why, __import__("os").strerror(why))
    return fd
