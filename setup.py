"""Builds the one native module; everything else about the package stands in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

native = Extension(
    "zombiescope._native",
    ["src/zombiescope/_native.pyx"],
    depends=sorted(str(part) for part in Path("src/zombiescope/native").glob("*.pxi")),
    extra_compile_args=["-O2", "-g1", "-Wall", "-Wno-unused-function", "-Wno-unreachable-code"],
)

setup(
    ext_modules=cythonize(
        [native],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
        include_path=["src/zombiescope/native"],
    )
)
