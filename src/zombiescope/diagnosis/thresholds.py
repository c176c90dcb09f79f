"""Every threshold of the diagnosis: its value, its unit, and what the value rests on.

The text below a constant is `unit; basis: meaning`. The basis is one of these:

- measured: on a machine, by this project or in the record that is cited
- kernel: the kernel or a driver itself uses this value
- report: published in the report of an incident
- estimated: from the known cost of one operation; not measured
- derived: from another value: a sampling interval, a unit, a neighbour in this file
- chosen: judgement. The answers of the golden corpus and of the lab hold with it; nothing more is known

`docs/patterns/thresholds.md` is generated from this file. Thresholds that the recorder and the views share with the
diagnosis are in `store/thresholds.py`. Bounds (how many lines are shown, how much is read) are not judgement and stay
where they are used.
"""

from __future__ import annotations

from zombiescope.base.time import SECOND_US

# --- what counts as usual, and what exceeds it ------------------------------------------------------------------------

USUAL_RATE_LEAST_READINGS = 2
"""readings; chosen: one past reading does not make a rate."""
USUAL_RATE_PERCENTILE = 90.0
"""percentile; chosen: of the readings of the past, the one that is called usual; of a few readings it is their median,
because the last of them may hold the beginning of the incident."""
USUAL_RATE_FEW_READINGS = 10
"""readings; derived: fewer have no 90th percentile."""
RATE_STANDS_OUT_SPREADS = 3.0
"""spreads of the past; chosen: three, as for a normal distribution."""
RATE_LEAST_SPREAD_RATIO = 0.02
"""share of the usual rate; chosen: readings of a second are never all alike."""
WEIGHT_WITHOUT_PAST = 0.5
"""weight of a confirmation; chosen: half, where it is not known what is usual."""
SAME_BEFORE_RATIO = 0.5
"""share of its CPU in those functions; chosen: a task that had that much before the incident did the same thing
then."""
COUNTER_LEAST_CORES = 0.05
"""cores; chosen: a task that spends less in those functions has nothing to do with the counter."""
CPUS_OF_MEASURED_RATES = 4
"""cores; measured: the machines on which the rates in this file were measured had two to four; the rates grow with the
node."""
PAST_LEAST_US = 5 * SECOND_US // 2
"""us; chosen: less of an earlier time says nothing about it."""
PAST_JUST_BEFORE_US = 30 * SECOND_US
"""us; chosen: the time just before, inside the window."""
PAST_SLICE_US = 10 * SECOND_US
"""us; chosen: read just before the window, and once more long before it."""
PAST_APART_US = 5 * SECOND_US
"""us; chosen: between the window and the time before it; a symptom lasts some seconds before it is examined."""
PAST_LONG_AGO_US = 600 * SECOND_US
"""us; chosen: long enough before to lie outside of most incidents."""
PAST_LEAST_HOURS = 3
"""hours; chosen: fewer hourly sums of a unit do not make a habit."""
PAST_DAY_HOURS = 24
"""hours; derived: one day, because work repeats daily."""
BASELINE_FACTOR = 4.0
"""times the 95th percentile of its hours; chosen."""
BASELINE_LEAST_CORES = 0.5
"""cores; chosen: less does no harm."""
BASELINE_LEAST_HOURS = 24
"""hours; derived: a day of hourly sums."""
BASELINE_LEAST_WINDOW_S = 5.0
"""s; chosen: shorter windows are not compared with hours."""
EARLIER_LEAST_US = 2 * SECOND_US
"""us; chosen: less of an earlier time says nothing about it."""
EXAMINED_ALIKE = 4
"""hogs; chosen: so many of one program that did the same in the same seconds are examined before the others are taken
to have their cause."""
SAME_SECONDS_SHARE = 0.9
"""share; chosen: of the time of both together in which both were there, from which on it is the same time."""
CASE_PAST_US = 60 * SECOND_US
"""us; chosen: the minute before an incident says what was usual."""
CASE_RECENT_US = 10 * SECOND_US
"""us; chosen: the last ten seconds of the time before it say who was doing what."""
GAUGE_LATE_US = 11 * SECOND_US
"""us; derived: gauges are read every five or ten seconds, so the reading that belongs to an incident may come after
it."""
COUNTER_LATE_US = 15 * SECOND_US
"""us; derived: an expensive source is read every ten seconds; a reading that is later than this says nothing about a
span."""

# --- choosing the seconds of a long window ----------------------------------------------------------------------------

WINDOW_LONG_US = 600 * SECOND_US
"""us; chosen: windows up to this are examined whole."""
INCIDENT_OPEN_US = 5 * SECOND_US
"""us; chosen: an incident that reaches this close to the end of a window is still open."""
MOMENT_AROUND_US = 15 * SECOND_US
"""us; chosen: before and after a suspicious second."""
MOMENT_BRIDGE_S = 10
"""s; chosen: a shorter pause does not end a moment."""
KERNEL_STEP_CORES = 0.8
"""cores; chosen: kernel time that a node steps up by."""
KERNEL_STEP_DEVIATIONS = 6.0
"""standard deviations; chosen: of the kernel time of the window."""
EVENT_OFTEN = 5
"""events of a kind; chosen: an event that comes again and again is a rhythm, and each of them says less."""
MOMENT_HEAD_US = 45 * SECOND_US
"""us; chosen: of a long run only its beginning and its end are looked at."""
MOMENT_TAIL_US = 15 * SECOND_US
"""us; chosen: see MOMENT_HEAD_US."""
KERNEL_STEP_S = 10
"""s; chosen: a storm of one CPU drowns in a single second of a large node; the mean of ten differs from the minute
before."""
KERNEL_STEP_BEFORE_S = 60
"""s; chosen: see KERNEL_STEP_S."""
EVENT_WEIGHTS = {"critical": 100.0, "warning": 30.0}
"""weight of a moment; chosen: of an event, by its severity."""
KNOWN_INCIDENT_WEIGHTS = {"critical": 100.0, "warning": 40.0, "info": 10.0}
"""weight of a moment; chosen: of an incident that was found live, by its severity."""
BURST_PAST_US = 600 * SECOND_US
"""us; chosen: the readings that a burst is compared with."""
BURST_SHORT_SPAN_US = 120 * SECOND_US
"""us; chosen: shorter spans are judged reading by reading."""
BURST_CALM_READINGS = 6
"""readings; chosen: without it, after which a burst is over."""
BURST_FEW_READINGS = 10
"""readings; derived: fewer have no 95th percentile; their largest counts."""
BURST_PERCENTILE = 95.0
"""percentile; chosen: of the readings before, the one that is called usual."""
BURST_STANDS_OUT_FACTOR = 2.0
"""times the busier readings before; chosen."""
BURST_RISE_WEIGHT = 30.0
"""weight of a moment; chosen: more than any second of kernel time has."""

