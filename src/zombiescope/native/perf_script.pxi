# The text of `perf script`, read a chunk at a time. A line that was seen before costs a hash; docs/import.md says what a line may
# look like. An event line is read from behind, because its first field, the comm, may hold anything.

cdef enum:
    LONGEST_LINE = 1 << 20          # nothing that perf prints is as long; a "text" without line ends is none
    MOST_HEADER_LINES = 20000
    LONGEST_UNTIMED = 4096          # these go through a regular expression


cdef struct TextSample:
    int64_t time_us                 # -1: the line has none
    int64_t period                  # -1 likewise, as in cpu and task
    int32_t cpu
    int32_t task
    uint32_t event
    uint32_t stack                  # 0: none

cdef struct TextSamples:
    TextSample* items
    size_t used, room


_UNTIMED = __import__("re").compile(
    rb"(?P<who>\S.*?)(?:\s+\[(?P<cpu>\d{1,6})\](?:\s+[A-Za-z]{1,6}(?=\s|$))?)?(?:\s+(?P<period>\d{1,18}))?"
    rb"(?:\s+(?P<event>\S+):(?:\s+(?P<tail>.*))?)?$"
)
_WHO = __import__("re").compile(rb"(?:(?P<comm>.*\S)\s+)?(?P<pid>-?\d{1,10})(?:/(?P<tid>-?\d{1,10}))?", __import__("re").DOTALL)
_LOST = __import__("re").compile(rb"PERF_RECORD_LOST\w*\s+lost\s+(\d{1,18})")


