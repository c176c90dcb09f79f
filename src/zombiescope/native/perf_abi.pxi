# The numbers of perf's interface, by their names in linux/perf_event.h, and in perf's own event.h for records from
# PERF_RECORD_USER_TYPE_START on. They are spelled here, because headers of older kernels lack some.

cdef enum:
    # struct perf_event_header: u32 type, u16 misc, u16 size
    PERF_HEADER_BYTES = 8
    # struct perf_event_mmap_page
    PERF_PAGE_DATA_HEAD = 1024
    PERF_PAGE_DATA_TAIL = 1032

cdef enum:
    PERF_RECORD_MMAP = 1
    PERF_RECORD_LOST = 2
    PERF_RECORD_COMM = 3
    PERF_RECORD_EXIT = 4
    PERF_RECORD_THROTTLE = 5
    PERF_RECORD_FORK = 7
    PERF_RECORD_SAMPLE = 9
    PERF_RECORD_MMAP2 = 10
    PERF_RECORD_LOST_SAMPLES = 13
    PERF_RECORD_KSYMBOL = 17
    PERF_RECORD_CGROUP = 19
    PERF_RECORD_MAX = 23                   # of the kernels known; a later one may add some
    PERF_RECORD_USER_TYPE_START = 64
    PERF_RECORD_HEADER_ATTR = 64
    PERF_RECORD_HEADER_EVENT_TYPE = 65
    PERF_RECORD_HEADER_TRACING_DATA = 66
    PERF_RECORD_HEADER_BUILD_ID = 67
    PERF_RECORD_FINISHED_ROUND = 68
    PERF_RECORD_AUXTRACE = 71
    PERF_RECORD_EVENT_UPDATE = 78
    PERF_RECORD_HEADER_FEATURE = 80
    PERF_RECORD_COMPRESSED = 81
    PERF_RECORD_COMPRESSED2 = 83
    PERF_RECORD_HEADER_MAX = 85

cdef enum:
    PERF_RECORD_MISC_CPUMODE_MASK = 7
    PERF_RECORD_MISC_KERNEL = 1
    PERF_RECORD_MISC_USER = 2
    PERF_RECORD_MISC_HYPERVISOR = 3
    PERF_RECORD_MISC_GUEST_USER = 5        # the last of the modes
    PERF_RECORD_MISC_MMAP_DATA = 1 << 13
    PERF_RECORD_MISC_COMM_EXEC = 1 << 13
    PERF_RECORD_MISC_FORK_EXEC = 1 << 13   # perf's own mark on a fork that it made up for a process which runs already
    PERF_RECORD_MISC_MMAP_BUILD_ID = 1 << 14
    PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER = 1

cdef enum:
    PERF_SAMPLE_IP = 1 << 0
    PERF_SAMPLE_TID = 1 << 1
    PERF_SAMPLE_TIME = 1 << 2
    PERF_SAMPLE_ADDR = 1 << 3
    PERF_SAMPLE_READ = 1 << 4
    PERF_SAMPLE_CALLCHAIN = 1 << 5
    PERF_SAMPLE_ID = 1 << 6
    PERF_SAMPLE_CPU = 1 << 7
    PERF_SAMPLE_PERIOD = 1 << 8
    PERF_SAMPLE_STREAM_ID = 1 << 9
    PERF_SAMPLE_RAW = 1 << 10
    PERF_SAMPLE_BRANCH_STACK = 1 << 11
    PERF_SAMPLE_REGS_USER = 1 << 12
    PERF_SAMPLE_STACK_USER = 1 << 13
    PERF_SAMPLE_WEIGHT = 1 << 14
    PERF_SAMPLE_DATA_SRC = 1 << 15
    PERF_SAMPLE_IDENTIFIER = 1 << 16
    PERF_SAMPLE_TRANSACTION = 1 << 17
    PERF_SAMPLE_REGS_INTR = 1 << 18
    PERF_SAMPLE_PHYS_ADDR = 1 << 19
    PERF_SAMPLE_CGROUP = 1 << 21
    PERF_SAMPLE_WEIGHT_STRUCT = 1 << 24
    PERF_SAMPLE_BRANCH_HW_INDEX = 1 << 17  # these two of branch_sample_type
    PERF_SAMPLE_BRANCH_COUNTERS = 1 << 19

cdef enum:
    PERF_FORMAT_TOTAL_TIME_ENABLED = 1 << 0
    PERF_FORMAT_TOTAL_TIME_RUNNING = 1 << 1
    PERF_FORMAT_ID = 1 << 2
    PERF_FORMAT_GROUP = 1 << 3
    PERF_FORMAT_LOST = 1 << 4

cdef extern from *:
    """
    #define ZS_CONTEXT_HV ((uint64_t)-32)
    #define ZS_CONTEXT_KERNEL ((uint64_t)-128)
    #define ZS_CONTEXT_USER ((uint64_t)-512)
    #define ZS_CONTEXT_USER_DEFERRED ((uint64_t)-640)
    #define ZS_CONTEXT_GUEST ((uint64_t)-2048)
    #define ZS_CONTEXT_GUEST_KERNEL ((uint64_t)-2176)
    #define ZS_CONTEXT_GUEST_USER ((uint64_t)-2560)
    #define ZS_CONTEXT_MAX ((uint64_t)-4095)
    /* Ours: behind it stands why a walk over a copied stack ended before the outermost function. */
    #define ZS_CONTEXT_ENDED ((uint64_t)-4000)

    static inline uint64_t zs_u64(const uint8_t *at) { uint64_t value; memcpy(&value, at, 8); return value; }
    static inline uint32_t zs_u32(const uint8_t *at) { uint32_t value; memcpy(&value, at, 4); return value; }
    static inline uint16_t zs_u16(const uint8_t *at) { uint16_t value; memcpy(&value, at, 2); return value; }
    """
    const uint64_t PERF_CONTEXT_HV "ZS_CONTEXT_HV"
    const uint64_t PERF_CONTEXT_KERNEL "ZS_CONTEXT_KERNEL"
    const uint64_t PERF_CONTEXT_USER "ZS_CONTEXT_USER"
    const uint64_t PERF_CONTEXT_USER_DEFERRED "ZS_CONTEXT_USER_DEFERRED"
    const uint64_t PERF_CONTEXT_GUEST "ZS_CONTEXT_GUEST"
    const uint64_t PERF_CONTEXT_GUEST_KERNEL "ZS_CONTEXT_GUEST_KERNEL"
    const uint64_t PERF_CONTEXT_GUEST_USER "ZS_CONTEXT_GUEST_USER"
    const uint64_t PERF_CONTEXT_MAX "ZS_CONTEXT_MAX"
    const uint64_t CONTEXT_ENDED "ZS_CONTEXT_ENDED"
    uint64_t zs_u64(const uint8_t* at) noexcept nogil
    uint32_t zs_u32(const uint8_t* at) noexcept nogil
    uint16_t zs_u16(const uint8_t* at) noexcept nogil
