// Many nodes: what the sick ones share that the healthy ones lack, and from there into one node's recording.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { FleetGroup, FleetIncident, FleetNode, FleetReport } from "../../api/types";
import { Go } from "../../chrome/link";
import { Empty } from "../../chrome/states";
import { count, plural, sentence } from "../../format";
import { navigate, replace, search, type Target, useDocument } from "../../state";
import { Loaded, Page, Panel } from "../parts/parts";
import {
  byNode,
  causeTerms,
  chance,
  filterOf,
  matching,
  type Order,
  of,
  shown,
  sortedBy,
  terms,
  worstOf,
} from "./words";

const READING_S = 1;
const READY_S = 60;
const ROWS = 100;

export function FleetPage() {
  const [every, setEvery] = useState(READING_S);
  const answer = useDocument("fleet", {}, { every_s: every });
  const state = answer.data?.state;
  const wanted = state === "reading" ? READING_S : READY_S;
  if (state && every !== wanted) setEvery(wanted);
  const report = answer.data?.report;
  return (
    <Page title="Fleet" lead={report ? <Lead report={report} /> : "What sick nodes share that healthy ones lack."}>
      <Loaded answer={answer} what="Asking for the fleet" lines={6}>
        {(fleet) =>
          fleet.report ? (
            <Report report={fleet.report} />
          ) : (
            <Absent state={fleet.state} why={fleet.why} done={fleet.done} all={fleet.of} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Lead({ report }: { report: FleetReport }) {
  const { from, to } = report.window;
  return (
    <>
      {plural(report.nodes_in_all, "node")}, <strong>{count(report.sick)} sick</strong>
      {report.blind.length > 0 && `, ${count(report.blind.length)} without data`} ·{" "}
      <span class="mono">{`${moment(from)} – ${moment(to)}`}</span>
    </>
  );
}

/** What the nodes below are filtered by; in the address, as the search of the node page is. */
function only(text: string): void {
  navigate({ search: { text, mode: "filter" } });
  document.getElementById("nodes")?.scrollIntoView({ block: "nearest" });
}

function Filter({ terms: wanted, children }: { terms: string; children: ComponentChildren }) {
  const isOn = search.value.text === wanted;
  return (
    <button
      type="button"
      class="pg-filter"
      aria-pressed={isOn}
      title={isOn ? "Show all nodes" : `Only nodes with ${wanted}`}
      onClick={() => only(isOn ? "" : wanted)}
    >
      {children}
    </button>
  );
}

function Absent(props: { state: string; why: string | null; done: number; all: number }) {
  if (props.state === "reading")
    return (
      <Empty title="Reading the fleet">
        <p role="status">{props.all ? `${of(props.done, props.all)} node-days` : "listing what there is"} …</p>
      </Empty>
    );
  if (props.state === "failed")
    return (
      <Empty title="The fleet could not be read">
        <p>{props.why}</p>
      </Empty>
    );
  return (
    <Empty title="No fleet is shown here">
      <p>
        <code>zombiescope serve --fleet ROOT</code> shows one: a directory or an object store of many recordings.
      </p>
    </Empty>
  );
}

function Report({ report }: { report: FleetReport }) {
  return (
    <>
      <section class={`pg-panel pg-hero${report.sick ? " pg-hero-critical" : ""}`} aria-label="Finding">
        <h2>{sentence(report.headline)}</h2>
      </section>
      <Shared report={report} />
      <Causes report={report} />
      <Began report={report} />
      <Next report={report} />
      <Nodes report={report} />
      <Unread report={report} />
    </>
  );
}

function Shared({ report }: { report: FleetReport }) {
  const groups = shown(report.by);
  const found = groups.some((group) => group.significant);
  return (
    <Panel title="What the sick nodes share" aside={<span class="faint">{count(report.tried)} groups compared</span>}>
      {!found && <p class="pg-note">No statistically significant difference.</p>}
      <Table heads={["Labels", "Cause", "#Affected", "#Others", "#Times as often", "#p (corrected)", ""]}>
        {groups.map((group) => (
          <tr key={group.label + group.value} class={group.explained_by || !group.significant ? "faint" : undefined}>
            <th scope="row">
              <GroupName group={group} />
            </th>
            <td>
              {group.cause ? <Filter terms={causeTerms(group.cause, null)}>{group.cause}</Filter> : "any incident"}
            </td>
            <td class="num">{of(group.affected, group.nodes)}</td>
            <td class="num">{of(group.rest.affected, group.rest.nodes)}</td>
            <td class="num">
              {group.lift === null ? <span title="No other node is affected">only here</span> : group.lift.toFixed(1)}
            </td>
            <td class="num">{chance(group.p_corrected)}</td>
            <td>{group.explained_by && `explained by ${terms(group.explained_by)}`}</td>
          </tr>
        ))}
      </Table>
      <ul class="pg-plain">
        {report.units
          .filter((unit) => unit.significant)
          .map((unit) => (
            <li key={unit.unit}>
              <code>{unit.unit}</code> runs on {of(unit.sick, unit.sick_nodes)} sick nodes and on{" "}
              {of(unit.healthy, unit.healthy_nodes)} healthy ones
            </li>
          ))}
      </ul>
    </Panel>
  );
}

function GroupName({ group }: { group: FleetGroup }) {
  return (
    <>
      <Filter terms={filterOf(group.terms)}>{terms(group.terms)}</Filter>
      {group.also.length > 0 && <div class="faint">the same nodes: {group.also.map(terms).join(", ")}</div>}
    </>
  );
}

function Causes({ report }: { report: FleetReport }) {
  if (!report.causes.length) return null;
  return (
    <Panel title="Causes" aside={<span class="faint">{plural(report.incidents_in_all, "incident")}</span>}>
      <Table heads={["Cause", "Culprit", "#Nodes", "#Incidents", "#Job-hours lost", "#GPU-seconds lost"]}>
        {report.causes.slice(0, ROWS).map((cause) => (
          <tr key={`${cause.pattern} ${cause.culprit}`}>
            <th scope="row">
              <Filter terms={causeTerms(cause.pattern, cause.culprit)}>{cause.pattern}</Filter>
            </th>
            <td>{cause.culprit ?? "?"}</td>
            <td class="num">{cause.nodes.toLocaleString("en")}</td>
            <td class="num">{cause.incidents.toLocaleString("en")}</td>
            <td class="num">{cause.job_hours_lost.toFixed(2)}</td>
            <td class="num">
              {cause.gpu_seconds_lost === null ? "?" : Math.round(cause.gpu_seconds_lost).toLocaleString("en")}
            </td>
          </tr>
        ))}
      </Table>
      {report.clusters.length > 0 && <h3>Kernel paths in common</h3>}
      <ul class="pg-plain">
        {report.clusters.slice(0, 5).map((cluster) => (
          <li key={cluster.path.join(";")}>
            <code>{cluster.path.slice(-4).join(" › ")}</code> on {plural(cluster.nodes, "node")}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Began({ report }: { report: FleetReport }) {
  const arrivals = report.arrivals.filter((each) => each.significant);
  if (!arrivals.length && !report.onsets.length) return null;
  return (
    <Panel title="New since">
      <ul class="pg-plain">
        {arrivals.map((each) => (
          <li key={`${each.label}=${each.value}`}>
            {each.label}={each.value} arrived on {plural(each.nodes, "node")} from {moment(each.first)} on:{" "}
            {each.sick_after} sick only after, {each.sick_before} only before
          </li>
        ))}
        {report.onsets.map((each) => (
          <li key={each.from}>
            {plural(each.nodes, "node")} became sick within two hours from {moment(each.from)} on
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Next({ report }: { report: FleetReport }) {
  const nodes = report.forecast.nodes;
  if (!nodes.length) return null;
  return (
    <Panel title="At risk">
      <Table heads={["Node", "#Dying cgroups", "#More per hour", "#Sick in"]}>
        {nodes.slice(0, ROWS).map((each) => (
          <tr key={each.node}>
            <th scope="row">
              <ToNode name={each.node} />
            </th>
            <td class="num">{each.dying.toLocaleString("en")}</td>
            <td class="num">{Math.round(each.per_hour).toLocaleString("en")}</td>
            <td class="num">{each.hours === null ? "?" : `${each.hours.toFixed(1)} h`}</td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

interface Column {
  title: string;
  /** What the column is, where its title is short. */
  means?: string;
  value(node: FleetNode): string | number | null;
}

const COLUMNS: readonly Column[] = [
  { title: "Node", value: (node) => node.node },
  { title: "State", value: (node) => (node.sick ? "a sick" : node.recorded_s ? "b healthy" : "c no data") },
  { title: "Image", value: (node) => node.image },
  { title: "Zone", value: (node) => node.zone },
  { title: "Type", value: (node) => node.instance_type },
  { title: "Kernel", value: (node) => node.kernel },
  {
    title: "#Core-seconds lost",
    means: "Seconds in which the kernel held a core without a break",
    value: (node) => node.saturated_s,
  },
  { title: "#Dying", means: "Dying memory cgroups", value: (node) => node.dying },
  { title: "#More per hour", means: "How fast dying memory cgroups grow", value: (node) => node.dying_per_hour },
  { title: "#Restarts", means: "Restarts of units", value: (node) => node.restarts },
];

function Nodes({ report }: { report: FleetReport }) {
  const [order, setOrder] = useState<Order | null>(null);
  const { text } = search.value;
  const known = useMemo(() => byNode(report.incidents), [report]);
  const found = matching(report.nodes, text, known);
  const column = COLUMNS.find((each) => each.title === order?.by);
  const rows = column ? sortedBy(found, column.value, order!.descending) : found;
  const sort = ({ title }: Column): void =>
    setOrder(
      order?.by === title
        ? { by: title, descending: !order.descending }
        : { by: title, descending: title.startsWith("#") },
    );
  return (
    <Panel
      title={text ? `Nodes: ${of(found.length, report.nodes_in_all)}` : `Nodes: ${count(report.nodes_in_all)}`}
      id="nodes"
      aside={
        <>
          {text && (
            <button type="button" class="pg-button" onClick={() => only("")}>
              Show all
            </button>
          )}
          <input
            type="search"
            class="plain"
            aria-label="Nodes by name, label or cause"
            placeholder="name, zone=…, cause=…, sick"
            value={text}
            onInput={(event) => replace({ search: { text: event.currentTarget.value, mode: "filter" } })}
          />
        </>
      }
    >
      <table class="pg-table">
        <thead>
          <tr>
            {COLUMNS.map((each) => (
              <th
                key={each.title}
                scope="col"
                class={each.title.startsWith("#") ? "num" : undefined}
                aria-sort={order?.by === each.title ? (order.descending ? "descending" : "ascending") : "none"}
              >
                <button type="button" class="pg-sort" title={each.means ?? ""} onClick={() => sort(each)}>
                  {each.title.replace("#", "")}
                  <span aria-hidden="true">{order?.by === each.title ? (order.descending ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map((node) => (
            <OneNode key={node.node} node={node} worst={worstOf(known.get(node.node))} />
          ))}
        </tbody>
      </table>
      {rows.length > ROWS && <p class="faint">and {count(rows.length - ROWS)} more</p>}
    </Panel>
  );
}

function OneNode({ node, worst }: { node: FleetNode; worst: FleetIncident | null }) {
  const number = (value: number | null): string => (value === null ? "?" : count(value));
  return (
    <tr>
      <th scope="row">
        <ToNode name={node.node} incident={worst} />
      </th>
      <td>
        {node.sick ? (
          <span class="pg-tag pg-critical">sick</span>
        ) : node.recorded_s ? (
          <span class="faint">healthy</span>
        ) : (
          <span class="pg-tag pg-mood-watch">no data</span>
        )}
      </td>
      <td>{node.image ?? "?"}</td>
      <td>{node.zone ?? "?"}</td>
      <td>{node.instance_type ?? "?"}</td>
      <td>{node.kernel ?? "?"}</td>
      <td class="num">{number(node.saturated_s)}</td>
      <td class="num">{number(node.dying)}</td>
      <td class="num">{number(node.dying_per_hour)}</td>
      <td class="num">{number(node.restarts)}</td>
    </tr>
  );
}

/** Into the node's own recording, which is read where it lies: to its worst incident, where it has one. */
function ToNode({ name, incident = null }: { name: string; incident?: FleetIncident | null }) {
  const rec = `fleet:${name}`;
  const place: Target = incident?.id ? { page: "incident", rec, incidentId: incident.id } : { page: "home", rec };
  return (
    <Go place={place} title={incident?.id ? `Open its worst incident: ${incident.pattern}` : "Open its recording"}>
      {name}
    </Go>
  );
}

function Unread({ report }: { report: FleetReport }) {
  if (!report.damage.length && !report.blind.length) return null;
  return (
    <Panel title="No data">
      <ul class="pg-plain">
        {report.blind.length > 0 && (
          <li>{plural(report.blind.length, "node")} recorded nothing: not known to be sick or healthy</li>
        )}
        {report.damage.slice(0, ROWS).map((each) => (
          <li key={`${each.node} ${each.day}`}>
            {each.node} {each.day ?? ""}: {each.what}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Heads that begin with # are of numbers. */
function Table({ heads, children }: { heads: string[]; children: ComponentChildren }) {
  return (
    <table class="pg-table">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col" class={head.startsWith("#") ? "num" : undefined}>
              {head.replace("#", "")}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

const moment = (at: number): string => `${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