cdef class PerfScriptText:
    """Feed chunks, take() rows whenever `full`; what stands between two take() has numbers of its own.

    `place(name, dso, high)` answers (name, module, kind) of a function; it is asked once for each. `high` is true when
    the address lies in the kernel's half."""

    cdef size_t limit
    cdef ScriptFrames frames
    cdef TextTable tasks
    cdef StackInterner stacks
    cdef TextSamples samples
    cdef Words chain                # frames of the sample being read, leaf first; 1 is the first frame
    cdef Words run                  # the same, outermost first
    cdef Bytes idle_of              # by stack number
    cdef list task_rows, event_names
    cdef dict task_numbers, event_numbers
    cdef bytes last_event
    cdef uint32_t last_event_number
    cdef Bytes rest                 # the beginning of a line whose end is in the next chunk
    cdef bint too_long              # the rest of this line is to be skipped
    cdef TextSample sample
    cdef bint pending, ignoring, bare
    cdef uint32_t tail              # frame on the event line itself: recorded without call chains
    cdef bint saw_blank, after_blank, last_is_event
    cdef size_t idle
    cdef readonly uint64_t event_lines, untimed, without_stack
    cdef readonly bint one_id       # lines with one number where pid and tid could stand
    cdef readonly bint open_end     # the text ends without the empty line that ends a stack
    cdef int64_t low_us, high_us
    cdef readonly list header
    cdef readonly dict skipped

    def __cinit__(self, place not None, size_t limit=1_000_000):
        self.frames = ScriptFrames(place)
        self.limit = limit
        self.tasks = TextTable()
        self.stacks = StackInterner()
        self.header = []
        self.skipped = {}
        self.low_us = -1
        self._start_numbers()

    def __dealloc__(self):
        zs_free(&self.samples)
        zs_free(&self.chain)
        zs_free(&self.run)
        zs_free(&self.idle_of)
        zs_free(&self.rest)

    cdef void _start_numbers(self):
        self.frames.clear()
        self.tasks.clear()
        self.stacks.clear()
        self.task_rows, self.event_names = [], []
        self.task_numbers, self.event_numbers = {}, {}
        self.last_event = None
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
        """A line before which the rows may be cut."""
        return at == end or (at[0] != 9 and at[0] != 32) or (self.chain.used == 0 and self._time(at, end, NULL, NULL) != NULL)

    cdef int _keep(self, const uint8_t* at, size_t length) except -1:
        if self.too_long:
            return 0
        if self.rest.used + length > LONGEST_LINE:
            self.too_long = True
            self._skip("lines longer than 1 MB")
            return 0
        zs_reserve(&self.rest, length)
        memcpy(self.rest.items + self.rest.used, at, length)
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
        elif at[0] == 35 and (end - at == 1 or at[1] == 32):
            self._commit()
            if len(self.header) < MOST_HEADER_LINES:
                self.header.append((<bytes>at[:end - at]).decode("utf-8", "backslashreplace"))
            return 0
        self._commit()
        return self._event_line(at, end)

    cdef bint _looks_like_frame(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """With spaces where perf has a tab: an address, one space, and no number behind it (a process may be called cc1)."""
        cdef const uint8_t* start
        while at < end and at[0] == 32:
            at += 1
        start = at
        while at < end and zs_is_hex(at[0]):
            at += 1
        return at > start and end - at > 1 and at[0] == 32 and at[1] != 32 and not zs_is_digit(at[1])

    cdef int _skip(self, str why, uint64_t count=1) except -1:
        self.skipped[why] = self.skipped.get(why, 0) + count
        return 0

    # --- event lines -------------------------------------------------------------------------------------------------

    cdef const uint8_t* _time(
        self, const uint8_t* at, const uint8_t* end, const uint8_t** head, int64_t* time_us
    ) noexcept nogil:
        """What follows "12089.187050:"; `head` is where that begins. NULL: there is no time in this line."""
        cdef const uint8_t* point = at
        cdef const uint8_t* left
        cdef const uint8_t* right
        cdef int64_t value, fraction
        cdef int digits
        while True:
            point = <const uint8_t*>memchr(point, 46, end - point)
            if point == NULL:
                return NULL
            left, right = point, point + 1
            while left > at and zs_is_digit((left - 1)[0]):
                left -= 1
            while right < end and zs_is_digit(right[0]):
                right += 1
            if (
                left < point and point - left <= 12 and (left == at or (left - 1)[0] == 32 or (left - 1)[0] == 9)
                and 3 <= right - point - 1 <= 9 and right < end and right[0] == 58
                and (right + 1 == end or right[1] == 32)
            ):
                break
            point += 1
        if head != NULL:
            head[0] = left
            value = fraction = 0
            while left < point:
                value = value * 10 + left[0] - 48
                left += 1
            left, digits = point + 1, 0
            while left < right and digits < 6:
                fraction = fraction * 10 + left[0] - 48
                left += 1
                digits += 1
            while digits < 6:
                fraction *= 10
                digits += 1
            time_us[0] = value * 1000000 + fraction
        return right + 1

    cdef int _event_line(self, const uint8_t* at, const uint8_t* end) except -1:
        cdef const uint8_t* head
        cdef const uint8_t* rest
        self.event_lines += 1
        self.ignoring = self.after_blank = False
        self.last_is_event = True
        self.sample.time_us = self.sample.period = self.sample.cpu = self.sample.task = -1
        self.sample.event = self.sample.stack = self.tail = 0
        rest = self._time(at, end, &head, &self.sample.time_us)
        while at < end and at[0] == 32:
            at += 1
        if rest == NULL:
            if end - at > 12 and memcmp(at, b"PERF_RECORD_", 12) == 0:  # of no process and no time: FINISHED_ROUND
                return self._side_line(at, end)
            return self._untimed_line(at, end)
        while rest < end and rest[0] == 32:
            rest += 1
        if end - rest > 12 and memcmp(rest, b"PERF_RECORD_", 12) == 0:
            return self._side_line(rest, end)
        self.bare = False
        self._who_and_where(at, head)
        self._what(rest, end)
        self.pending = True
        return 0

    cdef int _who_and_where(self, const uint8_t* at, const uint8_t* end) except -1:
        """"comm pid/tid [cpu] flags": all but the comm may be missing, and the comm may hold anything, so from behind."""
        cdef const uint8_t* before
        cdef const uint8_t* word
        while end > at and (end - 1)[0] == 32:
            end -= 1
        before = self._cpu(at, end)
        if before == end and not self._is_id(at, end):
            # One word may stand behind the CPU, or behind the ids: the flags of -F +misc, or of ftrace.
            word = end
            while word > at and (word - 1)[0] != 32:
                word -= 1
            while word > at and (word - 1)[0] == 32:
                word -= 1
            before = self._cpu(at, word)
            if before == word and not (end - word < 8 and not zs_is_digit((end - 1)[0]) and self._is_id(at, word)):
                before = end
        self._task(at, before)
        return 0

    cdef bint _is_id(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """Whether a word of digits, or of two numbers with a slash, ends here."""
        cdef const uint8_t* word = end
        while word > at and (zs_is_digit((word - 1)[0]) or (word - 1)[0] == 47):
            word -= 1
        return word < end and (word == at or (word - 1)[0] == 32) and zs_is_digit(word[0])

    cdef const uint8_t* _cpu(self, const uint8_t* at, const uint8_t* end) noexcept:
        """Where "[003]" begins, less the spaces before it; `end` where there is none."""
        cdef const uint8_t* open = end - 1
        cdef int64_t cpu = 0
        if end - at < 3 or (end - 1)[0] != 93:
            return end
        while open > at and zs_is_digit((open - 1)[0]):
            open -= 1
        if open == at or (open - 1)[0] != 91 or open == end - 1 or end - open > 7 or (open - 1 > at and (open - 2)[0] != 32):
            return end
        for i in range(end - 1 - open):
            cpu = cpu * 10 + open[i] - 48
        self.sample.cpu = <int32_t>cpu
        open -= 1
        while open > at and (open - 1)[0] == 32:
            open -= 1
        return open

    cdef int _task(self, const uint8_t* at, const uint8_t* end) except -1:
        cdef uint64_t hash
        cdef uint32_t number
        if end <= at:
            return 0
        hash = zs_hash_bytes(at, end - at, 0)
        number = self.tasks.find(at, end - at, at, 0, hash)
        if number == 0:
            number = <uint32_t>self._new_task(<bytes>at[:end - at]) + 1
            self.tasks.set(at, end - at, at, 0, hash, number)
        self.sample.task = <int32_t>number - 1
        return 0

    cdef _new_task(self, bytes text):
        match = _WHO.fullmatch(text)
        if match is None:
            key = (None, None, text.decode("utf-8", "backslashreplace"))
        else:
            pid = int(match["pid"])
            if match["tid"] is None and pid:
                self.one_id = True
            comm = match["comm"]
            tid = pid if match["tid"] is None else int(match["tid"])
            if comm == b":%d" % tid:
                comm = None  # what perf prints for a thread whose name it does not know
            key = (
                pid if pid >= 0 else None,
                tid if tid >= 0 else None,
                None if comm is None else comm.decode("utf-8", "backslashreplace"),
            )
        number = self.task_numbers.get(key)
        if number is None:
            number = self.task_numbers[key] = len(self.task_rows)
            self.task_rows.append(key)
        return number

    cdef int _what(self, const uint8_t* at, const uint8_t* end) except -1:
        """"period event: address symbol (dso)", or "event: what the tracepoint says"; each part may be missing."""
        cdef const uint8_t* word = at
        cdef const uint8_t* colon
        cdef int64_t period = 0
        while word < end and word - at < 18 and zs_is_digit(word[0]):
            period = period * 10 + word[0] - 48
            word += 1
        if word > at and (word == end or word[0] == 32):
            self.sample.period = period
            at = word
            while at < end and at[0] == 32:
                at += 1
        colon = at
        while True:
            colon = <const uint8_t*>memchr(colon, 58, end - colon)
            if colon == NULL or colon + 1 == end or colon[1] == 32:
                break
            colon += 1
        if colon != NULL and colon > at and not self._looks_like_frame(at, colon):
            self._event(at, colon - at)
            at = colon + 1
        else:
            self._event(b"", 0)
        return self._tail_frame(at, end)

    cdef int _event(self, const uint8_t* name, size_t length) except -1:
        cdef bytes text
        if self.last_event is not None and len(self.last_event) == length and memcmp(
            PyBytes_AS_STRING(self.last_event), name, length
        ) == 0:
            self.sample.event = self.last_event_number
            return 0
        text = <bytes>name[:length]
        number = self.event_numbers.get(text)
        if number is None:
            number = self.event_numbers[text] = len(self.event_names)
            self.event_names.append(text.decode("utf-8", "backslashreplace"))
        self.last_event, self.last_event_number = text, number
        self.sample.event = number
        return 0

    cdef int _tail_frame(self, const uint8_t* at, const uint8_t* end) except -1:
        """The place of the sample on its own line: an address, with -F +addr after the address that was touched."""
        cdef const uint8_t* word
        cdef const uint8_t* next
        while at < end and at[0] == 32:
            at += 1
        word = at
        while word < end and zs_is_hex(word[0]):
            word += 1
        if word == at or (word < end and word[0] != 32) or (word - at < 3 and at[0] != 48):
            return 0
        next = word
        while next < end and next[0] == 32:
            next += 1
        word = next
        while word < end and zs_is_hex(word[0]):
            word += 1
        if word - next > 3 and end - word > 1 and word[0] == 32 and word[1] != 40:
            at = next
        self.tail = self.frames.number(at, end)
        return 0

    cdef int _side_line(self, const uint8_t* at, const uint8_t* end) except -1:
        """What --show-lost-events, --show-task-events and the like print between the samples."""
        cdef const uint8_t* word = at
        cdef bytes text
        while word < end and (word[0] == 95 or 65 <= word[0] <= 90 or zs_is_digit(word[0])):
            word += 1
        text = <bytes>at[:min(end - at, <Py_ssize_t>120)]
        name = (<bytes>at[:word - at]).decode("ascii")
        self._skip(f"{name} lines, which are no samples")
        lost = _LOST.match(text)
        if lost is not None:
            self._skip("samples that perf itself lost while recording", int(lost[1]))
        self.pending, self.ignoring = False, True
        return 0

    cdef int _untimed_line(self, const uint8_t* at, const uint8_t* end) except -1:
        cdef bytes text
        if end - at > LONGEST_UNTIMED:
            self.ignoring = True
            return self._skip("lines that are no perf script text")
        text = <bytes>at[:end - at]
        match = _UNTIMED.match(text)
        if match is None:
            self.ignoring = True
            return self._skip("lines that are no perf script text")
        who, period = match["who"], match["period"]
        if period is not None and match["cpu"] is None and _WHO.fullmatch(who) is None:
            who, period = who + b" " + period, None
        self._task(who, (<const uint8_t*>who) + len(who))
        if match["cpu"] is not None:
            self.sample.cpu = int(match["cpu"])
        if period is not None:
            self.sample.period = int(period)
        event, tail = match["event"] or b"", match["tail"] or b""
        self._event(event, len(event))
        self._tail_frame(tail, (<const uint8_t*>tail) + len(tail))
        self.pending = self.bare = True
        return 0

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
