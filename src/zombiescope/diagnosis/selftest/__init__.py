"""The self-test: a built-in recording with a known incident, diagnosed by the first pass of every live diagnosis.

A library that crashes, or an environment that computes something else, is reported when the live diagnosis starts, and
not after an incident was missed. The pass is a fork of the standby process like any other pass, with the same
libraries, limits and confinement.

    built_in.py  the built-in recording and the answer that it must give
    one_pass.py  the pass over it (runs in the fork)
    outcome.py   what the self-test found out, as a document and as one line for a person
    trial.py     from how the pass ended to the outcome (runs in the standby process)
    process.py   `zombiescope selftest`: starts a standby process and reads the outcome

recording.zscope and expected.json are made by scripts/selftest_recording.py.
"""
