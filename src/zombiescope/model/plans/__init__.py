"""What is to be done, as values: the plan that diagnose, page, report and `fix` show, and what the log says of it.

    step       one thing to do: what, the exact command, what it touches, its risk, its way back, how it is verified
    plan       the steps for one incident or one finding, in order
    log_entry  lines of the action log, read
    history    what these lines say about the steps of one plan

Nothing here can change a node: what does is remedy/, which only the command line may use.
"""
