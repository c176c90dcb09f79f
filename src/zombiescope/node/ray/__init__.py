"""What Ray says of its jobs, nodes, workers and actors, on this node and at its dashboard.

The package `ray` itself is never imported: it must match the cluster's version, and everything that is needed is in the
raylet's command line (`raylet`), in the files of the session (`event_files`), and at the dashboard (`dashboard`).
`watch` makes one stream of it, in which each thing is told once. docs/design/0045 says why.
"""
