# Who ran on a core, who waited for it and which softirqs were pending: what a copy of overwrite rings says.
#
# Records come from events with IDENTIFIER, TID, TIME and RAW (kernel/schedule.py), written backward: the newest is at
# data_head, older ones follow, and the oldest is cut where the kernel overwrote it. Rings of several CPUs are one order
# of time, because a wakeup is written on the CPU of the waker.

cdef enum:
    SCHEDULE_SWITCH = 1
    SCHEDULE_WAKEUP = 2
    SCHEDULE_MIGRATE = 3
    SOFTIRQ_RAISE = 4
    SOFTIRQ_ENTRY = 5
    SOFTIRQ_EXIT = 6
    IRQ_ENTRY = 7
    IRQ_EXIT = 8
    NAPI_POLL = 9
    SCHEDULE_KINDS = 10

cdef enum:
    SCHEDULE_RAW = 36                    # header, id, pid and tid, time, size of what follows
    SCHEDULE_MIN_RAW = 8                 # the common fields
    IN_INTERRUPT = 0x18                  # common_flags: hard or soft interrupt
    SOFTIRQ_VECTORS = 10
    BLOCKED_STATES = 0xFF                # bits above say only that it was preempted

cdef uint16_t NO_FIELD = 0xFFFF
cdef uint64_t SLEPT_NS = 1_000_000       # who woke a task that had slept so long is kept: it may have been late itself

cdef struct ScheduleForm:                # where fields stand in a raw record, and their sizes
    uint16_t a, b, c, c_size, name, name_size, other_name
    uint8_t kind
    uint8_t dynamic

cdef struct ScheduleEvent:
    uint64_t time
    uint32_t order
    uint32_t cpu
    int32_t pid, tid                     # the current task; tid -1: none
    int32_t a, b
    int64_t c
    int32_t name
    uint8_t kind
    bint interrupt

cdef struct ScheduleEvents:
    ScheduleEvent* items
    size_t used, room

cdef struct ScheduleCore:
    bint watched, wrapped
    uint64_t first, last                 # of its records
    bint runs_known, began_here          # whether the run that goes on began with a switch
    int32_t runs
    uint64_t runs_since
    int32_t irq_name
    uint64_t irq_since
    int32_t vector                       # -1: no softirq runs
    uint64_t vector_since
    int32_t device
    Py_ssize_t vector_wait               # the row of the wait that ended when it began, or -1
    uint64_t pending[SOFTIRQ_VECTORS]
    int32_t pending_irq[SOFTIRQ_VECTORS]

cdef struct ScheduleTask:
    uint64_t runnable, slept             # 0: not known
    int32_t tid, cpu, waker
    bint running

cdef struct ScheduleTasks:
    ScheduleTask* items
    size_t used, room

from libc.stdlib cimport qsort


cdef int _earlier(const void* left, const void* right) noexcept nogil:
    cdef const ScheduleEvent* a = <const ScheduleEvent*>left
    cdef const ScheduleEvent* b = <const ScheduleEvent*>right
    if a.time != b.time:
        return -1 if a.time < b.time else 1
    return -1 if a.order < b.order else a.order > b.order


