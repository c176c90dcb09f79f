# The rings: one per CPU, written by the kernel, drained here. A drain copies what is there and frees the ring at once,
# then reads the copies in the order of time over all CPUs, because a fork on one CPU names a sample on another.
#
# Every event of a ring has IDENTIFIER, TID, TIME and CPU, so a sample starts with
#     u64 id, u32 pid, u32 tid, u64 time, u32 cpu, u32 reserved
# and every other record ends with
#     u32 pid, u32 tid, u64 time, u32 cpu, u32 reserved, u64 id.

cdef extern from *:
    """
    static uint64_t zs_load(const void *at) { return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE); }
    static void zs_store(void *at, uint64_t value) { __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); }
    """
    uint64_t zs_load(const void* at) nogil
    void zs_store(void* at, uint64_t value) nogil

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef struct Ring:
    Py_buffer view
    uint8_t* page
    uint8_t* data
    uint64_t size
    uint64_t tail
    uint32_t cpu
    bint open


cdef class Rings(Records):
    """Copies records out of the rings and hands them on in the order of time."""

    cdef Ring* rings
    cdef size_t ring_count               # one place per possible CPU
    cdef Bytes arena
    cdef Layout common                   # what all events of a ring have

    cdef int _lay_out(self, size_t cpus) except -1:
        self.rings = <Ring*>PyMem_Calloc(cpus, sizeof(Ring))
        if self.rings == NULL:
            raise MemoryError
        self.ring_count = cpus
        self.common = _ring_layout(0)
        return 0

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.ring_count):
            if self.rings[i].open:
                PyBuffer_Release(&self.rings[i].view)
        PyMem_Free(self.rings)
        zs_free(&self.arena)

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
        ring.tail = zs_load(ring.page + PERF_PAGE_DATA_TAIL)
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
        self.arena.used = self.index.used = 0
        for i in range(self.ring_count):
            if self.rings[i].open:
                self._copy_ring(&self.rings[i])
        self._process()
        return self.records - before

    def feed(self, int cpu, const uint8_t[::1] data not None):
        """The same for bytes that did not come from a ring (tests, replays)."""
        if not 0 <= cpu < <int>self.ring_count:
            raise ValueError("no such cpu")
        self.arena.used = self.index.used = 0
        if data.shape[0]:
            zs_reserve(&self.arena, data.shape[0])
            memcpy(self.arena.items, &data[0], data.shape[0])
            self.arena.used = data.shape[0]
            self._index_records(0, data.shape[0], cpu)
        self._process()

    cdef int _copy_ring(self, Ring* ring) except -1:
        cdef uint64_t head = zs_load(ring.page + PERF_PAGE_DATA_HEAD), length = head - ring.tail, start, first
        cdef size_t base = self.arena.used
        if length == 0:
            return 0
        if length > ring.size:   # cannot happen with a kernel that keeps its word
            self.malformed += 1
            ring.tail = head
            zs_store(ring.page + PERF_PAGE_DATA_TAIL, head)
            return 0
        zs_reserve(&self.arena, length)
        start = ring.tail & (ring.size - 1)
        first = min(length, ring.size - start)
        memcpy(self.arena.items + base, ring.data + start, first)
        memcpy(self.arena.items + base + first, ring.data, length - first)
        ring.tail = head
        zs_store(ring.page + PERF_PAGE_DATA_TAIL, head)
        self.arena.used += length
        return self._index_records(base, base + length, ring.cpu)

    cdef int _index_records(self, size_t at, size_t end, uint32_t cpu) except -1:
        cdef const uint8_t* record
        cdef Py_ssize_t size
        while at < end:
            record = self.arena.items + at
            size = whole_record(record, end - at)
            if size <= 0 or size & 7:
                self.malformed += 1
                return 0
            if <size_t>size < (
                self.common.rest if zs_u32(record) == PERF_RECORD_SAMPLE else PERF_HEADER_BYTES + self.common.trailer
            ):
                self.malformed += 1
            else:
                self._queue(time_of(&self.common, record, size), at, cpu, size)
            at += size
        return 0

    cdef int _process(self) except -1:
        cdef size_t i
        cdef zs_record* record
        self._sort()
        for i in range(self.index.used):
            record = &self.index.items[i]
            self._record(self.arena.items + record.offset, record.size, record.time, &self.common, record.source)
        self.records += self.index.used
        self.rounds += 1
        return 0


cdef Layout _ring_layout(uint64_t sample_type) noexcept nogil:
    """The layout of an event of a ring that has these bits besides the common ones."""
    cdef Layout layout
    memset(&layout, 0, sizeof(Layout))
    layout.sample_type = (
        sample_type | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU
    )
    layout.period = 1
    lay_sample(&layout)
    lay_trailer(&layout)
    return layout


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
