"""`zombiescope push`: samples of a window to a store of profiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from zombiescope.cli import picture
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples, note, print_document
from zombiescope.cli.quantities import duration_s, human_bytes
from zombiescope.cli.recording_argument import Node, opened
from zombiescope.questions.views import ExportQuestion, ProfileQuestion

if TYPE_CHECKING:
    from zombiescope.query.exports.peer import Peer
    from zombiescope.query.exports.push import Target
    from zombiescope.query.exports.samples import ExportSamples

EXAMPLES = examples(
    "push --last 10m --as pyroscope http://pyroscope:4040",
    "push --last 1h --as parca http://parca:7070 --label team=ml",
    "push x.zscope --as otlp https://collector:4318 --token-file key",
    "push --since 12:00 --until 12:10 --as parca http://parca:7070",
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


TARGETS: tuple[Target, ...] = ("pyroscope", "parca", "otlp")


def command(
    question: ProfileQuestion,
    peer: Annotated[
        list[str],
        typer.Option("--as", metavar="FORMAT", help="Protocol: pyroscope, parca or otlp.", show_default=False),
    ],
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[DIR] URL",
            show_default=False,
            help="The peer's address, and before it the recording, if it is not the default: $ZOMBIESCOPE_DIR, else "
            "that of the recorder running here, else /var/lib/zombiescope.",
        ),
    ],
    name: Annotated[
        str, typer.Option("--name", help="Name of the service or application at the peer.")
    ] = "zombiescope",
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="K=V", help="An extra label; may be repeated.", show_default=False),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="K=V", help="An extra header; may be repeated.", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="A file with the token to send as Bearer.", show_default=False
        ),
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Send the token to another machine over unencrypted HTTP.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="DURATION", help="How much time one request holds: 10s, for otlp 1m.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long to wait for an answer.")
    ] = "30s",
    node: Node = None,
    json_: Json = False,
) -> None:
    """Send the samples of a window to Pyroscope, Parca or an OTLP receiver.

    The window is sent in pieces of --every, because Pyroscope and Parca keep the time of a piece, not of each sample.
    """
    target = _target(peer)
    directory, url = _place(arguments)
    headers, labels = _headers(header, token_file), dict(_pair(each, "--label") for each in label or ())
    every_us = None if every is None else _every_us(every)
    timeout_s = duration_s(timeout)
    with opened(directory, node) as recording:
        from zombiescope.documents.export import answer
        from zombiescope.query.exports.peer import Peer
        from zombiescope.query.exports.samples import ExportSamples

        found = answer(recording, ExportQuestion(question.window, question.filters, every_event=target == "otlp"))
        samples = ExportSamples(found.selection)
        sent = _push(samples, target, Peer(url, headers, timeout_s, plain=plain_http), name, labels, every_us)
    if not sent.requests:
        picture.say_empty(found.filters, directory)
    if json_:
        taken = {"accepted": sent.samples, "requests": sent.requests, "bytes": sent.bytes}
        span = {"from": found.window.start_us / 1e6, "to": found.window.end_us / 1e6}
        print_document("push", {"node": samples.name, **span, "peer": target, "url": url, **taken})
    else:
        note(f"{url} accepted {sent.samples:,} samples in {sent.requests:,} requests, {human_bytes(sent.bytes)}")


class _Total(NamedTuple):
    requests: int = 0
    samples: int = 0
    bytes: int = 0


def _push(
    samples: ExportSamples, target: Target, peer: Peer, name: str, labels: dict[str, str], every_us: int | None
) -> _Total:
    """Everything, or an error that says how much of it was taken before."""
    from zombiescope.query.exports.peer import PushError
    from zombiescope.query.exports.push import push

    total = _Total()
    try:
        for sent in push(samples, target, peer, name, _all_labels(samples, labels), every_us):
            total = _Total(total.requests + 1, total.samples + sent.samples, total.bytes + sent.bytes)
    except PushError as error:
        before = f" ({total.requests} requests with {total.samples:,} samples were accepted before)"
        raise PushError(f"{error}{before if total.requests else ''}") from None
    return total


def _all_labels(samples: ExportSamples, given: dict[str, str]) -> dict[str, str]:
    """The node, the labels that it was recorded with, and those of the command line, which win."""
    recorded = samples.node.get("labels")
    known = {str(key): str(value) for key, value in recorded.items()} if isinstance(recorded, dict) else {}
    return {"node": samples.name, **known, **given}


def _target(given: list[str]) -> Target:
    found = [each for each in TARGETS if given == [each]]
    if not found:
        raise typer.BadParameter(f"--as names one protocol: {', '.join(TARGETS)}")
    return found[0]


def _place(arguments: list[str]) -> tuple[str | None, str]:
    if len(arguments) > 2:
        raise typer.BadParameter("there may be one recording and one URL, in this order")
    url = arguments[-1]
    if "://" not in url:
        raise typer.BadParameter(f"{url!r} is not the URL of a peer; write http://host:port")
    return arguments[0] if len(arguments) == 2 else None, url


def _headers(given: list[str] | None, token_file: Path | None) -> dict[str, str]:
    headers = dict(_pair(each, "--header") for each in given or ())
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isprintable():
            raise typer.BadParameter(f"--header {name!r} is not a header that HTTP allows")
    if token_file is None:
        return headers
    try:
        token = token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(f"--token-file {token_file} cannot be read: {why}") from error
    if not token or not token.isprintable():
        raise Failure(f"--token-file {token_file} holds no token", "write the token into it, on one line")
    return {"Authorization": f"Bearer {token}", **headers}


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise typer.BadParameter(f"{option} {text!r} is not K=V")
    return key.strip(), value.strip()


def _every_us(text: str) -> int:
    every_us = round(duration_s(text) * 1e6)
    if every_us < 1_000_000:
        raise typer.BadParameter(f"--every {text!r} is less than a second")
    return every_us
