"""The commands as a person types them: one JSON document, files, exit codes, and what is wrong in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli

from zombiescope.base.packages import install


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> Cli:
    return Cli(tmp_path_factory.mktemp("home"))


def test_a_report_is_one_document_and_found_something(cli: Cli, fleet: Path) -> None:
    done = cli("fleet", "report", str(fleet), "--json", "--by", "zone,image")
    assert done.code == 0, done.err
    assert done.document["schema"] == "zombiescope.fleet.report/1"
    assert done.document["by"][0]["value"] == "v14,us-east-1a"
    assert (cli.home / ".cache/zombiescope/fleet").is_dir()


def test_a_label_that_nobody_has_is_wrong_usage(cli: Cli, fleet: Path) -> None:
    done = cli("fleet", "report", str(fleet), "--by", "zone,imag")
    assert done.code == 2
    assert "no node has the label 'imag'; they have asset, batch, image" in done.err
    assert done.out == ""


def test_pages_are_written(cli: Cli, fleet: Path) -> None:
    for name in ("fleet.html", "fleet.md"):
        done = cli("fleet", "report", str(fleet), "-o", name)
        assert done.code == 0, done.err
        assert "us-east-1a" in (cli.home / name).read_text()


def test_top_search_and_flames_answer(cli: Cli, fleet: Path) -> None:
    top = cli("fleet", "top", str(fleet), "--by", "job-hours", "--json")
    assert top.document["causes"][0]["pattern"] == "zombie-memcg"
    hits = cli("fleet", "search", str(fleet), "mem_cgroup_iter", "--json").document["hits"]
    assert {hit["kind"] for hit in hits} == {"stack", "cause"}
    drawn = cli("fleet", "flamegraph", str(fleet), "--starved", "--against-healthy", "-o", "x.svg")
    assert drawn.code == 0, drawn.err
    assert "mem_cgroup_iter" in (cli.home / "x.svg").read_text()


def test_a_digest_is_markdown_on_standard_output(cli: Cli, fleet: Path) -> None:
    done = cli("fleet", "digest", str(fleet))
    assert done.code == 0, done.err
    assert done.out.startswith("# Fleet digest")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("report", "nowhere"), 1, "nowhere is not a directory"),
        (("report", "."), 1, "there is no node in ."),
        (("report", ".", "--engine", "spark"), 2, "'spark'; choose duckdb or ray"),
        (("report", ".", "--ray-address", "auto"), 2, "only with --engine ray"),
        (("report", ".", "--last", "soon"), 2, "not a duration"),
        (("report", ".", "-o", "x.pdf"), 2, "must end in .html or .md"),
        (("top", ".", "--by", "beauty"), 2, "is not a cost"),
        (("report", "gopher://x/y"), 1, "cannot be opened"),
    ],
)
def test_what_is_wrong_is_one_line(cli: Cli, arguments: tuple[str, ...], code: int, says: str) -> None:
    (cli.home / "empty").mkdir(exist_ok=True)
    done = cli("fleet", *arguments)
    assert done.code == code, done.err
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_without_duckdb_the_command_that_installs_it_is_said(cli: Cli, fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise ImportError('not here')")
    source = Path(__file__).parents[3] / "src"
    done = cli.process("fleet", "report", str(fleet), PYTHONPATH=f"{tmp_path}:{source}")
    assert done.code == 1
    assert install("fleet") in done.err
