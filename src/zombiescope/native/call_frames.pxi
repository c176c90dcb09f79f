# .eh_frame of an x86-64 program: from any address of a function to its caller, without frame pointers.
#
# The section is a list of entries. A CIE says what holds for many functions, an FDE says of one function, as a small
# program, how to find the caller at each of its addresses: "from here on the frame ends at rsp + 16, and rbp stands 16
# below". The programs are run once, and what comes out is kept as rows of eight bytes: from which address on, which rule.
# Rules are few (hundreds in a library of 300,000 functions), so each is kept once.
#
# Only what leads to the next frame is kept: the end of the frame (CFA), the return address and rbp. Everything in the file
# is hostile: each length is checked against the entry it stands in, each entry against the section, and no program is run
# more often than there are entries that it belongs to. What is not understood becomes a rule that says so.

cdef enum:
    CFA_UNKNOWN = 0       # no entry speaks of this address
    CFA_REGISTER = 1      # register + offset
    CFA_STORED = 2        # what stands at register + offset: a function that aligned its stack
    CFA_PLT = 3           # rsp + 8, and 8 more from byte `offset` of each 16 on
    CFA_SIGNAL = 4        # the frame that the kernel made for a signal handler
    CFA_UNSUPPORTED = 5

cdef enum:
    SAVED_NOWHERE = 0     # the register still has the caller's value
    SAVED_AT = 1          # at CFA + offset
    SAVED_UNDEFINED = 2   # of the return address: nobody called
    SAVED_UNSUPPORTED = 3
    SAVED_AT_RBP = 4      # of rbp: where rbp points, as in a function with an aligned stack

cdef enum:
    EH_MAX_BYTES = 64 << 20
    EH_MAX_REMEMBERED = 32
    EH_MAX_CIES = 1 << 20

cdef struct FrameRule:
    int32_t cfa_offset, ra_offset, bp_offset
    uint8_t cfa, cfa_register, ra, bp

cdef struct FrameRow:
    uint32_t start        # from the lowest address of code
    uint32_t rule

cdef struct FrameRules:
    FrameRule* items
    size_t used, room

cdef struct FrameRows:
    FrameRow* items
    size_t used, room

cdef struct Cie:
    uint32_t place        # in the section
    uint8_t encoding
    bint has_augmentation, usable
    uint64_t code_step
    int64_t data_step
    FrameRule rule

cdef struct Cies:
    Cie* items
    size_t used, room

cdef struct Fde:
    uint32_t start, length    # of its function, from the lowest address of code
    uint32_t cie
    uint32_t program, end     # in the section

cdef struct Fdes:
    Fde* items
    size_t used, room


cdef int fde_order(const void* left, const void* right) noexcept nogil:
    cdef const Fde* a = <const Fde*>left
    cdef const Fde* b = <const Fde*>right
    if a.start != b.start:
        return -1 if a.start < b.start else 1
    return (a.program > b.program) - (a.program < b.program)


cdef int64_t stack_offset(int64_t steps, int64_t step) noexcept nogil:
    """In bytes; beyond every stack, and so refused, where the two are not small numbers: their product may not even fit
    into 64 bits."""
    if steps != <int32_t>steps or step != <int32_t>step:
        return <int64_t>1 << 62
    return steps * step


