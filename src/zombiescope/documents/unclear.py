"""What was asked for cannot be understood, or is not there: a mistake of whoever asks, never a defect."""

from __future__ import annotations


class UnclearError(ValueError):
    """One line that names the option as the command line writes it, and says what to write instead."""
