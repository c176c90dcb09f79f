# From a call chain to the number of a stack: functions by address, program image and moment.

cdef enum:
    MAX_CHAIN = 8192
    MAX_INLINED = 256
    AHEAD = 12
    AHEAD_ROOM = 16

cdef size_t MANY_FRAMES = 1 << 22
cdef uint32_t FRAME_MASK = 0x3FFFFFFF
cdef Py_ssize_t MAX_FRAMES = 0x3FFFFFF0


cdef struct Foreseen:
    const uint8_t* record
    uint64_t key, hash
    bint has_user


cdef class PerfStacks(PerfStream):
    """`meaning` answers what C does not know:

        user_frames((path, build id, major, minor, inode), offset) -> [(name, module, kind)], the innermost of what was
            inlined there first; at least one
        made_code(pid, address) -> name of code that no file holds, or None
        kernel_frame(address) -> (name, module, kind)
        call_frames((path, build id, major, minor, inode)) -> CallFrames or None
    """

    cdef KernelSymbols symbols
    cdef uint64_t kernel_shift           # what was recorded minus what `symbols` say
    cdef uint64_t text_start, text_end   # `symbols` hold for these addresses
    cdef uint64_t extra_start, extra_end # KSYMBOL records told of something between
    cdef uint32_t kernel_space
    cdef StackInterner stacks, tails     # a tail is a stack without its leaf
    cdef ChainCache chains
    cdef FrameTable pairs                # (tail, leaf) -> stack
    cdef FrameTable addresses            # (space, address) -> frame
    cdef FrameTable offsets              # (file, offset) -> frame
    cdef list frames
    cdef dict frame_numbers
    cdef dict inlined                    # frame that stands for several -> those, innermost first
    cdef uint64_t idle_samples
    cdef Foreseen foreseen[AHEAD_ROOM]   # by place in `index`
    cdef size_t foreseen_at
    cdef uint32_t* run                   # frames of the chain at hand; room for two of them
    cdef bint tail_has_user
    cdef FileUnwinder unwinder

    def __cinit__(self, meaning, *args, **options):
        self.symbols = KernelSymbols()
        self.symbols.finish()
        self.tasks = TaskTable(True)
        self.unwinder = FileUnwinder(self.tasks, meaning)
        self.stacks, self.tails = StackInterner(), StackInterner()
        self.chains = ChainCache()
        self.addresses, self.offsets, self.pairs = FrameTable(), FrameTable(), FrameTable()
        self.frames, self.frame_numbers, self.inlined = [], {}, {}
        self.kernel_space = KERNEL_SPACE
        self.extra_start = NO_TIME
        self.run = <uint32_t*>PyMem_Malloc(2 * MAX_CHAIN * sizeof(uint32_t))
        if self.run == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.run)

    def use_kernel(self, KernelSymbols symbols not None, uint64_t shift, uint64_t text_start, uint64_t text_end):
        """Names of the kernel's functions from here on. `shift`: recorded address minus the one in `symbols`, modulo 2^64;
        they hold between the two addresses."""
        symbols.extra = dict(self.symbols.extra)     # those of an earlier file do not hold here
        symbols._forget_frames()
        self.symbols = symbols
        self.kernel_shift, self.text_start, self.text_end = shift, text_start, text_end
        self._kernel_changed()

    cdef int _kernel_changed(self) except -1:
        """What was looked up before does not hold any more: kernel addresses get another space."""
        self.kernel_space -= 1
        if self.kernel_space < 0xF0000000:
            self.kernel_space = KERNEL_SPACE
            self.addresses.clear()
            self.chains.clear()
        return 0

    cdef int32_t _stack(self, const uint8_t* at, uint32_t ip, const Sample* sample) except -2:
        """Number of the stack; counts it if the CPU idles in it."""
        cdef Task* leader = NULL
        cdef uint64_t key = 0, hash
        cdef Chain parts
        cdef ChainHead* known
        cdef uint32_t frame, tail
        cdef uint8_t context = 0
        if not _split(sample.chain, min(sample.depth, <size_t>MAX_CHAIN - 1), &parts):
            if ip == 0:
                return -1
            # The chain is empty or was not asked for: the address alone is the stack.
            parts.leaf, parts.mode = zs_u64(at + ip), _context_of_mode(zs_u16(at + 4))
        if sample.pid != NOBODY and sample.pid:
            leader = self.tasks.make(sample.pid, sample.pid)
        self.chains.prepare()
        hash = self._hash(at, &parts, leader, &key)
        known = self.chains.find(hash, key, parts.callers, parts.depth)
        if known == NULL:
            tail = self._read_tail(parts.callers, parts.depth, parts.mode, leader, &context)
            known = self.chains.store(hash, key, parts.callers, parts.depth, tail, context, self.tail_has_user)
        frame = self._frame_at(parts.mode, parts.leaf, leader)
        context = <uint8_t>(frame >> 30) if parts.mode == PERF_CONTEXT_KERNEL and frame >> 30 else known.context
        if sample.tid == 0 and sample.pid == 0 and not known.has_user and parts.mode != PERF_CONTEXT_USER and (
            context == ZS_IDLE or self.symbols.hidden
        ):
            self.idle_samples += 1
        frame &= FRAME_MASK
        if known.stack == 0 or known.leaf != frame:
            known.leaf, known.stack = frame, self._join(known.tail, frame)
        return <int32_t>known.stack - 1

    cdef int _whole(self, const uint8_t* at, size_t size, const Layout* layout, Sample* sample) except -1:
        """Where the file has a copy of the stack, the chain goes on to the outermost function."""
        cdef Task* leader = NULL
        if sample.pid != NOBODY and sample.pid:
            leader = self.tasks.make(sample.pid, sample.pid)
        if self.unwinder.complete(layout, at, size, leader, sample):
            self.foreseen[self.foreseen_at % AHEAD_ROOM].record = NULL      # that was of another chain
        return 0

    cdef uint64_t _key(self, const Chain* parts, const Task* leader, bint has_user) noexcept:
        """In which program images the addresses of a chain are looked up."""
        cdef uint64_t key = <uint64_t>(self.kernel_space & 0x0FFFFFFF) << 34 | _mode_number(parts.mode) << 32
        return key | leader.space if has_user and leader != NULL else key

    cdef uint64_t _hash(self, const uint8_t* at, const Chain* parts, const Task* leader, uint64_t* key) noexcept:
        """Key and hash of a chain; mostly they were foreseen."""
        cdef const Foreseen* seen = &self.foreseen[self.foreseen_at % AHEAD_ROOM]
        cdef bint is_foreseen = seen.record == at
        key[0] = self._key(parts, leader, seen.has_user if is_foreseen else _has_user(parts))
        return seen.hash if is_foreseen and seen.key == key[0] else zs_hash_bytes(parts.callers, 8 * parts.depth, key[0])

    cdef void _foresee(self, size_t at) noexcept:
        # Tables of many megabytes are hit at random by every sample: fetch what the next ones will need while this one is
        # worked on. A wrong guess costs nothing but time.
        cdef size_t soon = at + 2 * AHEAD, line = 0
        if soon < self.flush_end:
            while line < self.index.items[soon].size and line < 384:
                zs_fetch(self._place_of(&self.index.items[soon]) + line)
                line += 64
        soon = at + AHEAD
        if at == 0:
            memset(self.foreseen, 0, sizeof(self.foreseen))
        if soon < self.flush_end:
            self._foresee_sample(&self.index.items[soon], &self.foreseen[soon % AHEAD_ROOM])
        soon = at + AHEAD // 2
        if soon < self.flush_end and self.foreseen[soon % AHEAD_ROOM].record == self._place_of(&self.index.items[soon]):
            self.chains.fetch_entry(self.foreseen[soon % AHEAD_ROOM].hash)
        self.foreseen_at = at

    cdef void _foresee_sample(self, const zs_record* entry, Foreseen* seen) noexcept:
        cdef const uint8_t* at = self._place_of(entry)
        cdef const Layout* layout = &self.layouts.items[entry.source]
        cdef size_t place = layout.rest
        cdef Chain parts
        cdef uint32_t pid
        cdef Task* leader
        seen.record = NULL
        if zs_u32(at) != PERF_RECORD_SAMPLE or layout.tid == 0 or entry.size < place + 16 or (
            layout.sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN)
        ) != PERF_SAMPLE_CALLCHAIN or zs_u64(at + place) > (entry.size - place - 8) >> 3:
            return
        if not _split(at + place + 8, <size_t>zs_u64(at + place), &parts):
            return
        pid = zs_u32(at + layout.tid)
        leader = self.tasks.get(pid) if pid else NULL
        seen.record, seen.has_user = at, _has_user(&parts)
        seen.key = self._key(&parts, leader, seen.has_user)
        seen.hash = zs_hash_bytes(parts.callers, 8 * parts.depth, seen.key)
        self.chains.fetch_slot(seen.hash)
        if parts.mode == PERF_CONTEXT_KERNEL or leader != NULL:
            self.addresses.fetch(
                self.kernel_space if parts.mode == PERF_CONTEXT_KERNEL else leader.space, parts.leaf
            )

    cdef uint32_t _join(self, uint32_t tail, uint32_t leaf) except? 0:
        cdef uint32_t stack = self.pairs.find(tail, leaf)
        cdef size_t length
        if stack != FRAME_NONE:
            return stack
        length = self.tails.length(tail) // sizeof(uint32_t)
        zs_copy(self.run, self.tails.run(tail), length * sizeof(uint32_t))
        if self.inlined and leaf in self.inlined:
            for one in reversed(self.inlined[leaf]):
                self.run[length] = one
                length += 1
        else:
            self.run[length] = leaf
            length += 1
        stack = self.stacks.put(self.run, length * sizeof(uint32_t))
        self.pairs.set(tail, leaf, stack)
        return stack

    cdef uint32_t _read_tail(self, const uint8_t* chain, size_t depth, uint64_t mode, Task* leader,
                             uint8_t* context) except? 0:
        """Number of the callers, outermost first; `context` is what they say of idleness."""
        cdef uint64_t address
        cdef size_t i, used = 0
        cdef uint32_t frame
        cdef bint is_leaf = False
        self.tail_has_user = False
        for i in range(depth):
            address = zs_u64(chain + 8 * i)
            if _is_context(address):
                mode = address
                is_leaf = True
                continue
            if mode == PERF_CONTEXT_USER_DEFERRED:        # what follows is a number, not an address
                continue
            # Only a leaf is where the CPU was; the others are return addresses, which may belong to the next function.
            if not is_leaf and address:
                address -= 1
            is_leaf = False
            frame = self._frame_at(mode, address, leader)
            self.tail_has_user |= mode == PERF_CONTEXT_USER
            # From the leaf outwards, the first that says something decides: an interrupt is work on top of idle.
            if mode == PERF_CONTEXT_KERNEL and context[0] == 0:
                context[0] = <uint8_t>(frame >> 30)
            used = self._put_frame(frame & FRAME_MASK, used)
        for i in range(used):
            self.run[MAX_CHAIN + i] = self.run[used - 1 - i]
        return self.tails.put(self.run + MAX_CHAIN, used * sizeof(uint32_t))

    cdef size_t _put_frame(self, uint32_t frame, size_t used) except? 0:
        """Puts a frame into `run`, and what was inlined there before it: the run goes outwards."""
        if self.inlined and frame in self.inlined:
            for one in self.inlined[frame]:
                if used < MAX_CHAIN:
                    self.run[used] = one
                    used += 1
            return used
        if used < MAX_CHAIN:
            self.run[used] = frame
            used += 1
        return used

    cdef uint32_t _frame_at(self, uint64_t mode, uint64_t address, Task* leader) except? 0:
        if mode == PERF_CONTEXT_KERNEL:
            return self._kernel_frame(address)
        if mode == PERF_CONTEXT_USER:
            return self._user_frame(leader, address)
        if mode == CONTEXT_ENDED:
            return self.frame(ENDED_NAMES[min(address, <uint64_t>5)], "", "unknown")
        return self.frame("[hypervisor]" if mode == PERF_CONTEXT_HV else "[guest]", "", "unknown")

    cdef uint32_t _kernel_frame(self, uint64_t address) except? 0:
        cdef uint32_t frame = self.addresses.find(self.kernel_space, address)
        return self._remember(self.kernel_space, address, self._resolve_kernel(address)) if frame == FRAME_NONE else frame

    cdef uint32_t _user_frame(self, Task* leader, uint64_t address) except? 0:
        cdef CodeMap* code
        cdef uint32_t frame
        if leader == NULL:
            return self.frame("[unknown]", "", "unknown")
        frame = self.addresses.find(leader.space, address)
        if frame != FRAME_NONE:
            return frame
        code = self.tasks.find_map(leader, address)
        if code == NULL:
            leader.has_holes = True
            frame = self.frame("[unknown]", "", "unknown")
        elif self.tasks.files[code.file][0].startswith((b"//anon", b"/anon_hugepage", b"/memfd:", b"[anon")):
            frame = self._made_code_frame(leader, code, address)
        else:
            frame = self._file_frame(code.file, address - code.start + code.pgoff)
        return self._remember(leader.space, address, frame)

    cdef uint32_t _made_code_frame(self, Task* leader, CodeMap* code, uint64_t address) except? 0:
        """Of code that no file holds, the process itself may have told the name."""
        name = self.meaning.made_code(leader.pid, address)
        if name is None:
            return self._file_frame(code.file, address - code.start + code.pgoff)
        return self.frame(name, "[jit]", "jit")

    cdef uint32_t _file_frame(self, uint32_t file, uint64_t offset) except? 0:
        cdef uint32_t frame = self.offsets.find(file, offset)
        if frame == FRAME_NONE:
            frame = self._one_of(self.meaning.user_frames(self.tasks.files[file], offset))
            self.offsets.set(file, offset, frame)
        return frame

    cdef uint32_t _one_of(self, list found) except? 0:
        """One number for some functions that were inlined into one another."""
        numbers = tuple([self.frame(name, module, kind) for name, module, kind in found[:MAX_INLINED]])
        if len(numbers) == 1:
            return numbers[0]
        number = self.frame(f"inlined {numbers}", "", "")
        self.inlined[number] = numbers
        return number

    cdef uint32_t _remember(self, uint32_t space, uint64_t address, uint32_t frame) except? 0:
        if self.addresses.table.used > MANY_FRAMES:
            self.addresses.clear()
        self.addresses.set(space, address, frame)
        return frame

    cdef uint32_t _resolve_kernel(self, uint64_t address) except? 0:
        """The frame of a kernel address; the two bits above it say whether it means idle or interrupt."""
        cdef Py_ssize_t index = -1
        if self.extra_start <= address < self.extra_end:
            for start, (end, name) in self.symbols.extra.items():
                if start <= address < end:
                    return self.frame(name, "bpf", "bpf")
        if self.text_start <= address < self.text_end:
            index = self.symbols._find(address - self.kernel_shift)
        if index < 0 or self.symbols.symbols.items[index].module:
            name, module, kind = self.meaning.kernel_frame(address)
            return self.frame(name, module, kind)
        if self.symbols.frame_of.items[index] == 0:
            self.symbols.frame_of.items[index] = <uint32_t>self.frame(self.symbols._name(index)[0], "", "kernel") + 1
        return (self.symbols.frame_of.items[index] - 1) | <uint32_t>self.symbols.symbols.items[index].flags << 30

    cdef uint32_t frame(self, str name, str module, str kind) except? 0:
        """The number of a function, from 0."""
        key = (name, module, kind)
        number = self.frame_numbers.get(key)
        if number is None:
            if len(self.frames) >= MAX_FRAMES:
                raise MemoryError
            number = self.frame_numbers[key] = len(self.frames)
            self.frames.append(key)
        return number
