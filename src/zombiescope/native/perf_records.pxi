# The kernel's records, from a ring or from a file: they wait in an index, are sorted by time, and each is then handed to
# the method that knows what its kind means. What COMM, FORK, EXIT and MMAP2 say of tasks is the same for both.
#
# Every length is checked against its record, every record against what it was read from; what does not fit is counted
# in `malformed`.

cdef extern from *:
    """
    typedef struct { uint64_t time; uint64_t offset; uint32_t source; uint32_t size; } zs_record;

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
    """
    ctypedef struct zs_record:
        uint64_t time
        uint64_t offset
        uint32_t source          # the CPU of a ring, or the layout of a file's event
        uint32_t size
    zs_record* zs_merge_records(zs_record* all, zs_record* spare, size_t count) nogil

cdef struct RecordIndex:
    zs_record* items
    size_t used, room


cdef class Records:
    cdef RecordIndex index, spare        # of the same room
    cdef TaskTable tasks
    cdef uint32_t rounds                 # drains of the rings, or rounds of a file; from 1
    cdef readonly uint64_t records, malformed, lost, throttled
    cdef bint build_ids                  # MMAP2 records may have one in the place of device and inode

    def __cinit__(self, *args, **options):
        self.rounds = 1
        self.tasks = TaskTable()

    def __dealloc__(self):
        zs_free(&self.index)
        zs_free(&self.spare)

    # --- the order of time ---------------------------------------------------------------------------------------------

    cdef inline int _queue(self, uint64_t time, uint64_t offset, uint32_t source, size_t size) except -1:
        zs_reserve(&self.index, 1)
        self.index.items[self.index.used] = zs_record(time=time, offset=offset, source=source, size=<uint32_t>size)
        self.index.used += 1
        return 0

    cdef int _sort(self) except -1:
        zs_reserve(&self.spare, self.index.used)
        if zs_merge_records(self.index.items, self.spare.items, self.index.used) != self.index.items:
            self.index, self.spare = self.spare, self.index
            self.index.used, self.spare.used = self.spare.used, 0
        return 0

    # --- what a record means -------------------------------------------------------------------------------------------

    cdef int _record(self, const uint8_t* at, size_t size, uint64_t time, const Layout* layout, uint32_t source) except -1:
        """One record, whose time was read before."""
        cdef uint32_t kind = zs_u32(at)
        cdef uint16_t misc = zs_u16(at + 4)
        cdef const uint8_t* body = at + PERF_HEADER_BYTES
        cdef size_t length = size - PERF_HEADER_BYTES
        if kind == PERF_RECORD_SAMPLE:
            return self._sample(at, size, time, layout, source)
        if length < layout.trailer:
            self.malformed += 1
            return 0
        length -= layout.trailer
        if kind == PERF_RECORD_MMAP2 or kind == PERF_RECORD_MMAP:
            # The kernel leaves the flag set when it goes on to the next listener, which may not have asked for build ids:
            # perf_event_mmap_output() restores size and type of the record, not its misc (5.12, commit 88a16a130933).
            if not self.build_ids:
                misc &= ~<uint16_t>PERF_RECORD_MISC_MMAP_BUILD_ID
            return self._mapped(body, length, misc, kind == PERF_RECORD_MMAP2)
        if kind == PERF_RECORD_COMM:
            return self._renamed(body, length, misc)
        if kind == PERF_RECORD_FORK or kind == PERF_RECORD_EXIT:
            return self._forked(body, length, misc, time, kind == PERF_RECORD_EXIT)
        if kind == PERF_RECORD_LOST and length >= 16:
            self._lose(zs_u64(body + 8), source)
        elif kind == PERF_RECORD_LOST_SAMPLES and length >= 8:
            self._lose(zs_u64(body), source)
        elif kind == PERF_RECORD_THROTTLE:
            self.throttled += 1
        elif kind == PERF_RECORD_KSYMBOL:
            return self._ksymbol(body, length)
        elif kind == PERF_RECORD_CGROUP and length > 8:
            self._cgroup(zs_u64(body), _text(body + 8, length - 8))
        return 0

    cdef int _renamed(self, const uint8_t* body, size_t length, uint16_t misc) except -1:
        """COMM: u32 pid, tid, then the name."""
        cdef const char* comm = <const char*>(body + 8)
        cdef const void* end = memchr(comm, 0, length - 8) if length > 8 else NULL
        if end == NULL:
            self.malformed += 1
            return 0
        return self.tasks.renamed(
            zs_u32(body), zs_u32(body + 4), comm, <const char*>end - comm,
            (misc & PERF_RECORD_MISC_COMM_EXEC) != 0, self.rounds,
        )

    cdef int _forked(self, const uint8_t* body, size_t length, uint16_t misc, uint64_t time, bint is_exit) except -1:
        """FORK and EXIT: u32 pid, ppid, tid, ptid, u64 time."""
        cdef uint32_t tid
        cdef Task* task
        if length < 24:
            self.malformed += 1
            return 0
        tid = zs_u32(body + 8)
        if is_exit:
            task = self.tasks.get(tid)
            if task != NULL:
                task.exited_in = self.rounds
            return 0
        return self.tasks.forked(
            zs_u32(body), zs_u32(body + 4), tid, zs_u32(body + 12), self.rounds, time,
            not misc & PERF_RECORD_MISC_FORK_EXEC
        )

    cdef int _mapped(self, const uint8_t* body, size_t length, uint16_t misc, bint is_mmap2) except -1:
        """MMAP: u32 pid, tid, u64 start, length, pgoff, then the name; MMAP2 has what is mapped and u32 prot, flags before
        the name."""
        cdef size_t name = 64 if is_mmap2 else 32
        cdef uint32_t pid
        cdef bint is_kernel
        if length <= name:
            self.malformed += 1
            return 0
        pid = zs_u32(body)
        is_kernel = pid == NOBODY or misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL
        if not is_kernel and (not self.tasks.follows_maps(pid) or (not is_mmap2 and misc & PERF_RECORD_MISC_MMAP_DATA)):
            return 0
        path = _text(body + name, length - name)
        key = _mapped_file(body, misc, path) if is_mmap2 else (path, None, 0, 0, 0)
        if is_kernel:
            return self._kernel_mapped(zs_u64(body + 8), zs_u64(body + 16), zs_u64(body + 24), key)
        return self.tasks.mapped(pid, zs_u64(body + 8), zs_u64(body + 16), zs_u64(body + 24), key)

    cdef int _ksymbol(self, const uint8_t* body, size_t length) except -1:
        """KSYMBOL: u64 address, u32 length, u16 kind, flags, then the name."""
        if length < 17:
            self.malformed += 1
            return 0
        name = None
        if not zs_u16(body + 14) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER:
            name = _text(body + 16, length - 16).decode("utf-8", "replace")
        return self._kernel_symbol(zs_u64(body), zs_u32(body + 8), name)

    # --- for the class that knows more ---------------------------------------------------------------------------------

    cdef int _sample(self, const uint8_t* at, size_t size, uint64_t time, const Layout* layout, uint32_t source) except -1:
        return 0

    cdef void _lose(self, uint64_t count, uint32_t source) noexcept:
        self.lost += count

    cdef int _kernel_mapped(self, uint64_t start, uint64_t length, uint64_t pgoff, tuple file) except -1:
        return 0

    cdef int _kernel_symbol(self, uint64_t address, uint32_t length, str name) except -1:
        """A kernel function came up; without a name: it went."""
        return 0

    cdef int _cgroup(self, uint64_t number, bytes path) except -1:
        return 0


cdef tuple _mapped_file(const uint8_t* body, uint16_t misc, bytes path):
    """What an MMAP2 record maps: (path, build id or None, major, minor, inode)."""
    if misc & PERF_RECORD_MISC_MMAP_BUILD_ID:
        return path, (<const char*>(body + 36))[:min(body[32], 20)], 0, 0, 0
    return path, None, zs_u32(body + 32), zs_u32(body + 36), zs_u64(body + 40)


cdef bytes _text(const uint8_t* at, size_t room):
    """The NUL-terminated string at `at`, or all of `room` when nothing ends it."""
    cdef const void* end = memchr(at, 0, room)
    return (<const char*>at)[:room if end == NULL else <const uint8_t*>end - at]
