"""Dependency lanes: the built wheel, in an environment with the oldest or the newest packages that it allows.

`python -m tests.lanes oldest` is `make test-oldest`. `acceptance.py` is the list that every lane runs; it is one file
that needs only Python, so a pod, a service or an unpacked archive can run it too.
"""
