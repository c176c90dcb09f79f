// Misconfigurations of this machine before they cause an incident: findings by severity, the evidence, and the fix.

import type { Audited, Finding } from "../../api/types";
import { Copy } from "../../chrome/copy";
import { Empty, MissingList } from "../../chrome/states";
import { plural } from "../../format";
import { rec, useDocument } from "../../state";
import { Loaded, Page, Panel, Tag } from "../parts/parts";
import { bySeverity, evidenceText, findingText, tally } from "./grouping";

export function AuditPage() {
  const answer = useDocument("audit", { rec: rec.value });
  const data = answer.data;
  const lead = data?.available
    ? `${tally(data.findings)} found in ${plural(data.units, "unit")}; ${plural(data.services_started, "service")} started at boot.`
    : "Misconfigurations of a machine, before they cause an incident.";
  const all = data?.available && data.findings.length ? data.findings.map(findingText).join("\n") : "";
  return (
    <Page title="Audit" lead={lead} aside={all && <Copy text={all} what="copy every fix" />}>
      <Loaded answer={answer} what="auditing this machine" lines={6}>
        {(audit) => (audit.available ? <Findings audit={audit} /> : <Elsewhere why={audit.why} />)}
      </Loaded>
    </Page>
  );
}

function Elsewhere({ why }: { why: string }) {
  return (
    <Empty title="Not audited">
      <p>{why}</p>
      <p class="faint">
        Run <code>zombiescope audit</code> there, or <code>zombiescope audit --root PATH</code> on its image.
      </p>
    </Empty>
  );
}

function Findings({ audit }: { audit: Audited }) {
  return (
    <>
      {!audit.live && (
        <p class="pg-note">
          systemd was not asked: its files in {audit.root} were read instead, and apply to a machine booted from there.
        </p>
      )}
      {!audit.findings.length && <Empty good title="No problems found" />}
      {bySeverity(audit.findings).map((group) => (
        <section key={group.severity} aria-labelledby={`audit-${group.severity}`} class="pg-group">
          <h2 id={`audit-${group.severity}`}>
            <Tag severity={group.severity} /> {plural(group.findings.length, "finding")}
          </h2>
          {group.findings.map((finding) => (
            <One key={finding.id} finding={finding} />
          ))}
        </section>
      ))}
      {audit.allowed.length > 0 && (
        <Panel title="Accepted">
          <ul class="pg-plain">
            {audit.allowed.map((finding) => (
              <li key={finding.id}>
                <code>{finding.id}</code> {finding.reason}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {audit.missing.length > 0 && (
        <Panel title="Could not be checked" aside={<span class="faint">{plural(audit.missing.length, "source")}</span>}>
          <MissingList missing={audit.missing} />
        </Panel>
      )}
    </>
  );
}

function One({ finding }: { finding: Finding }) {
  return (
    <article class={`pg-finding pg-edge-${finding.severity}`} aria-labelledby={`finding-${finding.id}`}>
      <header>
        <h3 id={`finding-${finding.id}`}>{finding.unit ?? finding.id}</h3>
        {finding.unit && <code class="faint">{finding.rule}</code>}
        <span class="pg-aside">
          <Copy text={findingText(finding)} what="copy the fix" />
        </span>
      </header>
      <p>{finding.why}</p>
      <div class="pg-pair">
        <div>
          <h4>Found in</h4>
          <ul class="pg-evidence">
            {finding.evidence.map((each) => (
              <li key={evidenceText(each)}>
                <code class="faint">
                  {each.file}
                  {each.line === null ? "" : `:${each.line}`}
                </code>
                <code>{each.text}</code>
              </li>
            ))}
          </ul>
        </div>
        <div>
          <h4>Fix</h4>
          <pre class="pg-code" tabIndex={0}>
            {finding.fix.join("\n")}
          </pre>
        </div>
      </div>
    </article>
  );
}
