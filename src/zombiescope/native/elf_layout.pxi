# The layout of ELF files: headers, sections, segments, notes and symbols of both classes as one form.
#
# Everything is read by pread into own buffers, never by mmap: a file of a running process may be cut or rewritten
# at any time, and a mapped page that is gone is SIGBUS. Every offset, length and count in the file is checked
# against the size of the file before use. Functions return NULL, or what is wrong with the file.
# Files are read in this machine's byte order: no other order can run here.
#
# How much is read of a file is bounded by its own size, whatever its headers say: segments may overlap, tables may be
# named again and again, and every word may look like the beginning of something. Each read is charged at least a page, so
# that a million small ones are no way around it.

from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc, qsort
from posix.stat cimport S_ISREG
from posix.unistd cimport pread

import os as _os

cdef extern from "<elf.h>" nogil:
    ctypedef struct Elf32_Ehdr:
        uint16_t e_type, e_machine, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
        uint32_t e_phoff, e_shoff
    ctypedef struct Elf64_Ehdr:
        uint16_t e_type, e_machine, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
        uint64_t e_phoff, e_shoff
    ctypedef struct Elf32_Phdr:
        uint32_t p_type, p_flags, p_offset, p_vaddr, p_filesz, p_memsz, p_align
    ctypedef struct Elf64_Phdr:
        uint32_t p_type, p_flags
        uint64_t p_offset, p_vaddr, p_filesz, p_memsz, p_align
    ctypedef struct Elf32_Shdr:
        uint32_t sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize
    ctypedef struct Elf64_Shdr:
        uint32_t sh_name, sh_type, sh_link, sh_info
        uint64_t sh_flags, sh_addr, sh_offset, sh_size, sh_addralign, sh_entsize
    ctypedef struct Elf32_Sym:
        uint32_t st_name, st_value, st_size
        uint8_t st_info
        uint16_t st_shndx
    ctypedef struct Elf64_Sym:
        uint32_t st_name
        uint64_t st_value, st_size
        uint8_t st_info
        uint16_t st_shndx
    enum:
        EI_CLASS, EI_DATA, EI_NIDENT, ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ET_EXEC, ET_DYN, EM_ARM, EM_X86_64
        PT_LOAD, PT_NOTE, PF_X, PF_W, PN_XNUM
        SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_DYNSYM, SHF_EXECINSTR, SHN_UNDEF, SHN_XINDEX
        STB_LOCAL, STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC, NT_GNU_BUILD_ID

cdef enum:
    ELF_READ_BYTES = 65536
    ELF_NOTE_BYTES = 65536
    ELF_MAX_HEADERS = 65536
    ELF_READ_COST_BYTES = 4096  # of a read, at least
    ELF_TIMES_READ = 4  # a table of symbols is read once; the relocations of a Go program three times
    ELF_ALWAYS_READ_BYTES = 1 << 20
    ELF_MAX_READ_BYTES = 384 << 20

cdef struct ElfSource:
    int fd
    const uint8_t* image
    uint64_t size
    uint64_t* left  # bytes that may still be read; NULL for the names of a table that was made

cdef struct ElfHeader:
    bint wide, thumb
    uint16_t machine
    uint64_t phoff, shoff
    uint32_t phnum, shnum, phentsize, shentsize, shstrndx

cdef struct ElfSection:
    uint32_t name, kind, link, info
    uint64_t flags, addr, offset, size, entsize

cdef struct ElfCursor:
    ElfSource* source
    uint8_t* buffer
    uint64_t offset, left  # of the table in the file, in entries
    uint32_t entry_size, buffered, used
    const char* fault


class ElfError(ValueError):
    """The file is not an ELF file that symbols can be read from; the text says what is wrong with it."""


cdef const char* elf_read(const ElfSource* source, uint64_t offset, void* out, uint64_t want) noexcept nogil:
    cdef uint64_t done = 0, cost
    cdef ssize_t got
    if offset > source.size or want > source.size - offset:
        return "it ends before what its headers promise"
    if source.left != NULL:
        cost = max(want, <uint64_t>ELF_READ_COST_BYTES)
        if cost > source.left[0]:
            return "its headers ask for more reading than a file of its size can need"
        source.left[0] -= cost
    if source.image != NULL:
        memcpy(out, source.image + offset, want)
        return NULL
    while done < want:
        got = pread(source.fd, <uint8_t*>out + done, want - done, <int64_t>(offset + done))
        if got > 0:
            done += <uint64_t>got
        elif got == 0:
            return "it was cut while being read"
        elif errno != EINTR:
            return "it cannot be read"
    return NULL


cdef void elf_rewind(ElfCursor* cursor, uint64_t offset, uint64_t count, uint32_t entry_size) noexcept nogil:
    cursor.offset, cursor.left, cursor.entry_size = offset, count, entry_size
    cursor.buffered = cursor.used = 0
    cursor.fault = NULL


