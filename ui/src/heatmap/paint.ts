// Drawing of a heat map in two layers: cells and axes, which change with the data, and what is selected, which changes
// with the pointer. A cell is one pixel of a small picture that the browser enlarges, so hours of cells cost nothing.

import { packed, parsed, type Rgb } from "../flame/colours";
import { type Cell, cellsOf, columnsOf, endOf, type HeatData, type Range, shadesOf, staircase } from "./cells";
import { colourOf, domainOf, HEAT_DEFAULT, HEAT_VARIABLES, paintOf, ramp, type Scale } from "./palette";

export const LEFT = 52,
  FOOT = 20;

export interface Grid {
  /** Where the first column begins; left of the picture if the view begins later. */
  readonly left: number;
  /** Of all columns. */
  readonly width: number;
  /** Of the picture. */
  readonly plot: number;
  readonly height: number;
  readonly cell: { readonly w: number; readonly h: number };
}

export interface HeatLook {
  readonly ground: Rgb;
  readonly empty: Rgb;
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly accent: string;
  readonly compare: string;
  readonly paint: Rgb;
  readonly colours: Uint32Array;
}

/** Columns as wide as fit, or with `view` where their time is on an axis that others share. */
export function gridOf(heat: HeatData, room: number, target: number, view?: Range | null, ribbon = false): Grid {
  const plot = Math.max(100, room - LEFT - 1);
  const h = Math.max(ribbon ? 0.05 : 1.5, Math.min(heat.cores ? 18 : 8, target / Math.max(1, heat.rows)));
  const height = Math.round(h * heat.rows);
  if (view && view.to > view.from) {
    const second = plot / (view.to - view.from),
      w = heat.columnS * second;
    return { left: LEFT + (heat.start - view.from) * second, width: w * heat.columns, plot, height, cell: { w, h } };
  }
  const w = Math.min(90, plot / Math.max(1, heat.columns));
  return { left: LEFT, width: w * heat.columns, plot: w * heat.columns, height, cell: { w, h } };
}

/** Nothing is drawn outside the picture. */
export function within(context: CanvasRenderingContext2D, grid: Grid, draw: () => void): void {
  context.save();
  context.beginPath();
  context.rect(LEFT - 1, 0, grid.plot + 2, grid.height);
  context.clip();
  draw();
  context.restore();
}

export function lookOf(element: Element): HeatLook {
  const style = getComputedStyle(element);
  const colour = (name: string, otherwise: string): string => style.getPropertyValue(name).trim() || otherwise;
  return {
    ground: parsed(colour("--ground", "#fff")),
    empty: parsed(colour("--soft", "#f5f6f8")),
    ink: colour("--ink", "#1c2026"),
    faint: colour("--faint", "#6b727d"),
    line: colour("--line-strong", "#c3c8d0"),
    accent: colour("--accent", "#1463d6"),
    compare: colour("--compare", "#8a5a00"),
    paint: parsed(colour("--paint", "#9c1fb8")),
    colours: ramp(HEAT_VARIABLES.map((name, step) => colour(name, HEAT_DEFAULT[step]!))),
  };
}

