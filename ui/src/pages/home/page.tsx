// The home page always has something true to say. A healthy machine has a worst second too; it is mostly harmless, and it
// shows on this very machine what an average hides.

import { titleOf } from "../../api/incident";
import type { Audit, Cgroups, Diagnosis, Modes, Worst } from "../../api/types";
import { Go } from "../../chrome/link";
import { Empty, MissingList } from "../../chrome/states";
import { exactly } from "../../flame/search";
import { clock, count, day, duration, moment, percent, plural, sentence, span, zoneName } from "../../format";
import type { Target } from "../../state";
import { type Answer, info, rec, recordings, useDocument, zoneOffset } from "../../state";
import { bySeverity, tally } from "../audit/grouping";
import { growthWords, milestones, verdict } from "../cgroups/forecast";
import { sorted } from "../incident/list";
import { Outage } from "../parts/outage";
import { Frames, Loaded, Page, Panel, Tag } from "../parts/parts";
import { hiddenWords } from "./hidden";

export const FOUNDING = "founding-case";

export function HomePage() {
  const about = info.value;
  const live = about?.live ?? false;
  const params = { rec: rec.value };
  const worst = useDocument("worst", params, { every_s: live ? 5 : 0 });
  const incidents = useDocument("incidents", params, { every_s: live ? 10 : 0 });
  const cgroups = useDocument("cgroups", params, { every_s: live ? 10 : 0 });
  const audit = useDocument("audit", params);
  return (
    <Page title={about ? about.node : "This machine"} lead={<Lead />}>
      {incidents.data && <Outage of={incidents.data} />}
      <div class="pg-home">
        <WorstSecond answer={worst} />
        <Hidden answer={worst} />
        <Incidents answer={incidents} />
        <Zombies answer={cgroups} />
        <Findings answer={audit} />
        <Unseen />
      </div>
      <Door />
    </Page>
  );
}

function Lead() {
  const about = info.value;
  if (!about) return <>Reading the recording …</>;
  const zone = zoneOffset.value;
  const facts = [
    about.cpus && plural(about.cpus, "core"),
    about.kernel && `kernel ${about.kernel}`,
    `${count(about.samples)} samples`,
  ].filter(Boolean);
  return (
    <>
      {about.live ? <span class="pg-tag pg-live">● recording now</span> : <span class="pg-tag">a recording</span>}{" "}
      {facts.join(", ")} · <span class="mono">{span(about.from, about.to, zone)}</span> {zoneName(zone)}
    </>
  );
}

function secondPlace(second: NonNullable<Worst["second"]>): Target {
  const hot = second.path[second.path.length - 1];
  return {
    page: "node",
    view: { from: second.at - 30, to: second.at + 30 },
    selection: { from: second.at, to: second.at + 1 },
    filters: { cpu: [String(second.cpu)] },
    search: hot ? exactly(hot) : "",
  };
}

const MODES = ["system", "softirq", "irq", "steal", "user", "iowait"] as const;

