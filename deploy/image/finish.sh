#!/bin/sh
# Second stage: a user without rights, and the capabilities on an interpreter that runs nothing but zombiescope. Whoever starts
# the image must also allow them (docker run --cap-add PERFMON ...; the chart does): what is not allowed is not had, and said.
#
#     finish.sh PLACE
set -eu
place=$1
interpreter=$(readlink -f "$place/bin/python3")
case $interpreter in
    "$place"/*) ;;
    *) echo "$interpreter is not our own: build with --copies" >&2; exit 1 ;;
esac
# Nobody but root changes it, and nobody but our group runs it: it is no general interpreter any more.
chown root:zombiescope "$interpreter"
chmod 750 "$interpreter"
setcap cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search+ep "$interpreter"
install -d -o zombiescope -g zombiescope -m 750 /var/lib/zombiescope
install -d -o zombiescope -g zombiescope -m 755 /run/zombiescope
