"""CPython from outside: what a living interpreter is doing, from its memory alone.

`runtime.py` finds the interpreter's state in a process, `offsets.py` says where things are in it, `walk.py` follows it
from threads to frames, and `code.py` names the code and line of a frame. Memory is somebody else's: it changes while it
is read, and it may have been forged. Everything read is checked before it is used, every loop has a bound, and what
makes no sense is dropped and counted.

Nothing here knows how memory is read: a `Memory` is handed in.
"""
