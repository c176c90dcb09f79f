// Memory cgroups: how many are in use, how many are dead and not gone, who leaves them behind, what that costs today and
// on which day it will hurt, and how it went for thirty days.

import { useMemo } from "preact/hooks";
import type { CgroupLeak, Cgroups, HistoryPoint } from "../../api/types";
import { Copy } from "../../chrome/copy";
import { Go } from "../../chrome/link";
import { Empty } from "../../chrome/states";
import { count, duration, moment, percent, plural, sentence, zoneName } from "../../format";
import { current, info, rec, useDocument, zoneOffset } from "../../state";
import { Loaded, Page, Panel } from "../parts/parts";
import { HistoryChart } from "./chart";
import { Containers } from "./containers";
import { growthWords, milestones, verdict } from "./forecast";
import { type HistorySummary, series, summary } from "./series";

export function CgroupsPage() {
  const live = info.value?.live ?? false;
  // A link from an incident names its time: the census of then, not of now.
  const until = current().view?.to ?? null;
  const answer = useDocument(
    "cgroups",
    { rec: rec.value, to: until?.toFixed(3) },
    { every_s: live && until === null ? 10 : 0 },
  );
  const history = useDocument("history", { rec: rec.value, days: 30 }, { every_s: live ? 60 : 0 });
  const at = answer.data?.at;
  const lead = at
    ? `State of ${moment(at, zoneOffset.value)} ${zoneName(zoneOffset.value)}${until === null ? "" : ", the end of what is in view"}.`
    : "";
  return (
    <Page
      title="Zombie cgroups"
      aside={
        until !== null && (
          <Go place={{ page: "cgroups" }} class="pg-button">
            Latest
          </Go>
        )
      }
      lead={
        <>{lead} A dying cgroup was removed, but a page or a dentry still holds it; the kernel keeps counting it.</>
      }
    >
      <Loaded answer={answer} what="counting cgroups" lines={5}>
        {(document) => <Census document={document} />}
      </Loaded>
      <Panel title="Thirty days" id="history">
        <Loaded answer={history} what="reading thirty days" lines={4}>
          {(history) => <Month points={history.points} />}
        </Loaded>
      </Panel>
      {answer.data && <Leakers document={answer.data} />}
      <Containers until={until} live={live} />
    </Page>
  );
}

