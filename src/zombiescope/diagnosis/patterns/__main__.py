"""`python -m zombiescope.diagnosis.patterns [DIR]`: writes the page of every pattern into DIR (docs/patterns)."""

from __future__ import annotations

import sys
from pathlib import Path

from zombiescope.diagnosis import pattern_pages, patterns

if __name__ == "__main__":
    pattern_pages.write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/patterns"), patterns.every())
