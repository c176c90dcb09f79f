# Functions of Go programs by their pclntab, the table that the Go runtime itself needs for its stack traces: it is
# there in stripped programs too.
#
# Four layouts, told apart by the magic number: Go 1.2 (0xfffffffb), 1.16 (0xfffffffa), 1.18 (0xfffffff0) and 1.20
# (0xfffffff1, laid out as 1.18). A header of counts and offsets; `functab`, pairs (address, offset of the function's
# record) in order of address and one closing address; records, of which only the offset of the name is used; names.
# Memory holds address, size and record of each function, as for other symbols; records and names stay in the file.
#
# Since 1.18 addresses count from the start of Go's code. The header gave that until 1.25 (in position-independent
# programs of an external linker only as a relocation); since 1.26 only the runtime's moduledata knows it. It is not
# the start of .text where C code was linked in. Before 1.18 functab has whole addresses, and in position-independent
# programs of an external linker the loader writes them: there they are read from its relocations.

from libc.stdlib cimport calloc

cdef class SymbolTable(ElfProgram)

cdef enum:
    GO_MAX_FUNCTIONS = 1 << 24
    GO_MAX_SCAN_BYTES = 256 << 20
    GO_MAX_CANDIDATES = 256  # headers and moduledata that look right from outside; a program has one of each
    GO_RANK = 3  # of symbols from here: another table's name for the same address goes first
    GO_MODULEDATA_MINPC = 20  # words in moduledata before this one, since 1.18
    GO_MODULEDATA_TEXT = 22
    GO_MAX_MODULEDATA = 8

cdef struct GoFunctions:
    uint64_t start, end, vaddr  # of the pclntab, in the file and in memory
    uint64_t functab, records, names  # in the file
    uint64_t count, text, first
    uint32_t pointer, field  # sizes of a pointer and of a number in functab
    bint relative  # addresses count from text


cdef uint64_t go_number(const uint8_t* raw, uint32_t size) noexcept nogil:
    cdef uint64_t wide
    cdef uint32_t narrow
    if size == 8:
        memcpy(&wide, raw, 8)
        return wide
    memcpy(&narrow, raw, 4)
    return narrow


cdef bint go_magic(const uint8_t* raw) noexcept nogil:
    # The magic in this machine's byte order, two zeros, the unit of instructions, the size of a pointer.
    cdef uint64_t magic = go_number(raw, 4)
    if magic != <uint64_t>0xFFFFFFFB and magic != <uint64_t>0xFFFFFFFA and magic != <uint64_t>0xFFFFFFF0 and magic != <uint64_t>0xFFFFFFF1:
        return False
    if raw[4] != 0 or raw[5] != 0 or (raw[6] != 1 and raw[6] != 2 and raw[6] != 4):
        return False
    return raw[7] == 4 or raw[7] == 8


cdef bint go_header(const ElfSource* source, uint64_t start, uint64_t end, GoFunctions* out) noexcept nogil:
    # Fills `out` from the header at `start`; false when it is none, or one that lies.
    cdef uint8_t raw[8 + 8 * 8]
    cdef uint64_t words[8]
    cdef uint64_t magic, room, size
    cdef uint32_t i
    if end < start or end - start < sizeof(raw) or elf_read(source, start, raw, sizeof(raw)) != NULL:
        return False
    if not go_magic(raw):
        return False
    magic, room = go_number(raw, 4), end - start
    out.start, out.end, out.pointer = start, end, raw[7]
    for i in range(8):
        words[i] = go_number(raw + 8 + i * out.pointer, out.pointer)
    out.count, out.text, out.relative, out.field = words[0], 0, False, out.pointer
    if magic == <uint64_t>0xFFFFFFFB:
        out.functab, out.records, out.names = 8 + out.pointer, 0, 0
    elif magic == <uint64_t>0xFFFFFFFA:
        out.functab, out.records, out.names = words[6], words[6], words[2]
    else:
        out.functab, out.records, out.names = words[7], words[7], words[3]
        out.text, out.relative, out.field = words[2], True, 4
    if out.count == 0 or out.count > GO_MAX_FUNCTIONS or out.functab > room or out.names > room:
        return False
    size = (out.count * 2 + 1) * out.field
    if size > room - out.functab:
        return False
    out.functab, out.records, out.names = start + out.functab, start + out.records, start + out.names
    if elf_read(source, out.functab, raw, out.field) != NULL:
        return False
    out.first = go_number(raw, out.field)
    return True


cdef bint go_find(SymbolTable table, GoFunctions* out) noexcept nogil:
    # In its own section; by its magic where an external linker put it into another, or where no section is known.
    cdef ElfExtent* section = &table.named[ELF_GOPCLNTAB]
    cdef uint32_t i, candidates = GO_MAX_CANDIDATES
    cdef uint64_t left = GO_MAX_SCAN_BYTES, end
    if section.size and go_header(&table.source, section.offset, section.offset + section.size, out):
        return go_place(table, out)
    if table.header.shnum and table.named[ELF_GO_MARK].size == 0:
        return False
    for i in range(table.load_count):
        end = table.loads[i].offset + min(table.loads[i].file_size, left)
        left -= end - table.loads[i].offset
        if go_scan(table, table.loads[i].offset, end, out, &candidates) and go_place(table, out):
            return True
    return False


