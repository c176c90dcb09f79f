// Counts as colours. On the logarithmic scale (the "enhanced" one) a single sample stands out from none, and from ten;
// on the linear one equal steps of colour are equal steps of count.

import { mixed, packed, parsed, type Rgb } from "../flame/colours";

export type Scale = "log" | "linear";

/** Names of the variables of the page that hold the colours, from little to much. */
export const HEAT_VARIABLES = Array.from({ length: 8 }, (_, step) => `--heat-${step}`);
export const HEAT_DEFAULT = ["#fff3e0", "#ffd699", "#ffb04d", "#fb8528", "#e85a1a", "#c7350f", "#98180d", "#5f0a0a"];

/** Where a count stands between little (0) and much (1). One sample is never 0 of a scale that has more. */
export function levelOf(count: number, max: number, scale: Scale): number {
  if (count <= 0 || max <= 0) return 0;
  if (max === 1) return 1;
  const part = scale === "log" ? Math.log(count) / Math.log(max) : (count - 1) / (max - 1);
  return Math.min(1, Math.max(0, part));
}

/** 256 colours between the given ones. */
export function ramp(colours: readonly string[]): Uint32Array {
  const stops = colours.map((text) => packed(parsed(text)));
  return Uint32Array.from({ length: 256 }, (_, step) => {
    const place = (step / 255) * (stops.length - 1),
      low = Math.min(stops.length - 2, Math.floor(place));
    return mixed(stops[low]!, stops[low + 1]!, place - low);
  });
}

export function colourOf(count: number, max: number, scale: Scale, colours: Uint32Array): number {
  return colours[Math.round(levelOf(count, max, scale) * (colours.length - 1))]!;
}

/** A cell in which a wanted function ran: the more samples of it, the stronger; a single one is still plain to see. */
export function paintOf(painted: number, max: number, scale: Scale, ground: number, paint: Rgb): number {
  if (!painted) return ground;
  return mixed(ground, packed(paint), 0.42 + 0.58 * levelOf(painted, max, scale));
}

/** Counts at which the legend has a mark: few and round. */
export function legendMarks(max: number, scale: Scale): number[] {
  if (max <= 1) return max === 1 ? [1] : [];
  if (scale === "linear") return [1, Math.round(max / 2), max].filter((each, at, all) => all.indexOf(each) === at);
  const marks = [1];
  const step = 10 ** Math.max(1, Math.ceil(Math.log10(max) / 3));
  for (let mark = step; mark < max * 0.3; mark *= step) marks.push(mark);
  return [...marks, max];
}
