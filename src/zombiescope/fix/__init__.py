"""What is done about a cause: a plan of typed steps, applied on request, logged, verified, and undone.

    diagnosis, audit     say what should happen, as data (an Act: what kind, and with which arguments)
    actions/             say how each kind is done on this machine, whether it is done already, and how it is undone
    plan                 the steps for one incident or one finding, in the order in which they are done
    apply, undo          do them and take them back, with a line in the log before and after each
    verify               looks at what the recorder wrote since, and says whether the node is well again

Only `zombiescope fix` imports this room: neither the recorder nor the page can change the node.
"""