function WorstSecond({ answer }: { answer: Answer<Worst> }) {
  return (
    <Panel title="The worst second so far" class="pg-hero">
      <Loaded answer={answer} what="looking for the worst second">
        {({ second }) => {
          if (!second)
            return (
              <Empty title="No core was measured yet">
                <p class="faint">The first second appears here as soon as it was recorded.</p>
              </Empty>
            );
          const place = secondPlace(second);
          const hot = second.path[second.path.length - 1];
          const owner = second.container ?? second.unit;
          const kernel = (second.modes.system ?? 0) + (second.modes.softirq ?? 0) + (second.modes.irq ?? 0);
          return (
            <>
              <p class="pg-big">
                <Go place={place}>
                  core {second.cpu} at {clock(second.at, zoneOffset.value)}
                </Go>
                <span class="faint"> {day(second.at, zoneOffset.value)}</span>
              </p>
              <p>
                The kernel held it for <strong>{percent(kernel)}</strong> of that second.{" "}
                {second.comm ? (
                  <>
                    <strong>{second.comm}</strong>
                    {second.pid !== null && <span class="faint"> [{second.pid}]</span>}
                    {owner && owner !== second.comm && <span class="faint"> of {owner}</span>} ran there
                    {hot ? (
                      <>
                        , in <code>{hot}</code>.
                      </>
                    ) : (
                      "."
                    )}
                  </>
                ) : (
                  <span class="faint">Who ran there was not sampled.</span>
                )}
              </p>
              <ModeBar modes={second.modes} />
              {second.path.length > 0 && (
                <Frames frames={second.path} place={(frame) => ({ ...place, search: exactly(frame) })} />
              )}
              <p class="pg-more">
                <Go place={place}>open this second</Go>
              </p>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function ModeBar({ modes }: { modes: Modes }) {
  const shown = MODES.filter((mode) => (modes[mode] ?? 0) >= 0.005);
  const words = shown.map((mode) => `${mode} ${percent(modes[mode])}`).join(", ") || "idle";
  return (
    <div class="pg-modes">
      <div class="pg-modebar" role="img" aria-label={words}>
        {shown.map((mode) => (
          <i key={mode} class={`pg-mode-${mode}`} style={{ width: `${100 * Math.min(1, modes[mode] ?? 0)}%` }} />
        ))}
      </div>
      <ul aria-hidden="true">
        {shown.map((mode) => (
          <li key={mode}>
            <i class={`pg-mode-${mode}`} /> {mode} {percent(modes[mode])}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Hidden({ answer }: { answer: Answer<Worst> }) {
  return (
    <Panel title="What the average hid">
      <Loaded answer={answer} what="comparing cores with their average">
        {({ hidden }) => {
          if (!hidden) return <Empty good title="Nothing yet: no core stands out from the average" />;
          const sel = { from: hidden.at, to: hidden.at + Math.max(1, hidden.seconds) };
          return (
            <>
              <div class="pg-contrast">
                <Bar name={`core ${hidden.core}`} value={hidden.core_kernel} note="in the kernel" loud />
                <Bar
                  name="all cores"
                  value={hidden.average_kernel}
                  note={`in the kernel, ${percent(hidden.average_busy)} busy`}
                />
              </div>
              <p>{hiddenWords(hidden)}</p>
              <p class="pg-more">
                <Go place={{ page: "node", view: { from: sel.from - 30, to: sel.to + 30 }, selection: sel }}>
                  see it on every core
                </Go>
              </p>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Bar(props: { name: string; value: number; note: string; loud?: boolean }) {
  return (
    <div class={`pg-hbar ${props.loud ? "pg-loud" : ""}`}>
      <span>{props.name}</span>
      <div aria-hidden="true">
        <i style={{ width: `${Math.max(0.5, 100 * props.value)}%` }} />
      </div>
      <span>
        <b>{percent(props.value)}</b> <small class="faint">{props.note}</small>
      </span>
    </div>
  );
}

function Incidents({ answer }: { answer: Answer<Diagnosis> }) {
  return (
    <Panel title="Incidents" aside={<Go place={{ page: "incidents" }}>all</Go>}>
      <Loaded answer={answer} what="diagnosing">
        {({ incidents, live_diagnosis: failed }) => {
          const open = incidents.filter((each) => each.state === "open").length;
          if (!incidents.length) return <Empty good={!failed} title="None detected in what was recorded" />;
          return (
            <>
              <p>
                <strong>{open ? `${open} open` : "none open"}</strong>, {plural(incidents.length, "incident")} in all:{" "}
                {tally(incidents)}
              </p>
              <ul class="pg-short">
                {sorted(incidents)
                  .slice(0, 3)
                  .map((incident) => (
                    <li key={incident.id}>
                      <Tag severity={incident.severity} />{" "}
                      <Go place={{ page: "incident", incidentId: incident.id }}>{titleOf(incident)}</Go>{" "}
                      <span class="faint mono">{clock(incident.from, zoneOffset.value)}</span>
                    </li>
                  ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Zombies({ answer }: { answer: Answer<Cgroups> }) {
  return (
    <Panel title="Zombies" aside={<Go place={{ page: "cgroups" }}>more</Go>}>
      <Loaded answer={answer} what="counting cgroups">
        {(document) => {
          if (document.memory.total === null)
            return (
              <Empty title="Memory cgroups were not counted">
                <p class="faint">{document.why}</p>
              </Empty>
            );
          const said = verdict(document);
          const next = milestones(document, zoneOffset.value).find((each) => each.at !== null);
          return (
            <>
              <p class="pg-big">
                {count(document.memory.dying)} <span class="faint">dying, {count(document.memory.live)} in use</span>
              </p>
              <p>
                <span class={`pg-tag pg-mood-${said.mood}`}>{said.title.toLowerCase()}</span>{" "}
                {growthWords(document.growth_per_hour)}
              </p>
              <p class="faint">
                {next ? `A read costs about ${next.cost} (estimated): ${next.words}` : sentence(document.why ?? "")}
              </p>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Findings({ answer }: { answer: Answer<Audit> }) {
  return (
    <Panel title="Audit of this machine" aside={<Go place={{ page: "audit" }}>all</Go>}>
      <Loaded answer={answer} what="auditing">
        {(audit) => {
          if (!audit.available)
            return (
              <Empty title="Not audited">
                <p class="faint">{audit.why}</p>
              </Empty>
            );
          if (!audit.findings.length) return <Empty good title="No trap was found in what could be read" />;
          return (
            <>
              <p>
                <strong>{tally(audit.findings)}</strong>
              </p>
              <ul class="pg-short pg-oneline">
                {bySeverity(audit.findings)
                  .flatMap((group) => group.findings)
                  .slice(0, 3)
                  .map((finding) => (
                    <li key={finding.id}>
                      <Tag severity={finding.severity} />{" "}
                      <Go place={{ page: "audit" }}>{finding.unit ?? finding.rule}</Go>{" "}
                      <span class="faint">{finding.why}</span>
                    </li>
                  ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Unseen() {
  const about = info.value;
  // A source that is missing altogether is listed once, with what grants it.
  const absent = new Set(about?.missing.map((each) => each.source));
  const gaps = (about?.gaps ?? []).filter((gap) => !absent.has(gap.source)).slice(-3);
  return (
    <Panel title="What cannot be seen">
      {!about && <p class="faint">…</p>}
      {about && !about.missing.length && !gaps.length && (
        <Empty good title="Nothing: every source is readable, and there is no gap" />
      )}
      {about && about.missing.length > 0 && <MissingList missing={about.missing} />}
      {gaps.length > 0 && (
        <ul class="pg-plain">
          {gaps.map((gap) => (
            <li key={`${gap.from}${gap.source}`}>
              <Go place={{ page: "node", view: { from: gap.from - 60, to: gap.to + 60 } }}>
                blind for {duration(gap.to - gap.from)}
              </Go>{" "}
              <span class="faint">
                {moment(gap.from, zoneOffset.value)}, {gap.source}
                {gap.why ? `: ${gap.why}` : ""}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Door() {
  const offered = recordings.value.some((each) => each.key === FOUNDING);
  if (!offered || rec.value === FOUNDING) return null;
  return (
    <aside class="pg-door" aria-label="The founding case">
      <div>
        <strong>Nothing wrong here? See the case that this was made for.</strong>
        <p>
          96 cores, 32% busy, and one of them held for six seconds: a network card gives up, and 68,440 cgroups that
          nobody sees are why.
        </p>
      </div>
      <Go place={{ page: "incident", rec: FOUNDING }} class="pg-button pg-primary">
        open the founding case
      </Go>
    </aside>
  );
}