# --- joining symptoms and incidents -----------------------------------------------------------------------------------

JOIN_NEAR_US = 5_000_000
"""us; chosen: between symptoms of one matter, whichever came first."""
JOIN_FOLLOWS_US = 15_000_000
"""us; chosen: between a cause and what follows from it: a driver waits five to ten seconds before it complains."""
SAME_INCIDENT_NEAR_S = 5.0
"""s; derived: as between symptoms that are joined."""
HELD_CORE_LEAST_SHARE = 0.2
"""share of the samples of a core; chosen: a task that had less did not take the core."""
EVENTS_TOGETHER_US = 10_000_000
"""us; chosen: lines of one kind with shorter pauses are one symptom."""
EVENT_REPORT_US = 1_000_000
"""us; chosen: a job's report this close to a line of the log is about the same thing."""
XIDS_TOGETHER_US = 60_000_000
"""us; chosen: the driver takes its time over what it asks for."""
XID_PROBE_US = 2_000_000
"""us; chosen: a fault this soon after a probe of the device is that probe's."""
EVENT_LED_TO_US = 10_000_000
"""us; chosen: an incident that is only an event was caused by what happened in the ten seconds before it."""
LIVE_AROUND_US = 60_000_000
"""us; chosen: before an open incident, for the time in which its cause began."""
LIVE_CLOSED_AFTER_US = 10_000_000
"""us; chosen: an incident that was not seen for so long is over."""
LIVE_CUT_S = 1.0
"""s; chosen: an incident that begins so much later than it did has lost its beginning to the window."""

# --- who did it -------------------------------------------------------------------------------------------------------

HOG_CORE_SHARE = 0.2
"""share of the samples of a core; chosen: a task that had less did not take the core."""
SHORT_LIVED_RUNS = 5
"""processes; chosen: fewer of one name do not come and go."""
SHORT_LIFE_US = 2_000_000
"""us; chosen: the median life of processes that come and go."""
SAME_START_TICKS = 2
"""ticks; kernel: starts are known from /proc or from FORK records, and both are rounded."""
SHORT_LIFE_TICKS = 200
"""ticks; chosen: two seconds; a process that lives longer is not one of the short-lived children, however many siblings
it has."""
SHORT_LIVED_CHILDREN = 5
"""children; chosen: fewer are ordinary."""
RESTARTED_RUNS = 2
"""containers; derived: the second of one name, where the policy says that it is restarted."""
RESTARTED_RUNS_WHATEVER_POLICY = 5
"""containers; chosen: a container that was made so often is restarted by something, whatever its policy says."""
CONTAINER_STARTING_US = 2 * SECOND_US
"""us; chosen: a container's files are written a moment before or after its first process runs."""
MOSTLY_SHARE = 0.6
"""share of samples; chosen: from here on a core or a group is mostly one task's or one parent's."""
CROWD_LEAST_TASKS = 3
"""tasks; derived: two are not a crowd."""
CROWD_TASK_LEAST_SHARE = 0.05
"""share of the samples of a core, of each task; chosen: a task that runs for a moment now and then may be there by
chance."""
SCATTERED_CORE_SHARE = 0.25
"""share of a core; chosen: less of it hurts no task that has to run there."""
LEAK_WORST_LEAST_SHARE = 0.3
"""share of the dying cgroups; chosen: below it no place is the one that leaks."""
RESTARTS_FIT_ZOMBIES = (0.4, 2.5)
"""zombies per restart, least and most; chosen: a container is about two cgroups, and some are released."""
LEAK_LONGEST_HOURS = 60 * 24
"""hours; chosen: a node that is up for two months is rare, and a slower loop does not explain its zombies."""
RESTARTS_LEAST = 3
"""restarts in an hour; chosen: fewer do not make a rhythm."""
RESTARTS_MANY = 1_000
"""restarts; chosen: the number alone, next to as many zombies, is a match where growth was not measured."""
PARTIAL_CAUSE_SHARE = 0.1
"""share of a call's time; chosen: a pattern with more of it is what that call is about."""
NAMED_LEAST_SAMPLES = 20
"""samples; chosen: fewer with names say nothing about the rest."""

# --- how strong a cause is --------------------------------------------------------------------------------------------

