"""What is sent to an API server, kept. The real server is asked in tests/cluster."""

from __future__ import annotations

from typing import Any


class Api:
    """Stands in for a client."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.patched: list[dict[str, Any]] = []
        self.conditions: list[dict[str, Any]] = []

    async def create(self, event: Any, **_: Any) -> None:
        self.created.append(event.to_dict())

    async def patch(self, _kind: Any, _name: str, patch: dict[str, Any], **_more: Any) -> None:
        self.patched.append(patch)

    async def get(self, *_: Any) -> Any:
        found = {"status": {"conditions": self.conditions}}
        return type("Node", (), {"to_dict": lambda _self: found})()
