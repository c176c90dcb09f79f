"""What a recording answers: tables of cores, cgroups, events, gaps and history. Nothing here knows causes."""
