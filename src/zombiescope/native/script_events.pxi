# Event lines of `perf script`: "comm pid/tid [cpu] time: period event: address symbol (dso)". Each part may be missing, and a
# line is read from behind, because its first field, the comm, may hold anything.

cdef enum:
    LONGEST_UNTIMED = 4096          # these go through a regular expression
    MARGIN_DIGITS = 6               # of an address that begins a line: a process may be called add or cc1


cdef struct TextSample:
    int64_t time_us                 # -1: the line has none
    int64_t period                  # -1 likewise, as in cpu and task
    int32_t cpu
    int32_t task
    uint32_t event
    uint32_t stack                  # 0: none


_UNTIMED = __import__("re").compile(
    rb"(?P<who>\S.*?)(?:\s+\[(?P<cpu>\d{1,6})\](?:\s+[A-Za-z]{1,6}(?=\s|$))?)?(?:\s+(?P<period>\d{1,18}))?"
    rb"(?:\s+(?P<event>\S+):(?:\s+(?P<tail>.*))?)?$"
)
_WHO = __import__("re").compile(rb"(?:(?P<comm>.*\S)\s+)?(?P<pid>-?\d{1,10})(?:/(?P<tid>-?\d{1,10}))?", __import__("re").DOTALL)
_LOST = __import__("re").compile(rb"PERF_RECORD_LOST\w*\s+lost\s+(\d{1,18})")


cdef class ScriptEvents:
    """Numbers tasks and events, and reads a line into `sample`."""

    cdef ScriptFrames frames
    cdef TextTable tasks
    cdef list task_rows, event_names
    cdef dict task_numbers, event_numbers
    cdef bytes last_event
    cdef uint32_t last_event_number
    cdef TextSample sample
    cdef bint pending, ignoring, bare
    cdef uint32_t tail              # frame on the event line itself: recorded without call chains
    cdef bint saw_blank, after_blank, last_is_event
    cdef readonly uint64_t event_lines
    cdef readonly bint one_id       # lines with one number where pid and tid could stand
    cdef readonly dict skipped

    def __cinit__(self, place not None, *args, **options):
        self.frames = ScriptFrames(place)
        self.tasks = TextTable()
        self.skipped = {}

    cdef void _start_numbers(self):
        self.frames.clear()
        self.tasks.clear()
        self.task_rows, self.event_names = [], []
        self.task_numbers, self.event_numbers = {}, {}
        self.last_event = None

    cdef int _skip(self, str why, uint64_t count=1) except -1:
        self.skipped[why] = self.skipped.get(why, 0) + count
        return 0

    cdef bint _looks_like_frame(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """With spaces where perf has a tab: an address, one space, and no number behind it (a process may be called cc1)."""
        cdef const uint8_t* start
        while at < end and at[0] == 32:
            at += 1
        start = at
        while at < end and zs_is_hex(at[0]):
            at += 1
        return at > start and end - at > 1 and at[0] == 32 and at[1] != 32 and not zs_is_digit(at[1])

    cdef bint _is_frame_at_margin(self, const uint8_t* at, const uint8_t* end) noexcept nogil:
        """Where somebody took the tabs out: below an event line an address, a name and a file, and no time in it."""
        cdef const uint8_t* word = at
        while end > at and ((end - 1)[0] == 13 or (end - 1)[0] == 32):
            end -= 1
        if not (self.pending or self.ignoring) or end == at or (end - 1)[0] != 41:
            return False
        while word < end and zs_is_hex(word[0]):
            word += 1
        return word - at >= MARGIN_DIGITS and self._looks_like_frame(at, end) and self._time(at, end, NULL, NULL) == NULL

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
            if before == word and not self._is_flags(word, end, self._is_id(at, word)):
                before = end
        self._task(at, before)
        return 0

    cdef bint _is_flags(self, const uint8_t* at, const uint8_t* end, bint behind_id) noexcept nogil:
        """A short word that is no number, behind the ids. There may be none at all: then nothing is read."""
        return behind_id and 0 < end - at < 8 and not zs_is_digit((end - 1)[0])

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
