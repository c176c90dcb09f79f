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
    RECORD_MMAP = 1
    RECORD_LOST = 2
    RECORD_COMM = 3
    RECORD_EXIT = 4
    RECORD_THROTTLE = 5
    RECORD_FORK = 7
    RECORD_SAMPLE = 9
    RECORD_MMAP2 = 10
    RECORD_LOST_SAMPLES = 13
    RECORD_KSYMBOL = 17
    RECORD_CGROUP = 19
    MISC_COMM_EXEC = 1 << 13
    MISC_BUILD_ID = 1 << 14
    HEAD_BYTES = 8
    SAMPLE_HEAD = 40          # header, id, pid/tid, time, cpu
    TRAILER = 32
    DATA_HEAD = 1024          # offsets in the ring's first page
    DATA_TAIL = 1032
    MAX_DEPTH = 512

cdef uint64_t CONTEXT_MAX = <uint64_t>-4095
cdef uint64_t CONTEXT_USER = <uint64_t>-512
cdef uint64_t CONTEXT_KERNEL = <uint64_t>-128
cdef uint32_t KERNEL_SPACE = 0xFFFFFFFE


cdef struct Ring:
    Py_buffer view
    uint8_t* page
    uint8_t* data
    uint64_t size
    uint64_t tail
    uint32_t cpu
    bint open

cdef struct Core:
    uint64_t got
    uint64_t idle
    uint64_t last_ns
    uint64_t max_gap_ns
    uint64_t lost

cdef struct Pending:
    uint64_t time
    uint64_t period
    uint32_t cpu
    uint32_t task
    uint32_t space
    uint32_t first            # into pending_frames: kernel frame ids, then user addresses, both leaf first
    uint16_t kernel
    uint16_t user

cdef struct Share:
    uint32_t samples
    uint32_t kernel


