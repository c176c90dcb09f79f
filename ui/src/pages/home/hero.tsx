// The answer first: the worst incident with its cost, who is to blame and the first line of the fix. Where nothing is wrong,
// the worst second, in grey: a healthy node has one too, and it is mostly harmless.

import { titleOf } from "../../api/incident";
import { rank } from "../../api/severity";
import type { Diagnosis, Incident } from "../../api/types";
import { Copyable } from "../../chrome/copy";
import { Go } from "../../chrome/link";
import { capital, clock, count, duration, moment, percent, sentence, utcWords } from "../../format";
import { useDocument, zoneOffset } from "../../state";
import { actorName } from "../incident/actors";
import { lostCore } from "../incident/chain";
import { fixCommand, steps } from "../incident/plan";
import { Loaded, Panel, Tag } from "../parts/parts";
import { gpuParts } from "./gpu-parts";

/** Of warning or worse: the open ones first, then by severity, then the latest. Pure. */
export function worstIncident(incidents: readonly Incident[]): Incident | null {
  const bad = incidents.filter((each) => each.severity !== "info");
  const order = (a: Incident, b: Incident): number =>
    Number(a.state === "closed") - Number(b.state === "closed") ||
    rank(a.severity) - rank(b.severity) ||
    b.from - a.from;
  return [...bad].sort(order)[0] ?? null;
}

/** What to type first: a step that ends the symptom or its cause, else one that looks, else the command with the plan. Pure. */
export function firstCommand(incident: Incident): string | null {
  const cause = incident.causes[0];
  const plan = cause ? steps(cause.fix).filter((step) => step.command !== null) : [];
  const change = plan.find((step) => step.kind === "change") ?? plan[0];
  return change?.command ?? fixCommand(incident);
}

/** In what a person pays: GPU-seconds where they were lost, and how long it lasted. Pure. */
export function costWords(incident: Incident): string {
  const lost = incident.cost?.gpu_seconds_lost;
  const core = lostCore(incident);
  const lasted = Math.max(incident.to - incident.from, core?.seconds ?? 0);
  return [
    lost ? `${count(lost)} GPU-seconds lost` : "",
    core && core.seconds > 0 ? `core ${core.cpu} for ${duration(core.seconds)}` : "",
    incident.state === "open" ? `open for ${duration(lasted)}` : lasted > 0 ? `lasted ${duration(lasted)}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

export function Hero({ incident }: { incident: Incident }) {
  const cause = incident.causes[0];
  const command = firstCommand(incident);
  const place = { page: "incident", incidentId: incident.id } as const;
  const blamed = cause?.culprit ? actorName(cause.culprit) : null;
  const zone = zoneOffset.value;
  return (
    <section class={`pg-panel pg-hero pg-hero-${incident.severity}`} aria-labelledby="hero-title">
      <p class="pg-hero-line">
        <Tag severity={incident.severity} />{" "}
        <span class="mono faint" title={utcWords(incident.from, incident.to, zone)}>
          {moment(incident.from, zone)}
        </span>{" "}
        <span class="faint">{costWords(incident)}</span>
      </p>
      <h2 id="hero-title">
        <Go place={place}>{capital(titleOf(incident))}</Go>
      </h2>
      <dl class="pg-hero-facts">
        {cause && (
          <div>
            <dt>Culprit</dt>
            <dd>
              <strong>{blamed ?? "not named"}</strong>
              {blamed !== actorName(cause.hog) && <span class="faint"> · hog {actorName(cause.hog)}</span>}
              <span class="faint"> · {percent(cause.confidence)} sure</span>
            </dd>
          </div>
        )}
        {cause && (
          <div>
            <dt>Fix</dt>
            <dd>
              <p>{sentence(cause.fix.summary)}</p>
              {command && <Copyable text={command} />}
            </dd>
          </div>
        )}
      </dl>
      <p class="pg-more">
        <Go place={place}>Open the incident</Go>
      </p>
    </section>
  );
}

export function Incidents({ diagnosis }: { diagnosis: Diagnosis }) {
  const { incidents } = diagnosis;
  const rest = [...incidents].filter((each) => each !== worstIncident(incidents)).slice(0, 4);
  if (!rest.length) return null;
  return (
    <Panel title="Other incidents" aside={<Go place={{ page: "incidents" }}>All {count(incidents.length)}</Go>}>
      <ul class="pg-short">
        {rest.map((incident) => (
          <li key={incident.id}>
            <Tag severity={incident.severity} />{" "}
            <Go place={{ page: "incident", incidentId: incident.id }}>{capital(titleOf(incident))}</Go>{" "}
            <span class="faint mono">{clock(incident.from, zoneOffset.value)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Busy or idle: what the machine was bought for. */
export function Gpus({ rec }: { rec: string }) {
  const answer = useDocument("cores", { rec, gpu: true });
  return (
    <Panel title="GPUs" aside={<Go place={{ page: "node" }}>Over time</Go>}>
      <Loaded answer={answer} what="Reading the GPUs">
        {({ gpus }) => (
          <table class="pg-gpus">
            <caption class="hidden-text">Utilisation of each GPU over the recording</caption>
            <tbody>
              {(gpus ?? []).map((gpu) => (
                <tr key={gpu.gpu}>
                  <th scope="row">GPU {gpu.gpu}</th>
                  <td>
                    <span class="pg-gpu-bar" aria-hidden="true">
                      <i style={{ width: `${gpu.utilisation ?? 0}%` }} />
                    </span>
                  </td>
                  <td class="num">
                    <b>{percent(gpu.utilisation === null ? null : gpu.utilisation / 100)}</b>
                  </td>
                  <td class="faint">
                    {gpu.lowest_utilisation !== null && `lowest ${percent(gpu.lowest_utilisation / 100)}`}
                    {gpu.power_w !== null && ` · ${Math.round(gpu.power_w)} W`}
                    {gpu.reasons.length > 0 && ` · slowed: ${gpu.reasons.join(", ")}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
      <GpuSecondsByJob rec={rec} />
    </Panel>
  );
}

const MOST_JOBS = 8;
const MOST_IDLE = 3;

/** The last ten minutes; an older server, and a page that was frozen into a file, have no answer. */
function GpuSecondsByJob({ rec }: { rec: string }) {
  const { data } = useDocument("gpu", { rec, last: "10m" });
  const jobs = data?.rows.filter((row) => row.job !== null) ?? [];
  if (!data || !jobs.length) return null;
  const idle = data.idle.filter((each) => each.phase === null);
  return (
    <>
      <h3>Where the GPU seconds went</h3>
      <table class="pg-gpu-seconds">
        <caption class="hidden-text">GPU seconds by job in the last ten minutes of the recording</caption>
        <tbody>
          {jobs.slice(0, MOST_JOBS).map((row) => (
            <tr key={row.job}>
              <th scope="row">{row.job}</th>
              <td>
                <span class="pg-gpu-bar" aria-hidden="true">
                  {gpuParts(row).map(({ state, part }) => (
                    <i key={state} class={`gpu-${state}`} style={{ width: `${100 * part}%` }} />
                  ))}
                </span>
              </td>
              <td>
                {gpuParts(row)
                  .map(({ state, part }) => `${state} ${percent(part)}`)
                  .join(", ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {jobs.length > MOST_JOBS && <p class="faint">and {count(jobs.length - MOST_JOBS)} more jobs</p>}
      {idle.length > 0 && (
        <ul class="pg-short">
          {idle.slice(-MOST_IDLE).map((each) => (
            <li key={`${each.gpu} ${each.from}`}>
              <span class="faint mono">{clock(each.from, zoneOffset.value)}</span> {each.text}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
