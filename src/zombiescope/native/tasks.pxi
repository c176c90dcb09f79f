# Who is running: what COMM, FORK, EXIT and MMAP2 records say about tasks, kept just long enough that a process which
# was born, sampled and dead between two drains still has a name and its code still has symbols.

cdef struct Task:
    uint32_t tid
    uint32_t pid
    uint32_t ppid
    uint32_t number          # id in the tasks table of this segment; 0 = not sampled yet
    uint32_t space           # program image: see FrameTable; meaningful for the thread-group leader
    uint32_t exited_in       # drain in which EXIT was seen; 0 = alive
    uint32_t maps            # index + 1 into TaskTable.maps; 0 = exec was not witnessed
    uint32_t born_in         # drain in which FORK or exec was seen; 0 = older than the recorder
    uint64_t born_ns         # when FORK was seen; 0 = it was not. Of a thread: the thread's own
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

cdef struct CodeMaps:        # a vector, and one of a vector of them
    CodeMap* items
    size_t used, room
    uint32_t next_free       # free list

cdef struct CodeMapPool:
    CodeMaps* items
    size_t used, room

cdef struct Tasks:
    Task* items
    size_t used, room

cdef uint32_t MAX_TASKS = 1 << 18
cdef uint32_t MAX_MAPS_A_PROCESS = 512
cdef size_t MAX_MAPS = 100_000
cdef Py_ssize_t MAX_FILES = 2048
cdef uint32_t MAX_LASTING_MAPS_A_PROCESS = 65_536
cdef size_t MAX_LASTING_MAPS = 4_000_000


