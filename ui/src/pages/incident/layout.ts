// Where the stations of a path stand, and the lines between them. Rows are read from left to right, as text is; the line
// from the end of a row runs through the gap below it to the start of the next one.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Drawn {
  columns: number;
  height: number;
  boxes: Box[];
  /** SVG path data, one for each step from a station to the next. */
  lines: string[];
}

export interface Measures {
  least: number;
  height: number;
  gapX: number;
  gapY: number;
}

export const MEASURES: Measures = { least: 208, height: 142, gapX: 34, gapY: 40 };

export function drawPath(stations: number, width: number, measures: Measures = MEASURES): Drawn {
  const { least, height, gapX, gapY } = measures;
  const fit = Math.max(1, Math.floor((width + gapX) / (least + gapX)));
  const rows = Math.max(1, Math.ceil(stations / fit));
  // Rows as equal as can be: 7 stations in room for 6 are 4 and 3, not 6 and 1.
  const columns = Math.max(1, Math.ceil(stations / rows));
  const wide = Math.max(1, (width - gapX * (columns - 1)) / columns);
  const boxes = Array.from({ length: stations }, (_, number) => ({
    x: (number % columns) * (wide + gapX),
    y: Math.floor(number / columns) * (height + gapY),
    width: wide,
    height,
  }));
  const lines = boxes.slice(1).map((to, number) => line(boxes[number] as Box, to, columns === 1));
  const used = Math.ceil(stations / columns);
  return { columns, height: stations ? used * height + (used - 1) * gapY : 0, boxes, lines };
}

const ARROW = 5;
const r = (value: number): number => Math.round(value * 10) / 10;

function line(from: Box, to: Box, stacked: boolean): string {
  const middle = (box: Box) => box.y + box.height / 2;
  if (stacked) {
    const x = from.x + from.width / 2;
    return `M${r(x)} ${r(from.y + from.height)}V${r(to.y - ARROW)}`;
  }
  if (from.y === to.y) return `M${r(from.x + from.width)} ${r(middle(from))}H${r(to.x - ARROW)}`;
  const startX = from.x + from.width / 2;
  const endX = to.x + to.width / 2;
  const top = from.y + from.height;
  const between = (top + to.y) / 2;
  const bend = Math.min(10, (to.y - top) / 2);
  return [
    `M${r(startX)} ${r(top)}`,
    `V${r(between - bend)}`,
    `Q${r(startX)} ${r(between)} ${r(startX - bend)} ${r(between)}`,
    `H${r(endX + bend)}`,
    `Q${r(endX)} ${r(between)} ${r(endX)} ${r(between + bend)}`,
    `V${r(to.y - ARROW)}`,
  ].join("");
}
