// One incident: what happened, the chain that explains it, who is who, what else it could have been, and what to do.

import { FrozenSource } from "../../api/frozen";
import { titleOf } from "../../api/incident";
import { source } from "../../api/source";
import type { Cause, ChainLink, Incident, RuledOut } from "../../api/types";
import { Copy } from "../../chrome/copy";
import { Download } from "../../chrome/download";
import { Go } from "../../chrome/link";
import { Empty } from "../../chrome/states";
import { exactly } from "../../flame/search";
import { capital, clock, count, duration, measured, percent, plural, sentence, span, zoneName } from "../../format";
import { incidentId, info, rec, recorded, useDocument, zoneOffset } from "../../state";
import { Frames, Loaded, Page, Panel, Tag } from "../parts/parts";
import { confidence, parts, proof } from "./actors";
import { guiltySpan, lostCore, onCore, quietSpan, readFrom, type Station, stations } from "./chain";
import { Fix } from "./fix";
import { ChainPath } from "./path";

/** Without an id: the worst one, so that a link can lead to "what happened" before anybody knows its name. */
export function IncidentPage() {
  const id = incidentId.value;
  const one = useDocument(
    id ? `incidents/${encodeURIComponent(id)}` : null,
    { rec: rec.value },
    { every_s: info.value?.live ? 15 : 0 },
  );
  const all = useDocument(id ? null : "incidents", { rec: rec.value });
  const waiting = (id ? one : all).data === null;
  if (id && one.error?.status === 404 && waiting) return <Unknown id={id} />;
  if (waiting)
    return (
      <Page title="Incident">
        {id ? (
          <Loaded answer={one} what="reading the incident" lines={8}>
            {() => null}
          </Loaded>
        ) : (
          <Loaded answer={all} what="diagnosing the recording" lines={8}>
            {() => null}
          </Loaded>
        )}
      </Page>
    );
  if (id)
    return (
      <Loaded answer={one} what="reading the incident">
        {(incident) => <Details incident={incident} />}
      </Loaded>
    );
  return (
    <Loaded answer={all} what="diagnosing the recording">
      {(found) => {
        const worst = found.incidents[0];
        return worst ? <Details incident={worst} /> : <Nothing />;
      }}
    </Loaded>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <Page title="Incident">
      <Empty title={`No incident ${id} is known here`}>
        <p class="faint">It may belong to another recording, or to a time that is no longer kept.</p>
        <p>
          <Go place={{ page: "incidents" }}>All incidents of this recording</Go>
        </p>
      </Empty>
    </Page>
  );
}

function Nothing() {
  return (
    <Page title="Incident">
      <Empty good title="Nothing wrong was found in this recording">
        <p>
          <Go place={{ page: "node" }}>Look at the node yourself</Go>
        </p>
      </Empty>
    </Page>
  );
}

function Details({ incident }: { incident: Incident }) {
  const cause = incident.causes[0] ?? null;
  const path = stations(incident, cause, recorded.value);
  return (
    <Page
      title={capital(titleOf(incident))}
      lead={<Lead incident={incident} />}
      aside={<Exports incident={incident} />}
    >
      <section aria-label="The chain, from the symptom to the fix">
        <ChainPath stations={path} />
      </section>
      {!cause && (
        <Empty title="The symptoms are shown above; the cause is not known">
          <p class="faint">No pattern fits, and no task was unusually busy. Look at the views of these seconds next.</p>
        </Empty>
      )}
      <div class="pg-two">
        <div>
          {cause && <Fix incident={incident} cause={cause} />}
          {cause && <HowWeKnow cause={cause} stations={path} />}
        </div>
        <div>
          <WhoIsWho incident={incident} cause={cause} />
          {cause && <Confidence cause={cause} />}
          <Look incident={incident} cause={cause} />
        </div>
      </div>
      <Others causes={incident.causes.slice(1)} />
      <RuledOutTable ruledOut={incident.ruled_out} />
    </Page>
  );
}

