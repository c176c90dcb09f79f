"""A proxy that replaces all firewall rules whenever anything changes, and something always does."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

RULES = 3_000
SCRIPT = r"""
import subprocess
check(libc.unshare(0x40000000))
rules = [f"ip saddr 10.{n >> 8}.{n & 255}.1 tcp dport {n + 1} counter drop" for n in range(int(args[0]))]
lines = ["flush ruleset", "table ip t { chain c { type filter hook input priority 0;", *rules, "}", "}"]
text = "\n".join(lines) + "\n"
def sync():
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
sync()
wait_for_the_word()
while True:
    sync()
"""

SCENARIO = Scenario(
    id="rule-reload",
    title="All firewall rules are replaced repeatedly",
    does=f"repeatedly replaces {RULES:,} firewall rules in a separate network namespace",
    truth=Truth("iptables-storm", "nft", "syncer"),
    script=SCRIPT,
    comm="syncer",
    frames="6.18: nf_tables_newrule < nfnetlink_rcv_batch, nf_tables_expr_parse; half a CPU, as much for nft itself",
    seconds=20.0,
    needs=Needs(512 * MB, programs=(("nft", "nftables"),)),
    prepare=lambda _: [str(RULES)],
)
