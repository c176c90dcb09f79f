# Stacks folded into a tree, level by level: of the stacks that are still alive at a level, those that came to the same
# node and go on with the same function make one node of the next. A node that is too narrow ends its stacks there, so
# the work follows what can be seen. profile/flame.py says what the numbers mean.


cdef struct Branch:
    uint64_t key                 # node << 32 | place of the function in the order of name: sorted, this is breadth first
    int64_t value, base
    uint32_t node                # in the tree, or NOWHERE

cdef struct Node:                # as columns: see fold_stacks
    int64_t function, parent, depth, value, own, base

cdef struct Branches:
    Branch* items
    size_t used, room

cdef struct SortedBranches:
    Branch** items
    size_t used, room

cdef struct Nodes:
    Node* items
    size_t used, room

cdef uint32_t NOWHERE = 0xFFFFFFFF


cdef int _by_key(const void* a, const void* b) noexcept nogil:
    cdef uint64_t left = (<const Branch**>a)[0].key, right = (<const Branch**>b)[0].key
    return -1 if left < right else left > right


@cython.final
cdef class _Fold:
    cdef Words stack             # the stacks alive,
    cdef Words at                # the node of each,
    cdef Words via               # and the branch that it takes
    cdef zs_table table          # of the branches of one level
    cdef Branches branches
    cdef SortedBranches sorted
    cdef Nodes tree
    cdef int64_t left_out, lost

    def __dealloc__(self):
        zs_free(&self.stack)
        zs_free(&self.at)
        zs_free(&self.via)
        zs_free_table(&self.table)
        zs_free(&self.branches)
        zs_free(&self.sorted)
        zs_free(&self.tree)

    cdef int begin(self, size_t stacks) except -1:
        zs_reserve(&self.stack, stacks)
        zs_reserve(&self.at, stacks)
        zs_reserve(&self.via, stacks)
        zs_extend(&self.tree, 1)
        self.tree.items[0].parent = -1
        return 0

    cdef int begin_level(self) except -1:
        """Room for the branches of one level, at most one a stack, and for the nodes that they may become."""
        zs_begin(&self.table, self.branches.used)    # about as many as on the level before
        self.branches.used = self.sorted.used = 0
        zs_reserve(&self.branches, self.stack.used)
        zs_reserve(&self.sorted, self.stack.used)
        return 0

    cdef inline uint32_t branch(self, uint64_t key) except 0:
        """The branch of this level with that key, made if it is not there; from 1."""
        cdef uint64_t hash = zs_hash_word(key)
        cdef size_t at = hash
        cdef uint32_t number = zs_probe(&self.table, hash, &at)
        while number and self.branches.items[number - 1].key != key:
            number = zs_probe(&self.table, hash, &at)
        if number == 0:
            number = <uint32_t>self.branches.used + 1
            zs_insert(&self.table, at, hash, number)
            self.branches.items[number - 1] = Branch(key=key, value=0, base=0, node=NOWHERE)
            self.branches.used += 1
        return number

    cdef int add_nodes(self, int64_t depth) except -1:
        """The sorted branches become nodes."""
        cdef size_t number
        cdef Branch* branch
        zs_reserve(&self.tree, self.sorted.used)
        for number in range(self.sorted.used):
            branch = self.sorted.items[number]
            branch.node = <uint32_t>self.tree.used
            self.tree.items[self.tree.used] = Node(
                function=<int64_t>(branch.key & 0xFFFFFFFF), parent=<int64_t>(branch.key >> 32), depth=depth,
                value=branch.value, own=0, base=branch.base,
            )
            self.tree.used += 1
        return 0

    def column(self, size_t number):
        cdef c_array.array out = _column(self.tree.used)
        cdef size_t node
        for node in range(self.tree.used):
            out.data.as_longlongs[node] = (&self.tree.items[node].function)[number]
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
    cdef size_t stacks = starts.shape[0], row, i, kept
    cdef uint32_t stack
    cdef int64_t depth = 0, function
    cdef Branch* branch
    cdef Node* root
    fold.begin(stacks)
    root = fold.tree.items
    for row in range(stacks):
        leaf[row] = -1
        if counts[row] > 0 or (differs and other[row] > 0):
            root.value += counts[row]
            root.base += other[row]
            leaf[row] = 0
            if ends[row] > starts[row]:
                fold.stack.items[fold.stack.used] = <uint32_t>row
                fold.at.items[fold.stack.used] = 0
                fold.stack.used += 1
            else:
                root.own += counts[row]
    while fold.stack.used:
        fold.begin_level()
        # Which branches there are, and what they weigh.
        for i in range(fold.stack.used):
            stack = fold.stack.items[i]
            function = flat[ends[stack] - 1 - depth if invert else starts[stack] + depth]
            fold.via.items[i] = fold.branch(<uint64_t>fold.at.items[i] << 32 | <uint64_t>place[function]) - 1
            branch = &fold.branches.items[fold.via.items[i]]
            branch.value += counts[stack]
            branch.base += other[stack]
        # The visible ones become nodes, in the order of parent and name.
        for i in range(fold.branches.used):
            branch = &fold.branches.items[i]
            if (branch.value > 0 and branch.value >= least) or (
                differs and branch.base > 0 and branch.base >= least_base
            ):
                fold.sorted.items[fold.sorted.used] = branch
                fold.sorted.used += 1
            else:
                fold.left_out += 1
                fold.lost += branch.value
        qsort(fold.sorted.items, fold.sorted.used, sizeof(Branch*), _by_key)
        depth += 1
        fold.add_nodes(depth)
        # The stacks go on, end here, or were given up.
        kept = 0
        for i in range(fold.stack.used):
            stack = fold.stack.items[i]
            branch = &fold.branches.items[fold.via.items[i]]
            if branch.node == NOWHERE:
                continue
            leaf[stack] = branch.node
            if ends[stack] - starts[stack] == depth:
                fold.tree.items[branch.node].own += counts[stack]
                continue
            fold.stack.items[kept] = stack
            fold.at.items[kept] = branch.node
            kept += 1
        fold.stack.used = kept
    return [fold.column(i) for i in range(6)], fold.left_out, fold.lost


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
