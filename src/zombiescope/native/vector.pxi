# One growable vector. Any struct with these three members is one, whatever it holds; all zero is an empty one:
#
#     cdef struct Tasks:
#         Task* items
#         size_t used, room        # counted in items
#
# Growing fails as a whole: a size that overflows, or memory that is not there, leaves the vector as it was. The class
# that owns a vector frees it in __dealloc__. Memory is that of malloc, so that files can be read without the
# interpreter's lock.

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove, memset, strlen

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* The memory of `items` with room for `more` behind `used`: half as much again as before, or all that is needed.
       `room` says whether that worked. */
    static void *zs_widened(void *items, size_t item, size_t *room, size_t used, size_t more) {
        size_t needed, bytes, next = *room + *room / 2 + 16;
        if (__builtin_add_overflow(used, more, &needed)) return items;
        if (next < needed) next = needed;
        if (__builtin_mul_overflow(next, item, &bytes) || bytes > PY_SSIZE_T_MAX) return items;
        void *wider = PyMem_RawRealloc(items, bytes);
        if (wider == NULL) return items;
        *room = next;
        return wider;
    }
    /* An empty vector has no memory, and C allows no NULL here, not even for no bytes: a compiler may conclude from such
       a call that the pointer is good. */
    static inline void zs_copy(void *to, const void *from, size_t bytes) { if (bytes) memmove(to, from, bytes); }
    static inline int zs_same(const void *a, const void *b, size_t bytes) { return !bytes || !memcmp(a, b, bytes); }
    #define zs_has_room(v, more) ((v)->room - (v)->used >= (size_t)(more))
    #define zs_try_reserve(v, more) \\
        (zs_has_room(v, more) || ((v)->items = zs_widened((v)->items, sizeof *(v)->items, &(v)->room, (v)->used, more), \\
                                  zs_has_room(v, more)))
    #define zs_reserve(v, more) (zs_try_reserve(v, more) ? 0 : (PyErr_NoMemory(), -1))
    #define zs_extend(v, length) \\
        ((v)->used >= (size_t)(length) ? 0 : zs_reserve(v, (length) - (v)->used) ? -1 : \\
         (memset((v)->items + (v)->used, 0, ((length) - (v)->used) * sizeof *(v)->items), (v)->used = (length), 0))

    static void *zs_narrowed(void *items, size_t item, size_t *room, size_t used) {
        void *narrower = used && used < *room ? PyMem_RawRealloc(items, used * item) : NULL;
        if (narrower == NULL) return items;
        *room = used;
        return narrower;
    }
    #define zs_shrink(v) ((void)((v)->items = zs_narrowed((v)->items, sizeof *(v)->items, &(v)->room, (v)->used)))
    #define zs_free(v) (PyMem_RawFree((v)->items), (v)->items = NULL, (void)((v)->used = (v)->room = 0))
    """
    void zs_copy(void* to, const void* start, size_t length) noexcept nogil      # bytes, which may overlap
    bint zs_same(const void* a, const void* b, size_t length) noexcept nogil     # whether so many bytes are equal
    # `vector` is the address of such a struct: these are macros, which see its type.
    int zs_reserve(void* vector, size_t more) except -1                    # room for so many more; MemoryError
    bint zs_try_reserve(void* vector, size_t more) noexcept nogil          # the same; False when there is no memory
    int zs_extend(void* vector, size_t length) except -1                   # at least so many items; new ones are zero
    void zs_shrink(void* vector) noexcept nogil                            # gives spare room back
    void zs_free(void* vector) noexcept nogil

cdef struct Bytes:
    uint8_t* items
    size_t used, room

cdef struct Words:
    uint32_t* items
    size_t used, room

cdef struct Longs:
    uint64_t* items
    size_t used, room

cdef struct Offsets:
    size_t* items
    size_t used, room
