/** Answers about the time axis: cuts the requested part out of the frozen data. Pure. */

import { type Columns, decode, encode, type TypedArray } from "../columns";
import { MODES } from "../modes";
import type { Chart, Lanes, Span, StripHeader } from "../types";

/** The finest strip that has all of the span, else the one that has most of it. */
export function finest(strips: readonly Columns<StripHeader>[], span: Span): Columns<StripHeader> | null {
  const covers = ({ header }: Columns<StripHeader>) => header.from <= span.from + 0.5 && header.to >= span.to - 0.5;
  const fine = strips.filter(covers).sort((a, b) => a.header.column_s - b.header.column_s)[0];
  if (fine) return fine;
  const most = ({ header }: Columns<StripHeader>) => Math.min(header.to, span.to) - Math.max(header.from, span.from);
  return [...strips].sort((a, b) => most(b) - most(a) || a.header.column_s - b.header.column_s)[0] ?? null;
}

export function cutStrip<H>(strip: Columns<StripHeader>, span: Span): Columns<H> {
  const { header, arrays } = strip;
  const first = Math.max(0, Math.floor((span.from - header.from) / header.column_s + 1e-6));
  const end = Math.max(first, Math.min(header.columns, Math.ceil((span.to - header.from) / header.column_s - 1e-6)));
  const wide = header.cpus.length;
  const cut: Record<string, TypedArray> = {};
  for (const [name, array] of Object.entries(arrays)) {
    const per = (MODES as readonly string[]).includes(name) ? wide : 1;
    cut[name] = array.slice(first * per, end * per);
  }
  const from = header.from + first * header.column_s;
  const { arrays: _, ...scalars } = header;
  return decode<H>(encode({ ...scalars, from, to: from + (end - first) * header.column_s, columns: end - first }, cut));
}

function cutChart(chart: Chart, inside: (at: number) => boolean): Chart {
  const kept = chart.at.map(inside);
  const lines = chart.lines.map(({ name, values }) => ({ name, values: values.filter((_, n) => kept[n]) }));
  return { ...chart, at: chart.at.filter(inside), lines };
}

export function cutLanes(lanes: Lanes, span: Span): Lanes {
  const inside = (at: number) => at >= span.from && at < span.to;
  return {
    ...lanes,
    events: lanes.events.filter((event) => inside(event.at)),
    gaps: lanes.gaps.filter((gap) => gap.from < span.to && gap.to > span.from),
    zombies: cutSeries(lanes.zombies, inside),
    pressure: cutSeries(lanes.pressure, inside),
    gpus: cutSeries(lanes.gpus, inside),
    charts: (lanes.charts ?? []).map((chart) => cutChart(chart, inside)),
    python: lanes.python.map((lane) => cutLane(lane, span)),
  };
}

function cutLane(lane: Lanes["python"][number], span: Span): Lanes["python"][number] {
  const kept = lane.from.map((from, n) => from < span.to && (lane.to[n] ?? from) >= span.from);
  const cut = <V>(values: V[]): V[] => values.filter((_, n) => kept[n]);
  return { ...lane, from: cut(lane.from), to: cut(lane.to), what: cut(lane.what), waits: cut(lane.waits) };
}

function cutSeries<T extends { at: number[] }>(series: T, inside: (at: number) => boolean): T {
  const kept = series.at.map(inside);
  return Object.fromEntries(
    Object.entries(series).map(([name, values]) => [
      name,
      Array.isArray(values) ? values.filter((_, i) => kept[i]) : values,
    ]),
  ) as T;
}
