/** Zombies, pressure and GPUs as small charts on one canvas each. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { colourOf, dark, view } from "../state";
import { lanes } from "./load";
import { highest, type Point, pieces } from "./series";

export const CHART_PX = 34;

export interface Line {
  name: string;
  colour: string;
  dash?: number[];
  fill?: boolean;
  values: (number | null)[];
}

/** The top of a scale of ratios: never so close that noise looks like trouble. */
export const PRESSURE_TOP = 0.1;

export function zombieLines(): { at: number[]; lines: Line[]; top: number } {
  const found = lanes.value?.zombies;
  const at = found?.at ?? [];
  const dying = found?.dying ?? [];
  const total = found?.total ?? [];
  const top = Math.max(10, highest(at, total, view.value), highest(at, dying, view.value)) * 1.08;
  return {
    at,
    top,
    lines: [
      { name: "memory cgroups", colour: "--faint", dash: [3, 3], values: total },
      { name: "dying", colour: "--zombie", fill: true, values: dying },
    ],
  };
}

export function pressureLines(): { at: number[]; lines: Line[]; top: number } {
  const found = lanes.value?.pressure;
  const at = found?.at ?? [];
  const lines: Line[] = [
    { name: "io", colour: "--psi-io", dash: [1, 3], values: found?.io ?? [] },
    { name: "mem", colour: "--psi-memory", dash: [5, 2], values: found?.memory ?? [] },
    { name: "cpu", colour: "--psi-cpu", fill: true, values: found?.cpu ?? [] },
  ];
  const most = Math.max(...lines.map((line) => highest(at, line.values, view.value)));
  return { at, lines, top: Math.min(1, Math.max(PRESSURE_TOP, most * 1.1)) };
}

/** Percent of what the GPUs could do: their mean, and of several the least busy one. */
export function gpuLines(): { at: number[]; lines: Line[]; top: number } {
  const found = lanes.value?.gpus;
  const lines: Line[] = [{ name: "mean", colour: "--gpu", fill: true, values: found?.mean ?? [] }];
  if ((found?.count ?? 0) > 1)
    lines.unshift({ name: "lowest", colour: "--gpu-lowest", dash: [3, 2], values: found?.lowest ?? [] });
  return { at: found?.at ?? [], lines, top: 100 };
}

export function Chart({ at, lines, top }: { at: number[]; lines: Line[]; top: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = plotWidth.value;
  const shown = view.value;
  dark.value;
  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, CHART_PX);
    if (!context) return;
    for (const line of lines) draw(context, line, pieces(at, line.values, shown, width, CHART_PX, top));
  });
  return <canvas ref={canvas} class="chart" aria-hidden="true" />;
}

function draw(context: CanvasRenderingContext2D, line: Line, found: Point[][]): void {
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
      area.lineTo(piece[piece.length - 1]![0], CHART_PX);
      area.lineTo(piece[0]![0], CHART_PX);
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
