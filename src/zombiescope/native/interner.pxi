# see the module docstring
