"""Many nodes: what the sick ones share that the healthy ones lack.

plan.py        the root is listed once; what has to be read becomes items of a node and a day
reading/       an item becomes rows of statistics: rollups, incidents, incident windows
results.py     the rows as Parquet, batch by batch: a report that was interrupted goes on, tomorrow's is incremental
engines/       who reads: processes of this machine, or Ray
statistics.py  the rows asked with DuckDB: nodes, causes, units, hours, stacks
exact.py       Fisher's test, its correction for many tries, the binomial tail
labels.py      which labels and pairs of labels the sick nodes share; units.py: which units
arrivals.py    what started when something arrived; clusters.py: like incidents; forecast.py: who is next
report.py      all of it as one answer; pages.py and digest.py: as HTML and Markdown
flames.py      stacks of all nodes, and of the sick against the healthy
search.py      where else does this occur
"""
