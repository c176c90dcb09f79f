/** Lanes that are lines on a canvas. One without anything to see in view is a flat line that says its level. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { clock, compact, count, percent } from "../format";
import { colourOf, dark, info, view, zoneOffset } from "../state";
import { lanes } from "./load";
import { type Lane, NotMeasured, Row } from "./row";
import { highest, type Point, pieces, valueAt } from "./series";

export const CHART_PX = 34;
export const FLAT_PX = 14;
const STALE_S = 120;

export interface Line {
  name: string;
  /** In the tip, where more words fit. */
  words: string;
  colour: string;
  dash?: number[];
  fill?: boolean;
  values: readonly (number | null)[];
}

export interface Series {
  at: readonly number[];
  /** The most important one is drawn last, above the others. */
  lines: Line[];
  /** The top of the scale. */
  top: number;
  /** Below this nothing is worth the room: the lane is flat. 0: it never is. */
  quiet: number;
  say(value: number): string;
}

interface ChartSays {
  id: string;
  title: string;
  label?(): string;
  blind: RegExp;
  has?(): boolean;
  read(): Series;
  /** Further rows of the tip. */
  more?(at: number): [string, string, string | null][];
  class?: string;
}

/** The declaration of a lane from what it reads. */
export function chartLane({ id, title, label, blind, has, read, more, class: kind = "" }: ChartSays): Lane {
  return {
    id,
    title,
    has: has ?? (() => read().at.length > 0),
    Draw: () => <ChartRow name={label?.() ?? title} series={read()} blind={blind} kind={`lane-${id} ${kind}`} />,
    tip: (at) => {
      const found = read();
      if (!found.at.length && has) return [];
      const rows = [...found.lines].reverse().map((line): [string, string, string | null] => {
        const value = valueAt(found.at, line.values, at, STALE_S);
        return [line.words, line.colour, value === null ? null : found.say(value)];
      });
      return [...rows, ...(more?.(at) ?? [])];
    },
  };
}

function ChartRow({ name, series, blind, kind }: { name: string; series: Series; blind: RegExp; kind: string }) {
  const { at, lines, top, say } = series;
  const most = Math.max(0, ...lines.map((line) => highest(at, line.values, view.value)));
  const isFlat = !at.length || most < series.quiet;
  const height = isFlat ? FLAT_PX : CHART_PX;
  const main = lines[lines.length - 1];
  const level = main && at.length ? highest(at, main.values, view.value) : null;
  return (
    <Row
      label={<Named name={name} lines={isFlat ? [] : lines} />}
      class={`chart-row ${kind}${isFlat ? " flat" : ""}`}
      height={height}
      blind={blind}
      {...(isFlat ? {} : { scale: [say(top), "0"] })}
    >
      {at.length > 0 && <Chart series={series} height={height} />}
      {isFlat && level !== null && at.length > 1 && <span class="lane-note">at most {say(level)}</span>}
      {at.length === 1 && <ReadOnce series={series} />}
      <NotMeasured at={at} missing={blind} />
    </Row>
  );
}

function Named({ name, lines }: { name: string; lines: readonly Line[] }) {
  return (
    <span class="lane-name">
      {name}
      <small>
        {lines.length > 1 &&
          [...lines].reverse().map((line) => (
            <span key={line.name}>
              <svg width="12" height="6" aria-hidden="true">
                <path
                  d="M0 3h12"
                  stroke={`var(${line.colour})`}
                  stroke-width="2"
                  stroke-dasharray={line.dash?.join(" ")}
                />
              </svg>
              {line.name}
            </span>
          ))}
      </small>
    </span>
  );
}

/** One reading makes no line: an import may have a single one. */
function ReadOnce({ series: { at, lines, say } }: { series: Series }) {
  const main = lines[lines.length - 1];
  const value = main?.values[0];
  if (value == null) return null;
  return (
    <span class="lane-note">
      {say(value)} {main!.name}, read once at {clock(at[0]!, zoneOffset.value)}
    </span>
  );
}

function Chart({ series: { at, lines, top }, height }: { series: Series; height: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = plotWidth.value;
  const shown = view.value;
  dark.value;
  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, height);
    if (!context) return;
    for (const line of lines) draw(context, line, pieces(at, line.values, shown, width, height, top), height);
  });
  return <canvas ref={canvas} class="chart" aria-hidden="true" />;
}

function draw(context: CanvasRenderingContext2D, line: Line, found: Point[][], height: number): void {
  const colour = colourOf(line.colour);
  for (const piece of found) {
    const path = new Path2D();
    // A single reading has no line.
    if (piece.length === 1) {
      context.fillStyle = colour;
      context.fillRect(piece[0]![0] - 2, piece[0]![1] - 2, 4, 4);
    }
    for (const [x, y] of piece) path.lineTo(x, y);
    if (line.fill) {
      const area = new Path2D(path);
      area.lineTo(piece[piece.length - 1]![0], height);
      area.lineTo(piece[0]![0], height);
      context.globalAlpha = 0.22;
      context.fillStyle = colour;
      context.fill(area);
      context.globalAlpha = 1;
    }
    context.setLineDash(line.dash ?? []);
    context.lineWidth = 1.3;
    context.strokeStyle = colour;
    context.stroke(path);
  }
}