cdef class Sampler:
    """Drains rings and turns stack samples into rows of small numbers; hands everything else to Python as tuples."""

    cdef KernelSymbols symbols
    cdef readonly StackInterner stacks
    cdef UserFrames frames
    cdef TaskTable tasks
    cdef Ring* rings
    cdef size_t ring_count
    cdef Core* cores
    cdef size_t core_count
    cdef dict kinds                      # event id -> 0 for the sampler, 1.. for tracepoints
    cdef bint has_period, has_cgroup, host_pids
    cdef uint8_t* arena
    cdef size_t arena_used, arena_room
    cdef zs_record* index
    cdef size_t index_used, index_room
    cdef Pending* pending
    cdef size_t pending_used, pending_room
    cdef uint64_t* pending_frames
    cdef size_t pending_frames_used, pending_frames_room
    cdef Share* shares                   # by task number
    cdef size_t share_room
    cdef uint32_t drains, next_task, next_frame, zero_task
    cdef uint32_t blanks[8]              # frames of kind "unknown": a run of one of them says no more than one
    cdef dict frame_numbers
    cdef list new_frames, new_tasks, tracepoints, ksymbols, cgroups
    cdef dict wanted                     # space -> (pid, [addresses])
    cdef readonly uint64_t records, lost, throttled, malformed, garbage_frames, unresolved_kernel

    def __cinit__(self, KernelSymbols symbols not None, int cpus, bint has_period=False, bint has_cgroup=False,
                  bint host_pids=True):
        self.symbols = symbols
        self.stacks = StackInterner()
        self.frames = UserFrames()
        self.tasks = TaskTable()
        self.core_count = max(cpus, 1)
        self.cores = <Core*>PyMem_Malloc(self.core_count * sizeof(Core))
        self.rings = <Ring*>PyMem_Malloc(self.core_count * sizeof(Ring))
        if self.cores == NULL or self.rings == NULL:
            raise MemoryError
        memset(self.cores, 0, self.core_count * sizeof(Core))
        memset(self.rings, 0, self.core_count * sizeof(Ring))
        self.kinds = {}
        self.has_period = has_period
        self.has_cgroup = has_cgroup
        self.host_pids = host_pids
        self.tracepoints, self.ksymbols, self.cgroups = [], [], []
        self.wanted = {}
        self.drains = 1
        self._start_numbers()

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.core_count):
            if self.rings != NULL and self.rings[i].open:
                PyBuffer_Release(&self.rings[i].view)
        PyMem_Free(self.rings)
        PyMem_Free(self.cores)
        PyMem_Free(self.arena)
        PyMem_Free(self.index)
        PyMem_Free(self.pending)
        PyMem_Free(self.pending_frames)
        PyMem_Free(self.shares)

    cdef void _start_numbers(self):
        self.next_task = 1
        self.next_frame = 1
        self.zero_task = 0
        memset(self.blanks, 0, sizeof(self.blanks))
        self.frame_numbers = {}
        self.new_frames, self.new_tasks = [], []

    # --- rings --------------------------------------------------------------------------------------------------

    def add_ring(self, int cpu, memory, size_t page_size):
        """Follows the ring in `memory`, a writable mapping of one page and a power of two of data pages."""
        cdef Ring* ring
        if not 0 <= cpu < <int>self.core_count:
            raise ValueError(f"cpu {cpu} is outside 0..{self.core_count - 1}")
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
        self.cores[cpu].last_ns = 0

    def remove_ring(self, int cpu):
        """Lets go of a ring (its CPU went away); what was not drained is drained first."""
        if 0 <= cpu < <int>self.core_count and self.rings[cpu].open:
            self.drain()
            self.rings[cpu].open = False
            self.cores[cpu].last_ns = 0
            PyBuffer_Release(&self.rings[cpu].view)

    def register(self, uint64_t event_id, int kind):
        """Tells what an event id means: 0 the stack sampler, n the n-th tracepoint."""
        self.kinds[event_id] = kind

    def drain(self):
        """Takes everything out of all rings. Gives the number of records."""
        cdef size_t i
        cdef uint64_t before = self.records
        self.arena_used = 0
        self.index_used = 0
        for i in range(self.core_count):
            if self.rings[i].open:
                self._copy_ring(&self.rings[i])
        self._process()
        return self.records - before

    def feed(self, int cpu, const uint8_t[::1] data not None):
        """The same for bytes that did not come from a ring (tests, replays)."""
        if not 0 <= cpu < <int>self.core_count:
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

    # --- records ------------------------------------------------------------------------------------------------

    cdef int _process(self) except -1:
        cdef size_t i
        zs_sort_records(self.index, self.index_used)
        for i in range(self.index_used):
            self._record(&self.index[i])
        self.records += self.index_used
        self.drains += 1
        return 0

    cdef int _record(self, zs_record* record) except -1:
        cdef const uint8_t* at = self.arena + record.offset
        cdef const uint8_t* body = at + HEAD_BYTES
        cdef size_t length = record.size - HEAD_BYTES - TRAILER
        cdef uint32_t kind
        cdef uint32_t words[4]
        cdef uint16_t misc
        cdef uint64_t number
        memcpy(&kind, at, 4)
        memcpy(&misc, at + 4, 2)
        if kind == RECORD_SAMPLE:
            return self._sample(record, at)
        if kind == RECORD_FORK or kind == RECORD_EXIT:
            if length < 24:
                self.malformed += 1
                return 0
            memcpy(words, body, 16)
            if kind == RECORD_FORK:
                return self.tasks.forked(words[0], words[1], words[2], words[3], self.drains)
            return self._exited(words[2])
        if kind == RECORD_COMM:
            return self._comm(body, length, misc)
        if kind == RECORD_MMAP2:
            return self._mmap2(body, length, misc)
        if kind == RECORD_LOST and length >= 16:
            memcpy(&number, body + 8, 8)
            self.lost += number
            self.cores[record.cpu].lost += number
        elif kind == RECORD_LOST_SAMPLES and length >= 8:
            memcpy(&number, body, 8)
            self.lost += number
            self.cores[record.cpu].lost += number
        elif kind == RECORD_THROTTLE:
            self.throttled += 1
        elif kind == RECORD_KSYMBOL:
            self._ksymbol(body, length)
        elif kind == RECORD_CGROUP and length > 8:
            memcpy(&number, body, 8)
            self.cgroups.append((number, _text(body + 8, length - 8)))
        return 0

    cdef int _exited(self, uint32_t tid) except -1:
        cdef Task* task = self.tasks.get(tid)
        if task != NULL:
            task.exited_in = self.drains
        return 0

    cdef int _comm(self, const uint8_t* body, size_t length, uint16_t misc) except -1:
        cdef uint32_t words[2]
        if length < 9:
            self.malformed += 1
            return 0
        memcpy(words, body, 8)
        cdef const char* comm = <const char*>(body + 8)
        cdef const void* end = memchr(comm, 0, length - 8)
        if end == NULL:
            self.malformed += 1
            return 0
        return self.tasks.renamed(
            words[0], words[1], comm, <const char*>end - comm, (misc & MISC_COMM_EXEC) != 0, self.drains
        )

    cdef int _mmap2(self, const uint8_t* body, size_t length, uint16_t misc) except -1:
        cdef uint32_t pid
        cdef uint64_t place[3]
        cdef uint32_t device[2]
        cdef uint64_t inode
        cdef Task* task
        if length < 65:
            self.malformed += 1
            return 0
        memcpy(&pid, body, 4)
        task = self.tasks.get(pid)
        if task == NULL or task.maps == 0:
            return 0
        memcpy(place, body + 8, 24)
        name = _text(body + 64, length - 64)
        if misc & MISC_BUILD_ID:
            key = (name, (<const char*>(body + 36))[:min(body[32], 20)], 0, 0, 0)
        else:
            memcpy(device, body + 32, 8)
            memcpy(&inode, body + 40, 8)
            key = (name, None, device[0], device[1], inode)
        return self.tasks.mapped(pid, place[0], place[1], place[2], key)

    cdef int _ksymbol(self, const uint8_t* body, size_t length) except -1:
        cdef uint64_t address
        cdef uint32_t size
        cdef uint16_t flags
        if length < 17:
            self.malformed += 1
            return 0
        memcpy(&address, body, 8)
        memcpy(&size, body + 8, 4)
        memcpy(&flags, body + 14, 2)
        name = _text(body + 16, length - 16).decode("utf-8", "replace")
        if flags & 1:
            self.symbols.remove(address)
        else:
            self.symbols.add(address, size, name)
        self.frames.forget_range(KERNEL_SPACE, address, size)
        return 0

    cdef int _sample(self, zs_record* record, const uint8_t* at) except -1:
        cdef uint64_t event_id
        cdef uint32_t ids[2]
        cdef uint32_t size
        memcpy(&event_id, at + 8, 8)
        memcpy(ids, at + 16, 8)
        kind = self.kinds.get(event_id)
        if kind is None:
            self.malformed += 1
            return 0
        if kind == 0:
            return self._stack_sample(record, at, ids[0], ids[1])
        if record.size < SAMPLE_HEAD + 4:
            self.malformed += 1
            return 0
        memcpy(&size, at + SAMPLE_HEAD, 4)
        if size > record.size - SAMPLE_HEAD - 4:
            self.malformed += 1
            return 0
        self.tracepoints.append(
            (kind, record.time, record.cpu, ids[0], ids[1], (<const char*>(at + SAMPLE_HEAD + 4))[:size])
        )
        return 0

    # --- stack samples ------------------------------------------------------------------------------------------

    cdef int _stack_sample(self, zs_record* record, const uint8_t* at, uint32_t pid, uint32_t tid) except -1:
        cdef Core* core = &self.cores[record.cpu]
        cdef size_t offset = SAMPLE_HEAD
        cdef uint64_t period = 1, depth, cgroup = 0
        cdef const uint8_t* chain
        core.got += 1
        if core.last_ns and record.time > core.last_ns:
            core.max_gap_ns = max(core.max_gap_ns, record.time - core.last_ns)
        core.last_ns = max(core.last_ns, record.time)
        if self.has_period:
            if record.size < offset + 8:
                self.malformed += 1
                return 0
            memcpy(&period, at + offset, 8)
            offset += 8
        if record.size < offset + 8:
            self.malformed += 1
            return 0
        memcpy(&depth, at + offset, 8)
        chain = at + offset + 8
        if depth > (record.size - offset - 8) >> 3:
            self.malformed += 1
            return 0
        if self.has_cgroup:
            if record.size < offset + 16 + 8 * depth:
                self.malformed += 1
                return 0
            memcpy(&cgroup, chain + 8 * depth, 8)
        return self._keep(record, pid, tid, period, cgroup, chain, min(depth, <uint64_t>MAX_DEPTH))

    cdef int _keep(self, zs_record* record, uint32_t pid, uint32_t tid, uint64_t period, uint64_t cgroup,
                   const uint8_t* chain, size_t depth) except -1:
        cdef uint64_t* out
        cdef uint64_t address
        cdef uint64_t context = 0
        cdef size_t i, kernel = 0, user = 0
        cdef bint leaf = True
        cdef uint8_t flags = 0, seen = 0
        cdef Pending* row
        cdef Task* task
        cdef uint32_t space = 0, number
        self._room_for_pending(depth)
        out = self.pending_frames + self.pending_frames_used
        for i in range(depth):
            memcpy(&address, chain + 8 * i, 8)
            if address >= CONTEXT_MAX:
                context = address
                leaf = True
                continue
            # Only a leaf is where the CPU was; the others are return addresses, which may belong to the next function.
            if not leaf and address:
                address -= 1
            leaf = False
            if context == CONTEXT_KERNEL:
                out[kernel] = self._kernel_frame(address, &flags)
                kernel += 1
                # From the leaf outwards, the first of the two decides: an interrupt frame is work on top of idle.
                if seen == 0:
                    seen = flags
            elif context == CONTEXT_USER:
                out[kernel + user] = address
                user += 1
        if pid == 0 and tid == 0 and user == 0 and self._is_idle(seen):
            self.cores[record.cpu].idle += 1
            return 0
        if tid == 0:
            number = self._zero_task()
        else:
            task = self.tasks.make(pid, tid)
            number = 0 if task == NULL else self._task_number(task, cgroup)
            if user:
                space = self._space_of(pid)
                self._ask_for(pid, space, out + kernel, user)
        row = &self.pending[self.pending_used]
        row.time, row.period, row.cpu = record.time, period, record.cpu
        row.task, row.space, row.first = number, space, <uint32_t>self.pending_frames_used
        row.kernel, row.user = <uint16_t>kernel, <uint16_t>user
        self.pending_used += 1
        self.pending_frames_used += kernel + user
        return self._share(number, kernel > 0)

    cdef bint _is_idle(self, uint8_t seen) noexcept:
        # Without kernel symbols the context cannot be read: pid 0 of the host is then idle as far as we can know.
        if self.symbols.hidden:
            return self.host_pids
        return seen == ZS_IDLE

    cdef int _room_for_pending(self, size_t depth) except -1:
        cdef void* grown
        if self.pending_used == self.pending_room:
            grown = PyMem_Realloc(self.pending, (self.pending_room * 2 + 512) * sizeof(Pending))
            if grown == NULL:
                raise MemoryError
            self.pending = <Pending*>grown
            self.pending_room = self.pending_room * 2 + 512
        if self.pending_frames_used + depth > self.pending_frames_room:
            grown = PyMem_Realloc(self.pending_frames, ((self.pending_frames_used + depth) * 2 + 4096) * sizeof(uint64_t))
            if grown == NULL:
                raise MemoryError
            self.pending_frames = <uint64_t*>grown
            self.pending_frames_room = (self.pending_frames_used + depth) * 2 + 4096
        return 0

    cdef uint32_t _kernel_frame(self, uint64_t address, uint8_t* flags) except? 0:
        """The frame number of a kernel address; `flags` says whether it means idle or interrupt."""
        cdef UserFrame* known = self.frames.find(KERNEL_SPACE, address)
        if known.space == 0:
            known.space, known.address, known.frame = KERNEL_SPACE, address, FRAME_PENDING
            self.frames.used += 1
        if known.frame == FRAME_PENDING:
            known.frame = self._resolve_kernel(address)
        # Two flags fit above a frame number; frames are far fewer than 2^30.
        flags[0] = <uint8_t>(known.frame >> 30)
        return known.frame & 0x3FFFFFFF

    cdef uint32_t _resolve_kernel(self, uint64_t address) except? 0:
        cdef Py_ssize_t index
        for start, (end, name) in self.symbols.extra.items():
            if start <= address < end:
                return self.frame(name, "bpf", "bpf")
        index = self.symbols._find(address)
        if index < 0:
            self.unresolved_kernel += 1
            return self.frame("[kernel]" if self.symbols.hidden else "[unknown kernel code]", "", "kernel")
        if self.symbols.frame_of[index] == 0:
            name, module = self.symbols._name(index)
            self.symbols.frame_of[index] = self.frame(
                name, module, "kernel" if not module else "bpf" if module == "bpf" else "module"
            )
        return self.symbols.frame_of[index] | <uint32_t>self.symbols.symbols[index].flags << 30

    cdef uint32_t _zero_task(self) except? 0:
        if self.zero_task == 0:
            self.zero_task = self.next_task
            self.next_task += 1
            self.new_tasks.append(
                (self.zero_task, 0, 0, "swapper" if self.host_pids else "(outside this PID namespace)", None, None)
            )
        return self.zero_task

    cdef uint32_t _task_number(self, Task* task, uint64_t cgroup) except? 0:
        # A task that moved to another cgroup gets a new number: its earlier samples stay where they belong.
        if task.cgroup != cgroup:
            task.cgroup = cgroup
            task.number = 0
        if task.number == 0:
            task.number = self.next_task
            self.next_task += 1
            comm = task.comm[:strlen(task.comm)].decode("utf-8", "replace") if task.named else None
            ppid = task.ppid if task.born_in and task.ppid else None
            self.new_tasks.append((task.number, task.pid, task.tid, comm, ppid, cgroup or None))
        return task.number

    cdef uint32_t _space_of(self, uint32_t pid) except? 0:
        cdef Task* leader = self.tasks.make(pid, pid)
        return 0 if leader == NULL else leader.space

    cdef int _ask_for(self, uint32_t pid, uint32_t space, const uint64_t* addresses, size_t count) except -1:
        cdef UserFrame* known
        cdef size_t i
        if space == 0:
            return 0
        for i in range(count):
            known = self.frames.find(space, addresses[i])
            if known.space == 0:
                known.space, known.address, known.frame = space, addresses[i], FRAME_PENDING
                self.frames.used += 1
                entry = self.wanted.get(space)
                if entry is None:
                    entry = self.wanted[space] = (pid, [])
                entry[1].append(addresses[i])
        return 0

    cdef int _share(self, uint32_t number, bint kernel) except -1:
        cdef void* grown
        if number >= self.share_room:
            grown = PyMem_Realloc(self.shares, (number * 2 + 256) * sizeof(Share))
            if grown == NULL:
                raise MemoryError
            self.shares = <Share*>grown
            memset(self.shares + self.share_room, 0, (number * 2 + 256 - self.share_room) * sizeof(Share))
            self.share_room = number * 2 + 256
        self.shares[number].samples += 1
        self.shares[number].kernel += kernel
        return 0

    # --- what Python asks for -----------------------------------------------------------------------------------

    def frame(self, str name not None, str module not None, str kind not None):
        """The number of a function in this segment; a new one is put on the list of new frames."""
        key = (name, module, kind)
        number = self.frame_numbers.get(key)
        if number is None:
            number = self.frame_numbers[key] = self.next_frame
            self.next_frame += 1
            self.new_frames.append((number, name, module, kind))
            if kind == "unknown":
                self._note_blank(number)
        return number

    cdef void _note_blank(self, uint32_t frame) noexcept:
        cdef int i
        for i in range(8):
            if self.blanks[i] == 0:
                self.blanks[i] = frame
                return

    def take_wanted(self):
        """User addresses to resolve: [(space, pid, [addresses])]."""
        wanted, self.wanted = self.wanted, {}
        return [(space, pid, addresses) for space, (pid, addresses) in wanted.items()]

    def answer(self, uint32_t space, uint64_t address, frame):
        """Tells what an address is: a frame number, or None for an address in no mapping (dropped from stacks)."""
        cdef UserFrame* known = self.frames.find(space, address)
        if known.space:
            known.frame = FRAME_GARBAGE if frame is None else frame

    def mappings(self, uint32_t pid):
        """Code maps seen in MMAP2 records since exec: [(start, end, pgoff, (path, build_id, major, minor, inode))] or None."""
        return self.tasks.mappings(pid)

    def comm(self, uint32_t tid):
        """The name of a task as far as COMM and FORK records told it, or None."""
        cdef Task* task = self.tasks.get(tid)
        if task == NULL or not task.named:
            return None
        return task.comm[:strlen(task.comm)].decode("utf-8", "replace")

    def take_samples(self, int64_t offset_ns, uint64_t give_up_before_ns):
        """Rows whose frames are all known, or that were taken before `give_up_before_ns`: arrays of time_us, cpu, task,
        stack and, for events with a period, period. `offset_ns` is wall clock minus monotonic clock."""
        cdef size_t i, kept = 0, kept_frames = 0, out = 0, j, ready = 0
        cdef Pending* row
        cdef uint32_t* stack = NULL
        for i in range(self.pending_used):
            ready += self._is_ready(&self.pending[i], give_up_before_ns)
        times, cpus, tasks, stacks, periods = (_array("q", bytes(8 * ready)) for _ in range(5))
        if self.pending_used == 0:
            return times, cpus, tasks, stacks, (periods if self.has_period else None)
        cdef int64_t[::1] time_view, cpu_view, task_view, stack_view, period_view
        if ready:
            time_view, cpu_view, task_view, stack_view, period_view = times, cpus, tasks, stacks, periods
        stack = <uint32_t*>PyMem_Malloc(2 * MAX_DEPTH * sizeof(uint32_t))
        if stack == NULL:
            raise MemoryError
        try:
            for i in range(self.pending_used):
                row = &self.pending[i]
                if self._is_ready(row, give_up_before_ns):
                    time_view[out] = (<int64_t>row.time + offset_ns) // 1000
                    cpu_view[out] = row.cpu
                    task_view[out] = row.task
                    period_view[out] = <int64_t>row.period
                    stack_view[out] = self._intern(row, stack)
                    out += 1
                    continue
                # Held back: close the ranks, in place.
                for j in range(row.kernel + row.user):
                    self.pending_frames[kept_frames + j] = self.pending_frames[row.first + j]
                self.pending[kept] = row[0]
                self.pending[kept].first = <uint32_t>kept_frames
                kept_frames += row.kernel + row.user
                kept += 1
        finally:
            PyMem_Free(stack)
        self.pending_used = kept
        self.pending_frames_used = kept_frames
        return times, cpus, tasks, stacks, (periods if self.has_period else None)

    cdef bint _is_ready(self, Pending* row, uint64_t give_up_before_ns) except -1:
        cdef size_t i
        if row.time < give_up_before_ns or row.space == 0:
            return True
        for i in range(row.user):
            if self.frames.find(row.space, self.pending_frames[row.first + row.kernel + i]).frame == FRAME_PENDING:
                return False
        return True

    cdef uint32_t _intern(self, Pending* row, uint32_t* stack) except? 0:
        cdef size_t i, used = 0
        cdef uint32_t frame
        cdef uint64_t* frames = self.pending_frames + row.first
        for i in range(row.user):
            frame = FRAME_PENDING
            if row.space:
                frame = self.frames.find(row.space, frames[row.kernel + row.user - 1 - i]).frame
            if frame == FRAME_PENDING:
                frame = self._unresolved()
            if frame == FRAME_GARBAGE:
                self.garbage_frames += 1
                continue
            if used and stack[used - 1] == frame and self._is_blank(frame):
                continue
            stack[used] = frame
            used += 1
        for i in range(row.kernel):
            stack[used] = <uint32_t>frames[row.kernel - 1 - i]
            used += 1
        return self.stacks.put(stack, used)

    cdef uint32_t _unresolved(self) except? 0:
        return self.frame("[unresolved]", "", "unknown")

    cdef bint _is_blank(self, uint32_t frame) noexcept nogil:
        cdef int i
        for i in range(8):
            if self.blanks[i] == frame:
                return True
        return False

    def take_frames(self):
        """Functions that got a number since the last call: [(frame, name, module, kind)]."""
        taken, self.new_frames = self.new_frames, []
        return taken

    def take_tasks(self):
        """Tasks that were sampled for the first time since the last call: [(task, pid, tid, comm, ppid, cgroup id)]."""
        taken, self.new_tasks = self.new_tasks, []
        return taken

    def take_tracepoints(self):
        """[(kind, monotonic_ns, cpu, pid, tid, raw)] in the order of time."""
        taken, self.tracepoints = self.tracepoints, []
        return taken

    def take_cgroups(self):
        """[(cgroup id, path)] from CGROUP records."""
        taken, self.cgroups = self.cgroups, []
        return taken

    def take_shares(self):
        """Samples by task number since the last call: [(task, samples, samples in the kernel)]."""
        cdef size_t i
        taken = []
        for i in range(self.share_room):
            if self.shares[i].samples:
                taken.append((i, self.shares[i].samples, self.shares[i].kernel))
                self.shares[i] = Share(samples=0, kernel=0)
        return taken

    def take_cores(self, uint64_t now_ns):
        """Per CPU with a ring: {cpu: (samples, idle samples, largest gap in ns, records lost)} since the last call. A gap
        that is still open counts as far as it has come."""
        cdef size_t i
        cdef Core* core
        taken = {}
        for i in range(self.core_count):
            core = &self.cores[i]
            if not self.rings[i].open and core.got == 0 and core.last_ns == 0:
                continue
            if core.last_ns and now_ns > core.last_ns:
                core.max_gap_ns = max(core.max_gap_ns, now_ns - core.last_ns)
            taken[i] = (core.got, core.idle, core.max_gap_ns if core.last_ns else None, core.lost)
            core.got = core.idle = core.max_gap_ns = core.lost = 0
        return taken

    def sweep(self, uint32_t young_drains):
        """Forgets tasks that left before the last drain, and code maps of processes older than so many drains."""
        cdef uint32_t born_before = self.drains - young_drains if self.drains > young_drains else 0
        self.tasks.sweep(self.drains - 1, born_before)

    def replace_symbols(self, KernelSymbols symbols not None):
        """Uses another reading of kallsyms (a module was loaded); only right before next_segment."""
        if self.pending_used:
            raise RuntimeError("samples are pending")
        symbols.extra.update(self.symbols.extra)
        self.symbols = symbols
        self.unresolved_kernel = 0

    def next_segment(self):
        """Starts numbering anew. Samples still held back would lose their frames: take them all first."""
        if self.pending_used:
            raise RuntimeError("samples are pending")
        self.stacks.clear()
        self.frames.clear()
        self.symbols._forget_frames()
        self.tasks.forget_numbers()
        self.wanted = {}
        if self.shares != NULL:
            memset(self.shares, 0, self.share_room * sizeof(Share))
        self._start_numbers()

    @property
    def pending_rows(self):
        return self.pending_used

    @property
    def nbytes(self):
        return (
            self.stacks.nbytes + (self.frames.mask + 1) * sizeof(UserFrame) + (self.tasks.mask + 1) * sizeof(Task)
            + self.tasks.maps_total * sizeof(CodeMap) + self.arena_room + self.index_room * sizeof(zs_record)
            + self.pending_room * sizeof(Pending) + self.pending_frames_room * sizeof(uint64_t)
            + self.share_room * sizeof(Share)
        )


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


cdef bytes _text(const uint8_t* at, size_t room):
    """The NUL-terminated string at `at`, or all of `room` when nothing ends it."""
    cdef const void* end = memchr(at, 0, room)
    return (<const char*>at)[:room if end == NULL else <const uint8_t*>end - at]
