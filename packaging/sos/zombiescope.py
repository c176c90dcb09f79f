# A plug-in for sos (https://github.com/sosreport/sos): what zombiescope knows of a node, in a support archive.
# Install it as sos/report/plugins/zombiescope.py.

import os

from sos.report.plugins import DebianPlugin, Plugin, RedHatPlugin, UbuntuPlugin

try:
    from sos.report.plugins import PluginOpt
except ImportError:  # before sos 4.1 an option was a tuple

    def PluginOpt(name, default, desc):
        return (name, desc, "fast", default)


class Zombiescope(Plugin, DebianPlugin, UbuntuPlugin, RedHatPlugin):
    short_desc = "zombiescope, the flight recorder for ML training nodes"
    plugin_name = "zombiescope"
    profiles = ("system", "hardware", "performance", "container")
    packages = ("zombiescope",)
    commands = ("zombiescope",)
    option_list = [
        PluginOpt("last", default="10m", desc="how much of the recording to pack"),
        PluginOpt("redact", default=True, desc="replace names, paths and command lines in the packed recording"),
    ]

    def setup(self):
        self.add_copy_spec(["/etc/zombiescope/agent.yaml", "/var/lib/zombiescope/node=*/incidents.json"])
        self.add_cmd_output(
            [
                "zombiescope status --json",
                "zombiescope selftest --json",
                "zombiescope diagnose --json",
                "zombiescope check --json",
                "zombiescope cgroups --json",
                "zombiescope events --json",
                "zombiescope history --json",
                "zombiescope agent --check-config",
            ],
            timeout=120,
        )
        self._pack()

    def _pack(self):
        """A portable recording of the last minutes: `zombiescope serve FILE` opens it."""
        place = os.path.join(self.get_cmd_output_path(make=True), "last.zscope")
        redact = "--redact " if self.get_option("redact") else ""
        self.add_cmd_output(
            f"zombiescope pack --last {self.get_option('last')} {redact}-o {place}",
            suggest_filename="pack",
            timeout=300,
        )

    def postproc(self):
        """Secrets stand in files that the configuration names; an address may hold one."""
        self.do_path_regex_sub("/etc/zombiescope/agent.yaml", r"(https?://[^/\s]+)/\S*", r"\1/***")
