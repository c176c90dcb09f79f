/** Who ran when: a row of the axis for each of those that ran most, with the part that the kernel had in its colour. */

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Columns } from "../api/columns";
import type { TracksHeader } from "../api/types";
import { length, toX } from "../axis/axis";
import { sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { GROUP_NAMES } from "../flame/look";
import { count, duration } from "../format";
import { samplesIn, UNASKED } from "../samples/flames";
import { only } from "../samples/who";
import { colourOf, dark, extent, following, sampleParams, tracks, useColumns, view } from "../state";

export const TRACK_PX = 20;
const TOP = 12;

export interface Track {
  name: string;
  from: number;
  columnS: number;
  /** CPUs in each column, all and the kernel's; samples where the rate is not known. */
  all: Float32Array;
  kernel: Float32Array;
  /** The top of its scale: one CPU, or more where it had more. */
  top: number;
  /** The same for the eye; empty where the rate is not known. */
  scale: string;
  row: TracksHeader["tracks"][number];
}

export function tracksOf({ header, arrays }: Columns<TracksHeader>): Track[] {
  const { columns, column_s, hz } = header;
  const scale = hz ? 1 / (hz * column_s) : 1;
  return header.tracks.map((row, track) => {
    const cut = (name: string): Float32Array =>
      Float32Array.from(arrays[name]!.slice(track * columns, (track + 1) * columns), (value) => value * scale);
    const all = cut("samples");
    const top = Math.max(hz ? 1 : 0, ...all);
    return {
      name: row.name,
      from: header.from,
      columnS: column_s,
      all,
      kernel: cut("kernel"),
      top,
      scale: hz ? top.toFixed(1) : "",
      row,
    };
  });
}

/** The rows, for an axis that labels each. */
export function useTracks() {
  const by = tracks.value;
  const shown = view.value;
  const many = by !== "none" && samplesIn(shown) > UNASKED;
  const ready = by !== "none" && !many && length(shown) > 0 && plotWidth.value > 0;
  const span = { from: shown.from, to: Math.min(shown.to, extent.value.to) };
  const columns = Math.max(60, Math.min(1200, Math.floor(plotWidth.value / 2)));
  const params = { ...sampleParams(span), by, top: TOP, columns };
  const answer = useColumns("tracks", ready ? params : null, { wait_ms: 250, patient: following.value });
  const found = useMemo(() => (answer.data ? tracksOf(answer.data) : []), [answer.data]);
  return { by, many, found: by === "none" ? [] : found, others: answer.data?.header.others ?? 0, answer };
}

export function TrackLabel({ track }: { track: Track }) {
  const by = tracks.value;
  if (by === "none") return null;
  return (
    <button type="button" class="track-label" title={`Only ${track.name}`} onClick={() => only(by, track.row)}>
      {track.name}
    </button>
  );
}

/** Painted once for each answer and theme, a pixel for a column; looking around only moves that picture, as the strip does. */
function painted(track: Track): HTMLCanvasElement {
  const image = document.createElement("canvas");
  image.width = Math.max(1, track.all.length);
  image.height = TRACK_PX;
  const context = image.getContext("2d")!;
  for (const [values, colour] of [
    [track.all, "--mode-user"],
    [track.kernel, "--mode-system"],
  ] as const) {
    context.fillStyle = colourOf(colour);
    for (let column = 0; column < values.length; column++) {
      const value = values[column]!;
      if (!value) continue;
      const tall = Math.max(1, Math.round((value / track.top) * (TRACK_PX - 2)));
      context.fillRect(column, TRACK_PX - tall, 1, tall);
    }
  }
  return image;
}

export function TrackCanvas({ track }: { track: Track }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = plotWidth.value;
  const shown = view.value;
  const night = dark.value;
  const image = useMemo(() => painted(track), [track, night]);
  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, TRACK_PX);
    if (!context) return;
    const left = toX(shown, width, track.from);
    const right = toX(shown, width, track.from + track.all.length * track.columnS);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, left, 0, right - left, TRACK_PX);
  });
  return (
    <canvas
      ref={canvas}
      class="chart"
      role="img"
      aria-label={`${track.name}: ${count(track.row.samples)} samples, at most ${track.top.toFixed(1)} cores in ${duration(track.columnS)}`}
    />
  );
}

export const tracksTitle = (by: keyof typeof GROUP_NAMES): string => `by ${GROUP_NAMES[by]}`;
