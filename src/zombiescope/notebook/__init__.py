"""The face for Python: what `zombiescope.open` gives to a script or a notebook.

recording.py    the recording: its tables, and what the commands answer
keywords.py     keyword arguments as the questions that commands and page ask
tables.py       the tables by name, read when they are looked at
answers.py      a diagnosis, a flame graph and a heat map that show themselves in a notebook
html.py         how they look there
"""
