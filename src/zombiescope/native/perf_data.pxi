# What the records of a perf.data file mean: samples become rows of numbers, everything else says who ran which code when.
#
# Functions have one number through the whole file; tasks and stacks are numbered anew in each batch of rows, and so are the
# functions when a batch is taken, so that a batch can be read alone.

cdef enum:
    MANY_CPUS = 8192


@cython.final
cdef class PerfData(PerfStacks):
    """`meaning` answers also:

        kernel_map(start, length, pgoff, path, build id)
        header_record(kind, misc, record), decompress(data) -> bytes
        first_sample(): all that stands before the samples was read
    """

    cdef c_array.array times, cpus, row_tasks, row_stacks, periods, events
    cdef size_t row_count, row_room, max_rows
    cdef int64_t first_us, last_us
    cdef uint8_t cpu_seen[MANY_CPUS]
    cdef set more_cpus
    cdef dict event_numbers, leaving
    cdef int64_t last_event, last_event_number
    cdef list task_rows
    cdef dict cgroups, counts
    cdef int32_t idle_task
    cdef readonly uint64_t user_stacks, timeless, samples

    def __cinit__(self, meaning, size_t max_rows):
        self.cgroups, self.counts = {}, {}
        self.max_rows = max(max_rows, 1)
        self._start_rows()

    cdef void _start_rows(self):
        self.row_count = self.row_room = 0
        self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events = (
            _column(0) for _ in range(6)
        )
        self.first_us, self.last_us = 0x7FFFFFFFFFFFFFFF, -0x7FFFFFFFFFFFFFFF
        memset(self.cpu_seen, 0, MANY_CPUS)
        self.more_cpus, self.event_numbers, self.leaving, self.last_event = set(), {}, {}, -1
        self.idle_samples = 0
        self.task_rows = []
        self.idle_task = -1

    cdef bint _is_full(self) noexcept:
        return self.row_count >= self.max_rows

    # --- records -------------------------------------------------------------------------------------------------------

    cdef int _kernel_mapped(self, uint64_t start, uint64_t length, uint64_t pgoff, tuple file) except -1:
        self.meaning.kernel_map(start, length, pgoff, file[0], file[1])
        return 0

    cdef int _kernel_symbol(self, uint64_t address, uint32_t length, str name) except -1:
        if name is None:
            self.symbols.remove(address)
        else:
            self.symbols.add(address, length, name)
            self.extra_start = min(self.extra_start, address)
            self.extra_end = max(self.extra_end, address + length)
        return self._kernel_changed() if self.samples else 0

    cdef int _cgroup(self, uint64_t number, bytes path) except -1:
        self.cgroups[number] = path.decode("utf-8", "replace")
        return 0

    # --- samples -------------------------------------------------------------------------------------------------------

    cdef int _sample(self, const uint8_t* at, size_t size, uint64_t time, const Layout* layout, uint32_t source) except -1:
        cdef Sample sample
        cdef int32_t task, stack
        cdef size_t cgroup
        if not read_sample(layout, at, size, &sample):
            self.malformed += 1
            return 0
        if self.samples == 0:
            self.meaning.first_sample()
        self.user_stacks += (layout.sample_type & PERF_SAMPLE_STACK_USER) != 0
        self.samples += 1
        if time == 0 or time == NO_TIME:
            self.timeless += 1
            time = self.last_time
        cgroup = find_cgroup(layout, at, sample.rest, size)
        task = self._task(sample.pid, sample.tid, zs_u64(at + cgroup) if cgroup else 0)
        if layout.sample_type & PERF_SAMPLE_STACK_USER:
            self._whole(at, size, layout, &sample)
        stack = self._stack(at, layout.ip, &sample)
        if sample.values and layout.read_format & PERF_FORMAT_ID:
            return self._members(layout, at, &sample, time, task, stack)
        return self._row(time, sample.period, sample.cpu, task, stack, layout.event)

    cdef int _row(self, uint64_t time, uint64_t period, int32_t cpu, int32_t task, int32_t stack, uint32_t event) except -1:
        cdef size_t at = self.row_count
        cdef int64_t time_us = <int64_t>(time // 1000)
        if at == self.row_room:
            self._resize(self.row_room * 2 + 16384)
        if event != self.last_event:
            self.last_event = event
            self.last_event_number = self.event_numbers.setdefault(event, len(self.event_numbers))
        self.times.data.as_longlongs[at] = time_us
        self.cpus.data.as_longlongs[at] = cpu
        self.row_tasks.data.as_longlongs[at] = task
        self.row_stacks.data.as_longlongs[at] = stack
        self.periods.data.as_longlongs[at] = <int64_t>min(period, <uint64_t>0x7FFFFFFFFFFFFFFF)
        self.events.data.as_longlongs[at] = self.last_event_number
        self.first_us, self.last_us = min(self.first_us, time_us), max(self.last_us, time_us)
        if 0 <= cpu < MANY_CPUS:
            self.cpu_seen[cpu] = 1
        elif cpu >= 0:
            self.more_cpus.add(cpu)
        self.row_count += 1
        return 0

    cdef int _resize(self, size_t room) except -1:
        cdef c_array.array column
        for column in (self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events):
            c_array.resize(column, room)
        self.row_room = room
        return 0

    cdef int _members(self, const Layout* layout, const uint8_t* at, const Sample* sample, uint64_t time, int32_t task,
                      int32_t stack) except -1:
        """A sample that reads counters stands for a sample of each that moved since it was read last."""
        cdef uint64_t count = 1, i, value, number
        cdef size_t place = sample.values, clocks = clock_bytes(layout.read_format)
        cdef size_t step = 16 + (8 if layout.read_format & PERF_FORMAT_LOST else 0)
        cdef const uint32_t* member
        if layout.read_format & PERF_FORMAT_GROUP:
            count = zs_u64(at + place)
            place += 8 + clocks
        for i in range(count):
            value = zs_u64(at + place)
            number = zs_u64(at + place + 8 + (0 if layout.read_format & PERF_FORMAT_GROUP else clocks))
            place += step
            member = self.ids.find(number)
            if member == NULL:
                self.unknown_events += 1
                continue
            before = self.counts.get(number, 0)
            self.counts[number] = value
            if value > before:
                self._row(time, value - <uint64_t>before, sample.cpu, task, stack, self.layouts.items[member[0]].event)
        return 0

    # --- who -----------------------------------------------------------------------------------------------------------

    cdef int32_t _task(self, uint32_t pid, uint32_t tid, uint64_t cgroup) except -2:
        cdef Task* task
        if tid == NOBODY:
            return self._leaving(pid)
        if tid == 0:
            if self.idle_task < 0:
                self.idle_task = self._new_task((0, 0, "swapper", None, None))
            return self.idle_task
        task = self.tasks.make(pid, tid)
        if task == NULL:
            return -1
        if task.pid != pid:          # the number was given to another task, and its fork record is missing
            task.pid, task.number, task.named, task.born_in = pid, 0, False, 0
        if task.cgroup != cgroup:
            task.cgroup = cgroup
            task.number = 0
        if task.number == 0:
            comm = task.comm[:strlen(task.comm)].decode("utf-8", "replace") if task.named else None
            task.number = <uint32_t>self._new_task(
                (pid, tid, comm, self._parent(pid), self.cgroups.get(cgroup) if cgroup else None)
            ) + 1
        return <int32_t>task.number - 1

    cdef int32_t _leaving(self, uint32_t pid) except -2:
        """A thread that has left already has no number; its process may have one still."""
        if pid == NOBODY:
            return -1
        number = self.leaving.get(pid)
        if number is None:
            number = self.leaving[pid] = self._new_task((pid, None, None, self._parent(pid), None))
        return number

    cdef int32_t _new_task(self, tuple row) except -1:
        self.task_rows.append(row)
        return <int32_t>len(self.task_rows) - 1

    cdef object _parent(self, uint32_t pid):
        cdef Task* leader = self.tasks.get(pid)
        return leader.ppid if leader != NULL and leader.born_in and leader.ppid and leader.ppid != NOBODY else None

    # --- taking --------------------------------------------------------------------------------------------------------

    def take(self):
        """What was made since the last call: (time_us, cpu, task, stack, period, event, stack lengths, stack frames,
        frames, tasks, idle samples, first and last time or None, CPUs, events), the columns as array('q'). `event` counts
        in the events given last."""
        cdef int cpu
        self._resize(self.row_count)
        _, lengths, flat = self.stacks.take_new()
        taken = (
            self.times, self.cpus, self.row_tasks, self.row_stacks, self.periods, self.events, lengths, flat,
            self._number_frames(flat), self.task_rows, self.idle_samples,
            (self.first_us, self.last_us) if self.row_count else None,
            frozenset([cpu for cpu in range(MANY_CPUS) if self.cpu_seen[cpu]]) | self.more_cpus,
            list(self.event_numbers),
        )
        self.stacks.clear()
        self.tails.clear()
        self.chains.clear()
        self.pairs.clear()
        self.tasks.forget_numbers()
        self._start_rows()
        return taken

    cdef list _number_frames(self, c_array.array flat):
        """Numbers the functions of these stacks from 0, in place; gives them in that order."""
        cdef size_t i, count = len(flat)
        cdef int64_t* run = <int64_t*>flat.data.as_longlongs
        cdef int64_t next_number = 0
        cdef int64_t* numbers = <int64_t*>PyMem_Malloc((len(self.frames) + 1) * sizeof(int64_t))
        if numbers == NULL:
            raise MemoryError
        used = []
        try:
            memset(numbers, 0xFF, (len(self.frames) + 1) * sizeof(int64_t))
            for i in range(count):
                if numbers[run[i]] < 0:
                    numbers[run[i]] = next_number
                    next_number += 1
                    used.append(self.frames[run[i]])
                run[i] = numbers[run[i]]
        finally:
            PyMem_Free(numbers)
        return used

    @property
    def refused(self):
        """Tasks and maps that were not followed because there were too many."""
        return self.tasks.refused

    @property
    def unwound(self):
        """How walks over copied stacks ended, in the order of UNWOUND."""
        return tuple(self.unwinder.ended)

    @property
    def waiting_rows(self):
        return self.row_count
