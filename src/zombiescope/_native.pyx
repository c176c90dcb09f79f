# cython: language_level=3
"""The one native module: what is too hot for Python, and nothing else. Each idea is one file in native/."""

include "native/varint.pxi"
include "native/kallsyms.pxi"
include "native/interner.pxi"
include "native/tasks.pxi"
include "native/rings.pxi"
include "native/stack_rows.pxi"
include "native/sampler.pxi"
include "native/elf.pxi"
include "native/stack_set.pxi"
include "native/fold.pxi"
