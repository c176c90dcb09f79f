# The user's part of a call chain from the copy of its stack, for files that were recorded with `--call-graph dwarf`.

cdef tuple ENDED_NAMES = (
    "", "[stack copy ended]", "[no unwind table]", "[stack is not code]", "[stack contradicts itself]", "[stack too deep]",
)


@cython.final
cdef class FileUnwinder(Unwinder):
    """Walks stacks of the processes of a file. `meaning` answers:

        call_frames((path, build id, major, minor, inode)) -> CallFrames, or None where it cannot be had
    """

    cdef TaskTable tasks
    cdef Task* leader
    cdef dict tables                 # file -> CallFrames or None
    cdef object meaning
    cdef Longs merged

    def __cinit__(self, TaskTable tasks not None, meaning):
        self.tasks = tasks
        self.meaning = meaning
        self.tables = {}

    def __dealloc__(self):
        zs_free(&self.merged)

    cdef int _locate(self, uint64_t address) except -1:
        cdef CodeMap* code = NULL if self.leader == NULL else self.tasks.find_map(self.leader, address)
        cdef uint32_t file
        if code == NULL:
            return PLACE_NOWHERE
        file = code.file
        if file not in self.tables:
            self.tables[file] = self.meaning.call_frames(self.tasks.files[file])
        table = self.tables[file]
        if table is None:
            return PLACE_NO_TABLE
        self.found = <CallFrames>table
        return PLACE_FOUND if self.found._loaded(address - code.start + code.pgoff, &self.found_at) else PLACE_NO_TABLE

    cdef int complete(self, const Layout* layout, const uint8_t* at, size_t size, Task* leader, Sample* sample) except -1:
        """Puts what the copy of the stack tells in the place of the user's part of the chain. 0: there is no copy."""
        cdef StackCopy copy
        cdef size_t i, kept = 0
        cdef int why
        if leader == NULL or not copy_of(layout, at, sample.rest, size, &copy):
            return 0
        while kept < min(sample.depth, <size_t>MAX_CHAIN // 2) and zs_u64(sample.chain + 8 * kept) != PERF_CONTEXT_USER:
            kept += 1
        self.leader = leader
        why = self.walk(&copy)
        self.merged.used = 0
        zs_reserve(&self.merged, kept + self.depth + 3)
        zs_copy(self.merged.items, sample.chain, 8 * kept)
        self.merged.items[kept] = PERF_CONTEXT_USER
        for i in range(self.depth):
            self.merged.items[kept + 1 + i] = self.chain[i]
        kept += 1 + self.depth
        if why != UNWOUND_FINISHED:
            self.merged.items[kept], self.merged.items[kept + 1] = CONTEXT_ENDED, <uint64_t>why
            kept += 2
        sample.chain, sample.depth = <const uint8_t*>self.merged.items, kept
        return 1
