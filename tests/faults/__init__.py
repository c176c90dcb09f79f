"""Real faults on a real kernel, small and bounded: each file has one FAULT that knows its own truth.

    with FAULT.ready(directory) as fault:   # what takes long or must be cleaned up is done here
        fault.go()                          # from now on it hurts
        ...
                                            # gone afterwards: processes, cgroups, mounts, namespaces

They cage themselves (own cgroups, own mount and network namespaces) and leave real-time throttling on. `python -m
tests.faults.smaps_reader` runs one for a few seconds by hand.
"""