@cython.final
cdef class CallFrames(ElfProgram):
    """How to find the caller at every address of one ELF file, given as a descriptor (read, not kept) or as bytes.

    ElfError when it has no such table, one for another machine, or one that needs more than `max_bytes`.
    """

    cdef FrameRows rows
    cdef FrameRules rules
    cdef zs_table rule_numbers
    cdef Cies cies
    cdef Fdes fdes
    cdef uint8_t* section
    cdef uint64_t section_size, section_vaddr
    cdef size_t max_rows
    cdef readonly uint32_t functions
    """Functions that it knows."""
    cdef readonly uint32_t broken
    """Entries that are damaged or of a kind that nobody writes."""

    def __init__(self, source, uint64_t max_bytes=32 << 20):
        cdef const char* fault
        self._open(source)
        self.max_rows = <size_t>(max_bytes // sizeof(FrameRow))
        zs_begin(&self.rule_numbers, 0)
        with nogil:
            fault = elf_header(&self.source, &self.header)
            if fault == NULL and self.header.machine != EM_X86_64:
                fault = "it is for a machine whose stacks cannot be unwound here"
            if fault == NULL:
                fault = self._segments_and_notes()
            if fault == NULL:
                fault = elf_sections(self)
            if fault == NULL:
                fault = self._read_section()
            if fault == NULL:
                fault = self._read_entries()
        if fault == NULL:
            fault = self._make_rows()
        if fault != NULL:
            self.rows.used = 0
        self._forget_section()
        self.image = None
        self._finish(fault)

    def __dealloc__(self):
        self._forget_section()
        zs_free(&self.rows)
        zs_free(&self.rules)
        zs_free_table(&self.rule_numbers)

    cdef void _forget_section(self) noexcept:
        free(self.section)
        self.section = NULL
        zs_free(&self.cies)
        zs_free(&self.fdes)

    cdef const char* _read_section(self) noexcept nogil:
        cdef ElfExtent* place = &self.named[ELF_EH_FRAME]
        if place.size == 0 or self.segment_count == 0:
            return "it has no .eh_frame"
        if place.size > EH_MAX_BYTES:
            return "its .eh_frame is larger than 64 MB"
        if not self._loaded_at(place, &self.section_vaddr):
            return "its .eh_frame is not loaded"
        self.section_size = place.size
        self.section = <uint8_t*>malloc(place.size)
        if self.section == NULL:
            return "there is no memory for its .eh_frame"
        return elf_read(&self.source, place.offset, self.section, place.size)

    cdef bint _loaded_at(self, const ElfExtent* place, uint64_t* out) noexcept nogil:
        cdef uint32_t i
        for i in range(self.load_count):
            if place.offset - self.loads[i].offset < self.loads[i].file_size and place.offset >= self.loads[i].offset:
                out[0] = self.loads[i].vaddr + (place.offset - self.loads[i].offset)
                return True
        for i in range(self.segment_count):
            if place.offset >= self.segments[i].offset and (
                place.offset - self.segments[i].offset < self.segments[i].file_size
            ):
                out[0] = self.segments[i].vaddr + (place.offset - self.segments[i].offset)
                return True
        return False

    # --- entries -------------------------------------------------------------------------------------------------------

    cdef const char* _read_entries(self) noexcept nogil:
        cdef DwarfCursor cursor
        cdef uint64_t length
        cdef size_t place, id_at, end
        cdef uint32_t id_
        cdef const char* fault = NULL
        cursor.base, cursor.at, cursor.end, cursor.broken = self.section, 0, self.section_size, False
        while cursor.at + 4 <= self.section_size:
            place = cursor.at
            length = dwarf_fixed(&cursor, 4)
            if length == 0:              # the end, or padding between the parts that a linker joined
                continue
            if length >= <uint64_t>0xFFFFFFF0:  # the 64-bit form, which nobody writes into .eh_frame
                self.broken += 1
                return NULL
            if length < 4 or length > self.section_size - cursor.at:
                self.broken += 1
                return NULL
            id_at, end = cursor.at, cursor.at + <size_t>length
            cursor.end = end
            id_ = <uint32_t>dwarf_fixed(&cursor, 4)
            if id_ == 0:
                fault = self._read_cie(&cursor, <uint32_t>place)
            elif id_ <= id_at:
                fault = self._read_fde(&cursor, <uint32_t>(id_at - id_))
            else:
                self.broken += 1
            if fault != NULL:
                return fault
            cursor.at, cursor.end, cursor.broken = end, self.section_size, False
        return NULL

    cdef const char* _read_cie(self, DwarfCursor* cursor, uint32_t place) noexcept nogil:
        cdef Cie* cie
        cdef uint8_t version, letter
        cdef const uint8_t* letters
        cdef size_t count, i
        cdef bint is_signal = False
        if self.cies.used >= EH_MAX_CIES or not zs_try_reserve(&self.cies, 1):
            return "it has more kinds of functions than can be real"
        cie = &self.cies.items[self.cies.used]
        self.cies.used += 1
        memset(cie, 0, sizeof(Cie))
        cie.place = place
        version = <uint8_t>dwarf_fixed(cursor, 1)
        letters = cursor.base + cursor.at
        while dwarf_fixed(cursor, 1):
            pass
        if cursor.broken or (version != 1 and version != 3):
            self.broken += 1
            return NULL
        count = cursor.base + cursor.at - 1 - letters
        cie.code_step = dwarf_uleb(cursor)
        cie.data_step = dwarf_sleb(cursor)
        if (dwarf_fixed(cursor, 1) if version == 1 else dwarf_uleb(cursor)) != DWARF_RETURN:
            cursor.broken = True
        for i in range(count):
            letter = letters[i]
            if letter == b"z" and i == 0:
                dwarf_uleb(cursor)
                cie.has_augmentation = True
            elif letter == b"R":
                cie.encoding = <uint8_t>dwarf_fixed(cursor, 1)
            elif letter == b"L":
                dwarf_fixed(cursor, 1)
            elif letter == b"P":
                self._skip_personality(cursor)
            elif letter == b"S":
                is_signal = True
            else:
                cursor.broken = True
        cie.usable = not cursor.broken
        if not cie.usable:
            self.broken += 1
            return NULL
        self._run(cursor, cie, NULL, 0)
        cie.usable = not cursor.broken
        if is_signal:
            memset(&cie.rule, 0, sizeof(FrameRule))
            cie.rule.cfa = CFA_SIGNAL
        return NULL

    cdef void _skip_personality(self, DwarfCursor* cursor) noexcept nogil:
        cdef uint8_t encoding = <uint8_t>dwarf_fixed(cursor, 1)
        if encoding != DW_EH_PE_omit:
            dwarf_encoded(cursor, encoding & 0x0F, 0)

    cdef Cie* _cie_at(self, uint32_t place) noexcept nogil:
        """Entries are in the order of their places: a function's CIE stands before it."""
        cdef size_t low = 0, high = self.cies.used, middle
        while low < high:
            middle = low + (high - low) // 2
            if self.cies.items[middle].place < place:
                low = middle + 1
            else:
                high = middle
        if low < self.cies.used and self.cies.items[low].place == place and self.cies.items[low].usable:
            return &self.cies.items[low]
        return NULL

    cdef const char* _read_fde(self, DwarfCursor* cursor, uint32_t cie_place) noexcept nogil:
        cdef Cie* cie = self._cie_at(cie_place)
        cdef Fde* fde
        cdef uint64_t start, length
        if cie == NULL:
            self.broken += 1
            return NULL
        start = dwarf_encoded(cursor, cie.encoding, self.section_vaddr)
        length = dwarf_encoded(cursor, cie.encoding & 0x0F, 0)
        if cie.has_augmentation:
            dwarf_skip(cursor, dwarf_uleb(cursor))
        # Functions that the linker removed are left at address 0, or where no code is.
        if cursor.broken or length == 0 or start < self.base or start >= self.limit or length > self.limit - start:
            self.broken += cursor.broken
            return NULL
        if not zs_try_reserve(&self.fdes, 1):
            return "there is no memory for its functions"
        fde = &self.fdes.items[self.fdes.used]
        self.fdes.used += 1
        fde.start, fde.length = <uint32_t>(start - self.base), <uint32_t>length
        fde.cie = <uint32_t>(cie - self.cies.items)
        fde.program, fde.end = <uint32_t>cursor.at, <uint32_t>cursor.end
        return NULL

    # --- rows ----------------------------------------------------------------------------------------------------------

    cdef const char* _make_rows(self):
        cdef size_t i
        cdef DwarfCursor cursor
        cdef Fde* fde
        cdef uint64_t behind = 0
        cdef FrameRule unknown
        memset(&unknown, 0, sizeof(FrameRule))
        if self.fdes.used:
            qsort(self.fdes.items, self.fdes.used, sizeof(Fde), fde_order)
        for i in range(self.fdes.used):
            fde = &self.fdes.items[i]
            if fde.start < behind:       # two entries for one place: the first holds
                self.broken += 1
                continue
            if fde.start > behind and i and not self._add_row(<uint32_t>behind, &unknown):
                return "its table of frames is larger than may be kept"
            cursor.base, cursor.at, cursor.end, cursor.broken = self.section, fde.program, fde.end, False
            if not self._run(&cursor, &self.cies.items[fde.cie], fde, fde.length):
                return "its table of frames is larger than may be kept"
            self.broken += cursor.broken
            behind = <uint64_t>fde.start + fde.length
            self.functions += 1
        if self.fdes.used and behind <= <uint64_t>0xFFFFFFFF and not self._add_row(<uint32_t>behind, &unknown):
            return "its table of frames is larger than may be kept"
        zs_shrink(&self.rows)
        zs_shrink(&self.rules)
        return NULL

    cdef bint _add_row(self, uint32_t start, const FrameRule* rule) noexcept nogil:
        cdef int64_t number = self._number(rule)
        cdef FrameRow* last
        if number < 0:
            return False
        if self.rows.used:
            last = &self.rows.items[self.rows.used - 1]
            if last.rule == number:
                return True
            if last.start == start:      # nothing lies between them
                last.rule = <uint32_t>number
                return True
        if self.rows.used >= self.max_rows or not zs_try_reserve(&self.rows, 1):
            return False
        self.rows.items[self.rows.used] = FrameRow(start=start, rule=<uint32_t>number)
        self.rows.used += 1
        return True

    cdef int64_t _number(self, const FrameRule* rule) noexcept nogil:
        """The number of a rule; -1: there is no memory for another one."""
        cdef uint64_t hash = zs_hash_bytes(rule, sizeof(FrameRule), 0)
        cdef size_t at = hash
        cdef uint32_t number = zs_probe(&self.rule_numbers, hash, &at)
        while number and memcmp(&self.rules.items[number - 1], rule, sizeof(FrameRule)) != 0:
            number = zs_probe(&self.rule_numbers, hash, &at)
        if number:
            return number - 1
        if not zs_try_reserve(&self.rules, 1):
            return -1
        self.rules.items[self.rules.used] = rule[0]
        self.rules.used += 1
        with gil:
            try:
                zs_insert(&self.rule_numbers, at, hash, <uint32_t>self.rules.used)
            except MemoryError:
                return -1
        return <int64_t>self.rules.used - 1

    cdef bint _run(self, DwarfCursor* cursor, Cie* cie, const Fde* fde, uint64_t length) noexcept nogil:
        """Runs a program: that of a CIE into its rule, that of a function into rows. False: no room for a row."""
        cdef FrameRule rule = cie.rule
        cdef FrameRule remembered[EH_MAX_REMEMBERED]
        cdef uint32_t depth = 0
        cdef uint64_t at = 0, next_at
        cdef uint8_t op
        if fde != NULL and rule.cfa == CFA_SIGNAL:
            return self._add_row(fde.start, &rule)
        while cursor.at < cursor.end and not cursor.broken:
            op = <uint8_t>dwarf_fixed(cursor, 1)
            if op == DW_CFA_remember_state:
                if depth == EH_MAX_REMEMBERED:
                    cursor.broken = True
                else:
                    remembered[depth] = rule
                    depth += 1
                continue
            if op == DW_CFA_restore_state:
                if depth == 0:
                    cursor.broken = True
                else:
                    depth -= 1
                    rule = remembered[depth]
                continue
            next_at = self._advanced(cursor, cie, fde, op, at)
            if next_at == at or fde == NULL:
                if next_at == at and op & 0xC0 != DW_CFA_advance_loc and not (DW_CFA_set_loc <= op <= DW_CFA_advance_loc4):
                    self._change(cursor, cie, &rule, op)
                continue
            if next_at < at or next_at >= length:
                break
            if not self._add_row(fde.start + <uint32_t>at, &rule):
                return False
            at = next_at
        if cursor.broken:
            rule.cfa = CFA_UNSUPPORTED
        if fde == NULL:
            cie.rule = rule
            return True
        return self._add_row(fde.start + <uint32_t>at, &rule)

    cdef uint64_t _advanced(self, DwarfCursor* cursor, const Cie* cie, const Fde* fde, uint8_t op, uint64_t at) noexcept nogil:
        """From which byte of the function on what follows holds."""
        cdef uint64_t start
        if op & 0xC0 == DW_CFA_advance_loc:
            return at + (op & 0x3F) * cie.code_step
        if op == DW_CFA_advance_loc1:
            return at + dwarf_fixed(cursor, 1) * cie.code_step
        if op == DW_CFA_advance_loc2:
            return at + dwarf_fixed(cursor, 2) * cie.code_step
        if op == DW_CFA_advance_loc4:
            return at + dwarf_fixed(cursor, 4) * cie.code_step
        if op == DW_CFA_set_loc:
            start = dwarf_encoded(cursor, cie.encoding, self.section_vaddr) - self.base
            return start - fde.start if fde != NULL and start >= fde.start else at
        return at

    cdef void _change(self, DwarfCursor* cursor, const Cie* cie, FrameRule* rule, uint8_t op) noexcept nogil:
        cdef uint64_t register_ = 0
        cdef int64_t offset = 0
        cdef uint8_t low = op & 0x3F
        if op & 0xC0 == DW_CFA_offset:
            self._saved(rule, low, SAVED_AT, stack_offset(<int64_t>dwarf_uleb(cursor), cie.data_step))
        elif op & 0xC0 == DW_CFA_restore:
            self._restored(rule, &cie.rule, low)
        elif op == DW_CFA_nop:
            pass
        elif op == DW_CFA_def_cfa or op == DW_CFA_def_cfa_sf:
            register_ = dwarf_uleb(cursor)
            if op == DW_CFA_def_cfa:
                offset = <int64_t>dwarf_uleb(cursor)
            else:
                offset = stack_offset(dwarf_sleb(cursor), cie.data_step)
            self._define(rule, CFA_REGISTER, register_, offset)
        elif op == DW_CFA_def_cfa_register:
            self._define(rule, CFA_REGISTER, dwarf_uleb(cursor), rule.cfa_offset)
        elif op == DW_CFA_def_cfa_offset:
            self._define(rule, rule.cfa, rule.cfa_register, <int64_t>dwarf_uleb(cursor))
        elif op == DW_CFA_def_cfa_offset_sf:
            self._define(rule, rule.cfa, rule.cfa_register, stack_offset(dwarf_sleb(cursor), cie.data_step))
        elif op == DW_CFA_def_cfa_expression:
            self._expression(cursor, rule)
        elif op == DW_CFA_offset_extended:
            register_ = dwarf_uleb(cursor)
            self._saved(rule, register_, SAVED_AT, stack_offset(<int64_t>dwarf_uleb(cursor), cie.data_step))
        elif op == DW_CFA_offset_extended_sf:
            register_ = dwarf_uleb(cursor)
            self._saved(rule, register_, SAVED_AT, stack_offset(dwarf_sleb(cursor), cie.data_step))
        elif op == DW_CFA_GNU_negative_offset_extended:
            register_ = dwarf_uleb(cursor)
            self._saved(rule, register_, SAVED_AT, -stack_offset(<int64_t>dwarf_uleb(cursor), cie.data_step))
        elif op == DW_CFA_restore_extended:
            self._restored(rule, &cie.rule, dwarf_uleb(cursor))
        elif op == DW_CFA_undefined:
            self._saved(rule, dwarf_uleb(cursor), SAVED_UNDEFINED, 0)
        elif op == DW_CFA_same_value:
            self._saved(rule, dwarf_uleb(cursor), SAVED_NOWHERE, 0)
        elif op == DW_CFA_register:
            register_ = dwarf_uleb(cursor)
            dwarf_uleb(cursor)
            self._saved(rule, register_, SAVED_UNSUPPORTED, 0)
        elif op == DW_CFA_val_offset or op == DW_CFA_val_offset_sf:
            register_ = dwarf_uleb(cursor)
            dwarf_uleb(cursor)
            self._saved(rule, register_, SAVED_UNSUPPORTED, 0)
        elif op == DW_CFA_expression or op == DW_CFA_val_expression:
            register_ = dwarf_uleb(cursor)
            self._saved_by_expression(cursor, rule, register_, op)
        elif op == DW_CFA_GNU_args_size:
            dwarf_uleb(cursor)
        else:
            cursor.broken = True

    cdef void _define(self, FrameRule* rule, uint8_t cfa, uint64_t register_, int64_t offset) noexcept nogil:
        if register_ > 15 or offset != <int32_t>offset or (cfa != CFA_REGISTER and cfa != CFA_UNKNOWN):
            cfa = CFA_UNSUPPORTED
        elif cfa == CFA_UNKNOWN:
            cfa = CFA_REGISTER
        rule.cfa, rule.cfa_register, rule.cfa_offset = cfa, <uint8_t>(register_ & 15), <int32_t>offset

    cdef void _saved(self, FrameRule* rule, uint64_t register_, uint8_t how, int64_t offset) noexcept nogil:
        if offset != <int32_t>offset:
            how, offset = SAVED_UNSUPPORTED, 0
        if register_ == DWARF_RETURN:
            rule.ra, rule.ra_offset = how, <int32_t>offset
        elif register_ == DWARF_RBP:
            rule.bp, rule.bp_offset = how, <int32_t>offset

    cdef void _restored(self, FrameRule* rule, const FrameRule* at_first, uint64_t register_) noexcept nogil:
        if register_ == DWARF_RETURN:
            rule.ra, rule.ra_offset = at_first.ra, at_first.ra_offset
        elif register_ == DWARF_RBP:
            rule.bp, rule.bp_offset = at_first.bp, at_first.bp_offset

    cdef void _expression(self, DwarfCursor* cursor, FrameRule* rule) noexcept nogil:
        """Two forms are written by compilers and linkers: a stack that was aligned, and the slots of a PLT."""
        cdef uint64_t size = dwarf_uleb(cursor)
        cdef DwarfCursor inside = cursor[0]
        cdef int64_t offset
        cdef uint8_t op
        rule.cfa, rule.cfa_offset, rule.cfa_register = CFA_UNSUPPORTED, 0, 0
        dwarf_skip(cursor, size)
        if cursor.broken:
            return
        inside.end = cursor.at
        op = <uint8_t>dwarf_fixed(&inside, 1)
        if not 0x70 <= op < 0x80:                # DW_OP_breg0 to breg15
            return
        offset = dwarf_sleb(&inside)
        if inside.broken or offset != <int32_t>offset:
            return
        if inside.end - inside.at == 1 and inside.base[inside.at] == 0x06:       # DW_OP_deref
            rule.cfa, rule.cfa_register, rule.cfa_offset = CFA_STORED, op - 0x70, <int32_t>offset
        # rsp + 8 + ((rip & 15) >= N) * 8: breg16 0, lit15, and, litN, ge, lit3, shl, plus
        elif op == 0x77 and offset == 8 and inside.end - inside.at == 9 and (
            memcmp(inside.base + inside.at, b"\x80\x00\x3f\x1a", 4) == 0
            and memcmp(inside.base + inside.at + 5, b"\x2a\x33\x24\x22", 4) == 0
            and 0x30 <= inside.base[inside.at + 4] < 0x50
        ):
            rule.cfa, rule.cfa_offset = CFA_PLT, inside.base[inside.at + 4] - 0x30

    cdef void _saved_by_expression(self, DwarfCursor* cursor, FrameRule* rule, uint64_t register_, uint8_t op) noexcept nogil:
        """DW_CFA_expression rbp: breg6 0 is how a function with an aligned stack says that rbp points at the saved one."""
        cdef uint64_t size = dwarf_uleb(cursor)
        cdef size_t at = cursor.at
        dwarf_skip(cursor, size)
        if not cursor.broken and op == DW_CFA_expression and register_ == DWARF_RBP and size == 2 and (
            cursor.base[at] == 0x76 and cursor.base[at + 1] == 0
        ):
            rule.bp, rule.bp_offset = SAVED_AT_RBP, 0
        else:
            self._saved(rule, register_, SAVED_UNSUPPORTED, 0)

    # --- asking --------------------------------------------------------------------------------------------------------

    cdef const FrameRule* _find(self, uint64_t vaddr) noexcept nogil:
        """The rule that holds at an address, or NULL."""
        cdef size_t low = 0, high = self.rows.used, middle
        cdef uint64_t at = vaddr - self.base
        if vaddr < self.base or vaddr >= self.limit:
            return NULL
        while low < high:
            middle = low + (high - low) // 2
            if self.rows.items[middle].start <= at:
                low = middle + 1
            else:
                high = middle
        return &self.rules.items[self.rows.items[low - 1].rule] if low else NULL

    def rule(self, uint64_t vaddr):
        """(kind, register, CFA offset, return address, its offset, rbp, its offset) at an address; None: no function."""
        cdef const FrameRule* rule = self._find(vaddr)
        if rule == NULL or rule.cfa == CFA_UNKNOWN:
            return None
        return (
            CFA_KINDS[rule.cfa], rule.cfa_register, rule.cfa_offset, SAVED_KINDS[rule.ra], rule.ra_offset,
            SAVED_KINDS[rule.bp], rule.bp_offset,
        )

    def __len__(self):
        return self.rows.used

    @property
    def nbytes(self):
        """Bytes of memory this table holds."""
        return (
            object.__sizeof__(self) + self.rows.room * sizeof(FrameRow) + self.rules.room * sizeof(FrameRule)
            + zs_table_bytes(&self.rule_numbers)
        )


CFA_KINDS = ("unknown", "register", "stored", "plt", "signal", "unsupported")
SAVED_KINDS = ("same", "at", "undefined", "unsupported", "at rbp")
