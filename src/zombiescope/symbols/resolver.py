"""User addresses to names, while the process lives.

A recording stores names, so that it can be read on another machine. Answers for one address:

    Frame("malloc", "libc.so.6", "user")              a function of a file
    Frame("libfoo.so+0x1234", "libfoo.so", "user")    in no function known; the offset is that in the file
    Frame("clock_gettime", "[vdso]", "vdso")          the kernel's code in user space
    Frame("py::run:/srv/job.py", "[jit]", "jit")      code that the process made, and gave a name (jit.py)
    Frame("[jit]", "[anon]", "jit")                   code that no file holds and nobody named
    Frame("[exited]", "", "unknown")                  the process was gone before its mappings were read
    Frame("[unreadable]", "", "unknown")              its mappings may not be read
    None                                              nowhere: no executable memory is there

None is what frame-pointer walking makes of functions that use the register for something else: callers drop
and count it. C++ and Rust names stay as the linker knows them.

Everything kept is bounded: processes, mappings, tables, names. Nothing raises: what could not be read is
counted in `denied` and `failures` by reason. One thread uses one UserSymbols.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice

from zombiescope.symbols.elf import ElfCache, ElfKey
from zombiescope.symbols.frame import Frame as Frame
from zombiescope.symbols.frame import printable as printable
from zombiescope.symbols.jit import JitNames
from zombiescope.symbols.mapped_files import MappedFile, MappedFiles
from zombiescope.symbols.maps import Mapping, Mappings
from zombiescope.symbols.process import LiveProcess, Tally
from zombiescope.symbols.separate_debug import SeparateDebug
from zombiescope.symbols.store import SymbolStore
from zombiescope.symbols.vdso import Vdso

MAX_PROCESSES = 128
MAX_MAPPINGS = 16384
FEW_MAPPINGS = 128
MAX_NAMES = 8192
MAX_ADDRESSES = 1024
LIVE_UNPACKED_BYTES = 32 << 20  # on disk
LIVE_UNPACKING_BYTES = 16 << 20  # in memory, while one file is unpacked


EXITED = Frame("[exited]", "", "unknown")
UNREADABLE = Frame("[unreadable]", "", "unknown")


class UserSymbols:
    """Names of the functions that user addresses are in."""

    def __init__(
        self,
        cache: ElfCache | None = None,
        *,
        max_processes: int = MAX_PROCESSES,
        max_names: int = MAX_NAMES,
        proc: str = "/proc",
    ) -> None:
        self.cache = ElfCache() if cache is None else cache
        self._tally = Tally()
        self._files = MappedFiles(self.cache, self._tally, proc)
        self._vdso = Vdso(proc)
        self.jit = JitNames()
        self._processes: OrderedDict[int, LiveProcess] = OrderedDict()
        self._names: OrderedDict[tuple[ElfKey, int], str] = OrderedDict()
        self._max_processes = max_processes
        self._max_names = max_names
        self._proc = proc

    @property
    def denied(self) -> Counter[str]:
        """Reads that were refused, by what was read."""
        return self._tally.denied

    @property
    def failures(self) -> Counter[str]:
        """Files that could not be used, by reason; those that are no good ELF files are in cache.failures."""
        return self._tally.failures

    @property
    def notes(self) -> Counter[str]:
        """Files accepted although stat() and maps do not agree on their numbers, by what did agree."""
        return self._tally.notes

    def resolve(
        self,
        pid: int,
        ips: Iterable[int],
        mappings: Sequence[Mapping] | Mappings | None = None,
        *,
        leaf_first: bool = True,
    ) -> list[Frame | None]:
        """Frames of a chain, in its order, at most MAX_ADDRESSES.

        All but the first address are return addresses and looked up one byte before, inside the call; with
        leaf_first=False the first one too (a chain whose leaf is elsewhere).
        """
        chain = list(islice(ips, MAX_ADDRESSES))
        start = 1 if leaf_first else 0
        chain[start:] = [max(ip - 1, 0) for ip in chain[start:]]
        return self.resolve_at(pid, chain, mappings)

    def resolve_at(
        self, pid: int, addresses: Sequence[int], mappings: Sequence[Mapping] | Mappings | None = None
    ) -> list[Frame | None]:
        """Frames of single addresses, each looked up as it is, at most MAX_ADDRESSES.

        `mappings` are those of the time of the sample, from records; without them /proc/PID/maps is read.
        """
        addresses = addresses[:MAX_ADDRESSES]
        try:
            process = self._process(pid)
            if mappings is None:
                located = process.maps.locate(addresses)
                self._trim(process)
                return self._frames(process, located, addresses)
        except ProcessLookupError:
            self.forget(pid)
            process, answer = None, EXITED
        except OSError as fault:
            self._count(fault)
            process, answer = None, UNREADABLE
        if mappings is None:
            return [answer] * len(addresses)
        known = mappings if isinstance(mappings, Mappings) else Mappings(mappings)
        return self._frames(process, [known.find(address) for address in addresses], addresses)

    def changed(self, pid: int) -> None:
        """The process mapped executable memory: its mappings are read again."""
        if pid in self._processes:
            self._processes[pid].maps.changed()

    def forget(self, pid: int) -> None:
        """The process has exited or executed another program."""
        self.jit.forget(pid)
        process = self._processes.pop(pid, None)
        if process is not None:
            process.close()

    def close(self) -> None:
        """Let go of all processes."""
        while self._processes:
            self._processes.popitem()[1].close()

    def _count(self, fault: OSError) -> None:
        if isinstance(fault, PermissionError):
            self._tally.denied["/proc/PID/maps"] += 1
        else:
            self._tally.failures[fault.strerror or "unknown"] += 1

    def _process(self, pid: int) -> LiveProcess:
        process = self._processes.get(pid)
        if process is not None and not process.still_there():
            self.forget(pid)
            process = None
        if process is None:
            process = self._processes[pid] = LiveProcess(pid, self._proc)
            if len(self._processes) > self._max_processes:
                self._processes.popitem(last=False)[1].close()
        self._processes.move_to_end(pid)
        return process

    def _trim(self, process: LiveProcess) -> None:
        # Few processes have many executable mappings (some JITs); 128 of them must not fill the memory.
        if len(process.maps) > FEW_MAPPINGS:
            while len(self._processes) > 1 and sum(len(p.maps) for p in self._processes.values()) > MAX_MAPPINGS:
                self._processes.popitem(last=False)[1].close()

    def _frames(
        self, process: LiveProcess | None, located: Sequence[Mapping | None], addresses: Sequence[int]
    ) -> list[Frame | None]:
        with self._files:
            return [
                None if mapping is None else self._frame(process, mapping, address)
                for mapping, address in zip(located, addresses, strict=True)
            ]

    def _frame(self, process: LiveProcess | None, mapping: Mapping, address: int) -> Frame:
        if mapping.kind == "vdso":
            return Frame(self._vdso.name(mapping, address) or mapping.path, mapping.path, "vdso")
        if mapping.kind not in ("file", "memfd"):
            return self._made_by_process(process, mapping, address)
        offset = address - mapping.start + mapping.pgoff
        file = self._files.find(process, mapping)
        module = printable(mapping.module)
        if file is None and mapping.kind == "memfd":
            return self._made_by_process(process, mapping, address)
        name = None if file is None else self._name(process, mapping, file, offset)
        return Frame(name or f"{module}+0x{offset:x}", module, "user")

    def _made_by_process(self, process: LiveProcess | None, mapping: Mapping, address: int) -> Frame:
        name = None if process is None or mapping.kind == "stack" else self.jit.name(process, address)
        if name is None:
            return Frame("[jit]", printable(mapping.module), "jit")
        return Frame(printable(name.decode("utf-8", "replace")), "[jit]", "jit")

    def _name(self, process: LiveProcess | None, mapping: Mapping, file: MappedFile, offset: int) -> str | None:
        index = file.table.find_offset(offset)
        if index < 0:
            return None
        function = (file.key, index)
        name = self._names.get(function)
        if name is not None:
            self._names.move_to_end(function)
            return name
        raw = self._files.name(process, mapping, file, index)
        if raw is None:
            return None
        name = self._names[function] = printable(raw.decode("utf-8", "replace"))
        if len(self._names) > self._max_names:
            self._names.popitem(last=False)
        return name


def live_symbols() -> UserSymbols:
    """As the recorder uses it: with symbols kept apart from binaries, within what its memory allows."""
    apart = SeparateDebug(SymbolStore(), max_unpacked_bytes=LIVE_UNPACKED_BYTES, max_memory_bytes=LIVE_UNPACKING_BYTES)
    return UserSymbols(ElfCache(apart=apart))
