"""Off the node before it dies: what a recording holds, copied to an object store or a directory as it comes.

`units` says what there is to send, `spool` keeps it while the other side is away, `target` is the other side, `ledger`
remembers what it has, `shipper` does one round of it, `worker` is the process that goes on until nothing is left, and
`service` starts that process when there is something new. docs/design/0044 says why.
"""