UNCONFIRMED_MOST = 0.5
"""strength; chosen: without a measurement that confirms it, a cause is at most even odds; calibration.BANDS has what
came of it."""
CONFIRMED_LEAST = 0.51
"""confidence; derived: more than any unconfirmed one."""
LITERATURE_MOST = 0.6
"""confidence; chosen: of a pattern that was never reproduced here."""
FULL_EVIDENCE_SHARE = 0.6
"""share of kernel samples; chosen: frames with more of them make the evidence no stronger."""
RANKED_LEAST_CORES = 0.02
"""cores; chosen: a program that computes has a few kernel samples, and they are of something."""
CALIBRATION_PRIOR_RUNS = 10
"""runs; chosen: what the strength itself counts for; most of what was seen so far are faults that patterns were written
for."""
CALIBRATION_STRONGEST = 0.95
"""strength; derived: all evidence there is."""

# --- cores, samples and the time that was not sampled -----------------------------------------------------------------

SAMPLE_GAP_LONG_US = 900_000
"""us; derived: a longer gap fills the second, and the ones next to it."""
SAMPLE_GAP_SLACK_US = 50_000
"""us; chosen: between what is missing and what explains it."""
BLIND_SPOT_LATE_RATIO = 0.8
"""share of a gap; chosen: interrupts this late explain it."""
TIME_HOLE_ALIKE_RATIO = 0.8
"""share of the longest gap; chosen: gaps of all cores that are as long are one pause of the machine."""
SAMPLE_RATE_LEAST_SAMPLES = 100
"""samples; chosen: fewer do not say at which rate they were taken."""
MODERATE_HOG_S = 5
"""s; chosen: a moderate hog is one that lasts."""
HOG_SMALLER_GROUP_SHARE = 0.8
"""share of a larger group's kernel time; chosen: a smaller group with as much explains it."""
HOG_HALF_RATIO = 0.5
"""share of the least that makes a hog; chosen: below it a hog's run ends."""
HOG_GROWN_RATIO = 0.3
"""share of what it had, and of what makes a hog; chosen: a hog that has as much more than before is new."""
HOG_KIND_GROWN_CORES = 0.02
"""cores; chosen: of a kind of tasks that has a part in what all tasks do."""
HOG_CHANCE_DEVIATIONS = 3.0
"""standard deviations; derived: of a count of samples, three of them."""
HOG_QUIET_S = 3
"""s; chosen: the quietest of a hog's run."""
HOG_NEW_RATIO = 0.5
"""cores; chosen: a moderate hog that is new is reported from here on, though nothing explains it."""
HOG_USUAL_SHOWN_CORES = 0.1
"""cores; chosen: less of a usual load is not worth a word."""
SATURATED_NODE_BUSY_RATIO = 0.9
"""share of all cores; chosen: on a node that busy, a full core is expected."""
STALL_US = 100_000
"""us; chosen: a task that holds its core for as long without a break."""
STALL_LONG_UNSEEN_US = 300_000
"""us; chosen: a stall that no task was seen to wait for is reported from here on."""
STALL_OFTEN_UNSEEN = 3
"""stalls; chosen: as many short ones are reported, too."""
STALL_WAITED_US = 100_000
"""us; chosen: waiting of other tasks that makes a stall matter."""
STALL_MOST_US = SECOND_US
"""us; derived: from here on it is a kernel hog or a saturated core, which other detectors report."""
MACHINE_STALL_US = 500_000
"""us; measured: virtual machines are stopped for 100 to 200 ms now and then, and no task notices."""
STEAL_LEAST_S = 2
"""s; chosen: one second of steal is not a symptom."""
RUN_QUEUE_WAITED_US = 1_000_000
"""us a second; derived: one task that waits all the time."""
RUN_QUEUE_ROOM_RATIO = 0.6
"""idle share of another core; chosen: where the waiting tasks had room."""
RUN_QUEUE_MORE_THAN_OTHERS = 4.0
"""times the wait of the median core; chosen."""
RUN_QUEUE_LEAST_S = 2
"""s; chosen."""
RUN_QUEUE_FULL_RATIO = 0.95
"""share of a core; chosen: where waiting is not counted the core has to be full."""
RUN_QUEUE_FULL_LEAST_S = 4
"""s; chosen: longer than where waiting is counted."""
INTERRUPT_STORM_LEAST_US = 2_000_000
"""us; chosen: a shorter one is a burst."""
INTERRUPT_STORM_LEAST_READINGS = 3
"""readings; chosen: fewer before a storm do not say what is usual."""
INTERRUPT_STORM_GROWN_FACTOR = 2.0
"""times the median before; chosen."""
HEAT_THROTTLED_RATIO = 0.1
"""share of the time of a core or of the package; chosen."""
HEAT_THROTTLED_MS = 2000
"""ms; chosen: less is over before a job notices."""
SLOWING_WEIGHT = 20.0
"""weight of a moment; chosen: below a counter of errors, above most seconds of kernel time."""
FREQUENCY_FELL_RATIO = 0.9
"""of the highest limit that was recorded; chosen: a step of boost is less."""
FREQUENCY_SLOW_RATIO = 0.7
"""of the base frequency; chosen: a busy processor that is not limited runs at its base or above."""
FREQUENCY_LEAST_US = 20 * SECOND_US
"""us; derived: two readings, as they are taken every ten seconds."""
FREQUENCY_BUSY_RATIO = 0.5
"""share of the package's cores; chosen: an idle processor is slow because nothing needs it."""
HEAT_LEAST_EVENTS = 10
"""events; chosen: of kernels that count events and no time."""
HEAT_LEAST_S = 30
"""s; chosen: in which they have to come."""
QUOTA_STOOD_RATIO = 0.05
"""share of the time; chosen: paused by its CPU quota."""
STARVED_PAST_US = 30 * SECOND_US
"""us; chosen: before it, in which a thread ran well."""
STARVED_LEAST_SAMPLES = 3
"""samples; chosen: fewer say nothing about where a thread belongs."""
STARVED_MOSTLY_SHARE = 0.5
"""share of a thread's samples; chosen: on one core."""
STARVED_RAN_RATIO = 0.8
"""share of what it ran before; chosen: a thread that runs more was not held up."""
STARVED_WAITED_RATIO = 0.1
"""seconds of waiting a second, of all tasks of a core; chosen: with less no task waited there."""