function Lead({ incident }: { incident: Incident }) {
  const zone = zoneOffset.value;
  const again = incident.recurrences.length;
  return (
    <>
      <Tag severity={incident.severity} /> <State incident={incident} /> <strong>{incident.node}</strong>{" "}
      <span class="mono">{span(incident.from, incident.to, zone)}</span> {zoneName(zone)},{" "}
      {duration(incident.to - incident.from)}
      {again > 0 && `, again ${again === 1 ? "once" : `${again} times`}`} · incident <code>{incident.id}</code>
    </>
  );
}

export function State({ incident }: { incident: { state: "open" | "closed" } }) {
  return <span class={`pg-tag pg-state-${incident.state}`}>{incident.state === "open" ? "open" : "closed"}</span>;
}

/** Downloads of the server; a frozen page is the HTML report already, and carries the Markdown in itself. */
function Exports({ incident }: { incident: Incident }) {
  const from = source();
  if (!from.download) {
    return from instanceof FrozenSource && from.markdown ? <Copy text={from.markdown} what="copy as Markdown" /> : null;
  }
  const report = (format: string) => ({
    path: `incidents/${encodeURIComponent(incident.id)}/report`,
    params: { rec: rec.value, format },
    name: `${incident.id}.${format}`,
    class: "pg-button",
  });
  return (
    <>
      <Download {...report("html")}>Save as HTML</Download>
      <Download {...report("md")}>Markdown</Download>
    </>
  );
}

