"""What a recording answers: each module reads tables of a window and gives a dataclass; none of them judges causes.

    cores          each core over a window: modes, longest saturation         `mpstat -P ALL` for the past
    strip          every core in a fixed number of columns, its worst tick    the axis of the page
    worst          the second in which the kernel held one core most; core_seconds finds it, core_samples who ran
    cgroups        memory cgroups: how many, how fast they grow, who leaks; memcg_cost says what that costs
    containers     who ran in which container; container_families and container_loops say what of it restarts for ever
    events         kernel log, units, churn, marks
    history        thirty days, from the rollups
    incidents      what the doctor found while the recorder ran
    info           what is in a recording, and where it is blind
    cost           what the recorder itself used
    series         single numbers out of the table `counters`

One way to ask: name(recording, start_us, end_us), where None is the start or the end of the recording. The window of a
table with a time is [start_us, end_us); ticks belong to it when they end in (start_us, end_us].

Live, frame by frame, without numpy or pyarrow (commands/top and the page follow a recorder with them):

    recent         the last minutes of a node: ticks, events, census, leaks, cost
    worst          WorstSecond
    segment_names  what the ids of the segment being followed stand for
"""
