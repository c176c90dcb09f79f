"""What several tests share, one idea per module.

What holds for every test
    children          every process that a test starts is gone when the test is over
    limits            a test that goes wrong ends, and the run goes on

Recordings and nodes that never existed
    made              the maker that the next three are built of; recordings of exactly the samples that a test names
    boxes             a node of containers: a loop, a crash loop, a restart policy, and two that behave
    recordings        a node that trains and leaks memory cgroups, with one bad minute; its rollups
    hostile           a recording in which every name is an attack on whoever shows it
    scenes            a node of twenty seconds made to measure: exactly these tasks, counters and events
    replay            a documented case, replayed into the real recorder as its kernel would have shown it
    truth             what a recording holds, read without the code under test

Bytes as other programs write them
    records           perf records as the kernel lays them out
    perf_file         perf.data files around such records
    perf_script       what `perf script` prints of a file, as an oracle

What the product says
    plans             what a command line of a plan does to a node
    printed           command lines as help, documents and messages print them

Programs that run beside a test
    cli               the command line in a process of its own
    recorder_process  a real recorder
    page_server       `zombiescope serve`, and a client that sends what a test wants
    stand_in          an HTTP server in the place of Pyroscope, Parca or a collector
    stage             a recording of this machine with a real hog in it, and a server over it, for browsers
    visit             a person at the page: mouse, keys and eyes over a real browser
    viewer            speedscope in a headless browser

Machines and privileges
    booted_node       a node under QEMU with the recorder as its service
    container_node    a real Docker or kubelet, and what it says itself about its containers
    machine           what a run of the laboratory could leave behind
    systemd_tree      a real systemd, booted in a container
    unit_packages     unit files of many Debian packages
    unprivileged      running as an ordinary user, or with a few capabilities
    zombies           real zombie cgroups, freed on demand
"""
