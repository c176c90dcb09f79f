/** Counts and ratios, written one way on every page. What was not measured says so, and is never zero. Pure. */

type Measured = number | null | undefined;

export const UNKNOWN = "not measured";
export const known = (value: Measured): value is number =>
  value !== null && value !== undefined && !Number.isNaN(value);

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 68,440 */
export function count(value: Measured): string {
  return known(value) ? WHOLE.format(Math.round(value)) : UNKNOWN;
}

/** 1,234 or 12.3k: as many digits as a label has room for. */
export function compact(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toFixed(1))}M`;
  if (value >= 1e4) return `${Number((value / 1e3).toFixed(1))}k`;
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** +1,234, −2 or ±0 */
export function signed(value: number): string {
  const rounded = Math.round(value);
  return rounded > 0 ? `+${count(rounded)}` : rounded < 0 ? `−${count(-rounded)}` : "±0";
}

/** 1 core, 1,200 cores */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${Math.round(value) === 1 ? one : many}`;
}

/** 0..1 as a percentage with so many significant digits, and at most two decimals: 32%, 6.5%, 0.65%. */
export function percent(ratio: Measured, digits = 2): string {
  if (!known(ratio)) return UNKNOWN;
  const of = Number((100 * ratio).toPrecision(digits));
  if (of === 0) return "0%";
  const size = Math.abs(of);
  if (size < 0.005) return of < 0 ? ">−0.01%" : "<0.01%";
  return `${of.toFixed(Math.max(0, Math.min(2, digits - 1 - Math.floor(Math.log10(size)))))}%`;
}

/** What a part is of the whole, where differences of a tenth matter: 33.3%. */
export function share(part: number, whole: number): string {
  return percent(whole ? part / whole : 0, 3);
}

/** A difference of two ratios: +25.0 points */
export function points(difference: number): string {
  const size = Math.abs(100 * difference);
  return `${difference < 0 ? "−" : "+"}${size.toFixed(size < 1 ? 2 : 1)} points`;
}
