// Every incident of the recording in the order of the diagnosis, open ones before those that are over.

import { titleOf } from "../../api/incident";
import type { Diagnosis, Incident } from "../../api/types";
import { Go } from "../../chrome/link";
import { Empty } from "../../chrome/states";
import { capital, clock, day, duration, percent, plural, sentence, span, zoneName } from "../../format";
import { info, rec, useDocument, zoneOffset } from "../../state";
import { tally } from "../audit/grouping";
import { Outage } from "../parts/outage";
import { Loaded, Page, Tag } from "../parts/parts";
import { actorName } from "./actors";
import { lostCore } from "./chain";
import { NotChecked, State } from "./page";

export function sorted(incidents: readonly Incident[]): Incident[] {
  return [...incidents].sort((a, b) => Number(a.state === "closed") - Number(b.state === "closed"));
}

export function IncidentsPage() {
  const found = useDocument("incidents", { rec: rec.value }, { every_s: info.value?.live ? 10 : 0 });
  const data = found.data;
  const lead =
    data &&
    sentence(
      `${tally(data.incidents)} in ${span(data.window.from, data.window.to, zoneOffset.value)} ${zoneName(zoneOffset.value)}`,
    );
  return (
    <Page title="Incidents" lead={lead ?? "What went wrong, who did it, and how we know."}>
      {data && <Outage of={data} />}
      <Loaded answer={found} what="Diagnosing the recording" lines={5}>
        {(diagnosis) =>
          diagnosis.incidents.length ? <Rows incidents={sorted(diagnosis.incidents)} /> : <None diagnosis={diagnosis} />
        }
      </Loaded>
      {data && <NotChecked lines={data.not_checked} />}
    </Page>
  );
}

function None({ diagnosis }: { diagnosis: Diagnosis }) {
  const blind = Boolean(diagnosis.not_checked.length);
  return (
    <Empty good={!blind} title="Nothing wrong was detected in what was recorded">
      <p class="faint">
        {blind
          ? "Some checks could not be made; the list below says which."
          : "Every core, every hog, the network cards and the kernel log were checked."}
      </p>
      <p>
        <Go place={{ page: "home" }}>What was the worst second anyway?</Go>
      </p>
    </Empty>
  );
}

function Rows({ incidents }: { incidents: readonly Incident[] }) {
  const zone = zoneOffset.value;
  return (
    <div class="pg-panel">
      <table class="pg-table pg-incidents">
        <caption>{plural(incidents.length, "incident")}, open ones first, then by severity</caption>
        <thead>
          <tr>
            <th scope="col">Severity</th>
            <th scope="col">What happened</th>
            <th scope="col">When</th>
            <th scope="col" class="num">
              Lasted
            </th>
            <th scope="col">Core</th>
            <th scope="col">Hog</th>
            <th scope="col">Culprit</th>
            <th scope="col" class="num">
              Recurrences
            </th>
          </tr>
        </thead>
        <tbody>
          {incidents.map((incident) => {
            const cause = incident.causes[0];
            const core = lostCore(incident);
            return (
              <tr key={incident.id}>
                <td>
                  <Tag severity={incident.severity} />
                </td>
                <td>
                  <Go place={{ page: "incident", incidentId: incident.id }} class="pg-rowlink">
                    {capital(titleOf(incident))}
                  </Go>
                  <div class="faint">
                    <State incident={incident} /> <code>{cause?.pattern ?? "not explained"}</code>
                    {cause && ` · confidence ${percent(cause.confidence)}`}
                  </div>
                </td>
                <td class="mono">
                  {clock(incident.from, zone)}
                  <div class="faint">{day(incident.from, zone)}</div>
                </td>
                <td class="num">{duration(incident.to - incident.from)}</td>
                <td class="mono">{core ? core.cpu : "–"}</td>
                <td>{cause ? actorName(cause.hog) : "–"}</td>
                <td>{cause?.culprit ? actorName(cause.culprit) : "–"}</td>
                <td class="num">{incident.recurrences?.length ? `${incident.recurrences.length}×` : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
