/** Events, zombies, pressure, GPUs and gaps of the view. While the live tail is followed ticks and events are added at once. */

import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { source } from "../api/source";
import type { Lanes, Tick, TimelineEvent } from "../api/types";
import { plotWidth } from "../axis/moves";
import {
  type Answer,
  away,
  extent,
  filters,
  following,
  info,
  lastEvent,
  lastTick,
  rec,
  sampleParams,
  tail,
  useAnswer,
  view,
} from "../state";
import { pythonThreads } from "./python";

export const lanes = signal<Lanes | null>(null);

/** Whether what is in view was loaded: where it was not, that nothing is there would be a guess. */
export function areLoaded(): boolean {
  const known = lanes.value;
  const { from, to } = view.value;
  const all = extent.value;
  return (
    !!known && (away.value === null || (known.from <= Math.max(from, all.from) && Math.min(to, all.to) <= known.to))
  );
}

/** Pressure and GPUs are not in the live stream. */
const REFRESH_S = 15;

export function useLanes(): Answer<Lanes> {
  // What is yet to come has no pressure of zero.
  // Half a second off the whole ones, so that a tick that is a little early or late stays in its own step.
  const span = {
    from: Math.floor(view.value.from) - 0.5,
    to: Math.floor(Math.min(view.value.to, extent.value.to)) + (following.value ? -0.5 : 0.5),
  };
  const live = following.value;
  const columns = Math.max(64, Math.min(1600, Math.floor(plotWidth.value / 2)));
  const ready = info.value !== null && plotWidth.value > 0 && span.to > span.from;
  // Rows of Python threads obey the filters; nothing else here is of a process.
  const { pid, tid, comm, unit, container, pod, image } = sampleParams(null, filters.value);
  const python = { pid, tid, comm, unit, container, pod, image, threads: pythonThreads.value };
  const chosen = JSON.stringify(python);
  const key = !ready
    ? null
    : live
      ? `tail ${rec.value} ${Math.floor(tail.value / REFRESH_S)} ${chosen}`
      : `${rec.value} ${span.from} ${span.to} ${chosen}`;
  const answer = useAnswer(
    key,
    async (signal) => {
      const found = await source().json(
        "lanes",
        { rec: rec.value, from: span.from.toFixed(3), to: span.to.toFixed(3), columns, ...python },
        signal,
      );
      found.events.sort((a, b) => a.at - b.at);
      lanes.value = found;
      return found;
    },
    { wait_ms: live ? 0 : 120, patient: live, lasting: true },
  );
  useEffect(() => {
    const ends = [
      effect(() => {
        const tick = lastTick.value;
        const before = lanes.peek();
        if (tick && before && following.value) lanes.value = withTick(before, tick);
      }),
      effect(() => {
        const event = lastEvent.value;
        const before = lanes.peek();
        if (event && before && following.value) lanes.value = withEvent(before, event);
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, []);
  return answer;
}

export function withTick(before: Lanes, tick: Tick): Lanes {
  const { zombies } = before;
  if (tick.total === null && tick.dying === null) return before;
  if ((zombies.at[zombies.at.length - 1] ?? 0) >= tick.at) return before;
  const live = tick.total !== null && tick.dying !== null ? tick.total - tick.dying : null;
  return {
    ...before,
    zombies: {
      at: [...zombies.at, tick.at],
      total: [...zombies.total, tick.total],
      live: [...zombies.live, live],
      dying: [...zombies.dying, tick.dying],
    },
  };
}

export function withEvent(before: Lanes, event: TimelineEvent): Lanes {
  if (before.events.some((one) => one.at === event.at && one.text === event.text)) return before;
  return { ...before, events: [...before.events, event].sort((a, b) => a.at - b.at) };
}
