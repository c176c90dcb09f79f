# The sections of an ELF file that a table of symbols wants: symbol tables, notes, code, relocations, and five by name.
#
# A file may have none, or names that lead nowhere: then it is read by its segments alone.

from libc.string cimport strcmp


cdef enum:
    ELF_MAX_SECTION_NAMES_BYTES = 1 << 20
    ELF_MAX_RELA_BYTES = 128 << 20
    SHT_X86_64_UNWIND = 0x70000001  # .eh_frame, as LLVM's linker marks it; GNU's says PROGBITS


cdef bint elf_text(const char* text, const char* expected) noexcept nogil:
    return strcmp(text, expected) == 0


cdef const char* elf_sections(ElfProgram program) noexcept nogil:
    cdef uint64_t size = 0
    cdef uint8_t* names
    cdef const char* fault
    if program.header.shnum == 0:
        return NULL
    names = elf_section_names(program, &size)
    fault = elf_each_section(program, names, size)
    free(names)
    return fault


cdef uint8_t* elf_section_names(ElfProgram program, uint64_t* size) noexcept nogil:
    # NULL when they cannot be had: then no section is known by its name.
    cdef ElfSection section
    cdef uint8_t* names
    if program.header.shstrndx == SHN_UNDEF or program.header.shstrndx >= program.header.shnum:
        return NULL
    if elf_section(&program.source, &program.header, program.header.shstrndx, &section) != NULL:
        return NULL
    if section.kind != SHT_STRTAB or section.size == 0 or section.size > ELF_MAX_SECTION_NAMES_BYTES:
        return NULL
    names = <uint8_t*>malloc(section.size)
    if names == NULL or elf_read(&program.source, section.offset, names, section.size) != NULL:
        free(names)
        return NULL
    names[section.size - 1] = 0
    size[0] = section.size
    return names


cdef void elf_note_name(ElfProgram program, const ElfSection* section, const char* name) noexcept nogil:
    cdef int which = -1
    if elf_text(name, b".gopclntab") or elf_text(name, b".data.rel.ro.gopclntab"):
        which = ELF_GOPCLNTAB
    elif elf_text(name, b".go.buildinfo") or elf_text(name, b".note.go.buildid"):
        which = ELF_GO_MARK
    elif elf_text(name, b".gnu_debugdata"):
        which = ELF_DEBUGDATA
    elif elf_text(name, b".gnu_debuglink"):
        which = ELF_DEBUGLINK
    elif elf_text(name, b".eh_frame"):
        which = ELF_EH_FRAME
    if which < 0 or section.offset > program.source.size or section.size > program.source.size - section.offset:
        return
    program.named[which].offset, program.named[which].size = section.offset, section.size


cdef const char* elf_each_section(ElfProgram program, const uint8_t* names, uint64_t names_size) noexcept nogil:
    cdef ElfSection section
    cdef const uint8_t* raw
    elf_rewind(&program.cursor, program.header.shoff, program.header.shnum, program.header.shentsize)
    raw = elf_next(&program.cursor)
    while raw != NULL:
        elf_section_from(raw, program.header.wide, &section)
        if names != NULL and section.name < names_size and (
            section.kind == SHT_PROGBITS or section.kind == SHT_NOTE or section.kind == SHT_X86_64_UNWIND
        ):
            elf_note_name(program, &section, <const char*>names + section.name)
        if section.kind == SHT_RELA and program.rela_count < ELF_MAX_RELAS and section.size <= ELF_MAX_RELA_BYTES:
            program.relas[program.rela_count].offset = section.offset
            program.relas[program.rela_count].size = section.size
            program.rela_count += 1
        if section.kind == SHT_SYMTAB:
            program.tables[0] = section
        elif section.kind == SHT_DYNSYM:
            program.tables[1] = section
        elif section.kind == SHT_NOTE and program.id_size == 0 and section.size <= ELF_NOTE_BYTES:
            # Read apart from the cursor's buffer, which still holds section headers.
            elf_section_note(program, &section)
        elif section.flags & SHF_EXECINSTR and program.section_count < ELF_MAX_SECTIONS:
            program.sections[program.section_count].offset = section.addr
            program.sections[program.section_count].size = section.size
            program.section_count += 1
        raw = elf_next(&program.cursor)
    return program.cursor.fault


cdef void elf_section_note(ElfProgram program, const ElfSection* section) noexcept nogil:
    cdef uint8_t* buffer = <uint8_t*>malloc(section.size + 1)
    if buffer != NULL:
        program.id_size = elf_note_at(&program.source, buffer, section.offset, section.size, 4, program.id_bytes)
        free(buffer)
