"""The metrics of the node. Each says what it counts and how many series it can make; docs/metrics.md is made of this.

Counters begin at 0 when the agent starts, as Prometheus expects. What was not measured has no line; it is never 0.
"""

from __future__ import annotations

from zombiescope.agent.tally import Family

CORES, UNITS, LEAKERS, KINDS, CAUSES, SOURCES, GPUS = 1024, 50, 20, 128, 64, 64, 64
PARTS_SHOWN = 32
GPUS_SHOWN = 16
GPU_OWNERS, GPU_STATES = 16, 10
"""With figures of their own: as many as a machine has. Of more only what they lost is told."""

SATURATED = "zombiescope_core_saturated_seconds_total"
LONGEST = "zombiescope_core_longest_saturation_seconds"
NIC_STARVED = "zombiescope_nic_starved_seconds_total"
CGROUPS = "zombiescope_cgroups"
CREATED = "zombiescope_cgroups_created_total"
RELEASED = "zombiescope_cgroups_released_total"
LEAK_RATE = "zombiescope_cgroups_leaked_per_second"
LEAKERS_DYING = "zombiescope_leaker_dying_cgroups"
WALK_COST = "zombiescope_cgroup_walk_seconds"
WALK_COSTS_1S_AT = "zombiescope_cgroup_walk_costs_1s_timestamp_seconds"
UNIT_RESTARTS = "zombiescope_unit_restarts_total"
CONTAINER_RESTARTS = "zombiescope_container_restarts_total"
KERNEL_EVENTS = "zombiescope_kernel_events_total"
GPU_LOST = "zombiescope_gpu_lost_seconds_total"
GPU_UTILISATION = "zombiescope_gpu_utilization_ratio"
GPU_POWER = "zombiescope_gpu_power_watts"
GPU_MEMORY_USED = "zombiescope_gpu_memory_used_bytes"
GPU_TEMPERATURE = "zombiescope_gpu_temperature_celsius"
GPU_HELD = "zombiescope_gpu_clocks_held_down_seconds_total"
GPU_ERRORS = "zombiescope_gpu_errors_total"
GPU_OK = "zombiescope_gpu_ok"
GPU_INFO = "zombiescope_gpu_info"
GPU_PROCESS_INFO = "zombiescope_gpu_process_info"
JOB_GPU_SECONDS = "zombiescope_job_gpu_seconds_total"
JOB_STEPS = "zombiescope_job_steps_total"
JOB_STEP_SECONDS = "zombiescope_job_step_seconds_total"
INCIDENTS = "zombiescope_incidents_total"
INCIDENT_OPEN = "zombiescope_incident_open"
CPU = "zombiescope_process_cpu_seconds_total"
RESIDENT = "zombiescope_process_resident_memory_bytes"
LOST = "zombiescope_recorder_records_lost_total"
LATENESS = "zombiescope_recorder_tick_lateness_seconds"
STORE = "zombiescope_store_bytes"
GAPS = "zombiescope_gap_seconds_total"
MISSING = "zombiescope_source_missing"
PART_UP = "zombiescope_part_up"
PART_SUCCESS = "zombiescope_part_last_success_timestamp_seconds"
PART_FAILURES = "zombiescope_part_failures_total"
PART_WORK = "zombiescope_part_work_total"
LOOKS = "zombiescope_diagnosis_passes_total"
NEWEST = "zombiescope_newest_record_timestamp_seconds"
STARTED = "zombiescope_recorder_start_time_seconds"
BUILD = "zombiescope_build_info"

LATENESS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
LONGEST_WINDOW_S = 300

