"""kube-apiserver, kube-controller-manager and kubelet from Debian's source package, built once into the cache.

No package has a kubelet, but Debian bookworm has the source of Kubernetes 1.20.2. On two idle cores it takes about six
minutes, 34 MB from apt's own mirror, and 2 GB of disk meanwhile. Three things are not as upstream does them: Go reads
it as a GOPATH, because Go 1.19 refuses its module file together with its vendored packages; the OpenAPI definitions are
generated first, as the source has none; and reflect2 is Debian's 1.0.2, because the vendored 1.0.1 crashes with Go from
1.18 on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from zombiescope.lab import cache, debian, programs
from zombiescope.lab.failure import CannotBuildError

SUITE = "bookworm"
VERSION = "1.20.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kubelet")
NEEDED = (
    ("go", "golang-go"), ("patch", "patch"), ("xz", "xz-utils"), ("apt-get", "apt"),
)  # fmt: skip
REFLECT2 = Path("/usr/share/gocode/src/github.com/modern-go/reflect2")
REFLECT2_PACKAGE = "golang-github-modern-go-reflect2-dev"
_PACKAGE = "k8s.io/kubernetes"
_BUILD_S = 3600.0
_TAG = "+k8s:openapi-gen="


def binaries() -> Path:
    """The directory with the programs; built now if nobody has yet."""
    return cache.entry("kubernetes", key(), _build)


def key() -> str:
    return cache.key(SUITE, VERSION, *PROGRAMS)


def built() -> bool:
    return cache.find("kubernetes", key()) is not None


def _build(into: Path) -> None:
    work = into / "work"
    work.mkdir()
    source = _source(work)
    _with_debians_reflect2(source)
    environment = _environment(work)
    _generate_definitions(source, work, environment)
    for program in PROGRAMS:
        _go(source, environment, "-trimpath", "-ldflags", _stamps(), "-o", into / program, f"{_PACKAGE}/cmd/{program}")
    shutil.rmtree(work)


def _source(work: Path) -> Path:
    """Unpacked and patched, where a GOPATH has it."""
    apt = debian.private_apt(SUITE, work / "apt", kind="deb-src")
    programs.call(["apt-get", *apt, "update"])
    programs.call(["sh", "-c", 'cd "$0" && exec apt-get "$@"', work, *apt, "source", "--download-only", "kubernetes"])
    (place := work / "gopath/src/k8s.io").mkdir(parents=True)
    source = place / "kubernetes"
    source.mkdir()
    for pattern, strip in (("kubernetes_*.orig.tar.*", "1"), ("kubernetes_*.debian.tar.*", "0")):
        (archive,) = work.glob(pattern)
        programs.call(["tar", "-C", source, f"--strip-components={strip}", "-xf", archive])
    for name in (source / "debian/patches/series").read_text().split():
        programs.call(["patch", "--silent", "-p1", "-d", source, "-i", source / "debian/patches" / name])
    return source


def _with_debians_reflect2(source: Path) -> None:
    if not REFLECT2.is_dir():
        raise CannotBuildError("kubelet is built with Debian's reflect2", f"apt-get install {REFLECT2_PACKAGE}")
    vendored = source / "vendor/github.com/modern-go/reflect2"
    for old in (*vendored.glob("*.go"), *vendored.glob("*.s")):
        old.unlink()
    for new in (*REFLECT2.glob("*.go"), *REFLECT2.glob("*.s")):
        shutil.copy(new, vendored)


def _environment(work: Path) -> dict[str, str]:
    return {
        "GOPATH": str(work / "gopath"),
        "GOCACHE": str(work / "gocache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
    }


def _generate_definitions(source: Path, work: Path, environment: dict[str, str]) -> None:
    generator = work / "openapi-gen"
    _go(source, environment, "-o", generator, f"{_PACKAGE}/vendor/k8s.io/kube-openapi/cmd/openapi-gen")
    arguments = [
        "-i", ",".join(_tagged(source)), "-p", f"{_PACKAGE}/pkg/generated/openapi", "-O", "zz_generated.openapi",
        "-h", "hack/boilerplate/boilerplate.generatego.txt", "-r", str(work / "violations"),
        "--output-base", f"{environment['GOPATH']}/src",
    ]  # fmt: skip
    _in(source, environment, str(generator), *arguments)


def _tagged(source: Path) -> list[str]:
    """Go packages that ask for OpenAPI definitions; those of the staging area by their name among the vendored."""
    staging = source / "staging/src"
    found = {
        file.parent.relative_to(source)
        for top in ("pkg", "cmd", "plugin", "staging/src/k8s.io")
        for file in (source / top).rglob("*.go")
        if _TAG in file.read_text(errors="replace")
    }
    names = {
        f"vendor/{path.relative_to('staging/src')}" if staging in (source / path).parents else str(path)
        for path in found
    }
    left_out = ("/code-generator/", "/sample-apiserver/")
    return sorted(f"{_PACKAGE}/{name}" for name in names if not any(part in f"{name}/" for part in left_out))


def _stamps() -> str:
    """The version that the programs report: kubelet refuses to work without one."""
    major, minor, _ = VERSION.split(".")
    values = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = (f"{_PACKAGE}/vendor/k8s.io/component-base/version", f"{_PACKAGE}/vendor/k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s", "-w", *(f"-X {place}.{name}={value}" for place in packages for name, value in values.items())]
    )


def _go(source: Path, environment: dict[str, str], *arguments: str | Path) -> None:
    _in(source, environment, "nice", "go", "build", *map(str, arguments))


def _in(source: Path, environment: dict[str, str], *command: str) -> None:
    script = 'cd "$0" && exec "$@"'
    programs.call(["sh", "-c", script, source, *command], limit_s=_BUILD_S, environment=environment)
