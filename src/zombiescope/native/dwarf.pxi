# Numbers as DWARF writes them: of fixed size, of variable length (LEB128), and encoded pointers; and the names of what an
# .eh_frame may say. A cursor never leaves what it was given: it gives 0 then, and says that it is broken.

cdef enum:
    DW_EH_PE_omit = 0xFF
    DW_EH_PE_indirect = 0x80
    DW_CFA_advance_loc = 0x40
    DW_CFA_offset = 0x80
    DW_CFA_restore = 0xC0
    DW_CFA_nop = 0x00
    DW_CFA_set_loc = 0x01
    DW_CFA_advance_loc1 = 0x02
    DW_CFA_advance_loc2 = 0x03
    DW_CFA_advance_loc4 = 0x04
    DW_CFA_offset_extended = 0x05
    DW_CFA_restore_extended = 0x06
    DW_CFA_undefined = 0x07
    DW_CFA_same_value = 0x08
    DW_CFA_register = 0x09
    DW_CFA_remember_state = 0x0A
    DW_CFA_restore_state = 0x0B
    DW_CFA_def_cfa = 0x0C
    DW_CFA_def_cfa_register = 0x0D
    DW_CFA_def_cfa_offset = 0x0E
    DW_CFA_def_cfa_expression = 0x0F
    DW_CFA_expression = 0x10
    DW_CFA_offset_extended_sf = 0x11
    DW_CFA_def_cfa_sf = 0x12
    DW_CFA_def_cfa_offset_sf = 0x13
    DW_CFA_val_offset = 0x14
    DW_CFA_val_offset_sf = 0x15
    DW_CFA_val_expression = 0x16
    DW_CFA_GNU_args_size = 0x2E
    DW_CFA_GNU_negative_offset_extended = 0x2F
    # Registers by their numbers in DWARF
    DWARF_RBP = 6
    DWARF_RSP = 7
    DWARF_RETURN = 16

cdef struct DwarfCursor:
    const uint8_t* base
    size_t at, end
    bint broken           # more was asked for than there is


cdef inline uint64_t dwarf_fixed(DwarfCursor* cursor, size_t size) noexcept nogil:
    cdef uint64_t value = 0
    if cursor.end - cursor.at < size:
        cursor.broken = True
        cursor.at = cursor.end
        return 0
    memcpy(&value, cursor.base + cursor.at, size)
    cursor.at += size
    return value


cdef uint64_t dwarf_uleb(DwarfCursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while cursor.at < cursor.end:
        byte = cursor.base[cursor.at]
        cursor.at += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value
    cursor.broken = True
    return 0


cdef int64_t dwarf_sleb(DwarfCursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while cursor.at < cursor.end:
        byte = cursor.base[cursor.at]
        cursor.at += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            if byte & 0x40 and shift < 64:
                value |= (<uint64_t>-1) << shift
            return <int64_t>value
    cursor.broken = True
    return 0


cdef void dwarf_skip(DwarfCursor* cursor, uint64_t size) noexcept nogil:
    if cursor.end - cursor.at < size:
        cursor.broken = True
        cursor.at = cursor.end
    else:
        cursor.at += <size_t>size


cdef uint64_t dwarf_encoded(DwarfCursor* cursor, uint8_t encoding, uint64_t section) noexcept nogil:
    """An address as DW_EH_PE_* says; `section` is where the section is loaded."""
    cdef uint64_t here = section + cursor.at, value = 0
    cdef uint8_t form = encoding & 0x0F
    if form == 0x00 or form == 0x04 or form == 0x0C:
        value = dwarf_fixed(cursor, 8)
    elif form == 0x01:
        value = dwarf_uleb(cursor)
    elif form == 0x02:
        value = dwarf_fixed(cursor, 2)
    elif form == 0x03:
        value = dwarf_fixed(cursor, 4)
    elif form == 0x09:
        value = <uint64_t>dwarf_sleb(cursor)
    elif form == 0x0A:
        value = <uint64_t><int64_t><int16_t>dwarf_fixed(cursor, 2)
    elif form == 0x0B:
        value = <uint64_t><int64_t><int32_t>dwarf_fixed(cursor, 4)
    else:
        cursor.broken = True
    if encoding & 0x70 == 0x10:          # counted from where it stands
        return value + here
    if encoding & 0xF0:                  # from somewhere else, or through a pointer: no compiler does that for code
        cursor.broken = True
    return value
