"""What may be asked: one typed question per view, which the command line and the web fill from the same declaration.

parameter.py   how a field is declared, and how a face fills a question from what was given
window.py      which part of a recording
filters.py     which samples
sides.py       the other side of a comparison
views.py       the whole question of each view

documents/ holds what is answered. Nothing heavy is imported here: `zombiescope --help` reads all of it.
"""
