"""The agent's configuration: declared as frozen dataclasses, written as YAML, overridden by the environment.

setting.py      how one setting is declared: its type, its default, its limits, its documentation
document.py     the YAML file as nodes that know their line
reader.py       nodes into dataclasses; every mistake is collected, none is the last
environment.py  ZOMBIESCOPE_SECTION__KEY=value
load.py         all of it together
json_schema.py  the same declarations as a JSON schema
"""