# --- memory -----------------------------------------------------------------------------------------------------------

MEMORY_WORK_LEAST_SHARE = 0.4
"""share of the kernel time; chosen: with less something else is at work, too, and that has to be explained."""
MEMORY_RELEASED_RATIO = 0.15
"""share of the time in which memory is touched; measured: a job that starts gives back up to 0.11."""
MEMORY_GROWN_RATIO = 0.05
"""share of what was faulted in; chosen: faults come for other reasons, too, and other tasks free memory as well."""
KERNEL_MEMORY_LEAST_US = 300 * SECOND_US
"""us; chosen: a shorter growth is not a trend."""
KERNEL_MEMORY_BACK_US = 1800 * SECOND_US
"""us; chosen: the past that a trend is read from."""
KERNEL_MEMORY_GROWN_RATIO = 0.01
"""share of the node's memory; chosen: in the time that is known."""
KERNEL_MEMORY_LASTS_HOURS = 6.0
"""hours; chosen: until the memory that is left is gone."""
KERNEL_MEMORY_PARTS = 5
"""parts of that time; chosen: each has to be above the one before."""
ZOMBIES_SHOWN = 1_000
"""cgroups; chosen: from here on they are shown, whatever they cost."""
DYING_GROW_PER_S = 1.0
"""cgroups a second; chosen: those that were removed a moment ago may still be on their way out."""
CGROUPS_MADE_PER_S = 2.0
"""cgroups a second; chosen: from here on churn is reported."""
DISK_ALLOWANCE_US = 2_000_000
"""us; chosen: less is over before a job notices."""
DISK_ALLOWANCE_RATIO = 0.1
"""share of the window; chosen: as for heat."""
SHM_FULL_RATIO = 0.95
"""of the size of a /dev/shm; chosen: less leaves room for a batch."""
LIMIT_FULL_RATIO = 0.97
"""share of a limit; chosen: from here on the next request may fail."""
RECLAIM_WAITED_RATIO = 0.01
"""share of the time in which some task waited for memory (PSI); chosen: averaged over the cores that had something to
do."""
RECLAIM_FREED_CORES = 0.05
"""cores; chosen: CPU in freeing memory, where the kernel has no PSI."""
SWAPPED_PAGES_PER_S = 1_000
"""pages a second; derived: both ways, 4 MB/s."""
SWAP_WAITED_RATIO = 0.1
"""share of a core's time; chosen: in which tasks waited for memory (PSI), where the kernel measures that."""
SWAP_PART_US = 10 * SECOND_US
"""us; chosen: the parts of a window that are judged."""
SWAP_STEP_US = 5 * SECOND_US
"""us; chosen: from one part to the next."""
NUMA_MISS_RATIO = 0.1
"""share of the pages that a NUMA node gave; chosen."""
NUMA_MISS_LEAST_PAGES = 100_000
"""pages; derived: 400 MB."""
NUMA_FULL_RATIO = 0.05
"""free share of a NUMA node; chosen: with less it is full."""
NUMA_EMPTY_RATIO = 0.2
"""free share of a NUMA node; chosen: with more it has room."""
WRITEBACK_SLOW_BYTES_PER_S = 2_000_000
"""bytes a second; chosen: any disk of this century, unless it is throttled to death, takes more."""
CORRECTED_ERRORS_MANY = 10
"""errors of one part; chosen: a corrected error now and then is what ECC is for."""
CORRECTED_ERRORS_WITHIN_US = 600 * SECOND_US
"""us; derived: ten minutes, see CORRECTED_ERRORS_MANY."""

# --- network ----------------------------------------------------------------------------------------------------------

DRIVER_PATIENCE_S = 5.0
"""s; kernel: a network driver waits that long for its queue before it resets the card (watchdog_timeo)."""
KSOFTIRQD_TELLS_BEFORE = (6, 5)
"""kernel release; kernel: before 6.5 a softirq that finds ksoftirqd runnable leaves its work to it."""
CORE_WAIT_WITNESS_US = 100_000
"""us in a second; chosen: a preemptive scheduler lets no task wait that long."""
LOST_CORES = 0.9
"""cores in the kernel; chosen: a core that is lost, though its task moves between cores."""
LOST_CORE_WARNING_S = 10.0
"""s; chosen: a collective of a synchronous job waits for the slowest rank long before that."""
NIC_DELAY_US = 500_000
"""us of waiting a second; chosen: by ksoftirqd."""
NIC_CORE_BUSY_RATIO = 0.9
"""share of a core in the kernel; chosen: packets that do not come need a core that is busy."""
NIC_SERVES_PER_S = 50
"""packets a second; chosen: a core with fewer does not serve a card."""
NIC_SERVES_LEAST_PER_S = 1
"""packets a second; chosen: of a core that is known to serve a card, as next to RDMA, whose traffic it never sees."""
NIC_SILENT_POLLS = 20
"""polls that did not come; derived: that so many are missing by chance has a probability below one in 10^8."""
NIC_DROPS_PER_S = 100
"""packets a second; chosen: dropped from the backlog of a core."""
CARD_DROPS_PER_S = 100
"""packets a second; chosen: dropped by a card."""
CARD_DROP_RATIO = 0.001
"""share of the packets of that direction; chosen: a fast card drops a few that are for no task here."""
TCP_RESENT_RATIO = 0.02
"""share of the TCP segments sent; chosen."""
TCP_LEAST_RESENT = 200
"""segments; chosen: fewer are chance."""
TCP_RESENT_ONE_PEER_RATIO = 0.5
"""share of the segments sent again; chosen: one peer has most of them."""
CARD_TROUBLE_PER_S = 1.0
"""errors a second; chosen."""
CARD_TROUBLE_PACKETS_RATIO = 0.001
"""share of the packets; chosen."""
SOFTNET_DROPS_PER_S = 1.0
"""packets a second, of one core; chosen: a single packet in an hour of two hundred cores hurts no task."""
FABRIC_KNOWN_READINGS = 12
"""readings; chosen: two minutes say what is usual."""
FABRIC_LEAST_ERRORS = {
    "cable": 10,
    "flap": 3,
    "congestion": 100,
    "peer": 10,
    "loss": 100,
    "receiver": 100,
    "corruption": 1,
    "driver": 3,
}
"""errors in a burst, by what they say; chosen: fewer do not count, whatever was before."""
FABRIC_DOWN_US = 240 * SECOND_US
"""us; chosen: a link that is down for as long at the end of a window is reported as down."""

