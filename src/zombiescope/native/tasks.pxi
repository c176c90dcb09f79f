# Who is running: what COMM, FORK, EXIT and MMAP2 records say about tasks, kept just long enough that a process which
# was born, sampled and dead between two drains still has a name and its code still has symbols.

cdef struct Task:
    uint32_t tid
    uint32_t pid
    uint32_t ppid
    uint32_t number          # id in the tasks table of this segment; 0 = not sampled yet
    uint32_t space           # program image: see UserFrames; meaningful for the thread-group leader
    uint32_t exited_in       # drain in which EXIT was seen; 0 = alive
    uint32_t maps            # index + 1 into TaskTable.maps; 0 = exec was not witnessed
    uint32_t born_in         # drain in which FORK or exec was seen; 0 = older than the recorder
    uint64_t cgroup          # id in the hierarchy of the perf_event controller; 0 = not told
    char comm[16]
    bint named
    bint has_holes           # an address of this space was asked for and lay in no map
    bint shares              # after a fork, another process has the same space: the next map parts them

cdef struct CodeMap:
    uint64_t start
    uint64_t length
    uint64_t pgoff
    uint32_t file            # index into TaskTable.files

cdef struct CodeMaps:
    CodeMap* all
    uint32_t count
    uint32_t room
    uint32_t next_free       # free list

cdef uint32_t MAX_TASKS = 1 << 18
cdef uint32_t MAX_MAPS_A_PROCESS = 512
cdef size_t MAX_MAPS = 100_000
cdef Py_ssize_t MAX_FILES = 2048
cdef uint32_t MAX_LASTING_MAPS_A_PROCESS = 65_536
cdef size_t MAX_LASTING_MAPS = 4_000_000
cdef enum:
    MISC_COMM_EXEC = 1 << 13
    MISC_FORK_EXEC = 1 << 13     # perf's own mark on a fork that it made up for a process which runs already
    MISC_BUILD_ID = 1 << 14


