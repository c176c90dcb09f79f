# ELF function symbols: 12 bytes a function in memory, names left in the file until somebody asks.
#
# elf_layout.pxi reads the file and checks what it says, elf_program.pxi finds its code; here symbols are chosen, ordered and looked up.

cdef enum:
    ELF_MAX_SYMTAB_BYTES = 128 << 20  # 5.6 million symbols; an unstripped browser has two
    ELF_MAX_ALIASES = 32  # identical-code folding puts thousands of names on one address
    ELF_MAX_OUTWARD = 64  # functions stepped over when looking for one that encloses them
    ELF_MAX_NAME_BYTES = 4096
    ELF_NAME_STEP_BYTES = 256
    # The name word of a symbol: rank, then flags, then the offset of the name in its string table.
    ELF_RANK_SHIFT = 30  # 0 global or weak function, 1 local function, 2 sized label of assembly code
    ELF_OPEN = 1 << 29  # the file gives no size: it reaches to the next symbol
    ELF_DYNAMIC = 1 << 28  # the name stands in the string table of .dynsym
    ELF_NAME_MASK = (1 << 28) - 1

cdef struct ElfSymbol:
    uint32_t start  # from the lowest executable address, so that four bytes are enough
    uint32_t size
    uint32_t name

cdef struct ElfStrings:
    uint64_t offset, size
    uint8_t* kept


cdef struct ElfSymbols:
    ElfSymbol* items
    size_t used, room


cdef int elf_by_address(const void* left, const void* right) noexcept nogil:
    cdef const ElfSymbol* a = <const ElfSymbol*>left
    cdef const ElfSymbol* b = <const ElfSymbol*>right
    if a.start != b.start:
        return -1 if a.start < b.start else 1
    if a.name != b.name:
        return -1 if a.name < b.name else 1
    return (a.size < b.size) - (a.size > b.size)


