// Colours of frames follow from names alone, so a function has the same colour in every range, recording and output: the
// light ones by kind are those of the SVG that the command line writes (query/colours.py), number by number.

import type { FlameTree, FunctionTable } from "./tree";

export type ColourBy = "kind" | "module";
export type Theme = "light" | "dark";

/** Red, green, blue, each 0 to 255. */
export type Rgb = readonly [number, number, number];

/** Degrees of the colour circle for each kind; the module chooses one within. */
const HUES: Readonly<Record<string, readonly [number, number]>> = {
  kernel: [28, 44],
  module: [0, 18],
  bpf: [318, 338],
  jit: [100, 140],
  python: [48, 66],
  inlined: [270, 296],
  user: [165, 265],
};
const GREY: Record<Theme, Rgb> = { light: [180, 180, 180], dark: [136, 139, 145] };
const ROOT: Record<Theme, Rgb> = { light: [200, 196, 188], dark: [128, 130, 134] };
/** Lightness of the darkest shade, and saturation. */
const TONE: Record<Theme, readonly [number, number]> = { light: [0.68, 0.72], dark: [0.64, 0.48] };
const UNCHANGED: Record<Theme, Rgb> = { light: [242, 242, 242], dark: [170, 174, 181] };

/** What the kinds are called in a legend, in its order. */
export const KINDS: readonly (readonly [string, string])[] = [
  ["kernel", "kernel"],
  ["module", "kernel module"],
  ["bpf", "BPF"],
  ["user", "user"],
  ["inlined", "inlined"],
  ["jit", "JIT"],
  ["python", "Python"],
  ["vdso", "vdso"],
  ["unknown", "unknown"],
];

export function colourOf(name: string, module: string | null, kind: string, by: ColourBy, theme: Theme): Rgb {
  if (kind === "root") return ROOT[theme];
  const [light, saturation] = TONE[theme];
  if (kind === "owner") return hls(crc32(name) % 360, theme === "light" ? 0.8 : 0.62, theme === "light" ? 0.28 : 0.22);
  const lightness = light + (crc32(name) % 16) / 100;
  // The kernel itself has no module; it keeps its own colour, or it would look like something unknown.
  if (by === "module" && module) {
    return hls(crc32(module) % 360, lightness, saturation * (0.75 + (crc32(`${module}*`) % 26) / 100));
  }
  const hues = HUES[kind];
  if (!hues) return GREY[theme];
  return hls(hues[0] + (crc32(module ?? "") % (hues[1] - hues[0])), lightness, saturation);
}

/** The colour of a kind in a legend. */
export function kindColour(kind: string, theme: Theme): Rgb {
  const hues = HUES[kind],
    [light, saturation] = TONE[theme];
  return hues ? hls((hues[0] + hues[1]) / 2, light + 0.07, saturation) : GREY[theme];
}

/** Red grew, blue shrank, grey stayed; the strength is the change as a part of the frame. */
export function deltaColour(delta: number, width: number, theme: Theme): Rgb {
  const strength = width ? Math.min(1, Math.abs(delta) / (2 * width)) : 0;
  if (strength < 0.005) return UNCHANGED[theme];
  const hue = delta > 0 ? 8 : 212;
  return theme === "light"
    ? hls(hue, 0.93 - 0.35 * strength, 0.85)
    : hls(hue, 0.66 - 0.1 * strength, 0.2 + 0.6 * strength);
}

const known = new WeakMap<FunctionTable, Map<string, Uint32Array>>();

/** One number for each function, as a canvas stores it. Kept with the table: every range of a recording asks again. */
export function functionColours(functions: FunctionTable, by: ColourBy, theme: Theme): Uint32Array {
  let made = known.get(functions);
  if (!made) known.set(functions, (made = new Map()));
  let colours = made.get(by + theme);
  if (!colours) {
    colours = new Uint32Array(functions.name.length);
    for (let fn = 0; fn < colours.length; fn++) {
      colours[fn] = packed(colourOf(functions.name[fn]!, functions.module[fn]!, functions.kind[fn]!, by, theme));
    }
    made.set(by + theme, colours);
  }
  return colours;
}