cdef const uint8_t* elf_next(ElfCursor* cursor) noexcept nogil:
    # The next entry of a table of equal entries, or NULL at its end and at a fault.
    cdef uint32_t step
    cdef const uint8_t* entry
    if cursor.used == cursor.buffered:
        if cursor.left == 0:
            return NULL
        step = ELF_READ_BYTES // cursor.entry_size
        if step > cursor.left:
            step = <uint32_t>cursor.left
        cursor.fault = elf_read(cursor.source, cursor.offset, cursor.buffer, <uint64_t>step * cursor.entry_size)
        if cursor.fault != NULL:
            cursor.left = cursor.used = cursor.buffered = 0
            return NULL
        cursor.offset += <uint64_t>step * cursor.entry_size
        cursor.left -= step
        cursor.buffered, cursor.used = step, 0
    entry = cursor.buffer + <uint64_t>cursor.used * cursor.entry_size
    cursor.used += 1
    return entry


cdef bint elf_host_order(uint8_t data) noexcept nogil:
    cdef uint16_t one = 1
    return data == (ELFDATA2LSB if (<uint8_t*>&one)[0] == 1 else ELFDATA2MSB)


cdef const char* elf_header(const ElfSource* source, ElfHeader* out) noexcept nogil:
    cdef uint8_t ident[16]
    cdef Elf64_Ehdr wide
    cdef Elf32_Ehdr narrow
    cdef uint16_t kind
    cdef const char* fault
    if source.size < EI_NIDENT or elf_read(source, 0, ident, EI_NIDENT) != NULL:
        return "it is not an ELF file"
    if memcmp(ident, b"\x7fELF", 4) != 0:
        return "it is not an ELF file"
    if not elf_host_order(ident[EI_DATA]):
        return "its byte order is not that of this machine"
    if ident[EI_CLASS] == ELFCLASS64:
        fault = elf_read(source, 0, &wide, sizeof(wide))
        kind = wide.e_type
        out.wide, out.thumb, out.machine = True, False, wide.e_machine
        out.phoff, out.phnum, out.phentsize = wide.e_phoff, wide.e_phnum, wide.e_phentsize
        out.shoff, out.shnum, out.shentsize = wide.e_shoff, wide.e_shnum, wide.e_shentsize
        out.shstrndx = wide.e_shstrndx
    elif ident[EI_CLASS] == ELFCLASS32:
        fault = elf_read(source, 0, &narrow, sizeof(narrow))
        kind = narrow.e_type
        out.wide, out.thumb, out.machine = False, narrow.e_machine == EM_ARM, narrow.e_machine
        out.phoff, out.phnum, out.phentsize = narrow.e_phoff, narrow.e_phnum, narrow.e_phentsize
        out.shoff, out.shnum, out.shentsize = narrow.e_shoff, narrow.e_shnum, narrow.e_shentsize
        out.shstrndx = narrow.e_shstrndx
    else:
        return "it is neither of 32 nor of 64 bits"
    if fault != NULL:
        return fault
    if kind != ET_EXEC and kind != ET_DYN:
        return "it is neither a program nor a shared library"
    return elf_header_counts(source, out)


cdef const char* elf_header_counts(const ElfSource* source, ElfHeader* out) noexcept nogil:
    cdef ElfSection first
    cdef const char* fault
    cdef uint64_t phdr_size = sizeof(Elf64_Phdr) if out.wide else sizeof(Elf32_Phdr)
    cdef uint64_t shdr_size = sizeof(Elf64_Shdr) if out.wide else sizeof(Elf32_Shdr)
    if out.phnum and out.phentsize != phdr_size:
        return "its program headers have an unknown size"
    if out.shoff == 0:
        out.shnum = 0
    elif out.shentsize != shdr_size:
        return "its section headers have an unknown size"
    elif out.shnum == 0 or out.phnum == PN_XNUM or out.shstrndx == SHN_XINDEX:
        # More than 65,279 sections or 65,534 segments: section 0 holds the counts.
        fault = elf_section(source, out, 0, &first)
        if fault != NULL:
            return fault
        if out.shnum == 0:
            out.shnum = <uint32_t>first.size if first.size <= ELF_MAX_HEADERS else ELF_MAX_HEADERS + 1
        if out.phnum == PN_XNUM:
            out.phnum = first.info
        if out.shstrndx == SHN_XINDEX:
            out.shstrndx = first.link
    if out.shnum > ELF_MAX_HEADERS or out.phnum > ELF_MAX_HEADERS:
        return "it has more sections or segments than can be real"
    return NULL


