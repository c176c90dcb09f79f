/** The strip that is on the screen: asked for when the view changes, moved on by ticks while the live tail is followed. */

import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { source } from "../api/source";
import type { Span, Tick } from "../api/types";
import { plotWidth } from "../axis/moves";
import { opening } from "../axis/opening";
import {
  type Answer,
  current,
  extent,
  following,
  info,
  lastTick,
  rec,
  replace,
  selection,
  TAIL_S,
  useAnswer,
  view,
} from "../state";
import { advanced, measured, type Strip, stripOf } from "./cells";

export const strip = signal<Strip | null>(null);

/** Ticks that came while the strip was being read, and which it may lack. */
const recent: Tick[] = [];
const RECENT = 10;

const moved = (before: Strip, tick: Tick): Strip =>
  advanced(before, tick, Math.ceil(TAIL_S / before.column_s)) ?? before;

/** Whole ticks, and no more columns than pixels or ticks: a column without a tick would look as if nothing was measured. */
export function wanted(span: Span, width: number, interval_s: number): { from: number; to: number; columns: number } {
  // The recorder ticks on whole multiples of its interval; columns in the same step each have one tick.
  const from = Math.floor(span.from / interval_s) * interval_s;
  const to = Math.ceil(span.to / interval_s) * interval_s;
  const ticks = Math.max(1, Math.round((to - from) / interval_s));
  return { from, to, columns: Math.max(1, Math.min(ticks, Math.max(64, Math.floor(width)))) };
}

let opened = "";

/** Once for each recording: the reader who then asks for the whole of it gets the whole. */
function openOn(found: Strip): void {
  const key = `${rec.value} ${info.value?.node} ${info.value?.from}`;
  if (opened === key) return;
  opened = key;
  if (following.value || current().view) return;
  const first = opening(extent.value, selection.value, measured(found));
  if (first) replace({ view: first });
}

export function useStrip(): Answer<Strip> {
  const known = info.value;
  const interval_s = known?.interval_s ?? 1;
  const span = view.value;
  const live = following.value;
  // While the tail is followed its question stays the same; ticks bring the rest.
  const { from, to, columns } = wanted(span, plotWidth.value, interval_s);
  const ready = known !== null && plotWidth.value > 0 && span.to > span.from;
  const key = !ready ? null : live ? `tail ${rec.value}` : `${rec.value} ${from} ${to} ${columns}`;
  const answer = useAnswer(
    key,
    async (signal) => {
      const found = stripOf(
        await source().columns("strip", { rec: rec.value, from: from.toFixed(3), to: to.toFixed(3), columns }, signal),
      );
      strip.value = following.value ? recent.reduce(moved, found) : found;
      openOn(found);
      return found;
    },
    // The first picture is waited for by everybody.
    { wait_ms: live || strip.peek() === null ? 0 : 60, lasting: true },
  );
  useEffect(
    () =>
      effect(() => {
        const tick = lastTick.value;
        const before = strip.peek();
        if (!tick) return;
        recent.push(tick);
        recent.splice(0, recent.length - RECENT);
        if (before && following.value) strip.value = moved(before, tick);
      }),
    [],
  );
  return answer;
}
