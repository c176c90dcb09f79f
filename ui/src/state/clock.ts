/** Times as a person at the node would say them: in the recording node's zone, not in the reader's. Pure. */

export function pad(value: number, digits = 2): string {
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

export function dayAndClock(at: number, offset_s: number): string {
  return `${day(at, offset_s)} ${clock(at, offset_s)}`;
}

/** +02:00, or UTC */
export function zone(offset_s: number): string {
  if (!offset_s) return "UTC";
  const minutes = Math.abs(offset_s) / 60;
  return `${offset_s < 0 ? "−" : "+"}${pad(minutes / 60)}:${pad(minutes % 60)}`;
}

/** 350 ms, 12.5 s, 4 min 10 s, 3 h 5 min, 2 d 4 h */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return two(whole, 60, "min", "s");
  if (whole < 86_400) return two(Math.round(whole / 60), 60, "h", "min");
  return two(Math.round(whole / 3600), 24, "d", "h");
}

function two(count: number, per: number, big: string, small: string): string {
  const rest = count % per;
  return `${Math.floor(count / per)} ${big}${rest ? ` ${rest} ${small}` : ""}`;
}

export function percent(ratio: number | null | undefined, decimals = 0): string {
  if (ratio === null || ratio === undefined || Number.isNaN(ratio)) return "–";
  return `${(ratio * 100).toFixed(decimals)}%`;
}
