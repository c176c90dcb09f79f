"""Builds the one native module; everything else about the package stands in pyproject.toml."""

from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

native = Extension(
    "zombiescope._native",
    ["src/zombiescope/_native.pyx"],
    depends=sorted(glob("src/zombiescope/native/*.pxi")),
    extra_compile_args=["-O2", "-g1", "-Wall", "-Wno-unused-function", "-Wno-unreachable-code"],
)

setup(
    ext_modules=cythonize(
        [native],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
        include_path=["src/zombiescope/native"],
    )
)
