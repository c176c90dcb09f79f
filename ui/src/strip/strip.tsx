/** Time x core on a canvas. Cells are painted once into a picture of one pixel each; looking around only moves that picture. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { MODES } from "../api/modes";
import { toX } from "../axis/axis";
import { hatching, sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { chosen, colourOf, dark, view } from "../state";
import { type Strip as Cells, endOf, type Held, held, type Palette, paint, rowHeight, worstIn } from "./cells";
import { strip } from "./load";

/** Tall enough for a pixel for each of 192 cores. */
export const MOST_PX = 192;

/** What the page has for it; a pixel for several cores shows the worst of them. */
export const stripRoom = signal(MOST_PX);

/** As high as it would be with all the room that it can use. */
export const stripWants = (cpus: number): number => Math.max(40, Math.round(rowHeight(cpus, MOST_PX) * cpus));

export const stripHeight = (cpus: number): number => Math.max(40, Math.round(rowHeight(cpus, stripRoom.value) * cpus));

export function StripCanvas({ average }: { average: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<{ of: Cells; dark: boolean; height: number; image: HTMLCanvasElement; held: Held[] } | null>(
    null,
  );
  const cells = strip.value;
  const shown = view.value;
  const width = plotWidth.value;
  const height = stripHeight(cells?.cpus.length ?? 0);
  const night = dark.value;
  const span = chosen.value;

  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, height);
    if (!context) return;
    context.fillStyle = hatching(context);
    context.fillRect(0, 0, width, height);
    if (!cells) return;
    const drawn = picture.current;
    if (drawn?.of !== cells || drawn.dark !== night || drawn.height !== height)
      picture.current = { of: cells, dark: night, height, image: painted(cells, height), held: held(cells) };
    const left = toX(shown, width, cells.from);
    const right = toX(shown, width, endOf(cells));
    context.imageSmoothingEnabled = false;
    context.drawImage(picture.current!.image, left, 0, right - left, height);
    rows(context, cells.cpus.length, width, height);
    dots(context, picture.current!.held, cells, left, right, height);
    if (average) averages(context, cells, left, right, height);
    worst(context, cells, left, right, height, span);
  });
  useEffect(() => () => void (picture.current = null), []);
  return <canvas ref={canvas} class="strip" aria-hidden="true" />;
}

const NONE = [0, 0, 0] as const;
const BLACK: Palette = { idle: NONE, user: NONE, system: NONE, irq: NONE, softirq: NONE, steal: NONE, iowait: NONE };

function painted(cells: Cells, height: number): HTMLCanvasElement {
  const palette: Palette = { ...BLACK };
  for (const mode of [...MODES, "idle"] as const) palette[mode] = rgb(colourOf(`--mode-${mode}`));
  const tall = Math.min(cells.cpus.length, height);
  const image = document.createElement("canvas");
  image.width = Math.max(1, cells.columns);
  image.height = Math.max(1, tall);
  image.getContext("2d")!.putImageData(new ImageData(paint(cells, palette, tall), image.width, image.height), 0, 0);
  return image;
}

/** Thin lines between cores, where there is room for them. */
function rows(context: CanvasRenderingContext2D, cpus: number, width: number, height: number): void {
  const each = height / cpus;
  if (each < 6) return;
  context.fillStyle = colourOf("--ground");
  for (let row = 1; row < cpus; row++) context.fillRect(0, Math.round(row * each) - 0.5, width, 1);
}

/** What lasted a second in a view of hours would be a pixel too small to find. */
function dots(
  context: CanvasRenderingContext2D,
  found: Held[],
  cells: Cells,
  left: number,
  right: number,
  height: number,
): void {
  const wide = (right - left) / cells.columns;
  const tall = height / cells.cpus.length;
  if (wide >= DOT_PX && tall >= DOT_PX) return;
  const [w, h] = [Math.max(DOT_PX, wide), Math.max(DOT_PX, tall)];
  for (const mode of MODES) {
    context.fillStyle = colourOf(`--mode-${mode}`);
    for (const one of found)
      if (one.mode === mode)
        context.fillRect(left + (one.column + 0.5) * wide - w / 2, (one.row + 0.5) * tall - h / 2, w, h);
  }
}

const DOT_PX = 3;

function averages(context: CanvasRenderingContext2D, cells: Cells, left: number, right: number, height: number): void {
  const column = (right - left) / cells.columns;
  const line = (values: Float32Array): Path2D => {
    const path = new Path2D();
    let pen = false;
    for (let n = 0; n < values.length; n++) {
      const value = values[n]!;
      if (Number.isNaN(value)) {
        pen = false;
        continue;
      }
      const x = left + (n + 0.5) * column;
      const y = height - 1 - value * (height - 2);
      if (!pen) path.moveTo(x - column / 2, y);
      path.lineTo(x, y);
      pen = true;
    }
    return path;
  };
  context.lineJoin = "round";
  for (const [values, dash, thick] of [
    [cells.average_kernel, [2, 3], 1.2],
    [cells.average_busy, [], 1.7],
  ] as const) {
    const path = line(values);
    context.setLineDash([]);
    context.globalAlpha = dash.length ? 0.55 : 0.85;
    context.strokeStyle = colourOf("--average-halo");
    context.lineWidth = thick + 2.4;
    context.stroke(path);
    context.globalAlpha = 1;
    context.setLineDash(dash);
    context.strokeStyle = colourOf("--average");
    context.lineWidth = thick;
    context.stroke(path);
  }
  context.setLineDash([]);
}

/** A frame around the worst cell of what is looked at. */
function worst(
  context: CanvasRenderingContext2D,
  cells: Cells,
  left: number,
  right: number,
  height: number,
  span: { from: number; to: number },
): void {
  const found = worstIn(cells, span);
  if (!found || found.shares.kernel + found.shares.steal < 0.5) return;
  const wide = (right - left) / cells.columns;
  const tall = height / cells.cpus.length;
  const x = left + (found.column + 0.5) * wide;
  const [w, h] = [Math.max(9, wide + 4), Math.max(9, tall + 4)];
  const y = Math.max(h / 2 + 1, Math.min(height - h / 2 - 1, (found.row + 0.5) * tall));
  for (const [colour, thick] of [
    ["--average-halo", 4],
    ["--ink", 1.8],
  ] as const) {
    context.strokeStyle = colourOf(colour);
    context.lineWidth = thick;
    context.beginPath();
    context.roundRect(x - w / 2, y - h / 2, w, h, 3);
    context.stroke();
  }
}

export function rgb(hex: string): [number, number, number] {
  const value = Number.parseInt(hex.replace("#", ""), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}
