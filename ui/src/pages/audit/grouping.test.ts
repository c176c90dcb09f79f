import { expect, it } from "vitest";
import type { Finding } from "../../api/types";
import { bySeverity, evidenceText, findingText, tally } from "./grouping";

const finding = (id: string, severity: Finding["severity"]): Finding => ({
  id,
  rule: id,
  unit: null,
  severity,
  why: "It hurts.",
  evidence: [],
  fix: ["systemctl stop x"],
});
const found = [finding("a", "info"), finding("b", "critical"), finding("c", "info")];

it("groups by severity, worst first, and leaves out what is empty", () => {
  expect(bySeverity(found).map((group) => [group.severity, group.findings.map((each) => each.id)])).toEqual([
    ["critical", ["b"]],
    ["info", ["a", "c"]],
  ]);
  expect([tally(found), tally([])]).toEqual(["1 critical, 2 notes", "nothing"]);
});

it("can be pasted", () => {
  expect(findingText(found[1]!)).toBe("# b (critical)\n# It hurts.\nsystemctl stop x\n");
  expect(evidenceText({ file: "/etc/x", line: 3, text: "a=b" })).toBe("/etc/x:3: a=b");
  expect(evidenceText({ file: "/etc/x", line: null, text: "a=b" })).toBe("/etc/x: a=b");
});