cdef class TaskTable:
    """tid -> Task, open addressing, tombstones swept by rebuilding. Code maps are kept for young processes only: an older
    one can be asked through /proc while it lives. A `lasting` table keeps all of them: of a file nobody else can be asked."""

    cdef Task* slots
    cdef size_t mask, used
    cdef uint32_t next_space
    cdef CodeMaps* maps
    cdef size_t maps_room, maps_total
    cdef uint32_t maps_free
    cdef list files
    cdef dict file_numbers
    cdef bint lasting
    cdef readonly uint64_t refused   # tasks and maps not followed because the table was full

    def __cinit__(self, bint lasting=False):
        self.lasting = lasting
        self.mask = 4095
        self.slots = <Task*>PyMem_Malloc((self.mask + 1) * sizeof(Task))
        if self.slots == NULL:
            raise MemoryError
        memset(self.slots, 0, (self.mask + 1) * sizeof(Task))
        self.next_space = 1
        self.files = []
        self.file_numbers = {}

    def __dealloc__(self):
        cdef size_t i
        PyMem_Free(self.slots)
        for i in range(self.maps_room):
            PyMem_Free(self.maps[i].all)
        PyMem_Free(self.maps)

    cdef Task* get(self, uint32_t tid) noexcept:
        """The task, or NULL. tid 0 (idle) is never in the table."""
        cdef size_t slot = _mix(tid) & self.mask
        while self.slots[slot].tid:
            if self.slots[slot].tid == tid:
                return &self.slots[slot]
            slot = (slot + 1) & self.mask
        return NULL

    cdef Task* make(self, uint32_t pid, uint32_t tid) except? NULL:
        """The task, made if it is not there. NULL when the table is full. Pointers to other tasks may move."""
        cdef Task* task = self.get(tid)
        cdef size_t slot
        if task != NULL or tid == 0:
            return task
        if self.used >= MAX_TASKS:
            self.refused += 1
            return NULL
        if self.used * 2 > self.mask:
            self._rebuild(self.mask * 2 + 1)
        slot = _mix(tid) & self.mask
        while self.slots[slot].tid:
            slot = (slot + 1) & self.mask
        task = &self.slots[slot]
        memset(task, 0, sizeof(Task))
        task.tid = tid
        task.pid = pid
        task.space = self.next_space
        self.next_space += 1
        self.used += 1
        return task

    cdef int _rebuild(self, size_t mask) except -1:
        cdef Task* old = self.slots
        cdef size_t i, slot, old_mask = self.mask
        cdef Task* fresh = <Task*>PyMem_Malloc((mask + 1) * sizeof(Task))
        if fresh == NULL:
            raise MemoryError
        memset(fresh, 0, (mask + 1) * sizeof(Task))
        for i in range(old_mask + 1):
            if old[i].tid:
                slot = _mix(old[i].tid) & mask
                while fresh[slot].tid:
                    slot = (slot + 1) & mask
                fresh[slot] = old[i]
        PyMem_Free(old)
        self.slots = fresh
        self.mask = mask
        return 0

    cdef bint read_comm(self, const uint8_t* body, size_t length, uint16_t misc, uint32_t drain) except -1:
        """A COMM record: u32 pid, tid, then the name. False: it is not one."""
        cdef uint32_t words[2]
        if length < 9:
            return False
        memcpy(words, body, 8)
        cdef const char* comm = <const char*>(body + 8)
        cdef const void* end = memchr(comm, 0, length - 8)
        if end == NULL:
            return False
        self.renamed(words[0], words[1], comm, <const char*>end - comm, (misc & MISC_COMM_EXEC) != 0, drain)
        return True

    cdef bint read_mmap2(self, const uint8_t* body, size_t length, uint16_t misc) except -1:
        """An MMAP2 record: u32 pid, tid, u64 start, length, pgoff, what is mapped, u32 prot, flags, then the name."""
        cdef uint32_t pid
        cdef uint64_t place[3]
        if length < 65:
            return False
        memcpy(&pid, body, 4)
        if self.follows_maps(pid):
            memcpy(place, body + 8, 24)
            self.mapped(pid, place[0], place[1], place[2], _mapped_file(body, length, misc))
        return True

    cdef bint follows_maps(self, uint32_t pid) noexcept:
        cdef Task* task = self.get(pid)
        return self.lasting or (task != NULL and task.maps != 0)

    cdef int forked(self, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid, uint32_t drain,
                    bint copies_maps=True) except -1:
        cdef Task* child = self.get(tid)
        cdef Task* parent
        cdef uint32_t maps = 0
        if child != NULL:
            self._drop_maps(child)
            child.exited_in = 0
            child.number = 0
            child.named = False
            child.has_holes = child.shares = False
            child.space = self.next_space
            child.pid = pid
            self.next_space += 1
        else:
            child = self.make(pid, tid)
        if child == NULL:
            return 0
        child.ppid = ppid
        child.born_in = drain
        parent = self.get(ptid)
        if parent != NULL and parent.named:
            memcpy(child.comm, parent.comm, 16)
            child.named = True
        parent = self.get(ppid)
        if pid != ppid and copies_maps and parent != NULL and parent.maps:
            maps = self._copy_maps(parent.maps)
            child = self.get(tid)
            child.maps = maps
            if self.lasting and maps:
                parent = self.get(ppid)
                child.space, child.has_holes = parent.space, parent.has_holes
                child.shares = parent.shares = True
        return 0

    cdef int renamed(self, uint32_t pid, uint32_t tid, const char* comm, size_t length, bint is_exec, uint32_t drain) except -1:
        cdef Task* task = self.make(pid, tid)
        if task == NULL:
            return 0
        memset(task.comm, 0, 16)
        memcpy(task.comm, comm, min(length, <size_t>15))
        task.named = True
        task.number = 0
        if is_exec:
            task.space = self.next_space
            task.has_holes = task.shares = False
            self.next_space += 1
            # Until exec returns, samples of the task still show where the old program called it: a lasting table keeps the
            # old maps under the new ones.
            if not self.lasting or task.maps == 0:
                self._drop_maps(task)
                task.maps = self._new_maps()
            task.born_in = drain
        return 0

    cdef int mapped(self, uint32_t pid, uint64_t start, uint64_t length, uint64_t pgoff, object key) except -1:
        cdef Task* task = self.make(pid, pid) if self.lasting else self.get(pid)
        cdef CodeMaps* maps
        cdef void* grown
        if task == NULL:
            return 0
        if task.maps == 0:
            if not self.lasting:
                return 0
            task.maps = self._new_maps()
        maps = &self.maps[task.maps - 1]
        if self.lasting:
            self._uncover(task, maps, start, length)
            if maps.count >= MAX_LASTING_MAPS_A_PROCESS or self.maps_total >= MAX_LASTING_MAPS:
                self.refused += 1
                return 0
        elif maps.count >= MAX_MAPS_A_PROCESS or self.maps_total >= MAX_MAPS:
            return 0
        number = self.file_numbers.get(key)
        if number is None:
            number = len(self.files)
            self.files.append(key)
            self.file_numbers[key] = number
        if maps.count == maps.room:
            grown = PyMem_Realloc(maps.all, (maps.room + 16) * sizeof(CodeMap))
            if grown == NULL:
                raise MemoryError
            maps.all = <CodeMap*>grown
            maps.room += 16
        maps.all[maps.count] = CodeMap(start=start, length=length, pgoff=pgoff, file=<uint32_t>number)
        maps.count += 1
        self.maps_total += 1
        return 0

    cdef void _uncover(self, Task* task, CodeMaps* maps, uint64_t start, uint64_t length) noexcept:
        """Forgets maps that a new one covers. What was looked up in this space before may be wrong now: if so, the space
        gets a new number."""
        cdef uint32_t i, kept = 0
        cdef bint changes = task.has_holes or task.shares
        for i in range(maps.count):
            if maps.all[i].start - start < length and maps.all[i].start - start + maps.all[i].length <= length:
                changes = True
                continue
            if start - maps.all[i].start < maps.all[i].length or maps.all[i].start - start < length:
                changes = True
            maps.all[kept] = maps.all[i]
            kept += 1
        self.maps_total -= maps.count - kept
        maps.count = kept
        if changes:
            task.space = self.next_space
            task.has_holes = task.shares = False
            self.next_space += 1

    cdef CodeMap* find_map(self, Task* task, uint64_t address) noexcept:
        """The map that holds an address, or NULL. Of two the later one lies on top."""
        cdef CodeMaps* maps
        cdef uint32_t i
        if task.maps == 0:
            return NULL
        maps = &self.maps[task.maps - 1]
        i = maps.count
        while i:
            i -= 1
            if address - maps.all[i].start < maps.all[i].length:
                return &maps.all[i]
        return NULL

    cdef uint32_t _new_maps(self) except? 0:
        cdef size_t old = self.maps_room, i
        cdef void* grown
        cdef uint32_t index
        if self.maps_free == 0:
            grown = PyMem_Realloc(self.maps, (old + 256) * sizeof(CodeMaps))
            if grown == NULL:
                raise MemoryError
            self.maps = <CodeMaps*>grown
            memset(self.maps + old, 0, 256 * sizeof(CodeMaps))
            self.maps_room = old + 256
            for i in range(old, old + 255):
                self.maps[i].next_free = <uint32_t>i + 2
            self.maps_free = <uint32_t>old + 1
        index = self.maps_free
        self.maps_free = self.maps[index - 1].next_free
        self.maps[index - 1].count = 0
        return index

    cdef uint32_t _copy_maps(self, uint32_t source) except? 0:
        cdef uint32_t target
        cdef CodeMaps* original
        cdef CodeMaps* copy
        if self.maps_total + self.maps[source - 1].count > (MAX_LASTING_MAPS if self.lasting else MAX_MAPS):
            self.refused += self.lasting
            return 0
        target = self._new_maps()
        original = &self.maps[source - 1]
        copy = &self.maps[target - 1]
        if copy.room < original.count:
            PyMem_Free(copy.all)
            copy.all = <CodeMap*>PyMem_Malloc(original.count * sizeof(CodeMap))
            if copy.all == NULL:
                copy.room = 0
                raise MemoryError
            copy.room = original.count
        if original.count:
            memcpy(copy.all, original.all, original.count * sizeof(CodeMap))
        copy.count = original.count
        self.maps_total += copy.count
        return target

    cdef void _drop_maps(self, Task* task) noexcept:
        cdef CodeMaps* maps
        if task.maps:
            maps = &self.maps[task.maps - 1]
            self.maps_total -= maps.count
            maps.count = 0
            if maps.room > 64:
                PyMem_Free(maps.all)
                maps.all = NULL
                maps.room = 0
            maps.next_free = self.maps_free
            self.maps_free = task.maps
            task.maps = 0

    cdef int sweep(self, uint32_t exited_before, uint32_t born_before) except -1:
        """Forgets tasks that exited before one drain, and the code maps of processes born before another."""
        cdef size_t i, gone = 0
        for i in range(self.mask + 1):
            if self.slots[i].tid == 0:
                continue
            if self.slots[i].exited_in and self.slots[i].exited_in < exited_before:
                self._drop_maps(&self.slots[i])
                self.slots[i].tid = 0
                gone += 1
            elif self.slots[i].maps and self.slots[i].born_in < born_before and not self.lasting:
                self._drop_maps(&self.slots[i])
        if gone:
            self.used -= gone
            # Removing from an open table breaks probe runs: lay it anew, smaller when it is nearly empty.
            i = self.mask
            while i > 4095 and self.used * 8 < i:
                i >>= 1
            self._rebuild(i)
        if len(self.files) > MAX_FILES and not self.lasting:
            self._repack_files()
        return 0

    cdef int _repack_files(self) except -1:
        """Forgets files that no code map refers to any more."""
        cdef size_t i
        cdef uint32_t j
        cdef CodeMaps* maps
        old, self.files, self.file_numbers = self.files, [], {}
        for i in range(self.mask + 1):
            if self.slots[i].tid == 0 or self.slots[i].maps == 0:
                continue
            maps = &self.maps[self.slots[i].maps - 1]
            for j in range(maps.count):
                key = old[maps.all[j].file]
                number = self.file_numbers.get(key)
                if number is None:
                    number = self.file_numbers[key] = len(self.files)
                    self.files.append(key)
                maps.all[j].file = <uint32_t>number
        return 0

    cdef void forget_numbers(self) noexcept:
        cdef size_t i
        for i in range(self.mask + 1):
            self.slots[i].number = 0

    cdef list mappings(self, uint32_t pid):
        """[(start, end, pgoff, file key)] in the order they were mapped, or None when exec was not witnessed."""
        cdef Task* task = self.get(pid)
        cdef CodeMaps* maps
        cdef uint32_t i
        if task == NULL or task.maps == 0:
            return None
        maps = &self.maps[task.maps - 1]
        return [
            (maps.all[i].start, maps.all[i].start + maps.all[i].length, maps.all[i].pgoff, self.files[maps.all[i].file])
            for i in range(maps.count)
        ]


cdef tuple _mapped_file(const uint8_t* body, size_t length, uint16_t misc):
    """What an MMAP2 record of at least 65 bytes maps: (path, build id or None, major, minor, inode)."""
    cdef uint32_t device[2]
    cdef uint64_t inode
    name = _text(body + 64, length - 64)
    if misc & MISC_BUILD_ID:
        return name, (<const char*>(body + 36))[:min(body[32], 20)], 0, 0, 0
    memcpy(device, body + 32, 8)
    memcpy(&inode, body + 40, 8)
    return name, None, device[0], device[1], inode


cdef bytes _text(const uint8_t* at, size_t room):
    """The NUL-terminated string at `at`, or all of `room` when nothing ends it."""
    cdef const void* end = memchr(at, 0, room)
    return (<const char*>at)[:room if end == NULL else <const uint8_t*>end - at]
