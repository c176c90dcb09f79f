"""Coverage-guided fuzzing of every parser that reads bytes that others wrote.

    target       what one parser is fed with, and what it may answer
    targets/     the table, one module per room; unit tests feed the same targets with mutations of their own
    sanitizer    the native module with AddressSanitizer and UBSan, built once and kept below build/
    worker       the process that fuzzes: all targets are imported once, each runs in a fork with its own limits
    campaign     `make soak-fuzz`: which target still owes executions, what was found, and the table in
                 docs/data/reliability.md

Atheris (libFuzzer) chooses the inputs, by the branches of our Python code and of the native module. It comes from
requirements/fuzz.txt and is needed by nothing else.
"""
