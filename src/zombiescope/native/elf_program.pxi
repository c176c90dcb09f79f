# What an ELF file says of its program: which of it is code and at which addresses, its build id, and the sections that other
# readers want.

cdef enum:
    ELF_MAX_SEGMENTS = 8  # executable ones; linkers make one, or two with a separate .plt
    ELF_MAX_SECTIONS = 32  # executable ones; they only bound symbols that have no size
    ELF_MAX_LOADS = 16
    ELF_MAX_RELAS = 4
    # Sections known by name, as positions in ElfProgram.named.
    ELF_GOPCLNTAB = 0
    ELF_GO_MARK = 1
    ELF_DEBUGDATA = 2
    ELF_DEBUGLINK = 3
    ELF_EH_FRAME = 4
    ELF_NAMED = 5

cdef struct ElfSegment:
    uint64_t offset, file_size, vaddr, memory_size

cdef struct ElfLoad:
    uint64_t offset, file_size, vaddr
    bint writable

cdef struct ElfExtent:
    uint64_t offset, size


def elf_build_id(source):
    """The GNU build id of an open ELF file (a descriptor) or image (bytes): three or four small reads.

    None when the file has none; ElfError when it is not an ELF file.
    """
    cdef ElfProgram program = ElfProgram.__new__(ElfProgram)
    cdef const char* fault
    program._open(source)
    program.any_code = True
    with nogil:
        fault = elf_header(&program.source, &program.header)
        if fault == NULL:
            fault = program._segments_and_notes()
        if fault == NULL and program.id_size == 0:
            fault = elf_sections(program)
    program._finish(fault)
    return program.build_id


def elf_load_address(source):
    """The lowest address that the linker gave to a file: 0 in position-independent ones. ElfError as above."""
    cdef ElfProgram program = ElfProgram.__new__(ElfProgram)
    cdef const char* fault
    program._open(source)
    program.any_code = True
    with nogil:
        fault = elf_header(&program.source, &program.header)
        if fault == NULL:
            fault = program._segments_and_notes()
    program._finish(fault)
    return program.lowest if program.lowest != <uint64_t>-1 else 0