/** A context in pixels of the page, cleared. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const density = window.devicePixelRatio || 1,
    context = canvas.getContext("2d");
  canvas.width = Math.max(1, Math.round(width * density));
  canvas.height = Math.max(1, Math.round(height * density));
  context?.scale(density, density);
  return context;
}

const LEAST_SHADE = 0.05;

export function drawCells(
  context: CanvasRenderingContext2D,
  heat: HeatData,
  grid: Grid,
  look: HeatLook,
  scale: Scale,
): void {
  const picture = new OffscreenCanvas(Math.max(1, heat.columns), Math.max(1, heat.rows)),
    small = picture.getContext("2d")!;
  const image = small.createImageData(picture.width, picture.height),
    pixels = new Uint32Array(image.data.buffer);
  const ground = packed(look.ground),
    empty = packed(look.empty);
  pixels.fill(empty);
  const shades = shadesOf(heat),
    domain = domainOf(shades);
  for (let column = 0; column < heat.columns; column++) {
    for (let row = 0; row < heat.rows; row++) {
      const cell = column * heat.rows + row,
        value = shades[cell]!;
      // A sample covers a time that may reach into the next cell; a sliver of it is not drawn as if one were there.
      if (value < LEAST_SHADE) continue;
      const line = heat.cores ? row : heat.rows - 1 - row;
      let colour = colourOf(value, domain, scale, look.colours);
      // While something is searched the rest steps back, or paint and heat would be hard to tell apart.
      if (heat.painted) {
        const hits = (value * heat.painted[cell]!) / Math.max(1, heat.values[cell]!);
        colour = paintOf(hits, domain, scale, faded(colour, empty), look.paint);
      }
      pixels[line * heat.columns + column] = colour;
    }
  }
  small.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, grid.left, 0, grid.width, grid.height);
  if (grid.cell.w >= 6 && grid.cell.h >= 3) drawGaps(context, heat, grid, ground);
}

function faded(colour: number, ground: number): number {
  const part = (shift: number): number =>
    (((colour >>> shift) & 255) * 0.3 + ((ground >>> shift) & 255) * 0.7) << shift;
  return (0xff000000 | (part(16) & 0xff0000) | (part(8) & 0xff00) | (part(0) & 0xff)) >>> 0;
}

function drawGaps(context: CanvasRenderingContext2D, heat: HeatData, grid: Grid, ground: number): void {
  context.fillStyle = `rgb(${ground & 255} ${(ground >>> 8) & 255} ${(ground >>> 16) & 255})`;
  for (let column = 1; column <= heat.columns; column++)
    context.fillRect(grid.left + column * grid.cell.w - 1, 0, 1, grid.height);
  if (grid.cell.h < 4) return;
  context.globalAlpha = 0.6;
  for (let row = 1; row < heat.rows; row++) context.fillRect(grid.left, row * grid.cell.h - 0.5, grid.width, 0.5);
  context.globalAlpha = 1;
}

/** What was not recorded is hatched, so that it is not taken for idle; so is what a file leaves out, and says which. */
export function drawBlind(context: CanvasRenderingContext2D, heat: HeatData, grid: Grid, look: HeatLook): void {
  drawHatched(context, heat, heat.blind, "not recorded", grid, look);
  drawHatched(context, heat, heat.leftOut, "not in this file", grid, look);
}

function drawHatched(
  context: CanvasRenderingContext2D,
  heat: HeatData,
  spans: HeatData["blind"],
  text: string,
  grid: Grid,
  look: HeatLook,
): void {
  for (const [from, to] of columnsOf(heat, spans)) {
    const x = grid.left + from * grid.cell.w,
      w = Math.max(2, (to - from) * grid.cell.w);
    context.save();
    context.beginPath();
    context.rect(x, 0, w, grid.height);
    context.clip();
    context.fillStyle = `rgb(${look.ground.join(" ")} / 70%)`;
    context.fillRect(x, 0, w, grid.height);
    context.strokeStyle = look.line;
    context.lineWidth = 1;
    context.beginPath();
    for (let start = x - grid.height; start < x + w; start += 7) {
      context.moveTo(start, grid.height);
      context.lineTo(start + grid.height, 0);
    }
    context.stroke();
    if (w > 84) {
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "center";
      const wide = context.measureText(text).width + 12;
      context.fillStyle = `rgb(${look.ground.join(" ")})`;
      context.fillRect(x + w / 2 - wide / 2, grid.height / 2 - 10, wide, 18);
      context.fillStyle = look.faint;
      context.fillText(text, x + w / 2, grid.height / 2 + 3);
    }
    context.restore();
  }
}

export function drawAxes(
  context: CanvasRenderingContext2D,
  heat: HeatData,
  grid: Grid,
  look: HeatLook,
  clock: (at: number, digits: number) => string,
): void {
  context.fillStyle = look.faint;
  context.strokeStyle = look.line;
  context.font = '10.5px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const step = niceStep(72 / (grid.cell.w / heat.columnS));
  const first = Math.ceil(heat.start / step) * step;
  for (let at = first; at < endOf(heat); at += step) {
    const x = grid.left + ((at - heat.start) / heat.columnS) * grid.cell.w;
    if (x < LEFT - 1) continue;
    if (x + 52 > LEFT + grid.plot) break;
    context.fillRect(Math.round(x), grid.height + 1, 1, 4);
    context.fillText(clock(at, 0), x + 3, grid.height + 14);
  }
  context.textAlign = "right";
  if (heat.cores) {
    const every = Math.max(1, Math.ceil(12 / grid.cell.h));
    heat.cores.forEach((cpu, row) => {
      const y = Math.max(9, row * grid.cell.h + Math.min(grid.cell.h, 10));
      // The first is moved down into the picture; the next must not lie on it.
      if (row % every === 0 && (row === 0 || y >= 20)) context.fillText(`core ${cpu}`, LEFT - 6, y);
    });
  } else {
    const [unit, per] = heat.spanS >= 3600 ? ["min", 60] : heat.spanS >= 60 ? ["s", 1] : ["ms", 0.001];
    for (const part of grid.height < 120 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
      const y = grid.height * (1 - part);
      context.fillText(
        part === 1 && heat.spanS === 1 ? "1 s" : `${Math.round((part * heat.spanS) / (per as number))} ${unit}`,
        LEFT - 6,
        Math.min(grid.height, Math.max(9, y + 3)),
      );
    }
  }
}