# --- GPUs and who feeds them ------------------------------------------------------------------------------------------

GPU_PAST_US = 120 * SECOND_US
"""us; chosen: before a loss, for what the GPU usually did."""
GPU_ASKED_EVERY_US = 10 * SECOND_US
"""us; derived: that a process left is noticed at the next read of the driver, so it may have left that much earlier."""
GPU_LEAST_LOST_S = 0.5
"""GPU-seconds; chosen: less is not worth a sentence."""
GPU_IDLE_LEAST_S = 5
"""s; chosen."""
GPU_IDLE_PAST_S = 60
"""s; chosen: before it fell idle, for its usual use."""
GPU_IDLE_LEAST_PAST_S = 20
"""s; chosen: a shorter past says nothing."""
GPU_IDLE_LEAST_USUAL = 3.0
"""percent; chosen: a GPU that is hardly used has no steady use."""
GPU_IDLE_RATIO = 0.1
"""share of its usual use; chosen."""
GPU_STEADY_RATIO = 0.5
"""share of its usual use; chosen: a second in which the GPU was used well."""
GPU_STEADY_PART = 0.9
"""share of the seconds before; chosen: so many were used well, or its use is not steady."""
TRAINER_NO_CPU_RATIO = 0.05
"""share of what its tree used before; chosen: less counts as no CPU."""
TRAINER_NO_CPU_LEAST = 0.02
"""cores; chosen: always counts as no CPU."""
TRAINER_NO_CPU_MOST = 0.1
"""cores; chosen: more never counts as no CPU."""
GPU_IDLE_PAUSE_S = 3
"""s; chosen: a GPU whose past has such a pause falls idle by itself."""
GPU_IDLE_SETTLED_US = 2 * SECOND_US
"""us; chosen: after it went idle, in which the work that is left is done."""
GPU_IDLE_MOSTLY_SHARE = 0.5
"""share of the looks; chosen: at one place of a program."""
GPU_STUCK_LEAST_S = 10.0
"""s; chosen: of processes that are stuck."""
GPU_SLOWED_RATIO = 0.2
"""share of a second; chosen: in which the GPU said that it was slowed down."""
GPU_SLOWED_LEAST_S = 3
"""s; chosen."""
GPU_SLOWED_BRIDGE_S = 10
"""s; derived: the clock is read every ten seconds."""
GPU_CLOCK_FELL_RATIO = 0.1
"""share of its usual clock; chosen."""
GPU_LOCKED_READINGS = 2
"""readings of the clock; derived: it is read every ten seconds."""
GPU_LOCKED_LEAST_USED = 5.0
"""percent; chosen: a GPU that is hardly used lowers its clock by itself."""
GPU_STARVED_LEAST_S = 2
"""s; chosen."""
GPU_STARVED_MOST_FALLS = 20
"""falls of one GPU in a window; chosen: one that falls more often does so by itself."""
GPU_STARVED_CORE_RATIO = 0.9
"""share of a core; chosen: busy enough to hold up who feeds the GPU."""
GPU_STARVED_WAITED_RATIO = 0.2
"""seconds of waiting a second, on one core; chosen: where the kernel does not count that, the core has to be full."""
INPUT_BOUND_LEAST_S = 20
"""s; chosen: a shorter window is not judged."""
INPUT_BOUND_MOST_USED = 80.0
"""percent; chosen: a GPU with more is not short of input."""
INPUT_BOUND_LEAST_USED = 1.0
"""percent; chosen: a GPU with less is not used."""
INPUT_SLOWER_LEAST_S = 10
"""s; chosen: one slow batch is not a change."""
INPUT_WORKER_BUSY_RATIO = 0.9
"""share of a core; chosen: of a worker that could not do more."""
INPUT_LEAST_WORKERS = 2
"""workers; derived: one worker is not a pool."""
INPUT_WORKERS_BUSY_SHARE = 0.8
"""share of the workers; chosen: busy."""
STOPPED_LEAST_S = 5.0
"""s; chosen."""
STOPPED_LEAST_WORKERS = 2
"""workers; derived: one worker is not a pool."""
STOPPED_PAST_US = 30 * SECOND_US
"""us; chosen: before the stop, for what the parent did."""
STOPPED_SETTLED_US = 2 * SECOND_US
"""us; chosen: after the stop the parent works up what it still has."""
STOPPED_PARENT_LEAST_CORES = 0.01
"""cores; chosen: by the parent before."""
STOPPED_PARENT_LEFT_RATIO = 0.1
"""share of that; chosen: while it waits."""
STOPS_APART_US = 12 * SECOND_US
"""us; derived: rows come every five seconds; a longer pause is another stop."""
TASKS_WAIT_HALF_A_LOOK_US = 5 * SECOND_US
"""us; derived: waiting tasks are looked for every ten seconds."""
PYTHON_PLACE_LEAST_RATIO = 0.3
"""share of a thread's looks; chosen: less is not a location."""
RAY_FAILS_AFTER_US = 120_000_000
"""us; chosen: within this time after a loss a job fails of it: Ray tries again, and waits for what does not come."""
RAY_FAILS_BEFORE_US = 2_000_000
"""us; derived: Ray's files have whole seconds, and cores are read once a second."""
RAY_JOBS_KNOWN_US = 3_600_000_000
"""us; derived: how long before a window its jobs are read; the agent says it every ten minutes."""