cdef bint go_place(SymbolTable table, GoFunctions* out) noexcept nogil:
    cdef uint32_t i
    for i in range(table.load_count):
        if table.loads[i].offset <= out.start and out.start - table.loads[i].offset < table.loads[i].file_size:
            out.vaddr = table.loads[i].vaddr + (out.start - table.loads[i].offset)
            return True
    return not out.relative


cdef bint go_scan(
    SymbolTable table, uint64_t at, uint64_t end, GoFunctions* out, uint32_t* candidates
) noexcept nogil:
    cdef uint64_t size, i
    cdef uint8_t* buffer = table.cursor.buffer
    at = (at + 3) // 4 * 4
    while at + 8 <= end:
        size = min(end - at, <uint64_t>ELF_READ_BYTES)
        if elf_read(&table.source, at, buffer, size) != NULL:
            return False
        i = 0
        while i + 8 <= size:
            if go_magic(buffer + i):
                if candidates[0] == 0:
                    return False
                candidates[0] -= 1
                if go_header(&table.source, at + i, end, out):
                    return True
            i += 4
        at += max(size - 4, <uint64_t>4) // 4 * 4
    return False


cdef bint go_text(SymbolTable table, GoFunctions* go) noexcept nogil:
    # Where Go's code starts.
    cdef uint64_t moduledata[GO_MAX_MODULEDATA]
    cdef uint32_t count = 0, i
    if not go.relative or table._segment_end(go.text):
        return True
    if go.pointer == 8 and go_relocated(table, go, go.vaddr + 8 + 2 * go.pointer, &go.text):
        return True
    if go_text_in_data(table, go):
        return True
    if go.pointer == 8:
        count = go_relocated_to(table, go.vaddr, moduledata)
    for i in range(count):
        if moduledata[i] <= (<uint64_t>-1) - GO_MODULEDATA_TEXT * go.pointer:
            if go_relocated(table, go, moduledata[i] + GO_MODULEDATA_TEXT * go.pointer, &go.text):
                return True
    return False