@cython.final
cdef class ScheduleDecoder:
    """Records of one snapshot -> rows (kind, cpu, from, to, tid, waker, slept, text, open), times in nanoseconds.

    `least_ns`: waits and interrupts that were shorter are left out, unless another task ended a sleep. Runs of a task are all there, but those of idle."""

    cdef dict forms, numbers, tgids, comms, tasks_by_tid
    cdef list names
    cdef ScheduleEvents events
    cdef ScheduleTasks tasks
    cdef ScheduleCore* cores
    cdef size_t core_count
    cdef uint64_t least_ns
    cdef readonly uint64_t records, malformed
    cdef object col_kind, col_cpu, col_from, col_to, col_tid, col_waker, col_slept, col_text, col_open

    def __cinit__(self, int cpus, uint64_t least_ns):
        self.core_count = max(cpus, 1)
        self.cores = <ScheduleCore*>PyMem_Calloc(self.core_count, sizeof(ScheduleCore))
        if self.cores == NULL:
            raise MemoryError
        self.least_ns = least_ns
        self.forms, self.numbers, self.tgids, self.comms, self.tasks_by_tid = {}, {}, {}, {}, {}
        self.names = []
        self.col_kind, self.col_cpu, self.col_from, self.col_to = [], _array("q"), _array("q"), _array("q")
        self.col_tid, self.col_waker, self.col_slept = _array("q"), _array("q"), _array("q")
        self.col_text, self.col_open = [], _array("q")

    def __dealloc__(self):
        PyMem_Free(self.cores)
        zs_free(&self.events)
        zs_free(&self.tasks)

    def register(self, uint64_t event_id, bytes form not None):
        """Tells what an event id means; `form` is a packed ScheduleForm of kernel/schedule.py."""
        if len(form) != 16:
            raise ValueError("a form is 16 bytes")
        self.forms[event_id] = form

    def feed(self, int cpu, const uint8_t[::1] data not None, uint64_t head, uint64_t since_ns, uint64_t now_ns, bint watched):
        """A copy of one ring's data pages. `head`: its data_head; `since_ns`: when it was opened; `now_ns`: when it was
        paused."""
        cdef uint64_t size = data.shape[0], offset = 0, place
        cdef size_t first = self.events.used, i, j
        cdef uint8_t header[8]
        cdef uint16_t length
        cdef Bytes record
        cdef ScheduleCore* core
        cdef ScheduleEvent swapped
        if not 0 <= cpu < <int>self.core_count:
            raise ValueError("no such cpu")
        if size == 0 or size & (size - 1):
            raise ValueError("a ring's data must be a power of two")
        core = &self.cores[cpu]
        core.watched = watched
        core.vector, core.vector_wait, core.irq_name, core.device = -1, -1, -1, -1
        memset(&record, 0, sizeof(Bytes))
        zs_reserve(&record, 1 << 16)
        try:
            while offset + 8 <= size and offset < <uint64_t>(0 - head):
                place = (head + offset) & (size - 1)
                _from_ring(&data[0], size, place, 8, header)
                length = zs_u16(header + 6)
                if length < 8 or length & 7:
                    break
                if offset + length > size:
                    break                # the oldest one, which is overwritten in part
                _from_ring(&data[0], size, place, length, record.items)
                self._event(cpu, record.items, length)
                offset += length
        finally:
            zs_free(&record)
        core.wrapped = <uint64_t>(0 - head) > offset
        i, j = first, self.events.used
        while j > i + 1:                 # newest first -> oldest first
            j -= 1
            swapped = self.events.items[i]
            self.events.items[i] = self.events.items[j]
            self.events.items[j] = swapped
            i += 1
        for i in range(first, self.events.used):
            self.events.items[i].order = <uint32_t>i
        core.first, core.last = since_ns, now_ns
        if core.wrapped:
            core.first = self.events.items[first].time if self.events.used > first else now_ns

    cdef int _event(self, uint32_t cpu, const uint8_t* at, size_t size) except -1:
        cdef const ScheduleForm* form
        cdef const uint8_t* raw
        cdef ScheduleEvent* event
        cdef size_t length
        self.records += 1
        if zs_u32(at) != PERF_RECORD_SAMPLE:
            return 0
        if size < SCHEDULE_RAW + SCHEDULE_MIN_RAW:
            self.malformed += 1
            return 0
        found = self.forms.get(zs_u64(at + 8))
        length = zs_u32(at + 32)
        if found is None or length < SCHEDULE_MIN_RAW or length > size - SCHEDULE_RAW:
            self.malformed += 1
            return 0
        form = <const ScheduleForm*>PyBytes_AS_STRING(found)
        raw = at + SCHEDULE_RAW
        zs_reserve(&self.events, 1)
        event = &self.events.items[self.events.used]
        event.time = zs_u64(at + 24)
        event.cpu = cpu
        event.kind = form.kind
        event.pid, event.tid = <int32_t>zs_u32(at + 16), <int32_t>zs_u32(at + 20)
        event.interrupt = (raw[2] & IN_INTERRUPT) != 0
        event.a, event.b = _field(raw, length, form.a), _field(raw, length, form.b)
        event.c = _field(raw, length, form.c)
        if form.c_size == 8 and form.c != NO_FIELD and form.c + 8 <= <int>length:
            event.c = <int64_t>zs_u64(raw + form.c)
        event.name = self._name(raw, length, form.name, form.name_size, form.dynamic)
        self.events.used += 1
        if event.tid > 0:
            self.tgids[event.tid] = event.pid
        if form.kind == SCHEDULE_SWITCH:
            self._comm(event.a, raw, length, form.name, form.name_size)
            self._comm(event.b, raw, length, form.other_name, form.name_size)
        elif form.kind == SCHEDULE_WAKEUP:
            self._comm(event.a, raw, length, form.name, form.name_size)
        return 0

    cdef int _comm(self, int32_t tid, const uint8_t* raw, size_t length, uint16_t at, uint16_t size) except -1:
        """The newest record comes first, and its name holds."""
        if tid > 0 and at != NO_FIELD and at + size <= length and tid not in self.comms:
            self.comms[tid] = (<const char*>raw + at)[:size].split(b"\0", 1)[0].decode("utf-8", "replace")
        return 0

    cdef int32_t _name(self, const uint8_t* raw, size_t length, uint16_t at, uint16_t size, bint dynamic) except -2:
        """Of an interrupt or a network device, as a number; -1: none."""
        cdef uint32_t where
        if not dynamic or at == NO_FIELD or at + <size_t>4 > length:
            return -1
        where = zs_u32(raw + at)
        if (where & 0xFFFF) + (where >> 16) > length or where >> 16 == 0 or where >> 16 > 256:
            return -1
        text = (<const char*>raw + (where & 0xFFFF))[:where >> 16].split(b"\0", 1)[0]
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.names)
            self.names.append(text.decode("utf-8", "replace"))
        return number

    # --- rows ---------------------------------------------------------------------------------------------------------

    def rows(self):
        """(kinds, cpus, from, to, tids, wakers, slept, texts, open) of everything that was fed; open: bit 0 the beginning
        is that of the ring, bit 1 it had not ended. -1 stands for no tid; slept 0: not known."""
        cdef size_t i
        if self.events.used:
            qsort(self.events.items, self.events.used, sizeof(ScheduleEvent), _earlier)
        for i in range(self.core_count):
            self.cores[i].runs_since = self.cores[i].first
        for i in range(self.events.used):
            self._step(&self.events.items[i])
        self._finish()
        return (
            self.col_kind, self.col_cpu, self.col_from, self.col_to, self.col_tid, self.col_waker, self.col_slept,
            self.col_text, self.col_open,
        )

    def task(self, int32_t tid):
        """(pid, comm) as far as the records say."""
        return self.tgids.get(tid), self.comms.get(tid)

    def reach(self):
        """{cpu: (from, to)} of the CPUs that were watched."""
        cdef size_t i
        return {
            i: (self.cores[i].first, self.cores[i].last) for i in range(self.core_count) if self.cores[i].watched
        }

    cdef ScheduleTask* _task(self, int32_t tid) except NULL:
        cdef ScheduleTask* task
        number = self.tasks_by_tid.get(tid)
        if number is None:
            number = self.tasks_by_tid[tid] = self.tasks.used
            zs_reserve(&self.tasks, 1)
            task = &self.tasks.items[self.tasks.used]
            memset(task, 0, sizeof(ScheduleTask))
            task.tid, task.waker = tid, -1
            self.tasks.used += 1
        return &self.tasks.items[<size_t>number]

    cdef Py_ssize_t _row(self, str kind, uint32_t cpu, uint64_t start, uint64_t end, int32_t tid, int32_t waker,
                         uint64_t slept, int32_t text, int open_) except -2:
        self.col_kind.append(kind)
        self.col_cpu.append(cpu)
        self.col_from.append(start)
        self.col_to.append(end)
        self.col_tid.append(tid)
        self.col_waker.append(waker)
        self.col_slept.append(slept)
        self.col_text.append(None if text < 0 else self.names[text])
        self.col_open.append(open_)
        return len(self.col_kind) - 1

    cdef int _step(self, const ScheduleEvent* event) except -1:
        cdef ScheduleCore* core = &self.cores[event.cpu]
        if event.kind == SCHEDULE_WAKEUP:
            return self._wakes(event)
        if event.kind == SCHEDULE_MIGRATE:
            return self._moves(event)
        if not core.watched:
            return 0
        if not core.runs_known and event.tid >= 0:
            core.runs_known = True
            core.runs = event.tid
        if event.kind == SCHEDULE_SWITCH:
            return self._switches(core, event)
        if event.kind == IRQ_ENTRY:
            core.irq_name, core.irq_since = event.name, event.time
        elif event.kind == IRQ_EXIT:
            if core.irq_since and event.time - core.irq_since >= self.least_ns:
                self._row("irq", event.cpu, core.irq_since, event.time, -1, -1, 0, core.irq_name, 0)
            core.irq_name, core.irq_since = -1, 0
        elif event.kind == NAPI_POLL:
            if core.device < 0:
                core.device = event.name
        elif 0 <= event.a < SOFTIRQ_VECTORS:
            return self._softirq(core, event)
        return 0

    cdef int _switches(self, ScheduleCore* core, const ScheduleEvent* event) except -1:
        cdef ScheduleTask* task
        cdef uint64_t since
        if core.runs_known and core.runs != event.a:
            core.runs_since = 0          # a switch is missing in between
        if event.a > 0:
            if core.runs_since and event.time > core.runs_since:
                self._row("run", event.cpu, core.runs_since, event.time, event.a, -1, 0, -1, not core.began_here)
            task = self._task(event.a)
            task.running = False
            task.cpu = event.cpu
            task.waker = -1
            task.runnable = task.slept = 0
            if event.c & BLOCKED_STATES:
                task.slept = event.time
            else:
                task.runnable = event.time
        core.runs, core.runs_known, core.began_here, core.runs_since = event.b, True, True, event.time
        if event.b > 0:
            task = self._task(event.b)
            since = task.runnable
            if since and task.cpu == <int32_t>event.cpu and (
                event.time - since >= self.least_ns
                or (task.waker > 0 and task.slept and since - task.slept >= SLEPT_NS)
            ):
                self._row("wait", event.cpu, since, event.time, event.b, task.waker, task.slept, -1, 0)
            task.running, task.runnable, task.slept, task.waker = True, 0, 0, -1
            task.cpu = event.cpu
        return 0

    cdef int _wakes(self, const ScheduleEvent* event) except -1:
        cdef ScheduleTask* task
        if event.a <= 0:
            return 0
        task = self._task(event.a)
        if task.running or task.runnable or self._not_reached(event.b, event.time):
            return 0
        task.runnable = event.time
        task.cpu = event.b if 0 <= event.b < <int>self.core_count else -1
        task.waker = -1 if event.interrupt or event.tid <= 0 or event.tid == event.a else event.tid
        return 0

    cdef int _moves(self, const ScheduleEvent* event) except -1:
        """A task that waits goes on waiting at another CPU; one that sleeps will be woken there."""
        cdef ScheduleTask* task = self._task(event.a)
        cdef uint64_t since = task.runnable
        if since and task.cpu >= 0 and self.cores[task.cpu].watched and event.time - since >= self.least_ns:
            self._row("wait", task.cpu, since, event.time, event.a, task.waker, task.slept, -1, 0)
        if since:
            task.runnable = 0 if self._not_reached(event.b, event.time) else event.time
        task.cpu = event.b if 0 <= event.b < <int>self.core_count else -1
        return 0

    cdef bint _not_reached(self, int32_t cpu, uint64_t time) noexcept:
        """Whether a watched core's ring does not reach back to there: whoever was woken may have run long since."""
        return 0 <= cpu < <int>self.core_count and self.cores[cpu].watched and time < self.cores[cpu].first

    cdef int _softirq(self, ScheduleCore* core, const ScheduleEvent* event) except -1:
        cdef int32_t vector = event.a
        cdef uint64_t raised = core.pending[vector]
        if event.kind == SOFTIRQ_RAISE:
            if not raised:
                core.pending[vector] = event.time
                core.pending_irq[vector] = core.irq_name
        elif event.kind == SOFTIRQ_ENTRY:
            core.vector, core.vector_since, core.device, core.vector_wait = vector, event.time, -1, -1
            if raised and event.time - raised >= self.least_ns:
                core.vector_wait = self._row(
                    "softirq wait", event.cpu, raised, event.time, vector, -1, 0, core.pending_irq[vector], 0
                )
            core.pending[vector] = 0
        elif core.vector == vector:
            if core.vector_wait >= 0 and core.device >= 0 and self.col_text[core.vector_wait] is None:
                self.col_text[core.vector_wait] = self.names[core.device]
            if event.time - core.vector_since >= self.least_ns:
                self._row("softirq", event.cpu, core.vector_since, event.time, vector, -1, 0, core.device, 0)
            core.vector = core.vector_wait = -1
        return 0

    cdef int _finish(self) except -1:
        """What had not ended when the rings were paused."""
        cdef size_t i, vector
        cdef ScheduleCore* core
        cdef ScheduleTask* task
        for i in range(self.core_count):
            core = &self.cores[i]
            if not core.watched:
                continue
            if core.runs_known and core.runs > 0 and core.runs_since and core.last > core.runs_since:
                self._row("run", i, core.runs_since, core.last, core.runs, -1, 0, -1, 2 | (not core.began_here))
            for vector in range(SOFTIRQ_VECTORS):
                if core.pending[vector] and core.last > core.pending[vector] + self.least_ns:
                    self._row("softirq wait", i, core.pending[vector], core.last, <int32_t>vector, -1, 0,
                              core.pending_irq[vector], 2)
        for i in range(self.tasks.used):
            task = &self.tasks.items[i]
            if task.running or not task.runnable or task.cpu < 0:
                continue
            core = &self.cores[task.cpu]
            if core.watched and core.last > task.runnable + self.least_ns:
                self._row("wait", task.cpu, task.runnable, core.last, task.tid, task.waker, task.slept, -1, 2)
        return 0


cdef inline void _from_ring(const uint8_t* data, uint64_t size, uint64_t place, size_t length, uint8_t* out) noexcept nogil:
    cdef uint64_t first = min(<uint64_t>length, size - place)
    memcpy(out, data + place, first)
    memcpy(out + first, data, length - first)


cdef inline int32_t _field(const uint8_t* raw, size_t length, uint16_t at) noexcept nogil:
    return <int32_t>zs_u32(raw + at) if at != NO_FIELD and at + <size_t>4 <= length else -1
