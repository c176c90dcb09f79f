"""What is known of one container, from whichever file said it."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Description:
    """None is what nobody said."""

    name: str | None = None
    image: str | None = None
    runtime: str | None = None
    namespace: str | None = None
    """The pod's."""
    pod: str | None = None
    pod_uid: str | None = None
    restarts: int | None = None
    restart_policy: str | None = None
    code: int | None = None
    running: bool | None = None
    arguments: tuple[str, ...] = ()
    directory: str | None = None
    """Where its runtime keeps its files."""
    owner: str | None = None
    """The pod's, as the API server says: Deployment/web. No file of the node has it."""
    manager: str | None = None
    """Who manages it, as its labels say: "compose project web"."""

    def filled(self, other: Description) -> Description:
        """With what another source knows and this one does not."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Description(
            **{name: value if value not in (None, ()) else getattr(other, name) for name, value in values.items()}
        )

    @property
    def is_named(self) -> bool:
        return self.name is not None or self.image is not None or self.pod is not None