# --- what confirms or refutes a pattern -------------------------------------------------------------------------------

AUDIT_LITTLE_CORES = 0.05
"""cores; chosen: less in auditing refutes it."""
BPF_CORES = 0.3
"""cores; chosen: CPU in BPF programs that confirms it."""
BPF_LITTLE_CORES = 0.05
"""cores; chosen: less refutes it."""
BPF_FILTERS_SHARE = 0.5
"""share of the CPU in BPF programs; chosen: most of it in packet or system call filters."""
BULK_IO_SHARE = 0.6
"""share of the kernel time; chosen: with less something else is at work, too, and that has to be explained."""
CGROUP_CHURN_MANY_PER_S = 20.0
"""cgroups a second; estimated: a node that starts a pod a second makes some ten cgroups for it."""
CGROUP_CHURN_FEW_PER_S = 1.0
"""cgroups a second; chosen: fewer refute it."""
CGROUP_LITTER_MANY = 5_000
"""cgroups; report: 182,000 directories where 3,000 are normal (Alibaba ACK); 10,000 hold a core on 6.18."""
CGROUP_LITTER_NORMAL = 3_000
"""cgroups; report: as many are normal (Alibaba ACK); fewer refute it."""
CGROUP_LITTER_WALK_CORES = 0.3
"""cores; chosen: CPU in walking kernfs."""
CGROUP_LITTER_CALL_CORES = 0.5
"""cores; estimated: half of what opening and listing takes is the same for every file system; where kernfs itself has
half of CGROUP_LITTER_WALK_CORES and its callers have as much as this, it is the same walk."""
CGROUP_LITTER_SYSFS_SHARE = 0.1
"""share of the time in kernfs; estimated: opening and finding the file takes most of it."""
CLOCK_READING_CORES = 0.1
"""cores; chosen: CPU in reading a slow clock."""
CONNTRACK_FULL_RATIO = 0.85
"""share of the table; kernel: entries are dropped early from here on; at 1.0 packets are."""
CONNTRACK_EMPTY_RATIO = 0.3
"""share of the table; chosen: less refutes it."""
CONNTRACK_DUMP_CORES = 0.3
"""cores; chosen: CPU in dumping the table."""
CONNTRACK_CHURN_CORES = 0.15
"""cores; estimated: a core makes about a million entries a second when it does nothing else; from here on making and
dropping entries is its work, in whatever namespace."""
CONNTRACK_DROP_CORES = 0.02
"""cores; chosen: CPU in dropping entries early."""
CAPACITY_FULL_RATIO = 0.95
"""share of all cores; chosen."""
CAPACITY_ROOM_RATIO = 0.85
"""share of all cores; chosen: less refutes it."""
CAPACITY_KERNEL_SHARE = 0.5
"""share of the busy time; chosen: with more of it in the kernel, programs are not the reason."""
SILENT_SERVER_WEIGHT = 0.3
"""weight of a confirmation; chosen: the tasks that wait for a file server, and since when, say more than its line in
the log."""
FORKS_MANY_PER_S = 50
"""processes a second; estimated: a process costs about a millisecond of CPU to start and end; nodes without a storm
start one to twenty a second."""
LARGE_FORK_CORES = 0.1
"""cores; chosen: CPU in copying the page tables of a large process."""
LARGE_FORK_US = 40_000
"""us; estimated: copying page tables takes about 10 ms a gigabyte of small pages, so four gigabytes; five samples in a
row, which a storm of small processes has by chance only."""
LARGE_FORK_LEAST_US = 20_000
"""us of copying for each process that began beyond the usual; measured: a small process takes up to 8 ms on a slow
virtual machine (kernel 6.18), so half of LARGE_FORK_US."""
LARGE_FORK_SHARE = 0.5
"""share of the copying that lasts so long; chosen: most of it."""
CORE_DUMP_SHARE = 0.5
"""share of the hog's kernel time; chosen: most of it."""
TRACED_CORES = 0.1
"""cores; chosen: CPU in stopping for a tracer and in tracing; a debugger that waits takes none."""
POLLER_SHARE = 0.8
"""share of the thread's kernel time; chosen: a thread that polls does hardly anything else."""
FORKS_FEW_PER_S = 1.0
"""processes a second; chosen: fewer refute it."""
FORK_MANY_TASKS = 5
"""processes; chosen: of one name."""
FORK_CALL_CORES = 0.05
"""cores; chosen: of the hog in fork() itself."""
FORK_WORK_SHARE = 0.6
"""share of the time of the processes that one starts; chosen: processes that spend so much outside the kernel were
started for something."""
FORK_WALK_SHARE = 0.5
"""share of the hog's time; chosen: below it /proc is not what it is busy with."""
RECLAIM_SCANNED_PER_S = 25_000
"""pages a second; derived: 100 MB looked at in a second; a node with free memory looks at none."""
RECLAIM_CORES = 0.3
"""cores; chosen: CPU in reclaim."""
RECLAIM_EASY_RATIO = 0.8
"""share of the pages that kswapd looks at; chosen: clean pages of files are freed at once."""
RECLAIM_FEW_WAITS_PER_S = 1.0
"""stalls a second; chosen: with fewer no task waited for memory."""
GPU_MONITOR_CORES = 0.3
"""cores; chosen: CPU in the GPU's driver that confirms it."""
GPU_MONITOR_LITTLE_CORES = 0.05
"""cores; chosen: less refutes it."""
NIC_RESET_CORE_IDLE_RATIO = 0.5
"""share of a core; chosen: a core less busy had time for its card."""
NIC_RESET_CORE_HELD_RATIO = 0.9
"""share of a core; chosen: a core that is busier may be the reason."""
HUNG_LOCK_WEIGHT = 0.3
"""weight of a confirmation; chosen: that a task waits for a lock is worth less than any reason for it."""
LOCKUP_BEFORE_US = SECOND_US
"""us; chosen: before a lockup, whose samples may show its cause."""
LOCKUP_AFTER_US = 10 * SECOND_US
"""us; chosen: after it."""
IPTABLES_PACKET_US = 4.0
"""us of CPU a packet inside the rules; measured: a few dozen rules take well below a microsecond, 2,000 took more than
10 on 6.18."""
IPTABLES_FEW_PACKETS_PER_S = 100
"""packets a second; chosen: fewer refute it."""
IPTABLES_RELOAD_CORES = 0.3
"""cores; chosen: CPU in replacing rules."""
IPVS_SOFTIRQ_RATIO = 0.1
"""share of a core; report: 50 to 200 ms of every two seconds: 2.5 to 10 % of the core, and all of it while it lasts."""
IPVS_LITTLE_RATIO = 0.005
"""share of a core; chosen: less refutes it."""
IPVS_THREAD_CORES = 0.2
"""cores; chosen: of the estimator's own thread, on kernels that have it."""
IRQ_ALONE_FACTOR = 4.0
"""times the packets of the core that takes most after it; chosen: then it is alone, whatever other cards bring to
others."""
IRQ_SPREAD_FACTOR = 1.5
"""times the packets of the next core; chosen: less refutes it."""
IRQ_SOFTIRQ_RATIO = 0.5
"""share of a core; chosen: in softirqs."""
IRQ_RULES_SHARE = 0.5
"""share of the softirq time; chosen: with more of it in packet filters, those are the reason."""
IRQ_OWN_WORK_SHARE = 0.8
"""share of the core's time; chosen: with more of it in the task's own work, packets are not the reason."""
IRQ_BUSY_PER_S = 1_000
"""NET_RX softirqs or packets a second; chosen: with fewer, packets are not what keeps a core busy."""
MEMCG_HITS_PER_S = 50.0
"""hits of the limit a second; measured: each reclaims at least 32 pages; 400,000 a second were measured on 6.18."""
MEMCG_RECLAIM_MANY_ZOMBIES = 1_000
"""cgroups; chosen: dying ones that make each reclaim longer."""
MOUNT_READ_CORES = 0.4
"""cores; estimated: a line of mountinfo takes 1 to 2 us, so this is a table of 1,000 mounts read 200 times a second, or
the like."""
DENTRIES_MANY = 200_000
"""dentries; measured: a million makes one inotify_add_watch take 62 ms on 6.18; below a fifth of that a walk is
short."""
DENTRIES_FEW = 50_000
"""dentries; chosen: fewer refute it."""
DENTRIES_WALK_CORES = 0.3
"""cores; chosen: CPU in walking them."""
DENTRIES_MANY_CGROUPS = 1_000
"""cgroups; chosen: dropping caches asks every shrinker of every memory cgroup: from here on that is a separate
walk."""
NETNS_CORES = 0.1
"""cores, of each side; measured: 0.5 in the caller and 0.4 in the kworker on 6.18."""
ENA_NAMES_THE_KERNEL = (4, 0, 0)
"""release of the ENA driver; kernel: from 5.7 on the one in its tree reports the kernel's own; Amazon's is 2.x."""
ENA_COUNTS_SINCE = (2, 2, 10)
"""release of the ENA driver; kernel: the first that counts what exceeds the allowance."""
ALLOWANCE_EXCEEDED_PER_S = 10.0
"""packets a second; chosen."""
NUMA_UPDATED_PER_S = 50_000
"""page table entries a second; derived: 200 MB of address space marked, which is the kernel's usual step of 256 MB."""
NUMA_FAULTS_PER_S = 10_000
"""faults a second; chosen."""
CONSOLE_AROUND_US = 15_000_000
"""us; chosen: between a print to the console and the incident."""
OOM_AROUND_US = 1_000_000
"""us; chosen: what a kill reports may come a moment later."""
OOM_LOOP_KILLS = 3
"""kills; chosen: from here on it is a loop."""
FAULTS_MANY_PER_S = 100_000
"""faults a second; estimated: a fault takes 0.5 to 2 us: from here on faults take 5 to 20 % of a core, and the frames
say whose."""
FAULTS_FEW_PER_S = 20_000
"""faults a second; chosen: fewer refute it."""
FAULTS_HUGE_PER_S = 100
"""huge pages a second; estimated: clearing one takes about 100 us."""
FAULTS_SWAPPED_PER_S = 1_000
"""pages a second; estimated: one comes from a fast disk in 0.1 ms."""
FAULTS_STARTED_PER_S = 50
"""processes a second; derived: as FORKS_MANY_PER_S."""
FAULTS_PER_PROCESS = 3_000
"""faults; estimated: a process that starts and ends makes some hundred."""
PORT_SEARCH_CORES = 0.3
"""cores; estimated: with free ports a connect() takes microseconds."""
RSTAT_CORES = 2
"""cores; derived: waiting needs two; Cloudflare saw twelve kswapd threads at it."""
RSTAT_CORE_SHARE = 0.05
"""share of a core; chosen: a core with less was not waiting."""
CONTENTION_LITTLE_US_PER_S = 200_000
"""us of waiting a second, of the tasks of a core; chosen: a second and more each second is a separate symptom."""
SESSIONS_MANY = 500
"""sessions; report: thousands of abandoned sessions kept pid 1 at 50 to 90 % (systemd 37880)."""
SESSIONS_CORES = 0.4
"""cores; chosen: CPU of the task that walks them."""
SESSIONS_LITTLE_CORES = 0.1
"""cores; chosen: less refutes it."""
SHIMS_MORE = 20
"""shims more than containers that live; chosen: a few are always between start and end."""
SLAB_MANY_DYING = 2000
"""cgroups; chosen: dying ones that explain the growth."""
SLAB_GROWN_DENTRIES = 100_000
"""dentries; chosen: more of them explain the growth."""
SLAB_BACK_US = 1_800_000_000
"""us; derived: as KERNEL_MEMORY_BACK_US."""
SMAPS_LARGE_BYTES = 1 << 30
"""bytes; measured: a walk costs 14 ms a GB on 6.18 and 22 ms on older kernels (process-exporter 246), so below one GB
it is short."""
SMAPS_SMALL_BYTES = 64 << 20
"""bytes; chosen: a smaller process refutes it."""
SMAPS_READ_CORES = 0.3
"""cores; chosen: CPU in reading smaps."""
COMPACT_SCANNED_PER_S = 50_000
"""pages a second; derived: 200 MB looked at; one compaction took 113 ms in the example of bcc's compactsnoop."""
TLB_MANY_PER_S = 10_000
"""interrupts a second; estimated: one takes 1 to 5 us on the other core, and the sender waits for the slowest."""
TLB_FEW_PER_S = 1_000
"""interrupts a second; chosen: fewer refute it."""
TLB_SILENT_CORES = 0.2
"""cores; chosen: nothing else is done in those functions; a fifth of a core is a program that does little else."""
STARVED_TOOK_SHARE = 0.3
"""share of a core; chosen: a task that had less did not take it from another."""
WRITEBACK_NEAR_RATIO = 0.9
"""share of the threshold at which no task may write any more; chosen."""
ZOMBIES_MANY = 1_000
"""cgroups; chosen: fewer are not a cause, whatever they cost."""
ZOMBIES_FILES_SHARE = 0.75
"""share of the bytes that keep them; chosen: below it the fix is not decided by which of two counts is larger."""
ZOMBIES_PER_LIVE = 1
"""zombies per cgroup in use; derived: fewer are not most of the walk."""
ZOMBIES_WALK_SHARE = 0.3
"""share of the hog's kernel time; chosen: such a walk is expensive whatever is counted."""
ZOMBIES_WALK_CORES = 0.1
"""cores; chosen: such a walk is expensive whatever is counted; memcg_cost.WALKED is the fewest that count as the
cause."""
ZOMBIES_PLACE_SHARE = 0.05
"""share of the dying cgroups; chosen: died at a place before anything is released there."""
RANK_LATE_ALWAYS_RATIO = 0.3
"""share of the time; chosen: a rank for which the others wait so long is reported though it was always so."""
RANK_LATE_USUAL_SHARE = 0.7
"""share of its lateness now; chosen: as late in the minute before, it is usual for this rank."""
RANK_PAST_US = 60 * SECOND_US
"""us; chosen: the time before, in which is looked for what is usual."""
RANK_PAST_LEAST_S = 10
"""s; chosen: a shorter past does not show how late this rank usually is."""
RANK_COLLECTS_SHARE = 0.3
"""share of its samples; chosen: in the garbage collector of Python, of a rank that is late."""
RANK_RECLAIMS_SHARE = 0.3
"""share of its samples; chosen: in reclaim for its memory limit, of a rank that is late."""
EXPERIMENT_LATE_US = 86_400_000_000
"""us; chosen: an experiment is about an incident of the day before it."""
CONVICTED_LEAST = 0.98
"""confidence; chosen: at least so much in a cause whose culprit an experiment convicted, at its p-value of 0.01 at
most."""
ACQUITTED_MOST = 0.2
"""confidence; chosen: at most so much in a cause whose culprit an experiment cleared."""
CLOSER_LOOK_RECENT_US = 30_000_000
"""us; chosen: an incident that ended so long ago is still worth a closer look at its hog."""
CLOSER_LOOK_LATE_US = 60_000_000
"""us; chosen: a closer look is taken after the incident was first seen, so at a short one it comes after its end."""
CLOSER_LOOK_OBJECT_WEIGHT = 1.0
"""weight of a confirmation; chosen: of a look that agrees with the samples and says on what the call works."""
CLOSER_LOOK_CALL_WEIGHT = 0.5
"""weight of a confirmation; chosen: half, of one that only names the call."""
CLOSER_LOOK_LONG_CALL_US = 10_000
"""us; chosen: a call that keeps a core for so long is noticed by others."""
CLOSER_LOOK_FAILS_PER_S = 1_000
"""calls a second; chosen: a call that fails so often is tried again and again without a pause."""
DELAY_TOLD_S = 0.01
"""s; chosen: a task that waited less for a core, in all, was not delayed by anybody in particular: a time slice of the
scheduler is 3 to 24 ms."""
DELAY_NOTABLE_S = 0.1
"""s; chosen: a measured delay that a summary mentions."""
DELAY_KNOWN_SHARE = 0.5
"""share of the incident; chosen: the schedule of its cores has to be known for as much before "no task waited" is
reported."""
