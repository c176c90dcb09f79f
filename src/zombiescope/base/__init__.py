"""What every package may need and none owns.

errors, missing        what a person reads when something fails, and how a source that cannot be read is named
text, json, time       foreign names made printable, foreign JSON, instants and durations
safe_files, in_root    files made where others may write; paths resolved below another root
secrets                what is masked before it is stored
confinement, helper    what a helper process gives up, and how it starts
feed                   what the agent's services report to the recorder
interrupt, python, packages, severity
"""
