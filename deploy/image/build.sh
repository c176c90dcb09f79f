#!/bin/sh
# First stage of the image, and `make image-steps`: zombiescope with everything that it needs at run time, in a virtual
# environment of its own. What is locked is installed, checked against its hashes; nothing else.
#
#     build.sh SOURCE PLACE [WHEEL]        PLACE is /opt/zombiescope in the image; WHEEL is one that was built before
set -eu
source=$1 place=$2 wheel=${3:-}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The page is built before (scripts/page build); a wheel without it would serve nothing.
[ -e "$source/src/zombiescope/web/page/index.html" ] || { echo "build the page first: make setup" >&2; exit 1; }

"$python" -m venv --copies "$place"
"$place/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r "$source/requirements/runtime.txt"

# The wheel is made in an environment that is thrown away: neither compiler nor Cython reaches the image.
if [ -z "$wheel" ]; then
"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir 'setuptools>=77' 'cython>=3.1' wheel
(cd "$source" && tar -cf - --exclude=__pycache__ pyproject.toml setup.py README.md LICENSE packaging src) | (mkdir "$work/source" && tar -xf - -C "$work/source")
rm -f "$work/source/src/zombiescope/_native.c" "$work"/source/src/zombiescope/_native.*.so
"$work/build/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$work/wheel" "$work/source"
wheel=$(echo "$work"/wheel/*.whl)
fi
"$place/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index "$wheel"

# One interpreter under all its names: the capabilities are put on a file.
for name in "$place"/bin/python "$place"/bin/python3.*; do ln -sf python3 "$name"; done

# What no program of ours reads: the installer, headers, tests.
"$place/bin/pip" uninstall --quiet --yes setuptools pip 2>/dev/null || true
packages=$(echo "$place"/lib/python3*/site-packages)
rm -rf "$packages"/pyarrow/include "$packages"/pyarrow/tests "$packages"/numpy/*/tests "$packages"/numpy/tests "$packages"/numpy/_core/include
rm -f "$packages"/pyarrow/libarrow_flight* "$packages"/pyarrow/_flight* "$packages"/pyarrow/libarrow_python_flight* "$packages"/pyarrow/_gandiva* "$packages"/pyarrow/libgandiva*
# Which of its libraries pyarrow cannot do without changes with its version.
"$place/bin/python3" -B -c 'import numpy, pyarrow.compute, pyarrow.dataset, pyarrow.fs, pyarrow.parquet'

# Bytecode, made once and never looked up against its source: the root is read-only, so that every process that starts (the
# doctor, and whoever ships or pushes) would compile all of it anew, which costs it three times the CPU. Its paths are those of
# the image.
find "$place" -name __pycache__ -type d -prune -exec rm -rf {} +
"$place/bin/python3" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$packages"
