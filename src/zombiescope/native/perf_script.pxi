# The text of `perf script`, read a chunk at a time. A line that was seen before costs a hash; docs/import.md says what a line may
# look like.

cdef enum:
    LONGEST_LINE = 1 << 20          # nothing that perf prints is as long; a "text" without line ends is none
    MOST_HEADER_LINES = 20000


cdef struct TextSamples:
    TextSample* items
    size_t used, room


@cython.final
cdef class PerfScriptText(ScriptEvents):
    """Feed chunks, take() rows whenever `full`; what stands between two take() has numbers of its own.

    `place(name, dso, high)` answers (name, module, kind) of a function; it is asked once for each. `high` is true when
    the address lies in the kernel's half."""

    cdef size_t limit
    cdef StackInterner stacks
    cdef TextSamples samples
    cdef Words chain                # frames of the sample being read, leaf first; 1 is the first frame
    cdef Words run                  # the same, outermost first
    cdef Bytes idle_of              # by stack number
    cdef Bytes rest                 # the beginning of a line whose end is in the next chunk
    cdef bint too_long              # the rest of this line is to be skipped
    cdef size_t idle
    cdef readonly uint64_t untimed, without_stack
    cdef readonly bint open_end     # the text ends without the empty line that ends a stack
    cdef int64_t low_us, high_us
    cdef readonly list header

    def __cinit__(self, place not None, size_t limit=1_000_000):
        self.limit = limit
        self.stacks = StackInterner()
        self.header = []
        self.low_us = -1
        self._start_numbers()

    def __dealloc__(self):
        zs_free(&self.samples)
        zs_free(&self.chain)
        zs_free(&self.run)
        zs_free(&self.idle_of)
        zs_free(&self.rest)

    cdef void _start_numbers(self):
        ScriptEvents._start_numbers(self)
        self.stacks.clear()
        self.samples.used = self.idle = 0

    # --- lines -------------------------------------------------------------------------------------------------------

    @property
    def full(self):
        return self.samples.used >= self.limit

    def feed(self, const uint8_t[::1] chunk not None, size_t offset=0):
        """Reads the chunk from `offset` on, and says how far: short of its end when take() is due."""
        cdef size_t length = chunk.shape[0]
        cdef const uint8_t* start
        cdef const uint8_t* at
        cdef const uint8_t* end
        cdef const uint8_t* newline
        if offset >= length:
            return length
        start = &chunk[0]
        at, end = start + offset, start + length
        if self.rest.used or self.too_long:
            newline = <const uint8_t*>memchr(at, 10, end - at)
            self._keep(at, (newline if newline != NULL else end) - at)
            if newline == NULL:
                return length
            at = newline + 1
            if not self.too_long:
                self._line(self.rest.items, self.rest.items + self.rest.used)
            self.rest.used, self.too_long = 0, False
        while at < end:
            newline = <const uint8_t*>memchr(at, 10, end - at)
            if newline == NULL:
                self._keep(at, end - at)
                return length
            if self.samples.used + self.pending >= self.limit and self._begins_sample(at, newline):
                self._commit()
                if self.samples.used >= self.limit:
                    return at - start
            self._line(at, newline)
            at = newline + 1
        return length

    cdef bint _begins_sample(self, const uint8_t* at, const uint8_t* end) noexcept:
        """A line before which the rows may be cut; one that begins with a tab is a frame, whatever stands in it."""
        if at == end or (at[0] != 9 and at[0] != 32):
            return not self._is_frame_at_margin(at, end)
        return at[0] == 32 and self.chain.used == 0 and self._time(at, end, NULL, NULL) != NULL

    cdef int _keep(self, const uint8_t* at, size_t length) except -1:
        if self.too_long:
            return 0
        if self.rest.used + length > LONGEST_LINE:
            self.too_long = True
            self._skip("lines longer than 1 MB")
            return 0
        zs_reserve(&self.rest, length)
        zs_copy(self.rest.items + self.rest.used, at, length)
        self.rest.used += length
        return 0

    cdef int _line(self, const uint8_t* at, const uint8_t* end) except -1:
        while end > at and ((end - 1)[0] == 13 or (end - 1)[0] == 32):
            end -= 1
        self.last_is_event = False
        if end == at:
            self._commit()
            self.ignoring = False
            self.saw_blank = self.after_blank = True
            return 0
        if at[0] == 9:
            return self._chain_line(at, end)
        if at[0] == 32:
            if (self.pending or self.ignoring) and self._time(at, end, NULL, NULL) == NULL:
                if self._looks_like_frame(at, end):
                    return self._chain_line(at, end)
                if self.chain.used or self.ignoring:
                    return 0         # the source line of the frame above
        elif self._is_frame_at_margin(at, end):
            return self._chain_line(at, end)
        elif at[0] == 35 and (end - at == 1 or at[1] == 32):
            self._commit()
            if len(self.header) < MOST_HEADER_LINES:
                self.header.append((<bytes>at[:end - at]).decode("utf-8", "backslashreplace"))
            return 0
        self._commit()
        return self._event_line(at, end)

    # --- frames ------------------------------------------------------------------------------------------------------

    cdef int _chain_line(self, const uint8_t* at, const uint8_t* end) except -1:
        if not self.pending:
            if not self.ignoring:
                self._skip("stacks without a line that says whose they are")
                self.ignoring = True
            return 0
        zs_reserve(&self.chain, 1)
        self.chain.items[self.chain.used] = self.frames.number(at, end)
        self.chain.used += 1
        return 0

    # --- samples -----------------------------------------------------------------------------------------------------

    cdef int _commit(self) except -1:
        """The sample being read is whole."""
        if not self.pending:
            return 0
        self.pending = False
        if self.bare and self.chain.used == 0 and self.tail == 0:
            return self._skip("lines that are no perf script text")
        zs_reserve(&self.samples, 1)
        self.sample.stack = self._stack()
        self.samples.items[self.samples.used] = self.sample
        self.samples.used += 1
        if self.sample.time_us < 0:
            self.untimed += 1
        else:
            if self.low_us < 0 or self.sample.time_us < self.low_us:
                self.low_us = self.sample.time_us
            self.high_us = max(self.high_us, self.sample.time_us)
        return 0

    cdef uint32_t _stack(self) except? 0:
        cdef size_t i, before = self.stacks.count()
        cdef uint32_t number, frame, outer = 0
        if self.chain.used == 0:
            if self.tail == 0:
                self.without_stack += 1
                return 0
            zs_reserve(&self.chain, 1)
            self.chain.items[0], self.chain.used = self.tail, 1
        self.run.used = 0
        zs_reserve(&self.run, self.chain.used)
        self.run.used = self.chain.used
        for i in range(self.chain.used):
            frame = self.chain.items[self.chain.used - 1 - i]
            if self.frames.flags.items[frame] & FRAME_INLINED:
                if outer:
                    frame = self.frames.placed(frame, outer)
            else:
                outer = frame
            self.run.items[i] = frame
        number = self.stacks.put(self.run.items, self.run.used * sizeof(uint32_t))
        if self.stacks.count() > before:
            self._note_idle(number)
        self.idle += self.idle_of.items[number]
        self.chain.used = 0
        return number

    cdef int _note_idle(self, uint32_t number) except -1:
        """From the leaf outwards, the first frame that tells decides: an interrupt on top of the idle loop is work."""
        cdef uint8_t said = 0
        cdef size_t depth = self.run.used
        zs_extend(&self.idle_of, <size_t>number + 1)
        while depth and not said:
            depth -= 1
            said = self.frames.flags.items[self.run.items[depth]] & (ZS_IDLE | ZS_INTERRUPT)
        self.idle_of.items[number] = said == ZS_IDLE
        return 0

    def finish(self, bint cut=False):
        """The text is over. `cut`: it is known not to be whole, so the last stack is not either."""
        cdef bint frame
        if self.rest.used and not self.too_long:
            whole = self.rest.items[self.rest.used - 1] == 41
            frame = self.rest.items[0] == 9
            if not whole and self.frames.saw_dso and frame:
                cut = True
            self._line(self.rest.items, self.rest.items + self.rest.used)
            if self.last_is_event and self.tail == 0:
                cut = True
        self.rest.used, self.too_long = 0, False
        if cut and self.pending:
            self.pending, self.chain.used = False, 0
            self._skip("a last stack that is cut short")
        self.open_end = self.pending and self.saw_blank
        self._commit()

    def take(self):
        """Rows since the last call, as columns: time_us, cpu, task, stack, period, event, stack lengths, stack frames, then
        the frames, tasks and events that their numbers mean, and how many samples are idle. -1 is "not said"."""
        cdef size_t i
        cdef int64_t[::1] time_view, cpu_view, task_view, stack_view, period_view, event_view
        times, cpus, tasks, stacks, periods, events = (_array("q", bytes(8 * self.samples.used)) for _ in range(6))
        cdef bint has_period = False
        if self.samples.used:
            time_view, cpu_view, task_view, stack_view, period_view, event_view = times, cpus, tasks, stacks, periods, events
            for i in range(self.samples.used):
                time_view[i] = self.samples.items[i].time_us
                cpu_view[i] = self.samples.items[i].cpu
                task_view[i] = self.samples.items[i].task
                stack_view[i] = <int64_t>self.samples.items[i].stack - 1
                period_view[i] = self.samples.items[i].period if self.samples.items[i].period >= 0 else 1
                event_view[i] = self.samples.items[i].event
                has_period |= self.samples.items[i].period >= 0
        _, lengths, flat = self.stacks.take_new()
        cdef int64_t[::1] flat_view
        if len(flat):
            flat_view = flat
            for i in range(<size_t>len(flat)):
                flat_view[i] -= 1
        taken = (
            times, cpus, tasks, stacks, periods if has_period else None, events if len(self.event_names) > 1 else None,
            lengths, flat, self.frames.rows, self.task_rows, self.event_names, self.idle,
        )
        self._start_numbers()
        return taken

    @property
    def span_us(self):
        """The first and the last time in the text so far, whatever their order; None without times."""
        return None if self.low_us < 0 else (self.low_us, self.high_us)

    def __len__(self):
        return self.samples.used