// --- what each reads -------------------------------------------------------------------------------------------------

/** Fewer than this never cost anything that could be measured. */
const FEW_ZOMBIES = 1000;

export function zombies(): Series {
  const found = lanes.value?.zombies;
  const at = found?.at ?? [];
  const dying = found?.dying ?? [];
  const total = found?.total ?? [];
  const top = Math.max(10, highest(at, total, view.value), highest(at, dying, view.value)) * 1.08;
  const words = "dying memory cgroups";
  return {
    at,
    top,
    quiet: highest(at, dying, view.value) < FEW_ZOMBIES ? Infinity : 0,
    say: compact,
    lines: [
      { name: "all", words: "all memory cgroups", colour: "--faint", dash: [3, 3], values: total },
      { name: "dying", words, colour: "--zombie", fill: true, values: dying },
    ],
  };
}

/** The top of a scale of ratios: never so close that noise looks like trouble. */
const PRESSURE_TOP = 0.1;
const CALM = 0.01;

export function pressure(): Series {
  const found = lanes.value?.pressure;
  const at = found?.at ?? [];
  const lines: Line[] = [
    { name: "io", words: "io pressure", colour: "--psi-io", dash: [1, 3], values: found?.io ?? [] },
    { name: "mem", words: "memory pressure", colour: "--psi-memory", dash: [5, 2], values: found?.memory ?? [] },
    { name: "cpu", words: "cpu pressure", colour: "--psi-cpu", fill: true, values: found?.cpu ?? [] },
  ];
  const most = Math.max(...lines.map((line) => highest(at, line.values, view.value)));
  return {
    at,
    lines,
    top: Math.min(1, Math.max(PRESSURE_TOP, most * 1.1)),
    quiet: CALM,
    say: (value) => percent(value, 3),
  };
}

/** Percent of what the GPUs could do: their mean, and of several the least busy one. Idle is what one looks for here. */
export function gpus(): Series {
  const found = lanes.value?.gpus;
  const many = (found?.count ?? 0) > 1;
  const words = many ? `mean of ${count(found?.count)} GPUs` : "GPU utilisation";
  const lines: Line[] = [{ name: "mean", words, colour: "--gpu", fill: true, values: found?.mean ?? [] }];
  if (many)
    lines.unshift({
      name: "lowest",
      words: "least busy GPU",
      colour: "--gpu-lowest",
      dash: [3, 2],
      values: found?.lowest ?? [],
    });
  return { at: found?.at ?? [], lines, top: 100, quiet: 0, say: (value) => percent(value / 100) };
}

export function gpuName(): string {
  const number = lanes.value?.gpus.count || info.value?.gpus.length || 0;
  return number > 1 ? `${number} GPUs` : "GPU";
}

export function gpuMore(at: number): [string, string, string | null][] {
  const found = lanes.value?.gpus;
  if (!found?.count) return [];
  const power = valueAt(found.at, found.power_w, at, STALE_S);
  const least = valueAt(found.at, found.lowest_gpu, at, STALE_S);
  return [
    ...(found.count > 1 && least !== null
      ? [["least busy", "--gpu-lowest", `GPU ${least}`] as [string, string, string]]
      : []),
    ["GPU power", "--faint", power === null ? null : `${Math.round(power)} W`],
  ];
}

const BYTES: [number, string][] = [
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1e3, "kB/s"],
];

export function bytesPerSecond(value: number): string {
  const [size, unit] = BYTES.find(([each]) => value >= each) ?? [1, "B/s"];
  const of = value / size;
  return `${of >= 99.5 ? Math.round(of) : Number(of.toPrecision(2))} ${unit}`;
}

const COLOURS = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];
const QUIET = { "bytes/s": 1e6, ratio: 0, s: 0 };
const SAYS = { "bytes/s": bytesPerSecond, ratio: (value: number) => percent(value), s: seconds };

/** As short as a step is: 12 ms, 1.3 s. */
export function seconds(value: number): string {
  return value < 1 ? `${Number((value * 1000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`;
}

/** A chart of the server's list: lines, unit and scale are its own. `quiet`: below it the lane is flat. */
export function served(name: string, quiet?: number): Series {
  const found = lanes.value?.charts.find((one) => one.name === name);
  const at = found?.at ?? [];
  const unit = found?.unit ?? "ratio";
  const lines = (found?.lines ?? []).map(
    (line, n): Line => ({
      name: line.name,
      words: `${name} ${line.name}`,
      colour: COLOURS[n % COLOURS.length]!,
      fill: n === 0,
      values: line.values,
      ...(n > 0 ? { dash: [4, 2] } : {}),
    }),
  );
  const most = Math.max(0, ...lines.map((line) => highest(at, line.values, view.value)));
  const top = unit === "ratio" ? 1 : most * 1.08 || 1;
  return { at, lines: lines.reverse(), top, quiet: quiet ?? QUIET[unit], say: SAYS[unit] };
}
