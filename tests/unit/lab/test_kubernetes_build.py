"""What is built of Kubernetes' source: which packages get OpenAPI definitions, and what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.lab import kubernetes_build
from zombiescope.lab.failure import CannotBuildError


def test_tagged_packages_are_found_and_staged_ones_by_their_vendored_name(tmp_path: Path) -> None:
    for name, text in {
        "pkg/apis/core/doc.go": "// +k8s:openapi-gen=true",
        "pkg/apis/core/more.go": "// +k8s:openapi-gen=true",
        "pkg/util/util.go": "package util",
        "staging/src/k8s.io/api/core/v1/doc.go": "// +k8s:openapi-gen=true",
        "staging/src/k8s.io/code-generator/x/doc.go": "// +k8s:openapi-gen=true",
        "staging/src/k8s.io/sample-apiserver/doc.go": "// +k8s:openapi-gen=true",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert kubernetes_build._tagged(tmp_path) == [
        "k8s.io/kubernetes/pkg/apis/core",
        "k8s.io/kubernetes/vendor/k8s.io/api/core/v1",
    ]


def test_without_debians_reflect2_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_build, "REFLECT2", tmp_path / "none")
    with pytest.raises(CannotBuildError, match="reflect2"):
        kubernetes_build._with_debians_reflect2(tmp_path)


def test_the_stamps_are_the_version_of_the_source() -> None:
    stamps = kubernetes_build._stamps()
    assert stamps.count("gitVersion=v1.20.2") == 2
    assert stamps.count("gitMinor=20") == 2
