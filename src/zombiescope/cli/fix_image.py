"""`zombiescope fix --root PATH --emit FORM`: what switches units off in an image, on standard output or in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from zombiescope.cli import progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import note

ImageForm = Literal["preset", "shell", "dockerfile"]


def write_image_step(root: Path, form: ImageForm, finding: str | None, force: list[str], output: Path | None) -> int:
    from zombiescope.cli.picture import write
    from zombiescope.fix import image

    try:
        found = image.offs(root, finding, force)
    except (NotADirectoryError, FileNotFoundError):
        raise Failure(f"{root} is not a directory", "unpack or mount the image and name the directory") from None
    if finding is not None and not found.units and not found.left:
        raise Failure(
            f"audit finds no {finding} in {root}", f"'zombiescope audit --root {root} --json' lists their ids"
        )
    text = image.emit(found, form)
    for line in found.left:
        note(f"zombiescope: not ended by this: {line}")
    if output is not None:
        write(output, text)
    else:
        progress.clear()
        sys.stdout.write(text)
    return 0
