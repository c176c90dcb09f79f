# The sections of an ELF file that a table of symbols wants: symbol tables, notes, code, relocations, and four by name.
#
# A file may have none, or names that lead nowhere: then it is read by its segments alone.

from libc.stdlib cimport free, malloc
from libc.string cimport strcmp


cdef bint elf_text(const char* text, const char* expected) noexcept nogil:
    return strcmp(text, expected) == 0


cdef const char* elf_sections(SymbolTable table) noexcept nogil:
    cdef uint64_t size = 0
    cdef uint8_t* names
    cdef const char* fault
    if table.header.shnum == 0:
        return NULL
    names = elf_section_names(table, &size)
    fault = elf_each_section(table, names, size)
    free(names)
    return fault


cdef uint8_t* elf_section_names(SymbolTable table, uint64_t* size) noexcept nogil:
    # NULL when they cannot be had: then no section is known by its name.
    cdef ElfSection section
    cdef uint8_t* names
    if table.header.shstrndx == SHN_UNDEF or table.header.shstrndx >= table.header.shnum:
        return NULL
    if elf_section(&table.source, &table.header, table.header.shstrndx, &section) != NULL:
        return NULL
    if section.kind != SHT_STRTAB or section.size == 0 or section.size > ELF_MAX_SECTION_NAMES_BYTES:
        return NULL
    names = <uint8_t*>malloc(section.size)
    if names == NULL or elf_read(&table.source, section.offset, names, section.size) != NULL:
        free(names)
        return NULL
    names[section.size - 1] = 0
    size[0] = section.size
    return names


cdef void elf_note_name(SymbolTable table, const ElfSection* section, const char* name) noexcept nogil:
    cdef int which = -1
    if elf_text(name, b".gopclntab") or elf_text(name, b".data.rel.ro.gopclntab"):
        which = ELF_GOPCLNTAB
    elif elf_text(name, b".go.buildinfo") or elf_text(name, b".note.go.buildid"):
        which = ELF_GO_MARK
    elif elf_text(name, b".gnu_debugdata"):
        which = ELF_DEBUGDATA
    elif elf_text(name, b".gnu_debuglink"):
        which = ELF_DEBUGLINK
    if which < 0 or section.offset > table.source.size or section.size > table.source.size - section.offset:
        return
    table.named[which].offset, table.named[which].size = section.offset, section.size


cdef const char* elf_each_section(SymbolTable table, const uint8_t* names, uint64_t names_size) noexcept nogil:
    cdef ElfSection section
    cdef const uint8_t* raw
    elf_rewind(&table.cursor, table.header.shoff, table.header.shnum, table.header.shentsize)
    raw = elf_next(&table.cursor)
    while raw != NULL:
        elf_section_from(raw, table.header.wide, &section)
        if names != NULL and section.name < names_size and (
            section.kind == SHT_PROGBITS or section.kind == SHT_NOTE
        ):
            elf_note_name(table, &section, <const char*>names + section.name)
        if section.kind == SHT_RELA and table.rela_count < ELF_MAX_RELAS and section.size <= ELF_MAX_RELA_BYTES:
            table.relas[table.rela_count].offset = section.offset
            table.relas[table.rela_count].size = section.size
            table.rela_count += 1
        if section.kind == SHT_SYMTAB:
            table.tables[0] = section
        elif section.kind == SHT_DYNSYM:
            table.tables[1] = section
        elif section.kind == SHT_NOTE and table.id_size == 0 and section.size <= ELF_NOTE_BYTES:
            # Read apart from the cursor's buffer, which still holds section headers.
            elf_section_note(table, &section)
        elif section.flags & SHF_EXECINSTR and table.section_count < ELF_MAX_SECTIONS:
            table.sections[table.section_count].offset = section.addr
            table.sections[table.section_count].size = section.size
            table.section_count += 1
        raw = elf_next(&table.cursor)
    return table.cursor.fault


cdef void elf_section_note(SymbolTable table, const ElfSection* section) noexcept nogil:
    cdef uint8_t* buffer = <uint8_t*>malloc(section.size + 1)
    if buffer != NULL:
        table.id_size = elf_note_at(&table.source, buffer, section.offset, section.size, 4, table.id_bytes)
        free(buffer)
