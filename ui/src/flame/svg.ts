// The graph as a picture that needs nothing else: what is seen, with names and numbers under the pointer.

import { count, functionName } from "../format";
import { type ColourBy, css, nodeColours, unpacked } from "./colours";
import { barsOf, extentOf } from "./layout";
import type { FlameTree } from "./tree";
import { factsOf, narrowNote, prunedNote } from "./words";

const WIDTH = 1200,
  MARGIN = 10,
  ROW = 17,
  CHARACTER = 6.6,
  LEAST_PX = 0.3;

export interface SvgOptions {
  readonly title: string;
  readonly colour: ColourBy;
  readonly flip: boolean;
  /** The node that is zoomed to. */
  readonly zoom?: number;
  readonly matches?: Uint8Array | null;
}

export function svgOf(tree: FlameTree, { title, colour, flip, zoom = 0, matches }: SvgOptions): string {
  const bars = barsOf(tree),
    colours = nodeColours(tree, colour, "light");
  const { x0, x1 } = extentOf(bars, zoom),
    scale = x1 > x0 ? (WIDTH - 2 * MARGIN) / (x1 - x0) : 0;
  const shown: number[] = [];
  let narrow = 0,
    deepest = 0;
  for (let node = 0; node < tree.count; node++) {
    if (bars.right[node]! <= x0 || bars.left[node]! >= x1) continue;
    if ((bars.right[node]! - bars.left[node]!) * scale < LEAST_PX) {
      narrow++;
      continue;
    }
    shown.push(node);
    deepest = Math.max(deepest, tree.depth[node]!);
  }
  const top = 46,
    notes = [narrowNote(narrow), prunedNote(tree), tree.isDifference ? DIFFERENCE : ""].filter(Boolean);
  const height = top + (deepest + 1) * ROW + 12 + 14 * notes.length;
  const y = (depth: number): number => top + (flip ? deepest - depth : depth) * ROW;
  const frames = shown.map((node) => {
    const left = Math.max(x0, bars.left[node]!),
      right = Math.min(x1, bars.right[node]!);
    const x = MARGIN + (left - x0) * scale,
      wide = (right - left) * scale,
      at = y(tree.depth[node]!);
    const fill = matches?.[tree.fn[node]!] ? "#9c1fb8" : css(unpacked(colours[node]!));
    const room = Math.floor((wide - 5) / CHARACTER),
      label = room < 3 ? "" : functionName(tree.label(node), room);
    const above = tree.depth[node]! < tree.depth[zoom]! ? ' opacity=".5"' : "";
    const { name, place, lines } = factsOf(tree, node, zoom);
    const words = [name, place, ...lines.map(([key, text]) => `${key}: ${text}`)].filter(Boolean).join("\n");
    const ink = matches?.[tree.fn[node]!] ? ' class="m"' : "";
    return (
      `<g${above}><title>${escaped(words)}</title><rect x="${x.toFixed(2)}" y="${at}" width="${Math.max(LEAST_PX, wide - (wide > 3 ? 0.6 : 0)).toFixed(2)}" ` +
      `height="${ROW - 1}" fill="${fill}" rx="1"/>${label ? `<text${ink} x="${(x + 3).toFixed(1)}" y="${at + 12}">${escaped(label)}</text>` : ""}</g>`
    );
  });
  const said = notes.map(
    (note, line) =>
      `<text class="n" x="${MARGIN}" y="${height - 14 * (notes.length - 1 - line) - 6}">${escaped(note)}</text>`,
  );
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">` +
    `<style>${STYLE}</style><rect class="g" width="100%" height="100%"/><text class="h" x="${MARGIN}" y="20">${escaped(title)}</text>` +
    `<text class="n" x="${MARGIN}" y="36">${count(tree.total)} samples</text>${frames.join("")}${said.join("")}</svg>\n`
  );
}

const DIFFERENCE =
  "Red grew, blue shrank or vanished; a frame is as wide as the mean of both sides, made equally long.";
const STYLE =
  ".g{fill:#fff}text{font:11px ui-monospace,monospace;fill:#111}text.m{fill:#fff}.h{font-weight:bold;font-size:13px}" +
  ".h,.n{fill:#222}.n{opacity:.75}g:hover>rect{stroke:#000;stroke-width:1}" +
  "@media(prefers-color-scheme:dark){.g{fill:#16181c}.h,.n{fill:#ddd}}";

function escaped(text: string): string {
  // What XML cannot hold at all is shown as a question mark; kernels and linkers do name things so.
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "?")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}
