// Counts as colours. On the logarithmic scale (the "enhanced" one) a single sample looks different from none, and from ten;
// on the linear one equal steps of colour are equal steps of count. Both are a wall of the darkest colour where every cell
// has as many as the next, so the automatic one looks at the cells: query/colours.py has the same for the SVG.

import { mixed, packed, parsed, type Rgb } from "../flame/colours";

export type Scale = "auto" | "log" | "linear";

/** What the automatic scale needs to know of a picture. */
export interface Domain {
  readonly max: number;
  /** Of nearly every cell that has any, at least so many; 0 in a picture that is mostly idle. */
  readonly usual: number;
}

const DENSE = 0.3,
  USUAL_LEVEL = 0.45,
  LEAST_RANGE = 0.3;
const MOST_SORTED = 20_000;

export function domainOf(values: ArrayLike<number>): Domain {
  const step = Math.max(1, Math.floor(values.length / MOST_SORTED));
  const some: number[] = [];
  let max = 0;
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    if (value > max) max = value;
    if (value > 0 && at % step === 0) some.push(value);
  }
  some.sort((a, b) => a - b);
  const usual = some[Math.floor(some.length / 50)] ?? 0;
  return { max, usual: usual >= DENSE * max ? usual : 0 };
}

/** Names of the variables of the page that hold the colours, from little to much. */
export const HEAT_VARIABLES = Array.from({ length: 8 }, (_, step) => `--heat-${step}`);
export const HEAT_DEFAULT = ["#fff3e0", "#ffd699", "#ffb04d", "#fb8528", "#e85a1a", "#c7350f", "#98180d", "#5f0a0a"];

/** Where a count is between little (0) and much (1). One sample is never 0 of a scale that has more. */
export function levelOf(count: number, { max, usual }: Domain, scale: Scale): number {
  if (count <= 0 || max <= 0) return 0;
  if (scale === "auto" && usual) {
    const floor = (USUAL_LEVEL * usual) / max;
    if (count < usual) return (floor * count) / usual;
    return Math.min(1, floor + ((1 - floor) * (count - usual)) / Math.max(max - usual, LEAST_RANGE * max));
  }
  if (max <= 1) return 1;
  const part = scale === "linear" ? (count - 1) / (max - 1) : Math.log(Math.max(1, count)) / Math.log(max);
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

export function colourOf(count: number, domain: Domain, scale: Scale, colours: Uint32Array): number {
  return colours[Math.round(levelOf(count, domain, scale) * (colours.length - 1))]!;
}

/** A cell in which a wanted function ran: the more samples of it, the stronger; a single one is still plain to see. */
export function paintOf(painted: number, domain: Domain, scale: Scale, ground: number, paint: Rgb): number {
  if (!painted) return ground;
  return mixed(ground, packed(paint), 0.42 + 0.58 * levelOf(painted, domain, scale));
}

/** Counts at which the legend has a mark: few and round. */
export function legendMarks({ max, usual }: Domain, scale: Scale): number[] {
  if (max <= 1) return max > 0 ? [max] : [];
  if (scale === "auto" && usual) return max - usual < 0.15 * max ? [usual] : [usual, max];
  if (scale === "linear") return [1, Math.round(max / 2), max].filter((each, at, all) => all.indexOf(each) === at);
  const marks = [1];
  const step = 10 ** Math.max(1, Math.ceil(Math.log10(max) / 3));
  for (let mark = step; mark < max * 0.3; mark *= step) marks.push(mark);
  return [...marks, max];
}