function HowWeKnow({ cause, stations: path }: { cause: Cause; stations: readonly Station[] }) {
  const at = (kind: Station["kind"]) => path.find((station) => station.kind === kind)?.place ?? null;
  const proved = (link: ChainLink) => {
    if (link.step === "hog" || (link.step === "symptom" && link.source === "samples")) return at("hog");
    if (link.step === "kernel function") return at("kernel");
    if (link.step === "culprit") return at("culprit");
    return path.find((station) => station.fact === link.fact || station.more.includes(link.fact))?.place ?? null;
  };
  const zone = zoneOffset.value;
  return (
    <Panel title="How we know">
      <table class="pg-table">
        <caption>Every fact of the chain, its value, where it was read and when</caption>
        <thead>
          <tr>
            <th scope="col">step</th>
            <th scope="col">fact</th>
            <th scope="col" class="num">
              value
            </th>
            <th scope="col">read from</th>
            <th scope="col">at</th>
          </tr>
        </thead>
        <tbody>
          {cause.chain.map((link, number) => {
            const place = proved(link);
            return (
              <tr key={number}>
                <th scope="row">{link.step}</th>
                <td>{place ? <Go place={place}>{link.fact}</Go> : link.fact}</td>
                <td class="num">
                  {link.value === 0 && link.value_unit === "s" ? "" : measured(link.value, link.value_unit)}
                </td>
                <td class="faint">{readFrom(link.source)}</td>
                <td class="mono faint">{link.at === null ? "" : clock(link.at, zone, 1)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {cause.frames.length > 0 && (
        <>
          <h3>Kernel path</h3>
          <Frames
            frames={cause.frames}
            place={(frame) => ({ ...(at("kernel") ?? { page: "node" as const }), search: exactly(frame) })}
          />
        </>
      )}
    </Panel>
  );
}

function WhoIsWho({ incident, cause }: { incident: Incident; cause: Cause | null }) {
  return (
    <Panel title="Who is who">
      <dl class="pg-who">
        {parts(incident, cause).map((part) => (
          <div key={part.role} class={`pg-role-${part.role}`}>
            <dt>{part.title}</dt>
            <dd>
              <strong>{part.names.join("; ") || part.none}</strong>
              {part.facts.length > 0 && <span>{part.facts.join(", ")}</span>}
              <small class="faint">{part.means}</small>
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function Confidence({ cause }: { cause: Cause }) {
  const known = proof(cause);
  const value = Math.round(cause.confidence * 100);
  return (
    <Panel title="How sure" aside={<code>{cause.pattern}</code>}>
      <div
        class="pg-meter"
        role="meter"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={value}
        aria-label="confidence"
      >
        <i style={{ width: `${value}%` }} />
      </div>
      <p>
        <strong>{percent(cause.confidence)}</strong> {confidence(cause)}
      </p>
      <p>
        <strong>{sentence(known.name)}</strong> <span class="faint">{known.means}</span>
      </p>
    </Panel>
  );
}

/** The views that prove it, without looking for the seconds by hand. */
function Look({ incident, cause }: { incident: Incident; cause: Cause | null }) {
  const guilty = guiltySpan(incident);
  const quiet = quietSpan(incident, recorded.value);
  const core = lostCore(incident);
  const view = { from: guilty.from - 20, to: guilty.to + 20 };
  const who = cause?.hog.comm ? { comm: [cause.hog.comm] } : {};
  return (
    <Panel title="Look for yourself">
      <ul class="pg-look">
        <li>
          <Go place={{ page: "node", view, selection: guilty }}>the guilty seconds</Go>
        </li>
        {core && (
          <li>
            <Go place={{ page: "node", view, selection: guilty, filters: onCore(core.cpu) }}>only core {core.cpu}</Go>
          </li>
        )}
        {quiet && (
          <li>
            <Go place={{ page: "node", view, selection: guilty, compare: quiet, filters: who }}>
              guilty against quiet seconds
            </Go>{" "}
            <span class="faint">red grew, blue shrank</span>
          </li>
        )}
        {core && (
          <li>
            <Go place={{ page: "node", view, selection: guilty, filters: onCore(core.cpu), look: "chart" }}>
              in the order of time
            </Go>
          </li>
        )}
        {incident.recurrences.slice(0, 5).map((at) => (
          <li key={at}>
            <Go
              place={{
                page: "node",
                view: { from: at - 20, to: at + 20 },
                selection: { from: at, to: at + Math.max(1, guilty.to - guilty.from) },
              }}
            >
              again at {clock(at, zoneOffset.value)}
            </Go>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Others({ causes }: { causes: readonly Cause[] }) {
  if (!causes.length) return null;
  return (
    <Panel title="Less likely">
      <table class="pg-table">
        <caption>Other causes that fit partly</caption>
        <thead>
          <tr>
            <th scope="col">pattern</th>
            <th scope="col" class="num">
              confidence
            </th>
            <th scope="col">what it would mean</th>
            <th scope="col">known</th>
          </tr>
        </thead>
        <tbody>
          {causes.map((cause) => (
            <tr key={cause.pattern}>
              <th scope="row">
                <code>{cause.pattern}</code>
              </th>
              <td class="num">{percent(cause.confidence)}</td>
              <td>{cause.summary}</td>
              <td class="faint">{proof(cause).name}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function RuledOutTable({ ruledOut }: { ruledOut: readonly RuledOut[] }) {
  if (!ruledOut.length) return null;
  return (
    <Panel
      title="Ruled out"
      aside={<span class="faint">{plural(ruledOut.length, "other cause")}, each by a number</span>}
    >
      <table class="pg-table pg-ruled">
        <caption>Causes that were checked and do not fit</caption>
        <thead>
          <tr>
            <th scope="col">cause</th>
            <th scope="col" class="num">
              measured
            </th>
            <th scope="col">therefore not</th>
          </tr>
        </thead>
        <tbody>
          {ruledOut.map((one) => (
            <tr key={one.pattern}>
              <th scope="row">
                <code>{one.pattern}</code>
              </th>
              <td class="num">{measured(one.value, one.value_unit) ?? "–"}</td>
              <td>{one.because}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

export function NotChecked({ lines }: { lines: readonly string[] }) {
  if (!lines.length) return null;
  return (
    <Panel
      title="Not checked"
      aside={<span class="faint">{count(lines.length)}; not checked does not mean healthy</span>}
    >
      <ul class="pg-plain">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Panel>
  );
}
