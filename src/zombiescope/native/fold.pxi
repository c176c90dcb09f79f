# Stacks folded into a tree, level by level: of the stacks that are still alive at a level, those that came to the same
# node and go on with the same function make one node of the next. A node that is too narrow ends its stacks there, so
# the work follows what can be seen. query/flame.py says what the numbers mean.
#
# The table of a level is its own, of four bytes a slot: it is emptied at every level, and the common one (hash_table.pxi) made
# folding 4 % slower.

from libc.stdlib cimport realloc


cdef struct Branch:
    uint64_t key                 # node << 32 | place of the function in the order of name: sorted, this is breadth first
    int64_t value, base
    uint32_t node                # in the tree, or NOWHERE

cdef uint32_t NOWHERE = 0xFFFFFFFF


cdef int _by_key(const void* a, const void* b) noexcept nogil:
    cdef uint64_t left = (<const Branch**>a)[0].key, right = (<const Branch**>b)[0].key
    return -1 if left < right else left > right


cdef class _Fold:
    cdef size_t alive, nodes, room, slot_room, branch_room
    cdef int64_t branches, lost
    cdef uint32_t* stack         # the stacks alive,
    cdef uint32_t* at            # the node of each,
    cdef uint32_t* via           # and the branch that it takes
    cdef uint32_t* slots         # branch + 1
    cdef Branch* branch
    cdef Branch** sorted
    cdef int64_t* tree           # for each node: function, parent, depth, value, self, base

    def __dealloc__(self):
        free(self.stack)
        free(self.at)
        free(self.via)
        free(self.slots)
        free(self.branch)
        free(self.sorted)
        free(self.tree)

    cdef int begin(self, size_t stacks) except -1:
        self.stack = <uint32_t*>malloc((stacks + 1) * sizeof(uint32_t))
        self.at = <uint32_t*>malloc((stacks + 1) * sizeof(uint32_t))
        self.via = <uint32_t*>malloc((stacks + 1) * sizeof(uint32_t))
        self.room = 1024
        self.tree = <int64_t*>malloc(self.room * 6 * sizeof(int64_t))
        if self.stack == NULL or self.at == NULL or self.via == NULL or self.tree == NULL:
            raise MemoryError
        self.alive = 0
        self.nodes = 1
        memset(self.tree, 0, 6 * sizeof(int64_t))
        self.tree[1] = -1
        return 0

    cdef int make_room(self) except -1:
        """For the branches of one level, at most one a stack, and for the nodes that they may become."""
        cdef size_t wanted = 1024
        while wanted < self.alive * 2:
            wanted *= 2
        if wanted > self.slot_room:
            free(self.slots)
            self.slots = <uint32_t*>malloc(wanted * sizeof(uint32_t))
            if self.slots == NULL:
                raise MemoryError
            self.slot_room = wanted
        memset(self.slots, 0, wanted * sizeof(uint32_t))
        if self.alive > self.branch_room:
            free(self.branch)
            free(self.sorted)
            self.branch = <Branch*>malloc(self.alive * sizeof(Branch))
            self.sorted = <Branch**>malloc(self.alive * sizeof(Branch*))
            if self.branch == NULL or self.sorted == NULL:
                raise MemoryError
            self.branch_room = self.alive
        return <int>0

    cdef int room_for_nodes(self, size_t more) except -1:
        cdef void* grown
        if self.nodes + more > self.room:
            self.room = (self.nodes + more) * 3 // 2
            grown = realloc(self.tree, self.room * 6 * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError
            self.tree = <int64_t*>grown
        return 0

    def column(self, size_t number):
        out = _array("q", bytes(8 * self.nodes))
        cdef int64_t[::1] view = out
        cdef size_t node
        for node in range(self.nodes):
            view[node] = self.tree[node * 6 + number]
        return out


def fold_stacks(
    const int32_t[::1] flat,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    const int64_t[::1] counts,
    base,
    const int32_t[::1] place,
    bint invert,
    double least,
    double least_base,
    int64_t[::1] leaf,
):
    """The tree of stacks flat[starts[s]:ends[s]] that were counted `counts` (and, in another window, `base`) times.

    `place` is a function's place in the order of name. A branch is kept when it has at least `least` samples, or
    `least_base` of the other window. Writes into `leaf` the last node of each stack that was kept, or -1 for a stack
    without samples. Answers ([places, parents, depths, values, selfs, bases], branches left out, samples lost in them).
    """
    cdef _Fold fold = _Fold()
    cdef bint differs = base is not None
    cdef const int64_t[::1] other = base if differs else counts
    cdef size_t stacks = starts.shape[0], row, i, kept, made, slot, mask, number
    cdef uint32_t stack
    cdef int64_t depth = 0, function
    cdef uint64_t key
    cdef Branch* branch
    cdef int64_t* node
    fold.begin(stacks)
    for row in range(stacks):
        leaf[row] = -1
        if counts[row] > 0 or (differs and other[row] > 0):
            fold.tree[3] += counts[row]
            fold.tree[5] += other[row]
            leaf[row] = 0
            if ends[row] > starts[row]:
                fold.stack[fold.alive] = <uint32_t>row
                fold.at[fold.alive] = 0
                fold.alive += 1
            else:
                fold.tree[4] += counts[row]
    while fold.alive:
        fold.make_room()
        mask = 1024
        while mask < fold.alive * 2:
            mask *= 2
        mask -= 1
        made = 0
        # Which branches there are, and what they weigh.
        for i in range(fold.alive):
            stack = fold.stack[i]
            function = flat[ends[stack] - 1 - depth if invert else starts[stack] + depth]
            key = <uint64_t>fold.at[i] << 32 | <uint64_t>place[function]
            slot = zs_hash_word(key) & mask
            while fold.slots[slot] and fold.branch[fold.slots[slot] - 1].key != key:
                slot = (slot + 1) & mask
            if not fold.slots[slot]:
                fold.branch[made].key = key
                fold.branch[made].value = fold.branch[made].base = 0
                made += 1
                fold.slots[slot] = <uint32_t>made
            branch = &fold.branch[fold.slots[slot] - 1]
            branch.value += counts[stack]
            branch.base += other[stack]
            fold.via[i] = fold.slots[slot] - 1
        # The visible ones become nodes, in the order of parent and name.
        kept = 0
        for number in range(made):
            branch = &fold.branch[number]
            branch.node = NOWHERE
            if (branch.value > 0 and branch.value >= least) or (
                differs and branch.base > 0 and branch.base >= least_base
            ):
                fold.sorted[kept] = branch
                kept += 1
            else:
                fold.branches += 1
                fold.lost += branch.value
        qsort(fold.sorted, kept, sizeof(Branch*), _by_key)
        fold.room_for_nodes(kept)
        for number in range(kept):
            branch = fold.sorted[number]
            branch.node = <uint32_t>fold.nodes
            node = fold.tree + fold.nodes * 6
            node[0] = <int64_t>(branch.key & 0xFFFFFFFF)
            node[1] = <int64_t>(branch.key >> 32)
            node[2] = depth + 1
            node[3] = branch.value
            node[4] = 0
            node[5] = branch.base
            fold.nodes += 1
        # The stacks go on, end here, or were given up.
        kept = 0
        for i in range(fold.alive):
            stack = fold.stack[i]
            branch = &fold.branch[fold.via[i]]
            if branch.node == NOWHERE:
                continue
            leaf[stack] = branch.node
            if ends[stack] - starts[stack] == depth + 1:
                fold.tree[branch.node * <size_t>6 + 4] += counts[stack]
                continue
            fold.stack[kept] = stack
            fold.at[kept] = branch.node
            kept += 1
        fold.alive = kept
        depth += 1
    return [fold.column(number) for number in range(6)], fold.branches, fold.lost


def function_totals(
    const int32_t[::1] flat, const int64_t[::1] starts, const int64_t[::1] ends, const int64_t[::1] counts, size_t functions
):
    """Samples with each function anywhere on the stack, as array('q'): once a sample, however often it calls itself."""
    totals = _array("q", bytes(8 * functions))
    seen_in = _array("q", bytes(8 * functions))
    cdef int64_t[::1] total, seen
    cdef size_t stack
    cdef int64_t i, function
    if not functions:
        return totals
    total, seen = totals, seen_in
    for stack in range(<size_t>starts.shape[0]):
        if counts[stack]:
            for i in range(starts[stack], ends[stack]):
                function = flat[i]
                if seen[function] != <int64_t>stack + 1:
                    seen[function] = <int64_t>stack + 1
                    total[function] += counts[stack]
    return totals