/** One number for each node: by function, or in a difference by change. */
export function nodeColours(tree: FlameTree, by: ColourBy, theme: Theme): Uint32Array {
  const colours = new Uint32Array(tree.count),
    byFunction = tree.isDifference ? null : functionColours(tree.functions, by, theme);
  for (let node = 0; node < tree.count; node++) {
    colours[node] = byFunction
      ? byFunction[tree.fn[node]!]!
      : packed(deltaColour(tree.delta(node), tree.width[node]!, theme));
  }
  return colours;
}

/** Little-endian bytes red, green, blue, alpha: what ImageData holds on every machine that browsers run on. */
export function packed([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function unpacked(colour: number): Rgb {
  return [colour & 255, (colour >>> 8) & 255, (colour >>> 16) & 255];
}

/** Part of the way from one colour to another, 0 to 1. */
export function mixed(from: number, to: number, part: number): number {
  const [a, b] = [unpacked(from), unpacked(to)];
  return packed([0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as unknown as Rgb);
}

export function css([red, green, blue]: Rgb): string {
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Of names on frames, whose fills are light in both themes. */
export const FRAME_INK = "#14171b";

const INKS: readonly Rgb[] = [
  [20, 24, 31],
  [255, 255, 255],
];

/** Of WCAG 2: 1 to 21. Text needs 4.5. */
export function contrast(one: Rgb, other: Rgb): number {
  const light = (colour: Rgb): number => {
    const [red, green, blue] = colour.map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const [a, b] = [light(one), light(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** The ink that can be read on a fill, in either theme. */
export function inkOn(fill: Rgb): string {
  const best = INKS.reduce((a, b) => (contrast(a, fill) >= contrast(b, fill) ? a : b));
  return css(best);
}

/** A colour as CSS writes it (#rgb, #rrggbb or rgb()), or black. */
export function parsed(text: string): Rgb {
  const hex = /^#([0-9a-f]{3,8})$/i.exec(text.trim())?.[1];
  if (hex) {
    const wide = hex.length < 6 ? [...hex].map((digit) => digit + digit).join("") : hex;
    return [0, 2, 4].map((at) => parseInt(wide.slice(at, at + 2), 16)) as unknown as Rgb;
  }
  const parts = text
    .match(/[\d.]+/g)
    ?.slice(0, 3)
    .map(Number);
  return parts?.length === 3 ? (parts.map(Math.round) as unknown as Rgb) : [0, 0, 0];
}

/** Hue in degrees, lightness and saturation 0 to 1, as Python's colorsys has it. */
function hls(hue: number, lightness: number, saturation: number): Rgb {
  const high = lightness <= 0.5 ? lightness * (1 + saturation) : lightness + saturation - lightness * saturation;
  const low = 2 * lightness - high,
    turn = hue / 360;
  const part = (at: number): number => {
    const place = ((at % 1) + 1) % 1;
    if (place < 1 / 6) return low + (high - low) * place * 6;
    if (place < 1 / 2) return high;
    if (place < 2 / 3) return low + (high - low) * (2 / 3 - place) * 6;
    return low;
  };
  return [part(turn + 1 / 3), part(turn), part(turn - 1 / 3)].map((each) => Math.round(each * 255)) as unknown as Rgb;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest >>> 0;
});
const encoder = new TextEncoder();

/** As zlib has it. */
export function crc32(text: string): number {
  let sum = 0xffffffff;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 127) return crc32OfBytes(encoder.encode(text));
    sum = (sum >>> 8) ^ TABLE[(sum ^ unit) & 255]!;
  }
  return (sum ^ 0xffffffff) >>> 0;
}

function crc32OfBytes(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ TABLE[(sum ^ byte) & 255]!;
  return (sum ^ 0xffffffff) >>> 0;
}