/** Whole seconds, minutes or hours that are at least so many seconds apart. */
export function niceStep(least: number): number {
  return (
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200].find((step) => step >= least) ?? 86400
  );
}

export interface Marks {
  readonly selection: Range | null;
  readonly compare: Range | null;
  /** Only this row, on a map of cores. */
  readonly row: number | null;
  readonly cursor: Cell | null;
}

export function drawMarks(
  context: CanvasRenderingContext2D,
  heat: HeatData,
  grid: Grid,
  look: HeatLook,
  marks: Marks,
): void {
  const spans = (
    [
      [marks.compare, look.compare, "compared with"],
      [marks.selection, look.accent, "selected"],
    ] as const
  )
    .filter(([range]) => range !== null)
    .map(([range, colour, word]) => ({ colour, word, rectangles: rectanglesOf(heat, range!, grid, marks.row) }));
  if (spans.length) {
    context.beginPath();
    context.rect(LEFT, 0, grid.plot, grid.height);
    // Both spans may overlap; then the part they share is dimmed as well, and both outlines still tell.
    for (const { rectangles } of spans) for (const { x, y, w, h } of rectangles) context.rect(x, y, w, h);
    context.fillStyle = `rgb(${look.ground.join(" ")} / 58%)`;
    context.fill("evenodd");
  }
  for (const { colour, word, rectangles } of spans) drawOutline(context, rectangles, colour, word, look);
  if (marks.cursor) {
    const line = heat.cores ? marks.cursor.row : heat.rows - 1 - marks.cursor.row;
    context.strokeStyle = look.ink;
    context.lineWidth = 2;
    context.strokeRect(
      grid.left + marks.cursor.column * grid.cell.w - 1,
      line * grid.cell.h - 1,
      Math.max(4, grid.cell.w + 1),
      Math.max(4, grid.cell.h + 2),
    );
  }
}

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

function rectanglesOf(heat: HeatData, range: Range, grid: Grid, row: number | null): Box[] {
  const [first, end] = cellsOf(heat, range);
  return staircase(heat, first, end).map(({ x, y, w, h }) => ({
    x: grid.left + x * grid.cell.w,
    w: w * grid.cell.w,
    y: (row === null ? y : row) * grid.cell.h,
    h: (row === null ? h : 1) * grid.cell.h,
  }));
}

// Neighbouring rectangles become one outline: edges that two of them share are not drawn.
function drawOutline(
  context: CanvasRenderingContext2D,
  boxes: readonly Box[],
  colour: string,
  word: string,
  look: HeatLook,
): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  boxes.forEach((box, at) => {
    const before = boxes[at - 1],
      after = boxes[at + 1];
    const line = (x: number, y: number, x1: number, y1: number): void => {
      context.moveTo(x, y);
      context.lineTo(x1, y1);
    };
    const top = box.y + 1,
      bottom = box.y + box.h - 1;
    line(box.x, top, box.x + box.w, top);
    line(box.x, bottom, box.x + box.w, bottom);
    const side = (x: number, other: Box | undefined): void => {
      if (!other) return line(x, top, x, bottom);
      if (box.y < other.y) line(x, top, x, Math.min(bottom, other.y + 1));
      if (box.y + box.h > other.y + other.h) line(x, Math.max(top, other.y + other.h - 1), x, bottom);
    };
    side(box.x, before);
    side(box.x + box.w, after);
  });
  context.stroke();
  const first = boxes[0];
  if (!first) return;
  const wide = boxes.reduce((sum, box) => sum + box.w, 0);
  if (wide < 90) return;
  context.font = "600 10.5px system-ui, sans-serif";
  context.textAlign = "left";
  const room = context.measureText(word).width + 10,
    x = first.x;
  context.fillStyle = colour;
  context.fillRect(x, 0, room, 15);
  context.fillStyle = `rgb(${look.ground.join(" ")})`;
  context.fillText(word, x + 5, 11);
}