cdef void elf_section_from(const uint8_t* raw, bint wide, ElfSection* out) noexcept nogil:
    cdef Elf64_Shdr long_form
    cdef Elf32_Shdr short_form
    if wide:
        memcpy(&long_form, raw, sizeof(long_form))
        out.name, out.kind, out.link = long_form.sh_name, long_form.sh_type, long_form.sh_link
        out.info = long_form.sh_info
        out.flags, out.addr, out.offset = long_form.sh_flags, long_form.sh_addr, long_form.sh_offset
        out.size, out.entsize = long_form.sh_size, long_form.sh_entsize
    else:
        memcpy(&short_form, raw, sizeof(short_form))
        out.name, out.kind, out.link = short_form.sh_name, short_form.sh_type, short_form.sh_link
        out.info = short_form.sh_info
        out.flags, out.addr, out.offset = short_form.sh_flags, short_form.sh_addr, short_form.sh_offset
        out.size, out.entsize = short_form.sh_size, short_form.sh_entsize


cdef const char* elf_section(
    const ElfSource* source, const ElfHeader* header, uint32_t index, ElfSection* out
) noexcept nogil:
    cdef uint8_t raw[64]
    cdef uint64_t offset = <uint64_t>index * header.shentsize
    cdef const char* fault
    if header.shoff > source.size or offset > source.size - header.shoff:
        return "it ends before what its headers promise"
    fault = elf_read(source, header.shoff + offset, raw, header.shentsize)
    if fault == NULL:
        elf_section_from(raw, header.wide, out)
    return fault


cdef void elf_segment_from(const uint8_t* raw, bint wide, Elf64_Phdr* out) noexcept nogil:
    cdef Elf32_Phdr narrow
    if wide:
        memcpy(out, raw, sizeof(Elf64_Phdr))
        return
    memcpy(&narrow, raw, sizeof(narrow))
    out.p_type, out.p_flags = narrow.p_type, narrow.p_flags
    out.p_offset, out.p_vaddr, out.p_align = narrow.p_offset, narrow.p_vaddr, narrow.p_align
    out.p_filesz, out.p_memsz = narrow.p_filesz, narrow.p_memsz


cdef void elf_symbol_from(const uint8_t* raw, bint wide, Elf64_Sym* out) noexcept nogil:
    cdef Elf32_Sym narrow
    if wide:
        memcpy(out, raw, sizeof(Elf64_Sym))
        return
    memcpy(&narrow, raw, sizeof(narrow))
    out.st_name, out.st_value, out.st_size = narrow.st_name, narrow.st_value, narrow.st_size
    out.st_info, out.st_shndx = narrow.st_info, narrow.st_shndx


cdef int elf_note(const uint8_t* notes, uint64_t size, uint64_t align, uint8_t* build_id) noexcept nogil:
    # The length of the GNU build id among these notes, 0 when it is not there.
    cdef uint64_t at = 0, name_size, desc_size, name_space, desc_space, step = 8 if align == 8 else 4
    cdef uint32_t words[3]
    while size - at >= 12:
        memcpy(words, notes + at, 12)
        name_size, desc_size = words[0], words[1]
        at += 12
        # Padding is counted from the start of the note: header and name end on a multiple of the alignment.
        name_space = (12 + name_size + step - 1) // step * step - 12
        desc_space = (desc_size + step - 1) // step * step
        if name_space > size - at or desc_size > size - at - name_space:
            return 0
        if words[2] == NT_GNU_BUILD_ID and name_size == 4 and memcmp(notes + at, b"GNU", 4) == 0:
            if 0 < desc_size <= 64:
                memcpy(build_id, notes + at + name_space, desc_size)
                return <int>desc_size
        at += name_space
        if desc_space >= size - at:
            return 0
        at += desc_space
    return 0


cdef int elf_note_at(
    const ElfSource* source, uint8_t* buffer, uint64_t offset, uint64_t size, uint64_t align, uint8_t* build_id
) noexcept nogil:
    if size > ELF_NOTE_BYTES or elf_read(source, offset, buffer, size) != NULL:
        return 0
    return elf_note(buffer, size, align, build_id)


cdef object elf_source(object source, ElfSource* out):
    # Fills `out` from a file descriptor or an image in memory; what is returned must be kept alive with it.
    cdef const uint8_t[::1] view
    out.left = NULL
    if isinstance(source, int):
        out.fd, out.image = source, NULL
        try:  # Python's own: the C library's fstat is a symbol of glibc 2.33, and wheels would not run below that
            status = _os.fstat(source)
        except OSError:
            raise ElfError("it cannot be read") from None
        if not S_ISREG(status.st_mode):
            raise ElfError("it is not a regular file")
        out.size = <uint64_t>status.st_size
        return None
    kept = bytes(source)
    view = kept
    out.fd, out.size = -1, <uint64_t>len(kept)
    out.image = &view[0] if len(kept) else <const uint8_t*>b""
    return kept
