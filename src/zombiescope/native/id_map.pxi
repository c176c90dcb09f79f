# Numbers of 64 bits, such as the ids of cgroups and of perf's events, and what belongs to each.

@cython.final
cdef class IdMap:
    """u64 -> u32 in about 30 bytes an entry: 70,000 cgroup ids in 2 MB where a dict takes ten."""

    cdef Longs keys
    cdef Words values
    cdef zs_table table

    def __cinit__(self):
        zs_begin(&self.table, 0)

    def __dealloc__(self):
        zs_free(&self.keys)
        zs_free(&self.values)
        zs_free_table(&self.table)

    cdef uint32_t _number(self, uint64_t key, uint64_t hash, size_t* at) noexcept nogil:
        cdef uint32_t number = zs_probe(&self.table, hash, at)
        while number and self.keys.items[number - 1] != key:
            number = zs_probe(&self.table, hash, at)
        return number

    cdef const uint32_t* find(self, uint64_t key) noexcept nogil:
        """The value, or NULL."""
        cdef uint64_t hash = zs_hash_word(key)
        cdef size_t at = hash
        cdef uint32_t number = self._number(key, hash, &at)
        return &self.values.items[number - 1] if number else NULL

    def get(self, uint64_t key):
        """The value, or None."""
        cdef const uint32_t* value = self.find(key)
        return None if value == NULL else value[0]

    def set(self, uint64_t key, uint32_t value):
        cdef uint64_t hash = zs_hash_word(key)
        cdef size_t at = hash
        cdef uint32_t number = self._number(key, hash, &at)
        if number:
            self.values.items[number - 1] = value
            return
        zs_reserve(&self.keys, 1)
        zs_reserve(&self.values, 1)
        zs_insert(&self.table, at, hash, <uint32_t>self.keys.used + 1)
        self.keys.items[self.keys.used] = key
        self.values.items[self.keys.used] = value
        self.keys.used += 1
        self.values.used += 1

    def pop(self, uint64_t key):
        """Removes the key; its value, or None."""
        cdef uint64_t hash = zs_hash_word(key)
        cdef size_t at = hash, last = self.keys.used
        cdef uint32_t number = self._number(key, hash, &at), value
        if number == 0:
            return None
        value = self.values.items[number - 1]
        zs_renumber(&self.table, hash, number, 0)
        if number != last:           # the last one moves into its place
            zs_renumber(&self.table, zs_hash_word(self.keys.items[last - 1]), <uint32_t>last, number)
            self.keys.items[number - 1] = self.keys.items[last - 1]
            self.values.items[number - 1] = self.values.items[last - 1]
        self.keys.used -= 1
        self.values.used -= 1
        return value

    def items(self):
        """(keys as array('Q'), values as array('I')), in no order."""
        keys, values = _array("Q"), _array("I")
        if self.keys.used:
            keys.frombytes(<const uint8_t[:self.keys.used * 8]><const uint8_t*>self.keys.items)
            values.frombytes(<const uint8_t[:self.values.used * 4]><const uint8_t*>self.values.items)
        return keys, values

    def __len__(self):
        return self.keys.used

    @property
    def nbytes(self):
        return self.keys.room * 8 + self.values.room * 4 + zs_table_bytes(&self.table)
