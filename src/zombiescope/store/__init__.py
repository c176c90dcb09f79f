"""The stored form of a recording, and nothing else: no module here reads the live machine's sources or judges causes.

A recorder or an import writes it:

    schema          the tables and their columns; the one description of what is stored
    event           a row of `events`; sample_event: the event that made samples
    batch           rows on their way into a frame, numbers of series
    log             the append-only log: frames, blocks, what damage costs
    segment_writer  segments on disk, and what happens when the disk is full
    lock            one writer for each node
    saturation      when a tick counts as saturated: rollups are written with it and views read with it
    layout          names of files and folders, manifests
    incident_file   incidents.json

Closed segments become Parquet, and old ones go:

    compact         segments -> Parquet, in a process of its own; merge, parquet, summary do the work
    retention       what is removed when; freeze exempts a window from it

Readers find one node whatever its form:

    locate          where recordings are, and which one is being written
    store           a directory, or a pack: one zip file
    reader          Recording: tables of a window over all parts; ids makes their numbers unique
    part            one part: segment_part, parquet_part
    columns         Arrow columns as numpy arrays
    gaps            where a recording is blind
    stacks          the kernel's part of a stack, without skid
    tail            frames as they are appended
    pack            a window as one file
"""