FAMILIES = (
    Family(SATURATED, "counter", "Seconds in which the kernel (system, irq, softirq) held a core for 95% or more.",
           ("cpu",), CORES, "one for each core"),
    Family(LONGEST, "gauge",
           "The longest time for which the kernel held one core without a break, of the last five minutes."),
    Family(NIC_STARVED, "counter",
           "Seconds in which a core that serves a network card did not poll it, or dropped packets at its backlog."),
    Family(CGROUPS, "gauge", "Cgroups: visible ones have a directory, dying ones are removed and not freed.",
           ("controller", "state"), 2, "memory; visible and dying"),
    Family(CREATED, "counter", "Memory cgroups that were made."),
    Family(RELEASED, "counter", "Memory cgroups that the kernel freed."),
    Family(LEAK_RATE, "gauge", "Dying memory cgroups that came to those there were, over the last ten minutes."),
    Family(LEAKERS_DYING, "gauge", "Dying memory cgroups by who left them.", ("leaker",), LEAKERS + 1,
           "the 20 with the most, the others together"),
    Family(WALK_COST, "gauge", "What one walk over all memory cgroups costs a core now (estimated)."),
    Family(WALK_COSTS_1S_AT, "gauge", "When, at this rate, such a walk costs a second."),
    Family(UNIT_RESTARTS, "counter", "Automatic restarts of a systemd unit.", ("unit",), UNITS,
           "the first 50 that restart, the others together"),
    Family(CONTAINER_RESTARTS, "counter", "Restarts of a container, with its own namespace and pod.",
           ("namespace", "pod", "container"), UNITS, "the first 50 that restart, the others together"),
    Family(KERNEL_EVENTS, "counter", "Lines of the kernel log that mean something, by what they mean.", ("kind",),
           KINDS, "one for each kind of line that is known"),
    Family(GPU_LOST, "counter", "Seconds of a GPU's work that incidents cost, as the diagnosis found.", ("gpu",), GPUS,
           "one for each GPU"),
    Family(GPU_UTILISATION, "gauge", "How busy a GPU was in its newest second, by the driver's own samples.", ("gpu",),
           GPUS_SHOWN, "one for each GPU up to 16", former="zombiescope_gpu_utilisation_ratio"),
    Family(GPU_POWER, "gauge", "Power of the board in that second.", ("gpu",), GPUS_SHOWN,
           "one for each GPU up to 16"),
    Family(GPU_MEMORY_USED, "gauge", "Memory of a GPU that is in use.", ("gpu",), GPUS_SHOWN,
           "one for each GPU up to 16"),
    Family(GPU_TEMPERATURE, "gauge", "Temperature of a GPU.", ("gpu",), GPUS_SHOWN,
           "one for each GPU up to 16"),
    Family(GPU_HELD, "counter", "Seconds for which the driver held a GPU's clocks down, by reason.", ("gpu", "reason"),
           5 * GPUS_SHOWN, "one for each GPU up to 16, and reason"),
    Family(GPU_ERRORS, "counter", "Errors that the driver counts: memory (ECC, remapped rows), NVLink, PCIe.",
           ("gpu", "kind"), 8 * GPUS_SHOWN, "one for each GPU up to 16, and kind"),
    Family(GPU_OK, "gauge", "1 while a GPU answers; 0: it is lost, needs a reset, or cannot be read.", ("gpu",),
           GPUS_SHOWN, "one for each GPU up to 16"),
    Family(GPU_INFO, "gauge", "1; which GPU has this number, for joins with dcgm-exporter.",
           ("gpu", "uuid", "pci_bus_id", "model"), GPUS_SHOWN, "one for each GPU up to 16"),
    Family(GPU_PROCESS_INFO, "gauge", "Processes on a GPU, by whose they are.",
           ("gpu", "uuid", "namespace", "pod", "container", "owner"), 4 * GPU_OWNERS,
           "one for each container or unit on each GPU, 64 in all"),
    Family(JOB_GPU_SECONDS, "counter", "GPU seconds by job, and what the GPU did or waited for: busy, host, data, "
           "collective, storage, throttled, stopped, unused, unknown. All together are GPUs x time.",
           ("namespace", "owner", "state"), GPU_OWNERS * GPU_STATES, "16 owners and 10 states, the others together"),
    Family(JOB_STEPS, "counter", "Training steps that programs reported with zombiescope.step(), of all ranks on this "
           "node; evaluation and other phases are left out.", ("namespace", "owner"), GPU_OWNERS,
           "16 owners, the others together"),
    Family(JOB_STEP_SECONDS, "counter", "How long these steps took; divided by their number, the mean step time.",
           ("namespace", "owner"), GPU_OWNERS, "16 owners, the others together"),
    Family(INCIDENTS, "counter", "Incidents that the diagnosis found, by their first cause.", ("cause", "severity"),
           3 * CAUSES, "one for each pattern and severity that was found"),
    Family(INCIDENT_OPEN, "gauge", "Open incidents.", ("cause", "severity"), 3 * CAUSES,
           "one for each pattern and severity of an open incident"),
    Family(CPU, "counter", "What zombiescope itself costs: CPU of its processes.", ("process",), 4,
           "recorder, helpers, services, supervisor", former="zombiescope_cpu_seconds_total"),
    Family(RESIDENT, "gauge", "What zombiescope itself costs: resident memory of its processes.", ("process",), 4,
           "recorder, helpers, services, supervisor", former="zombiescope_resident_bytes"),
    Family(LOST, "counter", "Records that the kernel's rings lost because they were full."),
    Family(LATENESS, "histogram", "How late the recorder's ticks were.", buckets=LATENESS_S),
    Family(STORE, "gauge", "What the recording takes on disk."),
    Family(GAPS, "counter", "Seconds in which a source was blind.", ("source",), SOURCES, "one for each source"),
    Family(MISSING, "gauge", "1 for each source that cannot be read now.", ("source",), SOURCES,
           "one for each source that is missing"),
    Family(PART_UP, "gauge",
           "1 while a part of zombiescope works, 0 when it has failed or hangs; one that is switched off has no line.",
           ("part",), PARTS_SHOWN, "one for each part"),
    Family(PART_SUCCESS, "gauge", "When a part last did what it is for.", ("part",), PARTS_SHOWN,
           "one for each part"),
    Family(PART_FAILURES, "counter", "How often a part failed or hung.", ("part",), PARTS_SHOWN,
           "one for each part"),
    Family(PART_WORK, "counter", "How often a part did what it is for.", ("part",), PARTS_SHOWN,
           "one for each part"),
    Family(LOOKS, "counter", "Diagnosis passes completed.", former="zombiescope_doctor_looks_total"),
    Family(NEWEST, "gauge", "Unix time of the newest record. If it stops advancing, the recorder has stopped."),
    Family(STARTED, "gauge", "When the recorder began."),
    Family(BUILD, "gauge", "1; which version this is, on which Python.", ("version", "pythonversion"), 1, "one"),
)  # fmt: skip
