/** Times as a person at the node would say them: in the recording node's zone, not in the reader's. Pure. */

import { known, UNKNOWN } from "./number";

const DAY_S = 86_400;

function pad(value: number, digits = 2): string {
  return String(Math.floor(value)).padStart(digits, "0");
}

function local(at: number, offset_s: number): Date {
  return new Date(Math.round((at + offset_s) * 1000));
}

/** 12:03:22, with as many decimals as asked for. */
export function clock(at: number, offset_s: number, decimals = 0): string {
  const time = local(at, offset_s);
  const whole = `${pad(time.getUTCHours())}:${pad(time.getUTCMinutes())}:${pad(time.getUTCSeconds())}`;
  return decimals ? `${whole}.${pad(time.getUTCMilliseconds() / 10 ** (3 - decimals), decimals)}` : whole;
}

/** 2026-03-01 */
export function day(at: number, offset_s: number): string {
  const time = local(at, offset_s);
  return `${time.getUTCFullYear()}-${pad(time.getUTCMonth() + 1)}-${pad(time.getUTCDate())}`;
}

/** 2026-03-01 12:03:22 */
export function moment(at: number, offset_s: number): string {
  return `${day(at, offset_s)} ${clock(at, offset_s)}`;
}

/** From one moment to another; the day is shown once, and again only where it changes. */
export function span(from: number, to: number, offset_s: number): string {
  const same = day(from, offset_s) === day(to, offset_s);
  return `${moment(from, offset_s)} – ${same ? clock(to, offset_s) : moment(to, offset_s)}`;
}

/** For the tip of a time in another zone: the same in UTC. */
export function utcWords(from: number, to: number | null, offset_s: number): string {
  const words = to === null ? `${moment(from, 0)} UTC` : `${span(from, to, 0)} UTC`;
  return offset_s ? `${zoneName(offset_s)}; ${words}` : words;
}

/** UTC, or UTC+02:00 */
export function zoneName(offset_s: number): string {
  if (!offset_s) return "UTC";
  const minutes = Math.abs(offset_s) / 60;
  return `UTC${offset_s < 0 ? "−" : "+"}${pad(minutes / 60)}:${pad(minutes % 60)}`;
}

/** Three digits below a minute, two units above: 21 µs, 350 ms, 12.5 s, 4 min 10 s, 3 h 5 min, 2 d 4 h. */
export function duration(seconds: number | null | undefined): string {
  if (!known(seconds)) return UNKNOWN;
  if (!seconds) return "0 s";
  if (three(seconds * 1e3) < 1) return `${Math.max(1, Math.round(seconds * 1e6))} µs`;
  if (three(seconds) < 1) return `${three(seconds * 1e3)} ms`;
  if (three(seconds) < 60) return `${three(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return two(whole, 60, "min", "s");
  if (whole < DAY_S) return two(Math.round(whole / 60), 60, "h", "min");
  return two(Math.round(whole / 3600), 24, "d", "h");
}

const three = (value: number): number => Number(value.toPrecision(3));

function two(count: number, per: number, big: string, small: string): string {
  const rest = count % per;
  return `${Math.floor(count / per)} ${big}${rest ? ` ${rest} ${small}` : ""}`;
}

/** "3 h ago", "in 12 days". */
export function away(at: number, now: number): string {
  const seconds = at - now;
  if (Math.abs(seconds) < 5) return "now";
  return seconds < 0 ? `${roughly(-seconds)} ago` : `in ${roughly(seconds)}`;
}

function roughly(seconds: number): string {
  const days = Math.round(seconds / DAY_S);
  if (days > 700) return `${Math.round(days / 365)} years`;
  if (seconds > 2 * DAY_S) return `${days} days`;
  if (seconds >= 7200) return `${Math.round(seconds / 3600)} h`;
  return seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`;
}
