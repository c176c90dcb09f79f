"""A newcomer with a clean clone, an empty HOME and nothing installed by us follows README and tutorial word for word.

`make test-newcomer` runs it: as an ordinary user, and as root where it is root. Everything is set up anew, from the
network, so it takes minutes. Commands that need root are left out for the ordinary user, as the pages say.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.helpers import pages
from tests.helpers.pages import Step

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/tutorial.md")
NOBODY = 65534
LIMIT_S = 900
"""For one block: the first sets everything up."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@dataclass(frozen=True)
class Newcomer:
    place: Path
    """The clone; HOME is beside it."""
    uid: int

    def follow(self, step: Step) -> str:
        """What it prints; the shell ends at the first command that fails. 3 is "done, and something was found"."""
        script = step.commands.replace("sudo ", "") if self.uid == 0 else step.commands
        export = f"export PATH={self.place}/.venv/bin:$PATH\n"
        argv = ["bash", "-c", f"set -u\n{export}{_checked(script)}"]
        with subprocess.Popen(
            argv, cwd=self.place, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            user=self.uid or None, group=self.uid or None, extra_groups=[] if self.uid else None,
            start_new_session=True, umask=0o022,
        ) as shell:  # fmt: skip
            return self._until(shell, step.until) if step.until else self._to_its_end(shell, script)

    def _to_its_end(self, shell: subprocess.Popen[str], script: str) -> str:
        try:
            printed, _ = shell.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            raise
        assert shell.returncode == 0, f"{script}\n{printed[-4000:]}"
        return printed

    def _until(self, shell: subprocess.Popen[str], text: str) -> str:
        """Up to the line with `text`; then Ctrl-C, which must end it cleanly."""
        assert shell.stdout is not None
        printed = ""
        for line in shell.stdout:
            printed += line
            if text in line:
                break
        else:
            raise AssertionError(f"{text!r} was never printed:\n{printed[-4000:]}")
        time.sleep(3)
        os.killpg(shell.pid, signal.SIGINT)
        rest, _ = shell.communicate(timeout=60)
        assert "Traceback" not in rest, rest
        return printed + rest

    def _environment(self) -> dict[str, str]:
        """Nothing of ours: no cache, no configuration, no variable but where the network is."""
        kept = {name: os.environ[name] for name in NETWORK if name in os.environ}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {**kept, "HOME": str(self.place.parent / "home"), "PATH": path, "LANG": "C.UTF-8", "COLUMNS": "80"}


NETWORK = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_CERT", "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY",
)  # fmt: skip


def _checked(script: str) -> str:
    """Each line must end with 0, or with 3 where something was found."""
    return "\n".join(f"{line} || [ $? = 3 ] || exit 1" if line.strip() else "" for line in script.splitlines())


@pytest.fixture(scope="module", params=["user", "root"])
def newcomer(request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    uid = 0 if request.param == "root" else os.getuid() or NOBODY
    if request.param == "root" and os.getuid() != 0:
        pytest.skip("not root here; as root it is followed as root, too")
    # Not pytest's own place: that of root is closed to others.
    base = Path(tempfile.mkdtemp(prefix=f"newcomer-{request.param}-", dir="/var/tmp"))
    base.chmod(0o755)
    place = base / "zombiescope"
    _clone(place)
    (base / "home").mkdir()
    if uid:
        for path in (base / "home", place, *place.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)
    yield Newcomer(place, uid)
    shutil.rmtree(base, ignore_errors=True)


def _clone(place: Path) -> None:
    """What git has, and what it would have: nothing that was built here."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if os.path.lexists(ROOT / name):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_works_as_it_is_written(newcomer: Newcomer, page: str) -> None:
    for step in pages.steps(ROOT / page):
        if step.skipped or (step.root and newcomer.uid):
            continue
        printed = newcomer.follow(step)
        assert not pages.missing(step, printed), f"{step.commands}\n{printed[-4000:]}"
        assert "Traceback" not in printed


def test_both_pages_have_steps() -> None:
    assert len(pages.steps(ROOT / "README.md")) == 3
    tutorial = pages.steps(ROOT / "docs/tutorial.md")
    assert len(tutorial) == 10
    assert sum(bool(step.seen) for step in tutorial) == 8
    assert [step.until for step in tutorial if step.until] == ["http://"]
