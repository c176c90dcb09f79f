/**
 * Every lane below the cores, in the order of their worth. A further lane is one entry here: `chartLane` with what it reads,
 * where lines are enough (`served("name")` for one of the server's charts, documents/charts.py), or its own `Draw`.
 */

import { info } from "../state";
import { arrangement, ordered } from "./arrange";
import { chartLane, gpuMore, gpuName, gpus, pressure, served, zombies } from "./charts";
import { DelayRows, delayTips } from "./delays";
import { Events } from "./events";
import { lanes } from "./load";
import { PythonRows, pythonRows } from "./python";
import { type Lane, Row, type TipRow } from "./row";

export const LANES: readonly Lane[] = [
  chartLane({
    id: "gpu",
    title: "GPU",
    label: gpuName,
    blind: /^gpu$/,
    has: () => !!lanes.value?.gpus.at.length || !!info.value?.gpu_driver,
    read: gpus,
    more: gpuMore,
    class: "gpu-row",
  }),
  {
    id: "python",
    title: "Python threads",
    has: () => !!lanes.value?.python.length || !!info.value?.tables.python,
    Draw: PythonRows,
    tip: pythonRows,
  },
  chartLane({ id: "steps", title: "Step time", blind: /^marks$/, read: () => served("step time") }),
  {
    id: "delays",
    title: "Delays",
    has: () => !!lanes.value?.delays?.known.length || !!info.value?.tables.schedule,
    Draw: DelayRows,
    tip: delayTips,
  },
  chartLane({
    id: "pressure",
    title: "Pressure",
    blind: /pressure|psi/i,
    has: () => true,
    read: pressure,
  }),
  {
    id: "events",
    title: "Events",
    has: () => true,
    Draw: () => (
      <Row label="Events" class="event-row" blind={/kernel log|kmsg/}>
        <Events />
      </Row>
    ),
  },
  chartLane({ id: "zombies", title: "Zombies", blind: /cgroup|census/, has: () => true, read: zombies }),
  chartLane({ id: "disk", title: "Disk", blind: /^disks$/, read: () => served("disk") }),
  chartLane({ id: "network", title: "Network", blind: /netdev|network/, read: () => served("network") }),
  chartLane({ id: "memory", title: "Memory", blind: /meminfo|memory/, read: () => served("memory", 0.7) }),
];

/** Those that this recording has, in the reader's order. */
export function offered(): Lane[] {
  const there = LANES.filter((lane) => lane.has());
  const ids = ordered(
    there.map((lane) => lane.id),
    arrangement.value.order,
  );
  return ids.map((id) => there.find((lane) => lane.id === id)!);
}

export function shownLanes(): Lane[] {
  const { hidden } = arrangement.value;
  return offered().filter((lane) => !hidden.includes(lane.id));
}

export function tipRows(at: number): TipRow[] {
  return shownLanes().flatMap((lane) => lane.tip?.(at) ?? []);
}
