#!/bin/sh
# `make image-steps`: the steps of the image, run in an empty directory, and what comes out of them tried: it answers, records
# for two seconds, and its interpreter has the four capabilities. Prints the size.
set -eu
here=$(cd "$(dirname "$0")" && pwd) && source=$(cd "$here/../.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
"$here/build.sh" "$source" "$work/zombiescope"
cd /
"$work/zombiescope/bin/zombiescope" --version
"$work/zombiescope/bin/zombiescope" agent --check-config "$work/rec"
for missing in pip setuptools Cython; do
    ! "$work/zombiescope/bin/python3" -c "import $missing" 2>/dev/null || { echo "$missing is in the image" >&2; exit 1; }
done
ZOMBIESCOPE_RUNTIME_DIR="$work/run" "$work/zombiescope/bin/zombiescope" record "$work/rec" --for 2s --quiet >/dev/null
"$work/zombiescope/bin/zombiescope" info "$work/rec" --json >/dev/null
modules=$(find "$work"/zombiescope/lib/python3*/site-packages/zombiescope -name '*.py' | wc -l)
compiled=$(find "$work"/zombiescope/lib/python3*/site-packages/zombiescope -name '*.pyc' | wc -l)
[ "$compiled" -ge "$modules" ] || { echo "$compiled of $modules modules are compiled: every start would do it anew" >&2; exit 1; }
if [ "$(id -u)" = 0 ] && command -v setcap >/dev/null; then
    interpreter=$(readlink -f "$work/zombiescope/bin/python3")
    setcap cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search+ep "$interpreter"
    getcap "$interpreter"
fi
echo "zombiescope in the image: $(du -sm "$work/zombiescope" | cut -f1) MB"
