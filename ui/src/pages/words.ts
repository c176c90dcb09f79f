// Numbers, spans and moments as a sentence says them. Clocks and durations are the state module's, so that a time reads
// the same on every page; here is what sentences need beside them. What was not measured says so, and is never zero.

import { clock, day, dayAndClock, duration, percent as ratio, zone } from "../state/clock";

export { clock, day };
export const moment = dayAndClock;

const UNKNOWN = "not measured";
const known = (value: number | null | undefined): value is number =>
  value !== null && value !== undefined && !Number.isNaN(value);

export function count(value: number | null | undefined): string {
  return known(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

/** 0..1 as a percentage: a digit more where it is small. */
export function percent(value: number | null | undefined): string {
  return known(value) ? ratio(value, value !== 0 && Math.abs(value) < 0.0995 ? 1 : 0) : UNKNOWN;
}

/** A length of time, down to microseconds. */
export function length(seconds: number | null | undefined): string {
  if (!known(seconds)) return UNKNOWN;
  return seconds > 0 && seconds < 0.001 ? `${Math.max(1, Math.round(seconds * 1e6))} µs` : duration(seconds);
}

/** From one moment to another; the day stands once, and a second time only where it changes. */
export function span(from: number, to: number, offset_s: number): string {
  const same = day(from, offset_s) === day(to, offset_s);
  return `${moment(from, offset_s)} – ${same ? clock(to, offset_s) : moment(to, offset_s)}`;
}

export function zoneName(offset_s: number): string {
  return offset_s ? `UTC${zone(offset_s)}` : "UTC";
}

/** "3 h ago", "in 12 days". */
export function away(at: number, now: number): string {
  const seconds = at - now;
  if (Math.abs(seconds) < 5) return "now";
  return seconds < 0 ? `${roughly(-seconds)} ago` : `in ${roughly(seconds)}`;
}

function roughly(seconds: number): string {
  const days = Math.round(seconds / 86400);
  if (days > 700) return `${Math.round(days / 365)} years`;
  if (seconds > 2 * 86400) return `${days} days`;
  if (seconds >= 7200) return `${Math.round(seconds / 3600)} h`;
  return seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A measured value with its unit; null where nothing was measured. */
export function measured(value: number | string | null | undefined, unit: string | null): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (unit === "ratio") return percent(value);
  if (unit === "s" || unit === "us") return length(unit === "s" ? value : value / 1e6);
  const digits = value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) >= 100 ? 0 : 2 });
  return unit ? `${digits} ${unit}` : digits;
}

/** A fragment as a sentence. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return !trimmed || /[.!?]$/.test(first) ? first : `${first}.`;
}
