"""`python -m zombiescope.diagnosis.patterns [DIR]`: writes the page of every pattern into DIR (docs/patterns)."""

from __future__ import annotations

import argparse
from pathlib import Path

from zombiescope.diagnosis import pattern_pages, patterns


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m zombiescope.diagnosis.patterns", description="Writes the page of every pattern."
    )
    parser.add_argument("dir", metavar="DIR", nargs="?", type=Path, default=Path("docs/patterns"))
    pattern_pages.write(parser.parse_args().dir, patterns.every())


if __name__ == "__main__":
    main()
