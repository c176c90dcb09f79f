"""How severities look, with colour and without."""

from __future__ import annotations

STYLES = {"critical": "color(196)", "warning": "color(178)", "info": "", "ok": "green"}
MARKS = {"critical": "✗", "warning": "!"}
WORDS = {"critical": "CRITICAL", "warning": "WARNING", "info": "NOTE", "ok": "OK"}
NOT_MEASURED = "color(178)"
