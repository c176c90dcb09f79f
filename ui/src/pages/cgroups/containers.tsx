// Containers next to the cgroups that they leave: first what restarts without end, then the most frequent. Names, not ids.

import type { ContainerFamily } from "../../api/types";
import { Go } from "../../chrome/link";
import { count, plural } from "../../format";
import { rec, useDocument } from "../../state";
import { Panel } from "../parts/parts";
import { askedBy, familyFilters, familyName } from "./families";

const SHOWN = 12;
const LAST = "10m";

export function Containers({ until, live }: { until: number | null; live: boolean }) {
  const { data } = useDocument(
    "containers",
    { rec: rec.value, last: LAST, to: until?.toFixed(3), top: 50 },
    { every_s: live && until === null ? 30 : 0 },
  );
  if (!data?.families.length) return null;
  const looping = data.families.filter((family) => family.loop !== null && family.loop !== "quick");
  return (
    <Panel title="Containers" id="containers">
      <p class="faint">
        {plural(data.total, "container")} in the last ten minutes, {count(data.alive)} alive.
        {looping.length > 0 && ` ${plural(looping.length, "kind")} in a restart loop.`}
      </p>
      <table class="pg-table">
        <thead>
          <tr>
            <th scope="col">container</th>
            <th scope="col">image</th>
            {["alive", "started", "failed"].map((name) => (
              <th key={name} scope="col" class="num">
                {name}
              </th>
            ))}
            <th scope="col">Requested by</th>
          </tr>
        </thead>
        <tbody>
          {data.families.slice(0, SHOWN).map((family) => (
            <Row key={`${family.kind} ${family.namespace} ${family.name}`} family={family} />
          ))}
        </tbody>
      </table>
      {data.families.length > SHOWN && (
        <p class="faint">
          <code>zombiescope containers</code> has them all
        </p>
      )}
    </Panel>
  );
}

function Row({ family }: { family: ContainerFamily }) {
  return (
    <tr>
      <th scope="row">
        <Go place={{ page: "node", filters: familyFilters(family) }} title={family.text ?? "its stacks"}>
          {familyName(family)}
        </Go>
        {family.loop && family.loop !== "quick" && <strong> restart loop</strong>}
      </th>
      <td>
        <code class="pg-wrap">{family.image?.split("/").pop() ?? ""}</code>
      </td>
      <td class="num">{count(family.alive)}</td>
      <td class="num">{count(family.starts)}</td>
      <td class="num">{count(family.failed)}</td>
      <td>{askedBy(family)}</td>
    </tr>
  );
}
