// The home page always has something true to say. A healthy machine has a worst second too; it is mostly harmless, and it
// shows on this very machine what an average hides.

import type { Audit, Cgroups, Diagnosis, Modes, Worst } from "../../api/types";
import { Go } from "../../chrome/link";
import { Empty, MissingList } from "../../chrome/states";
import { exactly } from "../../flame/search";
import { clock, count, day, duration, moment, percent, plural, sentence, span, zoneName } from "../../format";
import type { Target } from "../../state";
import { type Answer, FOUNDING, info, parts, rec, recordings, useDocument, zoneOffset } from "../../state";
import { bySeverity, tally } from "../audit/grouping";
import { growthWords, milestones, verdict } from "../cgroups/forecast";
import { Outage } from "../parts/outage";
import { Frames, Loaded, Page, Panel, Tag } from "../parts/parts";
import { Gpus, Hero, Incidents, worstIncident } from "./hero";
import { hiddenWords } from "./hidden";

export function HomePage() {
  const about = info.value;
  const live = about?.live ?? false;
  const params = { rec: rec.value };
  const worst = useDocument("worst", params, { every_s: live ? 5 : 0 });
  const incidents = useDocument("incidents", params, { every_s: live ? 10 : 0 });
  const cgroups = useDocument("cgroups", params, { every_s: live ? 10 : 0 });
  const audit = useDocument("audit", params);
  const found = incidents.data;
  const bad = found && worstIncident(found.incidents);
  const hasGpus = !!about?.gpus.length || !!about?.tables.gpu_seconds;
  return (
    <Page title={about ? about.node : "This machine"} lead={<Lead />}>
      {found && <Outage of={found} />}
      <div class={bad ? "pg-home" : "pg-home pg-quiet"}>
        {bad ? <Hero incident={bad} /> : <Calm answer={incidents} />}
        {!bad && found && <WorstSecond answer={worst} />}
        {found && <Incidents diagnosis={found} />}
        {hasGpus && <Gpus rec={rec.value} />}
        <Hidden answer={worst} />
        <Zombies answer={cgroups} />
        <Recorder />
        <Findings answer={audit} />
        <Unseen />
      </div>
      {found && !found.incidents.length && <Door />}
    </Page>
  );
}

/** No incident of warning or worse: said first, and only as far as it is known. */
function Calm({ answer }: { answer: Answer<Diagnosis> }) {
  return (
    <section class="pg-panel pg-hero pg-calm" aria-label="Incidents">
      <Loaded answer={answer} what="Diagnosing">
        {({ incidents, not_checked, live_diagnosis: failed }) => (
          <Empty
            good={!failed}
            title={incidents.length ? "No incident of warning or worse" : "No incidents in what was recorded"}
          >
            <p class="faint">
              {not_checked.length
                ? `${plural(not_checked.length, "check")} could not be made. `
                : "Every core, the network cards and the kernel log were checked. "}
              <Go place={{ page: "incidents" }}>Details</Go>
            </p>
          </Empty>
        )}
      </Loaded>
    </section>
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
      {about.live ? <span class="pg-tag pg-live">● Recording now</span> : <span class="pg-tag">Recording ended</span>}{" "}
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
    <Panel title={info.value?.live ? "Worst second so far" : "Worst second"} class="pg-worst">
      <Loaded answer={answer} what="Looking for the worst second">
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
                <Go place={place}>Open this second</Go>
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
      <Loaded answer={answer} what="Comparing cores with their average">
        {({ hidden }) => {
          if (!hidden) return <Empty good title="No core differs from the average" />;
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
                  See it on every core
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

/** The recorder's own parts, where one records here; a heartbeat each. */
function Recorder() {
  const about = info.value;
  const known = parts.value;
  if (!about?.live && !known.length) return null;
  const bad = known.filter((each) => each.state === "failed" || each.state === "hung");
  return (
    <Panel title="Recorder">
      {!known.length && <p class="faint">No heartbeats of this recorder are readable here.</p>}
      {known.length > 0 && !bad.length && <Empty good title={`${plural(known.length, "part")} working`} />}
      <ul class="pg-short">
        {bad.map((each) => (
          <li key={each.name}>
            <span class="pg-tag pg-mood-bad">{each.state}</span> <strong>{each.name}</strong>{" "}
            <span class="faint">
              since {clock(each.since, zoneOffset.value)}
              {each.why ? `: ${each.why}` : ""}
            </span>
          </li>
        ))}
        {known
          .filter((each) => each.state === "off")
          .map((each) => (
            <li key={each.name} class="faint">
              {each.name}: off{each.why ? `, ${each.why}` : ""}
            </li>
          ))}
      </ul>
    </Panel>
  );
}

function Zombies({ answer }: { answer: Answer<Cgroups> }) {
  return (
    <Panel title="Zombies" aside={<Go place={{ page: "cgroups" }}>More</Go>}>
      <Loaded answer={answer} what="Counting cgroups">
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
    <Panel title="Audit of this machine" aside={<Go place={{ page: "audit" }}>All</Go>}>
      <Loaded answer={answer} what="Auditing">
        {(audit) => {
          if (!audit.available)
            return (
              <Empty title="Not audited">
                <p class="faint">{audit.why}</p>
              </Empty>
            );
          if (!audit.findings.length) return <Empty good title="No problems found" />;
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
    <Panel
      title={about?.missing.length ? `Missing data: ${plural(about.missing.length, "source")}` : "Missing data"}
      id="missing-data"
    >
      {!about && <p class="faint">…</p>}
      {about && !about.missing.length && !gaps.length && (
        <Empty good title="None: every source was readable, without gaps" />
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
        <strong>Nothing wrong here? See the founding case.</strong>
        <p>
          96 cores, 32% busy, and one of them held for six seconds: a network card gives up because of 68,440 invisible
          cgroups.
        </p>
      </div>
      <Go place={{ page: "incident", rec: FOUNDING }} class="pg-button pg-primary">
        Open the founding case
      </Go>
    </aside>
  );
}
