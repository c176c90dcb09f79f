# Kernel symbols: the text symbols of /proc/kallsyms as sorted arrays (about 30 bytes a symbol, names included) and, beside
# them, what KSYMBOL records announced later (BPF programs, ftrace trampolines).

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>

    typedef struct { uint64_t address; uint32_t name; uint16_t module; uint8_t flags; uint8_t rank; } zs_symbol;

    static int zs_by_address(const void *a, const void *b) {
        const zs_symbol *x = a, *y = b;
        if (x->address != y->address) return x->address < y->address ? -1 : 1;
        if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
        return x->name < y->name ? -1 : x->name > y->name;
    }
    static void zs_sort_symbols(zs_symbol *all, size_t count) { qsort(all, count, sizeof *all, zs_by_address); }

    enum { ZS_IDLE = 1, ZS_INTERRUPT = 2 };

    /* Frames that mean "this CPU is in its idle loop", and frames that mean "an interrupt came on top of whatever ran".
       Leaf names differ by driver and kernel; these callers do not. */
    static const char *const zs_idle_names[] = {
        "do_idle", "cpu_startup_entry", "cpuidle_enter", "cpuidle_enter_state", "cpu_idle_loop", "cpu_bringup_and_idle",
        "cpuidle_idle_call", "arch_cpu_idle", "default_idle_call", NULL };
    static const char *const zs_interrupt_names[] = {
        "asm_common_interrupt", "common_interrupt", "__irq_exit_rcu", "irq_exit_rcu", "irq_exit", "handle_softirqs",
        "__do_softirq", "do_softirq", "__softirqentry_text_start", "do_softirq_own_stack", "do_IRQ", "ret_from_intr",
        "el1_interrupt", "el1h_64_irq", "el1_irq", "gic_handle_irq", "call_on_irq_stack", "do_interrupt_handler",
        "apic_timer_interrupt", "smp_apic_timer_interrupt", "call_function_interrupt", "reschedule_interrupt",
        "call_function_single_interrupt", "xen_evtchn_do_upcall", "xen_hvm_callback_vector", "hyperv_callback_vector",
        "do_softirq_post_smp_call_flush", "flush_smp_call_function_queue", "asm_exc_nmi", "exc_nmi", "do_nmi", NULL };

    /* A clone (cpuidle_enter_state.isra.0) is the function itself. */
    static int zs_is_function(const char *name, const char *function) {
        if (*name != *function) return 0;  /* two hundred thousand symbols are asked for seventy names each */
        size_t length = strlen(function);
        return !strncmp(name, function, length) && (name[length] == 0 || name[length] == '.');
    }

    static uint8_t zs_symbol_flags(const char *name) {
        if (!strncmp(name, "sysvec_", 7) || !strncmp(name, "asm_sysvec_", 11)) return ZS_INTERRUPT;
        for (int i = 0; zs_idle_names[i]; i++) if (zs_is_function(name, zs_idle_names[i])) return ZS_IDLE;
        for (int i = 0; zs_interrupt_names[i]; i++) if (zs_is_function(name, zs_interrupt_names[i])) return ZS_INTERRUPT;
        return 0;
    }

    /* Markers of the linker (where a section of the text begins or ends) and what the compiler puts before a function or
       in its place share the address of a function, and are global where it is local: __sched_text_start is __schedule.
       They name it only where nothing else does. */
    static const char *const zs_marker_names[] = {
        "_text", "_stext", "_etext", "_sinittext", "_einittext", "_head", "__indirect_thunk_start",
        "__indirect_thunk_end", NULL };
    static const char *const zs_marker_prefixes[] = { "__SCT__", "__cfi_", "__pfx_", NULL };
    static const char *const zs_marker_suffixes[] = { "_text_start", "_text_end", "_text_begin", NULL };

    static int zs_is_marker(const char *name, size_t length) {
        if (name[0] != '_') return 0;
        for (int i = 0; zs_marker_names[i]; i++) if (!strcmp(name, zs_marker_names[i])) return 1;
        for (int i = 0; zs_marker_prefixes[i]; i++)
            if (!strncmp(name, zs_marker_prefixes[i], strlen(zs_marker_prefixes[i]))) return 1;
        for (int i = 0; zs_marker_suffixes[i]; i++) {
            size_t tail = strlen(zs_marker_suffixes[i]);
            if (length > tail && !memcmp(name + length - tail, zs_marker_suffixes[i], tail)) return 1;
        }
        return 0;
    }

    enum { ZS_GLOBAL = 0, ZS_LOCAL = 1, ZS_MARKER = 2 };
    """
    ctypedef struct zs_symbol:
        uint64_t address
        uint32_t name
        uint16_t module
        uint8_t flags
        uint8_t rank
    void zs_sort_symbols(zs_symbol* all, size_t count) nogil
    uint8_t zs_symbol_flags(const char* name) nogil
    int zs_is_marker(const char* name, size_t length) nogil
    uint8_t ZS_GLOBAL
    uint8_t ZS_LOCAL
    uint8_t ZS_MARKER
    uint8_t ZS_IDLE
    uint8_t ZS_INTERRUPT

cdef struct Symbols:
    zs_symbol* items
    size_t used, room

# An address this far behind the last symbol before it lies in a hole (between modules, past the text), not in a function.
cdef uint64_t MAX_FUNCTION_BYTES = 1 << 18


@cython.final
cdef class KernelSymbols:
    """Feed the text of /proc/kallsyms in pieces, then finish(); lookup() answers (name, module)."""

    cdef Symbols symbols
    cdef Words frame_of          # frame id of each symbol in the current segment; 0 = none yet
    cdef Bytes names
    cdef bytes rest
    cdef list modules
    cdef dict module_numbers
    cdef dict extra              # address -> (end, name): announced by KSYMBOL records
    cdef readonly bint hidden    # addresses were all zero: kptr_restrict

    def __cinit__(self):
        self.rest = b""
        self.modules = [""]
        self.module_numbers = {b"": 0}
        self.extra = {}
        self.hidden = False

    def __dealloc__(self):
        zs_free(&self.symbols)
        zs_free(&self.frame_of)
        zs_free(&self.names)

    def feed(self, bytes chunk not None):
        """Takes the next piece of the file, cut anywhere."""
        cdef bytes data = self.rest + chunk
        cdef Py_ssize_t end = data.rfind(b"\n") + 1
        self.rest = data[end:]
        cdef const char* at = PyBytes_AS_STRING(data)
        cdef const char* stop = at + end
        cdef const char* newline
        while at < stop:
            newline = <const char*>memchr(at, 10, stop - at)
            if newline == NULL:
                break
            self._line(at, newline)
            at = newline + 1

    cdef int _line(self, const char* at, const char* end) except -1:
        # ffffffff81000000 T _text	[module]
        cdef uint64_t address = 0
        cdef char kind
        cdef const char* name
        cdef uint16_t module = 0
        cdef int digit
        while at < end and at[0] != 32:
            digit = at[0]
            if 48 <= digit <= 57:
                digit -= 48
            elif 97 <= digit <= 102:
                digit -= 87
            else:
                return 0
            address = (address << 4) | <uint64_t>digit
            at += 1
        if end - at < 4:
            return 0
        kind = at[1]
        if kind not in (c"t", c"T", c"w", c"W", c"i"):
            return 0
        at += 3
        name = at
        while at < end and at[0] != 9 and at[0] != 32:
            at += 1
        if end - at > 3 and at[1] == c"[":
            module = self._module(at + 2, end - 1)
        if address == 0:
            return 0
        # Mapping symbols of the assembler ($x, .L...) and the padding before functions (__pfx_) name no function.
        if at == name or name[0] == c"$" or name[0] == c".":
            return 0
        if at - name > 6 and memcmp(name, b"__pfx_", 6) == 0:
            return 0
        return self._append(address, name, at - name, module, ZS_GLOBAL if kind in (c"T", c"W") else ZS_LOCAL)

    cdef uint16_t _module(self, const char* start, const char* end) except? 0:
        cdef bytes name = start[:end - start] if end > start else b""
        number = self.module_numbers.get(name)
        if number is None:
            if len(self.modules) >= 65535:
                return 0
            number = len(self.modules)
            self.modules.append(name.decode("utf-8", "replace"))
            self.module_numbers[name] = number
        return number

    cdef int _append(self, uint64_t address, const char* name, size_t length, uint16_t module, uint8_t rank) except -1:
        cdef uint8_t* copy
        zs_reserve(&self.symbols, 1 if self.symbols.used else 65536)
        zs_reserve(&self.names, length + 1 if self.names.used else length + (1 << 20))
        if self.names.used > 0xFFFFFFFF:
            raise MemoryError
        copy = self.names.items + self.names.used
        memcpy(copy, name, length)
        copy[length] = 0
        if zs_is_marker(<const char*>copy, length):
            rank = ZS_MARKER
        self.symbols.items[self.symbols.used] = zs_symbol(
            address=address, name=<uint32_t>self.names.used, module=module, flags=zs_symbol_flags(<const char*>copy), rank=rank
        )
        self.names.used += length + 1
        self.symbols.used += 1
        return 0

    def finish(self):
        """Sorts what was fed and gives back spare memory."""
        cdef size_t i, kept = 0
        cdef zs_symbol* symbols = self.symbols.items
        self.rest = b""
        self.hidden = self.symbols.used == 0
        if self.hidden:
            return
        zs_sort_symbols(symbols, self.symbols.used)
        for i in range(self.symbols.used):
            if kept and symbols[kept - 1].address == symbols[i].address:
                symbols[kept - 1].flags |= symbols[i].flags
                continue
            symbols[kept] = symbols[i]
            kept += 1
        self.symbols.used = kept
        zs_shrink(&self.symbols)
        zs_shrink(&self.names)
        self.frame_of.used = 0
        zs_extend(&self.frame_of, kept)
        zs_shrink(&self.frame_of)

    cdef void _forget_frames(self) noexcept:
        if self.frame_of.used:
            memset(self.frame_of.items, 0, self.frame_of.used * sizeof(uint32_t))

    cdef Py_ssize_t _find(self, uint64_t address) noexcept nogil:
        """Index of the symbol that holds the address, or -1."""
        cdef size_t low = 0, high = self.symbols.used, middle
        while low < high:
            middle = (low + high) >> 1
            if self.symbols.items[middle].address <= address:
                low = middle + 1
            else:
                high = middle
        if low == 0 or address - self.symbols.items[low - 1].address > MAX_FUNCTION_BYTES:
            return -1
        return <Py_ssize_t>low - 1

    cdef tuple _name(self, size_t index):
        cdef zs_symbol* symbol = &self.symbols.items[index]
        return plain_name((<bytes><const char*>(self.names.items + symbol.name)).decode("utf-8", "replace")), self.modules[symbol.module]

    def lookup(self, uint64_t address):
        """(name, module) of the function that holds the address, or None. `module` is "" for the kernel itself."""
        for start, (end, name) in self.extra.items():
            if start <= address < end:
                return name, "bpf"
        cdef Py_ssize_t index = self._find(address)
        return None if index < 0 else self._name(index)

    def add(self, uint64_t address, uint64_t length, str name not None):
        """A symbol that came up while running (KSYMBOL register). At most 8192 are kept."""
        if len(self.extra) < 8192:
            self.extra[address] = (address + length, name)

    def remove(self, uint64_t address):
        """KSYMBOL unregister."""
        self.extra.pop(address, None)

    def __len__(self):
        return self.symbols.used + len(self.extra)

    @property
    def nbytes(self):
        return self.symbols.room * sizeof(zs_symbol) + self.names.room + self.frame_of.room * sizeof(uint32_t)


_CLONE_SUFFIX = __import__("re").compile(r"\.(?:isra|constprop|part|cold|lto_priv|localalias|llvm|__uniq)(?:\.\d+)?(?=\.|$)")


def plain_name(str name not None):
    """The function's own name: what the compiler added for a clone or a cold part (.isra.0, .cold) is not part of it."""
    return _CLONE_SUFFIX.sub("", name) if "." in name else name


def context_of(str name not None):
    """What a kernel function says of the stack it is in: 1 the CPU idles, 2 an interrupt came on top, 0 nothing."""
    cdef bytes text = name.encode("utf-8", "replace")
    return zs_symbol_flags(text)
