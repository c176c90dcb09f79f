"""A client of the API server: whose credentials, how patient, and what may go wrong.

Credentials, the first that there are: a kubeconfig that was named, the service account of our pod, KUBECONFIG,
~/.kube/config. A token is a file that kubelet writes anew every hour: it is read again when the server says 401.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from zombiescope.base.errors import UserError
from zombiescope.base.packages import install
from zombiescope.base.text import printable

if TYPE_CHECKING:
    from lightkube import AsyncClient, Client
    from lightkube.config.kubeconfig import SingleConfig

CONNECT_S = 5.0
READ_S = 20.0
NAME = "zombiescope"
"""Field manager, event source and lease holder: how the cluster knows us."""
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MAX_TEXT = 300

R = TypeVar("R")


class ClusterError(UserError):
    """What a person sees when the API server cannot be used."""


@dataclass(frozen=True, slots=True)
class Access:
    """Whose credentials, and which node is ours."""

    kubeconfig: str | None = None
    node: str | None = None

    def node_name(self) -> str:
        """As Kubernetes calls this node: as the pod was told, else the host's name as kubelet takes it."""
        return self.node or os.environ.get("NODE_NAME") or socket.gethostname().strip().lower()

    def client(self) -> Client:
        config = self._config()
        import lightkube

        return lightkube.Client(config, timeout=_timeout(), field_manager=NAME)

    def async_client(self) -> AsyncClient:
        config = self._config()
        import lightkube

        return lightkube.AsyncClient(config, timeout=_timeout(), field_manager=NAME)

    def _config(self) -> SingleConfig:
        need_extra()
        from lightkube.config.kubeconfig import KubeConfig

        try:
            found = KubeConfig.from_file(self.kubeconfig) if self.kubeconfig else KubeConfig.from_env()
            config = found.get()
        except Exception as error:  # a file that somebody else wrote: it is wrong in many ways
            raise ClusterError(
                f"no credentials for the API server in {self.kubeconfig or _places()}: {brief(error)}",
                "name a kubeconfig, or run in a pod with a service account",
            ) from error
        if config is None or config.user is None:
            where = self.kubeconfig or _places()
            raise ClusterError(f"{where} names no user for the API server", "give its current-context a user")
        return config


def need_extra() -> None:
    """One line with the command, where the optional part is not installed."""
    try:
        import lightkube  # noqa: F401
    except ImportError as error:
        raise ClusterError(f"the package {error.name} is not installed", f"{install('cluster')}") from error


def trouble() -> tuple[type[Exception], ...]:
    """All that a server, a proxy or the network between can do to a request. A proxy's 500 without a Content-Type is a
    KeyError in lightkube."""
    import httpx2
    import msgspec

    return (httpx2.HTTPError, httpx2.StreamError, msgspec.MsgspecError, OSError, KeyError, ValueError)


def any_trouble() -> tuple[type[Exception], ...]:
    """That, and credentials that cannot be used."""
    return (ClusterError, *trouble())


def resource(kind: type[R], document: dict[str, Any]) -> R:
    """An object of the API, from its document."""
    made: Any = kind
    return cast("R", made.from_dict(document))


def status_code(error: BaseException) -> int | None:
    """What the server answered; None when nothing came, or nothing that is HTTP."""
    status = getattr(error, "status", None)
    code = getattr(status, "code", None)
    if code is None:
        code = getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int) else None


def retry_after_s(error: BaseException) -> float | None:
    """How long the server asks us to wait (429, and 503 of one that is overloaded)."""
    response: Any = getattr(error, "response", None)
    said = "" if response is None else str(response.headers.get("Retry-After", ""))
    return float(said) if said.isdecimal() and len(said) < 6 else None


def brief(error: BaseException) -> str:
    """The reason in one bounded line."""
    text = str(error) or type(error).__name__
    code = status_code(error)
    return printable(f"{code} {text}" if code is not None else text)[:_MAX_TEXT]


def _timeout() -> Any:
    import httpx2

    return httpx2.Timeout(READ_S, connect=CONNECT_S)


def _places() -> str:
    return f"{_ACCOUNT}, $KUBECONFIG or ~/.kube/config"