function Census({ document }: { document: Cgroups }) {
  const { memory } = document;
  const said = verdict(document);
  if (memory.total === null)
    return (
      <Empty title="Memory cgroups were not counted in this recording">
        <p class="faint">{document.why ?? "The recorder could not read them; the home page says what it needs."}</p>
      </Empty>
    );
  return (
    <>
      <div class={`pg-verdict pg-mood-${said.mood}`}>
        <strong>{said.title}</strong>
        <p>{sentence(document.why ?? "")}</p>
        {document.kernel && (
          <span class="faint">
            kernel {document.kernel}, cgroup {memory.hierarchy}
          </span>
        )}
      </div>
      <div class="pg-tiles">
        <Figure name="in use" value={count(memory.live)} note="have a directory" />
        <Figure name="dying" value={count(memory.dying)} note={share(memory)} strong />
        <Figure
          name="growth"
          value={growth(document)}
          note={
            document.growth_per_hour === null
              ? "needs a recorder that ran for a while"
              : growthWords(document.growth_per_hour)
          }
        />
        <Figure
          name="one read costs now"
          value={duration(document.forecast.read_cost_now_s)}
          note="of the root's memory statistics; estimated"
        />
      </div>
      <Panel title="Forecast" id="forecast">
        <ol class="pg-miles">
          {milestones(document, zoneOffset.value).map((each) => (
            <li key={each.cost} class={`pg-mood-${each.mood}`}>
              <strong>a read costs about {each.cost}</strong>
              <span>{each.words}</span>
              <small class="faint">{each.hurts}</small>
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
}

function Figure(props: { name: string; value: string; note: string; strong?: boolean }) {
  return (
    <div class={`pg-figure ${props.strong ? "pg-strong" : ""} ${props.value === "not measured" ? "pg-unknown" : ""}`}>
      <span class="faint">{props.name}</span>
      <b>{props.value}</b>
      <small class="faint">{props.note}</small>
    </div>
  );
}

const share = ({ total, dying }: Cgroups["memory"]): string =>
  total && dying !== null ? `${percent(Math.floor((1000 * dying) / total) / 1000, 3)} of ${count(total)}` : "";

function growth(document: Cgroups): string {
  const perHour = document.growth_per_hour;
  if (perHour === null) return "not measured";
  return Math.abs(perHour) < 0.5 ? "none" : `${perHour > 0 ? "+" : "−"}${count(Math.abs(perHour))}/h`;
}

function Month({ points }: { points: readonly HistoryPoint[] }) {
  const made = useMemo(() => series(points), [points]);
  const found = summary(points);
  if (!found)
    return (
      <Empty title="No summary yet">
        <p class="faint">
          History begins a minute after the recorder starts, and is kept for thirty days. An imported file has none.
        </p>
      </Empty>
    );
  const zone = zoneOffset.value;
  const words = inWords(found, zone);
  return (
    <>
      <p>{sentence(words)}</p>
      <HistoryChart series={made} label={words} />
      <details class="pg-details">
        <summary>as a table</summary>
        <table class="pg-table">
          <caption>The last point of each day</caption>
          <thead>
            <tr>
              <th scope="col">at</th>
              <th scope="col">boot</th>
              <th scope="col" class="num">
                cgroups
              </th>
              <th scope="col" class="num">
                dying
              </th>
              <th scope="col" class="num">
                restarts
              </th>
              <th scope="col" class="num">
                cores lost
              </th>
            </tr>
          </thead>
          <tbody>
            {daily(points).map((point) => (
              <tr key={point.at}>
                <th scope="row" class="mono">
                  {moment(point.at, zone)}
                </th>
                <td class="mono faint">{(point.boot ?? "").slice(0, 8)}</td>
                <td class="num">{count(point.memory_cgroups)}</td>
                <td class="num">{count(point.dying)}</td>
                <td class="num">{count(point.restarts)}</td>
                <td class="num">{duration(point.cores_saturated_s)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}

function inWords(found: HistorySummary, zone: number): string {
  const none = (number: number, one: string) => (number ? plural(number, one) : `no ${one}`);
  const most = found.most
    ? `at most ${count(found.most.dying)} were dying, on ${moment(found.most.at, zone)}`
    : "no cgroup was counted";
  const lost =
    found.saturated_s >= 0.05 ? `cores were lost for ${duration(found.saturated_s)} in all` : "no core was lost";
  return `${duration(Math.max(60, found.days * 86400))} of history with ${none(found.reboots, "reboot")} and ${none(found.restarts, "restart")} of units; ${most}; ${lost}`;
}

function daily(points: readonly HistoryPoint[]): HistoryPoint[] {
  const last = new Map<string, HistoryPoint>();
  for (const point of points) last.set(`${point.boot}${Math.floor(point.at / 86400)}`, point);
  return [...last.values()];
}

const SHOWN = 40;

function Leakers({ document }: { document: Cgroups }) {
  const leaks = document.leaks.filter((leak) => leak.dying || leak.created);
  if (!leaks.length) {
    const recorded = document.memory.created !== null && document.memory.created !== undefined;
    return (
      <Panel title="Sources of the leak" id="leakers">
        <Empty
          good={recorded}
          title={recorded ? "No path has left a dying cgroup since the recorder started" : "Not recorded"}
        >
          {!recorded && (
            <p class="faint">
              Only a recorder that runs on the node sees who makes and removes cgroups: <code>zombiescope up</code>
            </p>
          )}
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel
      title="Sources of the leak"
      id="leakers"
      aside={<Copy text={leaks.map((leak) => leak.path).join("\n")} what="copy the paths" />}
    >
      <table class="pg-table">
        <caption>Paths by dying cgroups; ids in a path are written as *</caption>
        <thead>
          <tr>
            <th scope="col">path</th>
            <th scope="col" class="num">
              dying
            </th>
            <th scope="col" class="num">
              made
            </th>
            <th scope="col" class="num">
              released
            </th>
            <th scope="col">made by</th>
          </tr>
        </thead>
        <tbody>
          {leaks.slice(0, SHOWN).map((leak) => (
            <Row key={leak.path} leak={leak} most={leaks[0]?.dying ?? 0} />
          ))}
        </tbody>
      </table>
      {leaks.length > SHOWN && (
        <p class="faint">
          and {plural(leaks.length - SHOWN, "more path")}; <code>zombiescope cgroups --json</code> has them all
        </p>
      )}
    </Panel>
  );
}

function Row({ leak, most }: { leak: CgroupLeak; most: number }) {
  const creator = leak.creator;
  const program = creator?.comm ? `${creator.comm}${creator.pid === null ? "" : `[${creator.pid}]`}` : null;
  return (
    <tr>
      <th scope="row">
        <code class="pg-wrap">{leak.path || "(the rest)"}</code>
      </th>
      <td class="num pg-bar" style={{ "--part": `${most ? (100 * (leak.dying ?? 0)) / most : 0}%` }}>
        {leak.exact === false ? "≥ " : ""}
        {count(leak.dying)}
      </td>
      <td class="num">{count(leak.created)}</td>
      <td class="num">{count(leak.released)}</td>
      <td>
        {leak.charged_to ? `${leak.charged_to}, through ${program}` : program}{" "}
        {leak.charged_to ? null : creator?.unit ? (
          <Go place={{ page: "node", filters: { unit: [creator.unit] } }} title="its stacks">
            {creator.unit}
          </Go>
        ) : (
          !program && "not known"
        )}
      </td>
    </tr>
  );
}
