# A plug-in for sos (https://github.com/sosreport/sos): what zombiescope knows of a node, in a support archive.
# Install it as sos/report/plugins/zombiescope.py.

from sos.report.plugins import IndependentPlugin, Plugin, PluginOpt


class Zombiescope(Plugin, IndependentPlugin):
    short_desc = "zombiescope, the flight recorder for ML training nodes"
    plugin_name = "zombiescope"
    profiles = ("system", "hardware", "performance", "container")
    packages = ("zombiescope",)
    commands = ("zombiescope",)
    option_list = [
        PluginOpt("last", default="10m", desc="how much of the recording to pack"),
        PluginOpt("redact", default=True, desc="replace names, paths and command lines in the packed recording"),
        PluginOpt("size", default=200, val_type=int, desc="leave the recording out if the pack is larger (MB)"),
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
        place = self.get_cmd_output_path(name="last.zscope", make=True)
        redact = "--redact " if self.get_option("redact") else ""
        self.add_cmd_output(
            f"zombiescope pack --last {self.get_option('last')} {redact}-o {place}",
            suggest_filename="pack",
            timeout=300,
            sizelimit=self.get_option("size"),
        )

    def postproc(self):
        """Secrets stand in files that the configuration names; an address may hold one."""
        self.do_path_regex_sub("/etc/zombiescope/agent.yaml", r"(https?://[^/\s]+)/\S*", r"\1/***")
