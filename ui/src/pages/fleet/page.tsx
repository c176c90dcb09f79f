// Many nodes: what the sick ones share that the healthy ones lack, and from there into one node's recording.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FleetGroup, FleetNode, FleetReport } from "../../api/types";
import { Go } from "../../chrome/link";
import { Empty } from "../../chrome/states";
import { plural } from "../../format";
import { useDocument } from "../../state";
import { Loaded, Page, Panel } from "../parts/parts";
import { chance, matching, of, shown, terms } from "./words";

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
    <Page title="Fleet" lead={report ? `${report.headline}.` : "What the sick nodes share that the healthy ones lack."}>
      <Loaded answer={answer} what="asking for the fleet" lines={6}>
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
    <Panel
      title="What the sick nodes share"
      aside={<span class="faint">{report.tried.toLocaleString("en")} groups were tried</span>}
    >
      {!found && <p class="pg-note">Nothing that chance would not explain.</p>}
      <Table heads={["labels", "cause", "#affected", "#others", "#lift", "#p, corrected", ""]}>
        {groups.map((group) => (
          <tr key={group.label + group.value} class={group.explained_by || !group.significant ? "faint" : undefined}>
            <th scope="row">
              <GroupName group={group} />
            </th>
            <td>{group.cause ?? "any incident"}</td>
            <td class="num">{of(group.affected, group.nodes)}</td>
            <td class="num">{of(group.rest.affected, group.rest.nodes)}</td>
            <td class="num">{group.lift === null ? "∞" : group.lift.toFixed(1)}</td>
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
      {terms(group.terms)}
      {group.also.length > 0 && <div class="faint">the same nodes: {group.also.map(terms).join(", ")}</div>}
    </>
  );
}

function Causes({ report }: { report: FleetReport }) {
  if (!report.causes.length) return null;
  return (
    <Panel title="Causes" aside={<span class="faint">{plural(report.incidents_in_all, "incident")}</span>}>
      <Table heads={["cause", "culprit", "#nodes", "#incidents", "#job-hours lost", "#GPU-seconds lost"]}>
        {report.causes.slice(0, ROWS).map((cause) => (
          <tr key={`${cause.pattern} ${cause.culprit}`}>
            <th scope="row">{cause.pattern}</th>
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
    <Panel title="What began">
      <ul class="pg-plain">
        {arrivals.map((each) => (
          <li key={`${each.label}=${each.value}`}>
            {each.label}={each.value} arrived on {plural(each.nodes, "node")} from {moment(each.first)} on:{" "}
            {each.sick_after} sick only after, {each.sick_before} only before
          </li>
        ))}
        {report.onsets.map((each) => (
          <li key={each.from}>
            {plural(each.nodes, "node")} fell ill within two hours from {moment(each.from)} on
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
    <Panel title="Who is next">
      <Table heads={["node", "#dying cgroups", "#more an hour", "#sick in"]}>
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

function Nodes({ report }: { report: FleetReport }) {
  const [text, setText] = useState("");
  const found = matching(report.nodes, text);
  return (
    <Panel
      title="Nodes"
      aside={
        <input
          type="search"
          aria-label="Nodes by name or label"
          placeholder="name, zone=…, sick"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      }
    >
      <Table
        heads={["node", "", "image", "zone", "type", "kernel", "#cores lost, s", "#dying", "#an hour", "#restarts"]}
      >
        {found.slice(0, ROWS).map((node) => (
          <OneNode key={node.node} node={node} />
        ))}
      </Table>
      {found.length > ROWS && <p class="faint">and {(found.length - ROWS).toLocaleString("en")} more</p>}
    </Panel>
  );
}

function OneNode({ node }: { node: FleetNode }) {
  const number = (value: number | null): string => (value === null ? "?" : Math.round(value).toLocaleString("en"));
  return (
    <tr>
      <th scope="row">
        <ToNode name={node.node} />
      </th>
      <td>{node.sick ? "sick" : node.recorded_s ? "" : "not recorded"}</td>
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

/** Into the node's own recording, which is read where it lies. */
function ToNode({ name }: { name: string }) {
  return (
    <Go place={{ page: "home", rec: `fleet:${name}` }} title="Open its recording">
      {name}
    </Go>
  );
}

function Unread({ report }: { report: FleetReport }) {
  if (!report.damage.length && !report.blind.length) return null;
  return (
    <Panel title="Not seen">
      <ul class="pg-plain">
        {report.blind.length > 0 && (
          <li>{plural(report.blind.length, "node")} recorded nothing: neither sick nor healthy</li>
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
