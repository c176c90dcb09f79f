// Findings by severity, worst first, and each as a text to paste into a ticket or a terminal.

import { SEVERITIES } from "../../api/severity";
import type { Finding, Severity } from "../../api/types";
import { plural } from "../../format";

export interface Group {
  severity: Severity;
  findings: Finding[];
}

export function bySeverity(findings: readonly Finding[]): Group[] {
  return SEVERITIES.map((severity) => ({
    severity,
    findings: findings.filter((finding) => finding.severity === severity),
  })).filter((group) => group.findings.length);
}

/** "2 critical, 2 warnings, 1 note", worst first; "nothing" when there is nothing. */
const NOUNS = { warning: "warning", info: "note" };

export function tally(findings: readonly { severity: Severity }[]): string {
  const said = SEVERITIES.map(
    (severity) => [findings.filter((each) => each.severity === severity).length, severity] as const,
  )
    .filter(([number]) => number)
    .map(([number, severity]) => (severity === "critical" ? `${number} critical` : plural(number, NOUNS[severity])));
  return said.join(", ") || "nothing";
}

export function evidenceText(evidence: Finding["evidence"][number]): string {
  const place = evidence.line === null ? evidence.file : `${evidence.file}:${evidence.line}`;
  return `${place}: ${evidence.text}`;
}

export function findingText(finding: Finding): string {
  return `${[`# ${finding.id} (${finding.severity})`, `# ${finding.why}`, ...finding.fix].join("\n")}\n`;
}