@cython.final
cdef class SymbolTable(ElfProgram):
    """Function symbols of one ELF file, given as a file descriptor (read, not kept) or as bytes (kept).

    .symtab is read, and .dynsym where the former is absent or the smaller one, and the pclntab of a Go program without
    .symtab. Names stay in memory only where the string table has at most `keep_names_bytes`; otherwise `name()` reads
    them from a descriptor of the same file.

    A file of symbols only has no code and offsets that are nowhere: `program` is the table of the file with the code.
    """

    cdef ElfSymbols symbols
    cdef GoFunctions go
    cdef ElfStrings strings[2]

    def __init__(
        self,
        source,
        uint32_t max_symbols=1 << 20,
        uint64_t keep_names_bytes=1 << 16,
        SymbolTable program=None,
    ):
        cdef const char* fault
        self._open(source)
        self.any_code = program is not None
        # Without the interpreter's lock: a big file not in the page cache is read for seconds.
        with nogil:
            fault = elf_header(&self.source, &self.header)
            if fault == NULL:
                fault = self._segments_and_notes()
            if fault == NULL and program is not None:
                self._take_code_of(program)
            if fault == NULL:
                fault = elf_sections(self)
            if fault == NULL:
                fault = self._load(max_symbols, keep_names_bytes)
        if fault != NULL:
            self.symbols.used = 0
        self._finish(fault)

    def __dealloc__(self):
        zs_free(&self.symbols)
        free(self.strings[0].kept)
        free(self.strings[1].kept)

    cdef const char* _load(self, uint32_t max_symbols, uint64_t keep_names_bytes) noexcept nogil:
        cdef uint32_t i
        cdef const char* fault
        if self.segment_count == 0:
            return NULL
        for i in range(2):
            if i == 1 and self.tables[0].size > self.tables[1].size:
                break
            if self.tables[i].size:
                fault = self._load_table(i, max_symbols)
                if fault == NULL:
                    fault = self._keep_names(i, keep_names_bytes)
                if fault != NULL:
                    return fault
        if self.tables[0].size == 0 and not self.any_code:
            fault = go_load(self, max_symbols)
            if fault != NULL:
                return fault
        self._settle()
        return NULL

    cdef const char* _load_table(self, uint32_t which, uint32_t max_symbols) noexcept nogil:
        cdef ElfSection* table = &self.tables[which]
        cdef ElfSection names
        cdef Elf64_Sym symbol
        cdef uint32_t entry_size = sizeof(Elf64_Sym) if self.header.wide else sizeof(Elf32_Sym)
        cdef const char* fault
        cdef const uint8_t* raw
        if table.entsize != entry_size:
            return "its symbols have an unknown size"
        if table.size > ELF_MAX_SYMTAB_BYTES:
            return "its symbol table has more than 128 MB"
        if table.link >= self.header.shnum:
            return "its symbol table has no string table"
        fault = elf_section(&self.source, &self.header, table.link, &names)
        if fault != NULL:
            return fault
        if names.kind != SHT_STRTAB or names.size > ELF_NAME_MASK:
            return "its string table is none, or has more than 256 MB"
        if names.offset > self.source.size or names.size > self.source.size - names.offset:
            return "it ends before what its headers promise"
        self.strings[which].offset, self.strings[which].size = names.offset, names.size
        elf_rewind(&self.cursor, table.offset, table.size // entry_size, entry_size)
        raw = elf_next(&self.cursor)
        while raw != NULL:
            elf_symbol_from(raw, self.header.wide, &symbol)
            fault = self._add_symbol(&symbol, which, max_symbols)
            if fault != NULL:
                return fault
            raw = elf_next(&self.cursor)
        return self.cursor.fault

    cdef const char* _add_symbol(self, Elf64_Sym* symbol, uint32_t which, uint32_t max_symbols) noexcept nogil:
        cdef uint8_t kind = symbol.st_info & 15
        cdef uint32_t rank
        cdef uint64_t end
        cdef ElfSymbol out
        if symbol.st_shndx == SHN_UNDEF or symbol.st_name == 0 or symbol.st_name >= self.strings[which].size:
            return NULL
        if kind == STT_FUNC or kind == STT_GNU_IFUNC:
            rank = 1 if symbol.st_info >> 4 == STB_LOCAL else 0
        elif kind == STT_NOTYPE and symbol.st_size:
            rank = 2
        else:
            return NULL
        if self.header.thumb:
            symbol.st_value &= ~<uint64_t>1
        end = self._segment_end(symbol.st_value)
        if end == 0:
            return NULL
        out.start = <uint32_t>(symbol.st_value - self.base)
        out.size = <uint32_t>min(symbol.st_size, end - symbol.st_value)
        out.name = rank << ELF_RANK_SHIFT | symbol.st_name
        if symbol.st_size == 0:
            out.size = <uint32_t>(min(end, self._section_end(symbol.st_value)) - symbol.st_value)
            out.name |= ELF_OPEN
        if which:
            out.name |= ELF_DYNAMIC
        return self._add(out, max_symbols)

    cdef const char* _add(self, ElfSymbol symbol, uint32_t max_symbols) noexcept nogil:
        if self.symbols.used >= max_symbols or not zs_try_reserve(&self.symbols, 1):
            return "it has more functions than the cache of symbols may hold"
        self.symbols.items[self.symbols.used] = symbol
        self.symbols.used += 1
        return NULL

    cdef const char* _keep_names(self, uint32_t which, uint64_t keep_names_bytes) noexcept nogil:
        cdef ElfStrings* strings = &self.strings[which]
        if strings.size > keep_names_bytes or self.source.image != NULL:
            return NULL
        strings.kept = <uint8_t*>malloc(strings.size + 1)
        if strings.kept == NULL:
            return "there is no memory for its names"
        return elf_read(&self.source, strings.offset, strings.kept, strings.size)

    cdef void _settle(self) noexcept nogil:
        # Sorts, and keeps of each address the names of the best rank, each with the largest extent known for it.
        cdef size_t at = 0, end, kept = 0, count = self.symbols.used, i
        cdef uint32_t aliases, size, rank
        cdef ElfSymbol* symbols = self.symbols.items
        if count == 0:
            return
        qsort(symbols, count, sizeof(ElfSymbol), elf_by_address)
        while at < count:
            end = at + 1
            while end < count and symbols[end].start == symbols[at].start:
                end += 1
            size = self._extent(at, end)
            rank = symbols[at].name >> ELF_RANK_SHIFT
            aliases = 0
            for i in range(at, end):
                if symbols[i].name >> ELF_RANK_SHIFT != rank or aliases == ELF_MAX_ALIASES:
                    break
                symbols[kept] = symbols[i]
                symbols[kept].size = size
                kept += 1
                aliases += 1
            at = end
        self.symbols.used = kept
        zs_shrink(&self.symbols)

    cdef uint32_t _extent(self, size_t at, size_t end) noexcept nogil:
        cdef size_t i
        cdef uint32_t sized = 0, open_ended = 0
        cdef ElfSymbol* symbols = self.symbols.items
        for i in range(at, end):
            if symbols[i].name & ELF_OPEN:
                open_ended = max(open_ended, symbols[i].size)
            else:
                sized = max(sized, symbols[i].size)
        if sized == 0 and end < self.symbols.used:
            return min(open_ended, symbols[end].start - symbols[at].start)
        return sized if sized else open_ended

    def __len__(self):
        return self.symbols.used

    @property
    def nbytes(self):
        """Bytes of memory this table holds."""
        cdef uint64_t names = 0
        cdef uint32_t i
        for i in range(2):
            if self.strings[i].kept != NULL:
                names += self.strings[i].size + 1
        return object.__sizeof__(self) + self.symbols.used * sizeof(ElfSymbol) + names + (len(self.image) if self.image else 0)

    @property
    def names_kept(self):
        """Whether name() answers without a descriptor of the file."""
        cdef uint32_t i
        for i in range(2):
            if self.image is None and self.strings[i].size and self.strings[i].kept == NULL:
                return False
        return self.image is not None or self.go.count == 0

    @property
    def has_symtab(self):
        """Whether the linker's own symbols are here, not only those that other files link to."""
        return self.tables[0].size > 0

    @property
    def go_functions(self):
        """How many functions the Go runtime's table names."""
        return self.go.count

    def same_as(self, SymbolTable other not None):
        """Whether every address, extent and place of a name is the other's: then one table will do for both files."""
        cdef uint32_t i
        cdef ElfStrings* mine
        cdef ElfStrings* theirs
        if self.symbols.used != other.symbols.used or self.segment_count != other.segment_count:
            return False
        if self.base != other.base or self.limit != other.limit or self.image is not None or other.image is not None:
            return False
        for i in range(2):
            mine, theirs = &self.strings[i], &other.strings[i]
            if mine.offset != theirs.offset or mine.size != theirs.size or (mine.kept == NULL) != (theirs.kept == NULL):
                return False
            if mine.kept != NULL and memcmp(mine.kept, theirs.kept, mine.size) != 0:
                return False
        if not zs_same(self.segments, other.segments, self.segment_count * sizeof(ElfSegment)):
            return False
        if memcmp(&self.go, &other.go, sizeof(GoFunctions)) != 0:
            return False
        return zs_same(self.symbols.items, other.symbols.items, self.symbols.used * sizeof(ElfSymbol))

    def start(self, int64_t index):
        """The address of function `index`."""
        if index < 0 or <uint64_t>index >= self.symbols.used:
            raise IndexError("no function has this number")
        return self.base + self.symbols.items[index].start

    def find(self, uint64_t vaddr):
        """The number of the innermost function that holds this address, for name(); -1 when none does."""
        return self._find(vaddr)

    def find_offset(self, uint64_t offset):
        """find() of the address that this offset of the file is loaded at."""
        cdef uint32_t i
        for i in range(self.segment_count):
            if offset >= self.segments[i].offset and offset - self.segments[i].offset < self.segments[i].file_size:
                return self._find(self.segments[i].vaddr + (offset - self.segments[i].offset))
        return -1

    cdef int64_t _find(self, uint64_t vaddr) noexcept nogil:
        cdef size_t low = 0, high = self.symbols.used, middle
        cdef int outward
        cdef uint64_t at
        if vaddr < self.base or vaddr >= self.limit:
            return -1
        at = vaddr - self.base
        while low < high:
            middle = low + (high - low) // 2
            if self.symbols.items[middle].start <= at:
                low = middle + 1
            else:
                high = middle
        for outward in range(ELF_MAX_OUTWARD):
            if low == 0:
                return -1
            low -= 1
            while low > 0 and self.symbols.items[low - 1].start == self.symbols.items[low].start:
                low -= 1
            if at - self.symbols.items[low].start < self.symbols.items[low].size:
                return <int64_t>low
        return -1

    def name(self, int64_t index, int fd=-1):
        """The name of function `index`, without its version; of several on one address always the same one.

        `fd` is a descriptor of the file the table was made from, needed where names_kept is false. None when the
        name cannot be read.
        """
        cdef bytes best = None, one
        cdef int64_t i = index
        if index < 0 or <uint64_t>index >= self.symbols.used:
            raise IndexError("no function has this number")
        while <uint64_t>i < self.symbols.used and self.symbols.items[i].start == self.symbols.items[index].start:
            one = self._name_at(self.symbols.items[i].name, fd)
            if one and self.symbols.items[i].name >> ELF_RANK_SHIFT == GO_RANK:
                return one
            if one and (best is None or elf_name_order(one) < elf_name_order(best)):
                best = one
            i += 1
        return elf_without_version(best) if best is not None else None

    def lookup(self, uint64_t vaddr, int fd=-1):
        """The name of the innermost function at this address, or None."""
        cdef int64_t index = self._find(vaddr)
        return None if index < 0 else self.name(index, fd)

    def starts(self):
        """The address and the size of every function, in order of address; one entry for each name kept."""
        return [(self.base + self.symbols.items[i].start, self.symbols.items[i].size) for i in range(self.symbols.used)]

    cdef bytes _name_at(self, uint32_t word, int fd):
        cdef ElfStrings* strings = &self.strings[1 if word & ELF_DYNAMIC else 0]
        cdef uint64_t at = word & ELF_NAME_MASK
        cdef uint64_t room = min(strings.size - at, <uint64_t>ELF_MAX_NAME_BYTES)
        cdef uint8_t buffer[ELF_MAX_NAME_BYTES]
        cdef uint64_t got = 0
        if word >> ELF_RANK_SHIFT == GO_RANK:
            return go_name(self, word, fd)
        if strings.kept != NULL:
            return elf_bounded(strings.kept + at, room)
        if self.image is not None:
            return elf_bounded(self.source.image + strings.offset + at, room)
        with nogil:
            got = elf_pull_name(fd, strings.offset + at, buffer, room)
        return elf_bounded(buffer, got)


cdef uint64_t elf_pull_name(int fd, uint64_t offset, uint8_t* buffer, uint64_t room) noexcept nogil:
    # Names are short and the file is long: read in steps until the NUL is in the buffer.
    cdef uint64_t got = 0, step
    cdef ssize_t n
    while got < room:
        step = min(room - got, <uint64_t>ELF_NAME_STEP_BYTES)
        n = pread(fd, buffer + got, step, <int64_t>(offset + got))
        if n <= 0:
            return 0
        got += <uint64_t>n
        if memchr(buffer + got - n, 0, <size_t>n) != NULL:
            break
    return got


cdef bytes elf_bounded(const uint8_t* text, uint64_t room):
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    return (<const char*>text)[: <Py_ssize_t>(room if end == NULL else <uint64_t>(end - text))]


cdef tuple elf_name_order(bytes name):
    return (b"@" in name, len(name) - len(name.lstrip(b"_")), name)


cdef bytes elf_without_version(bytes name):
    # Linkers write memcpy@GLIBC_2.2.5 and memcpy@@GLIBC_2.14 into .symtab.
    cdef Py_ssize_t at = name.find(b"@")
    return name if at <= 0 else name[:at]