cdef bint go_relocated(SymbolTable table, const GoFunctions* go, uint64_t where, uint64_t* out) noexcept nogil:
    # The address of code that the loader will write to `where`.
    cdef const uint8_t* entry
    cdef uint64_t value
    cdef uint32_t i
    for i in range(table.rela_count):
        elf_rewind(&table.cursor, table.relas[i].offset, table.relas[i].size // 24, 24)
        entry = elf_next(&table.cursor)
        while entry != NULL:
            if go_number(entry, 8) == where:
                value = go_number(entry + 16, 8)
                if table._segment_end(value):
                    out[0] = value
                    return True
            entry = elf_next(&table.cursor)
    return False


cdef uint32_t go_relocated_to(SymbolTable table, uint64_t value, uint64_t* out) noexcept nogil:
    # Where the loader will write this address.
    cdef const uint8_t* entry
    cdef uint32_t i, count = 0
    for i in range(table.rela_count):
        elf_rewind(&table.cursor, table.relas[i].offset, table.relas[i].size // 24, 24)
        entry = elf_next(&table.cursor)
        while entry != NULL:
            if go_number(entry + 16, 8) == value and count < GO_MAX_MODULEDATA:
                out[count] = go_number(entry, 8)
                count += 1
            entry = elf_next(&table.cursor)
    return count


cdef bint go_text_in_data(SymbolTable table, GoFunctions* go) noexcept nogil:
    # moduledata begins with a pointer to the pclntab; it is believed if its own words fit the table.
    cdef const uint8_t* word
    cdef uint64_t at, left = GO_MAX_SCAN_BYTES
    cdef uint32_t i, candidates = GO_MAX_CANDIDATES
    for i in range(table.load_count):
        if not table.loads[i].writable:
            continue
        at = table.loads[i].offset
        elf_rewind(&table.cursor, at, min(table.loads[i].file_size, left) // go.pointer, go.pointer)
        left -= min(table.loads[i].file_size, left)
        word = elf_next(&table.cursor)
        while word != NULL:
            if go_number(word, go.pointer) == go.vaddr:
                if candidates == 0:
                    return False
                candidates -= 1
                if go_moduledata(table, go, at):
                    return True
            at += go.pointer
            word = elf_next(&table.cursor)
    return False


cdef bint go_moduledata(SymbolTable table, GoFunctions* go, uint64_t at) noexcept nogil:
    cdef uint8_t raw[24]
    cdef uint64_t minpc, text
    if elf_read(&table.source, at + GO_MODULEDATA_MINPC * go.pointer, raw, 3 * go.pointer) != NULL:
        return False
    minpc, text = go_number(raw, go.pointer), go_number(raw + 2 * go.pointer, go.pointer)
    if table._segment_end(text) == 0 or text + go.first != minpc:
        return False
    go.text = text
    return True


cdef const char* go_load(SymbolTable table, uint32_t max_symbols) noexcept nogil:
    # Adds the functions to the table's symbols. Not understanding the table is a fault only where nothing else is
    # known of the file.
    cdef GoFunctions* go = &table.go
    cdef uint8_t raw[8]
    cdef size_t before = table.symbols.used
    cdef const char* fault
    if not go_find(table, go):
        go.count = 0
        if table.named[ELF_GOPCLNTAB].size and before == 0:
            return "its table of Go functions is of an unknown kind"
        return NULL
    fault = "it does not say where its Go code starts"
    if go_text(table, go):
        fault = elf_read(&table.source, go.functab + go.count * 2 * go.field, raw, go.field)
    if fault == NULL and not go.relative and go.first == 0:
        fault = go_add_relocated(table, go, max_symbols)
    elif fault == NULL:
        fault = go_add_all(table, go, go_number(raw, go.field), NULL, max_symbols)
    if fault != NULL:
        table.symbols.used, go.count = before, 0
        return fault if before == 0 else NULL
    return NULL


cdef const char* go_add_relocated(SymbolTable table, GoFunctions* go, uint32_t max_symbols) noexcept nogil:
    cdef uint64_t first = go.vaddr + (go.functab - go.start), at
    cdef uint64_t* addresses
    cdef const uint8_t* entry
    cdef const char* fault
    cdef uint32_t i
    if go.pointer != 8 or go.count > max_symbols:
        return "it has more functions than the cache of symbols may hold"
    addresses = <uint64_t*>calloc(go.count + 1, sizeof(uint64_t))
    if addresses == NULL:
        return "there is no memory for its functions"
    for i in range(table.rela_count):
        elf_rewind(&table.cursor, table.relas[i].offset, table.relas[i].size // 24, 24)
        entry = elf_next(&table.cursor)
        while entry != NULL:
            at = go_number(entry, 8)
            if at >= first and (at - first) % 16 == 0 and (at - first) // 16 <= go.count:
                addresses[(at - first) // 16] = go_number(entry + 16, 8)
            entry = elf_next(&table.cursor)
    fault = go_add_all(table, go, addresses[go.count], addresses, max_symbols)
    free(addresses)
    return fault


cdef const char* go_add_all(
    SymbolTable table, GoFunctions* go, uint64_t closing, const uint64_t* addresses, uint32_t max_symbols
) noexcept nogil:
    # `addresses` are those of the functions where the file has only room for them.
    cdef const uint8_t* entry
    cdef uint64_t address, record, next_address, i = 0
    cdef const char* fault
    elf_rewind(&table.cursor, go.functab, go.count, 2 * go.field)
    entry = elf_next(&table.cursor)
    while entry != NULL:
        address = go_number(entry, go.field) if addresses == NULL else addresses[i]
        record = go_number(entry + go.field, go.field)
        entry = elf_next(&table.cursor)
        i += 1
        if entry == NULL:
            next_address = closing
        else:
            next_address = go_number(entry, go.field) if addresses == NULL else addresses[i]
        if table.cursor.fault == NULL and next_address < address:
            return "its Go functions are not in order of address"
        fault = go_add(table, address + (go.text if go.relative else 0), next_address - address, record, max_symbols)
        if fault != NULL:
            return fault
    return table.cursor.fault


cdef const char* go_add(
    SymbolTable table, uint64_t address, uint64_t size, uint64_t record, uint32_t max_symbols
) noexcept nogil:
    cdef uint64_t end = table._segment_end(address)
    cdef ElfSymbol symbol
    if end == 0 or size == 0 or record > ELF_NAME_MASK:
        return NULL
    symbol.start = <uint32_t>(address - table.base)
    symbol.size = <uint32_t>min(size, end - address)
    symbol.name = <uint32_t>GO_RANK << ELF_RANK_SHIFT | <uint32_t>record
    return table._add(symbol, max_symbols)


cdef bytes go_name(SymbolTable table, uint32_t word, int fd):
    # A record starts with the function's address (as functab has it) and the offset of its name, four bytes.
    cdef ElfSource source = table.source
    cdef GoFunctions* go = &table.go
    cdef uint8_t raw[4]
    cdef uint8_t buffer[ELF_MAX_NAME_BYTES]
    cdef uint64_t at, room, got = 0
    source.fd = fd
    with nogil:
        at = go.records + (word & ELF_NAME_MASK) + go.field
        if at <= go.end and go.end - at >= 4 and elf_read(&source, at, raw, 4) == NULL:
            at = go.names + go_number(raw, 4)
            if at < go.end:
                room = min(go.end - at, <uint64_t>ELF_MAX_NAME_BYTES)
                if source.image != NULL:
                    memcpy(buffer, source.image + at, room)
                    got = room
                else:
                    got = elf_pull_name(fd, at, buffer, room)
    return elf_bounded(buffer, got)
