# System calls that Python has no name for, about files and memory of other processes.

from libc.errno cimport ENOENT, errno

cdef extern from *:
    """
    #include <sys/ioctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #include <stdint.h>
    #ifndef SYS_openat2
    #define SYS_openat2 437 /* the same number on every architecture that has it (kernel 5.6) */
    #endif
    /* linux/fs.h of kernel 6.11 */
    struct zs_procmap_query {
        uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
        uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
        uint64_t vma_name_addr, build_id_addr;
    };
    #define ZS_PROCMAP_QUERY _IOWR('f', 17, struct zs_procmap_query)
    #define ZS_PROCMAP_EXECUTABLE 4
    struct zs_open_how { uint64_t flags, mode, resolve; };
    static int zs_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
    {
        struct zs_open_how how = { flags, 0, resolve };
        return (int) syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    }
    """
    int zs_openat2(int dirfd, const char* path, uint64_t flags, uint64_t resolve) nogil
    struct zs_procmap_query:
        uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_offset, inode
        uint32_t dev_major, dev_minor, vma_name_size
        uint64_t vma_name_addr
    unsigned long ZS_PROCMAP_QUERY
    uint64_t ZS_PROCMAP_EXECUTABLE
    int ioctl(int fd, unsigned long request, ...) nogil


def open_in_root(int root_fd, bytes path, uint64_t flags):
    """openat2(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS): links and `..` in path never leave the directory root_fd.

    OSError as open() gives it; ENOSYS before kernel 5.6 (commit fddb5d430ad9), EPERM under older seccomp profiles.
    """
    cdef int fd
    cdef const char* name = path
    with nogil:
        fd = zs_openat2(root_fd, name, flags, 0x10 | 0x02)
    if fd < 0:
        raise OSError(errno, "openat2", path)
    return fd


def query_map(int maps_fd, uint64_t address):
    """ioctl PROCMAP_QUERY on an open /proc/PID/maps: the executable mapping at an address, without reading the others.

    (start, end, offset, inode, major, minor, name), or None when no executable memory is there.
    OSError: ENOTTY before kernel 6.11 (commit ed5d583a88a9), ESRCH when the process has no memory any more.
    """
    # The build id is not asked for: the kernel then reads the file with the target's mmap lock held, which can
    # deadlock (Fixes: ed5d583a88a9, "procfs: avoid fetching build ID while holding VMA lock", early 2026).
    cdef zs_procmap_query query
    cdef char name[4096]
    cdef int answer
    memset(&query, 0, sizeof(query))
    query.size, query.query_flags, query.query_addr = sizeof(query), ZS_PROCMAP_EXECUTABLE, address
    query.vma_name_addr, query.vma_name_size = <uint64_t><size_t>name, sizeof(name)
    with nogil:
        answer = ioctl(maps_fd, ZS_PROCMAP_QUERY, &query)
    if answer < 0:
        if errno == ENOENT:
            return None
        raise OSError(errno, "PROCMAP_QUERY")
    return (
        query.vma_start, query.vma_end, query.vma_offset, query.inode, query.dev_major, query.dev_minor,
        name[: min(query.vma_name_size, <uint32_t>sizeof(name)) - 1] if query.vma_name_size else b"",
    )
