"""What several tests share, one idea per module.

What holds for every test
    children          every process that a test starts is gone when the test is over
    quarantine        tests that may be tried again, each with its reason
    limits            a test that goes wrong ends, and the run goes on

Recordings and nodes that never existed
    made              the maker that the next ones are built of; recordings of exactly the samples that a test names
    boxes             a node of containers: a loop, a crash loop, a restart policy, and two that behave
    pattern_scenes    what happens to a node when a pattern fits, as changes of a scene
    pattern_rows      every pattern, with the scene that confirms it and the one that refutes it
    tracked_containers  a tracker of containers whose lookup thread is played
    recordings        a node that trains and leaks memory cgroups, with one bad minute; its rollups
    wide              a node of 16 to 192 cores that trains, compiles or reads, and what a test adds to it
    hostile           a recording in which every name is an attack on whoever shows it
    renaming          a recording in which every string that a process can choose says something else
    source_bench      one source of the recorder on a tree of files, and what it wrote
    schedule          rings of scheduling tracepoints as the kernel writes them, and rows of a snapshot
    scenes            a node of twenty seconds made to measure: exactly these tasks, counters and events
    training          a node with GPUs that trains for a minute, and what happens to it for ten seconds of it
    diagnosed         the diagnosis of a recording, made once for recordings that hold the same bytes
    crash_points      a recorder that is killed at each step of the disk, and what is left
    healthy           nodes of any width that train, compile, serve pods or read files, as scenes
    replay            a documented case, replayed into the real recorder as its kernel would have shown it
    every_table       rows of every table of the schema, drawn from it, and what they say once ids are read
    newer             a recording as a later version will write it, with a table that this one does not know
    truth             what a recording holds, read without the code under test

Files as drivers show them
    rdma_tree         /sys/class/infiniband of mlx5 and EFA, and thermal_throttle

Bytes as other programs write them
    footers           footers of Parquet files that no writer makes
    records           perf records as the kernel lays them out
    perf_file         perf.data files around such records
    perf_script       what `perf script` prints of a file, as an oracle
    script_rows       the text of perf script as our reader understands it

What the product says
    pages             commands of a page as a newcomer types them, and what it says they print
    plans             what a command line of a plan does to a node
    printed           command lines as help, documents and messages print them

Programs that run beside a test
    agent_process     a real agent, its configuration and what it answers
    cli               the command line, in this process or in one of its own
    recorder_process  a real recorder
    nfs_server        a file server of NFS in Python, for a node that has only that
    nvml_stand_in     a library in the place of the GPU driver's, with as many GPUs and faults as a test wants
    page_server       `zombiescope serve`, and a client that sends what a test wants
    page_snippets     code that a page of docs shows, as a reader pastes it
    object_store      S3 on the loopback, and a way to it that breaks connections off
    python_image      a stand-in for the memory of a process that runs Python, to be forged
    ray_cluster       a real Ray of two nodes on the loopback, and whatever it started ended
    stalled_disk      a file system that stands still for as long as a test wants
    stand_in          an HTTP server in the place of Pyroscope, Parca or a collector
    stage             a recording of this machine with a real hog in it, and a server over it, for browsers
    visit             a person at the page: mouse, keys and eyes over a real browser
    viewer            speedscope in a headless browser

Machines and privileges
    chart             the Helm chart, rendered
    api_client        what is sent to an API server, kept by a stand-in
    api_server        a real Kubernetes control plane on loopback, with RBAC and controllers
    pod_follower      our watch of a node's pods in a thread, and what it said
    publisher         a stand-in for a recorder that publishes the parts it is given
    cutting_proxy     between a client and a server: cuts, swallows, refuses
    booted_node       a node under QEMU with the recorder as its service
    container_node    a real Docker or kubelet, and what it says itself about its containers
    machine           what a run of the laboratory could leave behind
    systemd_tree      a real systemd, booted in a container
    ubuntu_node       a booted node with Ubuntu's userland, kernel, containerd and the wheel
    unit_packages     unit files of many Debian packages
    remedies          a plan of real files, a process that is killed between two steps, a systemd that is none
    unprivileged      running as an ordinary user, or with a few capabilities
    zombies           real zombie cgroups, freed on demand
"""