@cython.final
cdef class TaskTable:
    """tid -> Task. Code maps are kept for young processes only: an older one can be asked through /proc while it lives. A
    `lasting` table keeps all of them: of a file nobody else can be asked."""

    cdef Tasks tasks
    cdef zs_table table
    cdef uint32_t next_space
    cdef CodeMapPool maps
    cdef size_t maps_total
    cdef uint32_t maps_free
    cdef list files
    cdef dict file_numbers
    cdef bint lasting
    cdef readonly uint64_t refused   # tasks and maps not followed because the table was full

    def __cinit__(self, bint lasting=False):
        self.lasting = lasting
        zs_begin(&self.table, 0)
        self.next_space = 1
        self.files = []
        self.file_numbers = {}

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.maps.used):
            zs_free(&self.maps.items[i])
        zs_free(&self.maps)
        zs_free(&self.tasks)
        zs_free_table(&self.table)

    cdef inline Task* get(self, uint32_t tid) noexcept:
        """The task, or NULL. tid 0 (idle) is never in the table."""
        cdef uint64_t hash = zs_hash_word(tid)
        cdef size_t at = hash
        cdef uint32_t number = zs_probe(&self.table, hash, &at)
        while number and self.tasks.items[number - 1].tid != tid:
            number = zs_probe(&self.table, hash, &at)
        return &self.tasks.items[number - 1] if number else NULL

    cdef Task* make(self, uint32_t pid, uint32_t tid) except? NULL:
        """The task, made if it is not there. NULL when the table is full. Pointers to other tasks may move."""
        cdef Task* task = self.get(tid)
        if task != NULL or tid == 0:
            return task
        if self.tasks.used >= MAX_TASKS:
            self.refused += 1
            return NULL
        zs_reserve(&self.tasks, 1)
        self._index(tid, <uint32_t>self.tasks.used + 1)
        task = &self.tasks.items[self.tasks.used]
        self.tasks.used += 1
        memset(task, 0, sizeof(Task))
        task.tid = tid
        task.pid = pid
        task.space = self.next_space
        self.next_space += 1
        return task

    cdef int _index(self, uint32_t tid, uint32_t number) except -1:
        cdef uint64_t hash = zs_hash_word(tid)
        cdef size_t at = hash
        while zs_probe(&self.table, hash, &at):
            pass
        zs_insert(&self.table, at, hash, number)
        return 0

    cdef bint follows_maps(self, uint32_t pid) noexcept:
        cdef Task* task = self.get(pid)
        return self.lasting or (task != NULL and task.maps != 0)

    cdef int forked(self, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid, uint32_t drain,
                    uint64_t time, bint copies_maps=True) except -1:
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
        child.born_ns = time
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
        if task == NULL:
            return 0
        if task.maps == 0:
            if not self.lasting:
                return 0
            task.maps = self._new_maps()
        maps = &self.maps.items[task.maps - 1]
        if self.lasting:
            self._uncover(task, maps, start, length)
            if maps.used >= MAX_LASTING_MAPS_A_PROCESS or self.maps_total >= MAX_LASTING_MAPS:
                self.refused += 1
                return 0
        elif maps.used >= MAX_MAPS_A_PROCESS or self.maps_total >= MAX_MAPS:
            return 0
        zs_reserve(maps, 1)
        maps.items[maps.used] = CodeMap(start=start, length=length, pgoff=pgoff, file=self._file(key))
        maps.used += 1
        self.maps_total += 1
        return 0

    cdef void _uncover(self, Task* task, CodeMaps* maps, uint64_t start, uint64_t length) noexcept:
        """Forgets maps that a new one covers. What was looked up in this space before may be wrong now: if so, the space
        gets a new number."""
        cdef size_t i, kept = 0
        cdef bint changes = task.has_holes or task.shares
        for i in range(maps.used):
            if maps.items[i].start - start < length and maps.items[i].start - start + maps.items[i].length <= length:
                changes = True
                continue
            if start - maps.items[i].start < maps.items[i].length or maps.items[i].start - start < length:
                changes = True
            maps.items[kept] = maps.items[i]
            kept += 1
        self.maps_total -= maps.used - kept
        maps.used = kept
        if changes:
            task.space = self.next_space
            task.has_holes = task.shares = False
            self.next_space += 1

    cdef CodeMap* find_map(self, Task* task, uint64_t address) noexcept:
        """The map that holds an address, or NULL. Of two the later one lies on top."""
        cdef CodeMaps* maps
        cdef size_t i
        if task.maps == 0:
            return NULL
        maps = &self.maps.items[task.maps - 1]
        i = maps.used
        while i:
            i -= 1
            if address - maps.items[i].start < maps.items[i].length:
                return &maps.items[i]
        return NULL

    cdef uint32_t _new_maps(self) except? 0:
        cdef uint32_t index = self.maps_free
        if index == 0:
            zs_extend(&self.maps, self.maps.used + 1)
            return <uint32_t>self.maps.used
        self.maps_free = self.maps.items[index - 1].next_free
        return index

    cdef uint32_t _copy_maps(self, uint32_t source) except? 0:
        cdef uint32_t target
        cdef CodeMaps* original
        cdef CodeMaps* copy
        if self.maps_total + self.maps.items[source - 1].used > (MAX_LASTING_MAPS if self.lasting else MAX_MAPS):
            self.refused += self.lasting
            return 0
        target = self._new_maps()
        original = &self.maps.items[source - 1]
        copy = &self.maps.items[target - 1]
        zs_reserve(copy, original.used)
        zs_copy(copy.items, original.items, original.used * sizeof(CodeMap))
        copy.used = original.used
        self.maps_total += copy.used
        return target

    cdef void _drop_maps(self, Task* task) noexcept:
        cdef CodeMaps* maps
        if task.maps:
            maps = &self.maps.items[task.maps - 1]
            self.maps_total -= maps.used
            maps.used = 0
            if maps.room > 64:
                zs_free(maps)
            maps.next_free = self.maps_free
            self.maps_free = task.maps
            task.maps = 0

    cdef int sweep(self, uint32_t exited_before, uint32_t born_before) except -1:
        """Forgets tasks that exited before one drain, and the code maps of processes born before another."""
        cdef size_t i, kept = 0
        cdef Task* task
        for i in range(self.tasks.used):
            task = &self.tasks.items[i]
            if task.exited_in and task.exited_in < exited_before:
                self._drop_maps(task)
                continue
            if task.maps and task.born_in < born_before and not self.lasting:
                self._drop_maps(task)
            self.tasks.items[kept] = task[0]
            kept += 1
        if kept < self.tasks.used:
            self.tasks.used = kept
            self._lay_anew()
        if len(self.files) > MAX_FILES and not self.lasting:
            self._repack_files()
        return 0

    cdef int _lay_anew(self) except -1:
        """Tasks have other numbers now. What many of them took is given back when few are left."""
        cdef size_t i
        if self.tasks.room > 8 * self.tasks.used + 4096:
            zs_shrink(&self.tasks)
            zs_free_table(&self.table)
            memset(&self.table, 0, sizeof(zs_table))
        zs_begin(&self.table, self.tasks.used)
        for i in range(self.tasks.used):
            self._index(self.tasks.items[i].tid, <uint32_t>i + 1)
        return 0

    cdef int _repack_files(self) except -1:
        """Forgets files that no code map refers to any more."""
        cdef size_t i, j
        cdef CodeMaps* maps
        old, self.files, self.file_numbers = self.files, [], {}
        for i in range(self.tasks.used):
            if self.tasks.items[i].maps == 0:
                continue
            maps = &self.maps.items[self.tasks.items[i].maps - 1]
            for j in range(maps.used):
                maps.items[j].file = self._file(old[maps.items[j].file])
        return 0

    cdef uint32_t _file(self, key) except? 0:
        number = self.file_numbers.get(key)
        if number is None:
            number = self.file_numbers[key] = len(self.files)
            self.files.append(key)
        return number

    cdef void forget_numbers(self) noexcept:
        cdef size_t i
        for i in range(self.tasks.used):
            self.tasks.items[i].number = 0

    cdef size_t nbytes(self) noexcept:
        return (
            self.tasks.room * sizeof(Task) + zs_table_bytes(&self.table) + self.maps.room * sizeof(CodeMaps)
            + self.maps_total * sizeof(CodeMap)
        )

    cdef list mappings(self, uint32_t pid):
        """[(start, end, pgoff, file key)] in the order they were mapped, or None when exec was not witnessed."""
        cdef Task* task = self.get(pid)
        cdef CodeMaps* maps
        cdef size_t i
        if task == NULL or task.maps == 0:
            return None
        maps = &self.maps.items[task.maps - 1]
        return [self._mapping(&maps.items[i]) for i in range(maps.used)]

    cdef tuple _mapping(self, const CodeMap* code):
        return code.start, code.start + code.length, code.pgoff, self.files[code.file]
