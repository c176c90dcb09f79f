# One open-addressing table and its hash. The table knows no keys: it finds the numbers that were put in under a hash, and
# its owner, who keeps what has that number in a vector, says which of them is the one:
#
#     at = hash
#     number = zs_probe(&table, hash, &at)
#     while number and not "number is the one":
#         number = zs_probe(&table, hash, &at)
#     if not number:
#         zs_insert(&table, at, hash, a new number)
#
# Eight bytes a slot, at most half of them taken; 32 bits of the hash stand in the slot, so other keys are hardly ever
# looked at and growing reads none. Numbers start at 1. A struct that begins with a zs_slot makes wider slots, which hold
# the key themselves: for the tables in which a second miss of the cache would be felt.
#
# What is looked up comes from files and processes that may want many keys in one place: the hash starts from a secret of
# this process and takes it in at every step.

cdef extern from *:
    """
    static uint64_t zs_secret[3];

    static inline uint64_t zs_fold(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    static inline uint64_t zs_hash_word(uint64_t word) { return zs_fold(word ^ zs_secret[0], zs_secret[1]); }
    static inline uint64_t zs_hash_step(const uint8_t *at, uint64_t secret, uint64_t hash) {
        uint64_t a, b;
        memcpy(&a, at, 8);
        memcpy(&b, at + 8, 8);
        return zs_fold(a ^ secret, b ^ hash);
    }
    /* Sixteen bytes a step, two steps side by side: a multiplication waits for the one before it, not for its neighbour.
       The last bytes are read together with some that were read before. */
    static inline uint64_t zs_hash_bytes(const void *data, size_t length, uint64_t seed) {
        const uint8_t *at = data;
        uint64_t hash = seed ^ zs_secret[0], a = 0, b = 0;
        size_t left = length;
        if (left > 32) {
            uint64_t other = hash;
            for (; left > 32; at += 32, left -= 32) {
                hash = zs_hash_step(at, zs_secret[1], hash);
                other = zs_hash_step(at + 16, zs_secret[2], other);
            }
            hash ^= other;
        }
        if (left > 16) {
            hash = zs_hash_step(at, zs_secret[1], hash);
            at += 16;
            left -= 16;
        }
        if (left >= 8) {
            memcpy(&a, at, 8);
            memcpy(&b, at + left - 8, 8);
        } else if (left >= 4) {
            uint32_t x, y;
            memcpy(&x, at, 4);
            memcpy(&y, at + left - 4, 4);
            a = x;
            b = y;
        } else if (left) {
            a = at[0] | (uint64_t)at[left >> 1] << 8 | (uint64_t)at[left - 1] << 16;
        }
        return zs_fold(a ^ zs_secret[2] ^ length, b ^ hash);
    }

    typedef struct { uint32_t hash, number; } zs_slot;
    typedef struct { uint8_t *slots; size_t mask, used, room, width; } zs_table;

    static inline zs_slot *zs_slot_at(const zs_table *table, size_t at, size_t width) {
        return (zs_slot *)(table->slots + (at & table->mask) * width);
    }
    /* The next number under this hash, or 0 at its end; `at` is the hash at first, and in the end the free slot. */
    static inline uint32_t zs_probe_wide(const zs_table *table, uint64_t hash, size_t *at, size_t width) {
        const zs_slot *slot = zs_slot_at(table, *at, width);
        while (slot->number && slot->hash != (uint32_t)hash) slot = zs_slot_at(table, ++*at, width);
        *at += slot->number != 0;
        return slot->number;
    }
    static inline uint32_t zs_probe(const zs_table *table, uint64_t hash, size_t *at) {
        return zs_probe_wide(table, hash, at, sizeof(zs_slot));
    }
    /* Empties the table, for about so many entries. */
    static int zs_begin_wide(zs_table *table, size_t entries, size_t width) {
        size_t slots = 1024;
        while (slots / 2 < entries && slots < (size_t)1 << 32) slots *= 2;
        if (slots > table->room) {
            uint8_t *fresh = PyMem_RawCalloc(slots, width);
            if (fresh == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            PyMem_RawFree(table->slots);
            table->slots = fresh;
            table->room = slots;
        } else {
            memset(table->slots, 0, slots * width);
        }
        table->mask = slots - 1;
        table->used = 0;
        table->width = width;
        return 0;
    }
    static int zs_begin(zs_table *table, size_t entries) { return zs_begin_wide(table, entries, sizeof(zs_slot)); }
    static void zs_clear(zs_table *table) {
        memset(table->slots, 0, (table->mask + 1) * table->width);
        table->used = 0;
    }
    static void zs_free_table(zs_table *table) { PyMem_RawFree(table->slots); }

    static inline zs_slot *zs_free_slot(const zs_table *table, size_t at, size_t width) {
        while (zs_slot_at(table, at, width)->number) at++;
        return zs_slot_at(table, at, width);
    }
    /* A small table becomes four times as large, and is seldom full; a large one would miss the cache more. */
    static int zs_grow(zs_table *table, size_t width) {
        zs_table wider = {NULL, 0, 0, 0, 0};
        if (table->mask >> 31) {
            PyErr_NoMemory();
            return -1;
        }
        if (zs_begin_wide(&wider, (table->mask + 1) * (table->mask < 65536 ? 2 : 1), width)) return -1;
        for (size_t i = 0; i <= table->mask; i++) {
            const zs_slot *slot = zs_slot_at(table, i, width);
            if (slot->number) memcpy(zs_free_slot(&wider, slot->hash, width), slot, width);
        }
        wider.used = table->used;
        PyMem_RawFree(table->slots);
        *table = wider;
        return 0;
    }
    /* At the slot where the probe ended; nothing else was put in since. The slot, whose wider part is to be filled. */
    static inline zs_slot *zs_insert_wide(zs_table *table, size_t at, uint64_t hash, uint32_t number, size_t width) {
        if ((table->used + 1) * 2 > table->mask) {
            if (zs_grow(table, width)) return NULL;
            at = (uint32_t)hash;
        }
        zs_slot *slot = zs_free_slot(table, at, width);
        slot->hash = (uint32_t)hash;
        slot->number = number;
        table->used++;
        return slot;
    }
    static inline zs_slot *zs_insert(zs_table *table, size_t at, uint64_t hash, uint32_t number) {
        return zs_insert_wide(table, at, hash, number, sizeof(zs_slot));
    }
    /* Gives a number that is in the table another value; 0 takes it out, and closes the gap. Not for wider slots. */
    static void zs_renumber(zs_table *table, uint64_t hash, uint32_t number, uint32_t now) {
        zs_slot *slots = (zs_slot *)table->slots;
        size_t mask = table->mask, gap = hash & mask, next;
        while (slots[gap].number != number) gap = (gap + 1) & mask;
        slots[gap].number = now;
        if (now) return;
        table->used--;
        for (next = (gap + 1) & mask; slots[next].number; next = (next + 1) & mask) {
            if (((next - slots[next].hash) & mask) < ((next - gap) & mask)) continue;
            slots[gap] = slots[next];
            slots[gap = next].number = 0;
        }
    }
    static inline size_t zs_table_bytes(const zs_table *table) { return table->room * table->width; }
    /* The empty asm keeps it: a function that only prefetches has no effect for gcc, which drops calls of such. */
    static inline void zs_fetch(const void *at) {
        __builtin_prefetch(at);
        __asm__ volatile("");
    }
    """
    uint64_t zs_secret[3]
    uint64_t zs_hash_word(uint64_t word) noexcept nogil
    uint64_t zs_hash_bytes(const void* data, size_t length, uint64_t seed) noexcept nogil

    ctypedef struct zs_slot:
        uint32_t hash, number
    ctypedef struct zs_table:
        size_t mask, used
    int zs_begin(zs_table* table, size_t entries) except -1
    int zs_begin_wide(zs_table* table, size_t entries, size_t width) except -1
    void zs_clear(zs_table* table) noexcept nogil
    void zs_free_table(zs_table* table) noexcept nogil
    size_t zs_table_bytes(const zs_table* table) noexcept nogil
    zs_slot* zs_slot_at(const zs_table* table, size_t at, size_t width) noexcept nogil
    uint32_t zs_probe(const zs_table* table, uint64_t hash, size_t* at) noexcept nogil
    uint32_t zs_probe_wide(const zs_table* table, uint64_t hash, size_t* at, size_t width) noexcept nogil
    zs_slot* zs_insert(zs_table* table, size_t at, uint64_t hash, uint32_t number) except NULL
    zs_slot* zs_insert_wide(zs_table* table, size_t at, uint64_t hash, uint32_t number, size_t width) except NULL
    void zs_renumber(zs_table* table, uint64_t hash, uint32_t number, uint32_t now) noexcept nogil
    void zs_fetch(const void* at) noexcept nogil

cdef bytes _random = __import__("os").urandom(sizeof(zs_secret))
memcpy(zs_secret, <const char*>_random, sizeof(zs_secret))