cdef class ElfProgram:
    cdef ElfSource source
    cdef uint64_t left_to_read
    cdef ElfHeader header
    cdef ElfCursor cursor
    cdef ElfSegment segments[ELF_MAX_SEGMENTS]
    cdef uint32_t segment_count
    cdef ElfExtent sections[ELF_MAX_SECTIONS]
    cdef uint32_t section_count
    cdef ElfSection tables[2]  # .symtab, .dynsym
    cdef ElfLoad loads[ELF_MAX_LOADS]
    cdef uint32_t load_count
    cdef ElfExtent named[ELF_NAMED]
    cdef ElfExtent relas[ELF_MAX_RELAS]
    cdef uint32_t rela_count
    cdef bint any_code  # segments of code are not looked at: for the build id alone, or taken from another file
    cdef uint64_t base, limit, lowest
    cdef uint8_t id_bytes[64]
    cdef int id_size
    cdef readonly bytes build_id
    cdef bytes image
    cdef bint opened

    def __dealloc__(self):
        free(self.cursor.buffer)

    cdef object _open(self, source):
        if self.opened:
            raise TypeError("a symbol table is read once")
        self.opened = True
        self.image = elf_source(source, &self.source)
        self.left_to_read = ELF_MAX_READ_BYTES
        if self.source.size < <uint64_t>ELF_MAX_READ_BYTES // ELF_TIMES_READ:
            self.left_to_read = min(
                self.source.size * ELF_TIMES_READ + ELF_ALWAYS_READ_BYTES, <uint64_t>ELF_MAX_READ_BYTES
            )
        self.source.left = &self.left_to_read
        self.cursor.source = &self.source
        self.cursor.buffer = <uint8_t*>malloc(ELF_READ_BYTES)
        if self.cursor.buffer == NULL:
            raise MemoryError

    cdef object _finish(self, const char* fault):
        free(self.cursor.buffer)
        self.cursor.buffer = NULL
        self.source.fd = -1  # the descriptor stays the caller's
        self.source.left = NULL
        if fault != NULL:
            raise ElfError((<bytes>fault).decode())
        if self.id_size:
            self.build_id = self.id_bytes[: self.id_size]

    cdef const char* _segments_and_notes(self) noexcept nogil:
        cdef Elf64_Phdr segment
        cdef const uint8_t* raw
        cdef uint64_t notes[8][3]
        cdef uint32_t note_count = 0, i
        if self.header.phnum == 0:
            return "it has no program headers"
        self.lowest = <uint64_t>-1
        elf_rewind(&self.cursor, self.header.phoff, self.header.phnum, self.header.phentsize)
        raw = elf_next(&self.cursor)
        while raw != NULL:
            elf_segment_from(raw, self.header.wide, &segment)
            if segment.p_type == PT_NOTE and note_count < 8:
                notes[note_count][0], notes[note_count][1] = segment.p_offset, segment.p_filesz
                notes[note_count][2] = segment.p_align
                note_count += 1
            if segment.p_type == PT_LOAD:
                self.lowest = min(self.lowest, segment.p_vaddr)
            if segment.p_type == PT_LOAD and not segment.p_flags & PF_X:
                self._add_load(&segment)
            elif segment.p_type == PT_LOAD and segment.p_memsz and not self.any_code:
                if not self._add_segment(&segment):
                    return "an executable segment of it lies outside the address space or the file"
            raw = elf_next(&self.cursor)
        if self.cursor.fault != NULL:
            return self.cursor.fault
        for i in range(note_count):
            if self.id_size == 0:
                self.id_size = elf_note_at(
                    &self.source, self.cursor.buffer, notes[i][0], notes[i][1], notes[i][2], self.id_bytes
                )
        return self._span()

    cdef bint _add_segment(self, const Elf64_Phdr* segment) noexcept nogil:
        cdef ElfSegment* out
        if segment.p_filesz > segment.p_memsz or segment.p_memsz > (<uint64_t>-1) - segment.p_vaddr:
            return False
        if segment.p_offset > self.source.size:
            return False
        if self.segment_count == ELF_MAX_SEGMENTS:
            return True
        out = &self.segments[self.segment_count]
        out.offset, out.file_size = segment.p_offset, segment.p_filesz
        out.vaddr, out.memory_size = segment.p_vaddr, segment.p_memsz
        self.segment_count += 1
        return True

    cdef void _add_load(self, const Elf64_Phdr* segment) noexcept nogil:
        cdef ElfLoad* out = &self.loads[self.load_count]
        if self.load_count == ELF_MAX_LOADS or segment.p_offset > self.source.size:
            return
        out.offset, out.vaddr = segment.p_offset, segment.p_vaddr
        out.file_size = min(segment.p_filesz, self.source.size - segment.p_offset)
        out.writable = segment.p_flags & PF_W != 0
        if out.file_size <= (<uint64_t>-1) - out.vaddr:
            self.load_count += 1

    cdef void _take_code_of(self, ElfProgram program) noexcept nogil:
        cdef uint32_t i
        for i in range(program.segment_count):
            self.segments[i] = program.segments[i]
        self.segment_count = program.segment_count
        self.base, self.limit = program.base, program.limit

    cdef const char* _span(self) noexcept nogil:
        cdef uint32_t i
        cdef ElfSegment* segment
        self.base = <uint64_t>-1 if self.segment_count else 0
        for i in range(self.segment_count):
            segment = &self.segments[i]
            self.base = min(self.base, segment.vaddr)
            self.limit = max(self.limit, segment.vaddr + segment.memory_size)
        if self.segment_count and self.limit - self.base > <uint64_t>0xFFFFFFFF:
            return "its code spans more than 4 GB"
        return NULL

    @cython.final
    cdef uint64_t _segment_end(self, uint64_t vaddr) noexcept nogil:
        cdef uint32_t i
        for i in range(self.segment_count):
            if vaddr >= self.segments[i].vaddr and vaddr - self.segments[i].vaddr < self.segments[i].memory_size:
                return self.segments[i].vaddr + self.segments[i].memory_size
        return 0

    @cython.final
    cdef uint64_t _section_end(self, uint64_t vaddr) noexcept nogil:
        cdef uint32_t i
        for i in range(self.section_count):
            if vaddr >= self.sections[i].offset and vaddr - self.sections[i].offset < self.sections[i].size:
                # Cannot wrap below vaddr unless the header lies; the segment's end then bounds the symbol.
                if self.sections[i].size <= (<uint64_t>-1) - self.sections[i].offset:
                    return self.sections[i].offset + self.sections[i].size
        return <uint64_t>-1

    @cython.final
    cdef bint _loaded(self, uint64_t offset, uint64_t* vaddr) noexcept nogil:
        cdef uint32_t i
        for i in range(self.segment_count):
            if offset >= self.segments[i].offset and offset - self.segments[i].offset < self.segments[i].file_size:
                vaddr[0] = self.segments[i].vaddr + (offset - self.segments[i].offset)
                return True
        return False

    def vaddr(self, uint64_t offset):
        """The address the linker gave to the code at this offset of the file, or None where no code is loaded from."""
        cdef uint64_t vaddr = 0
        return vaddr if self._loaded(offset, &vaddr) else None

    @property
    def debugdata(self):
        """Offset and size in the file of .gnu_debugdata, or None."""
        cdef ElfExtent* section = &self.named[ELF_DEBUGDATA]
        return (section.offset, section.size) if section.size else None

    @property
    def debuglink(self):
        """Offset and size in the file of .gnu_debuglink, or None."""
        cdef ElfExtent* section = &self.named[ELF_DEBUGLINK]
        return (section.offset, section.size) if section.size else None
