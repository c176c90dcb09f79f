/**
 * The per-core strip as numbers and pixels. Pure: nothing here knows a canvas.
 *
 * A cell is one core in one column of time and holds the worst tick of that time, in 254ths of each mode; 255 means
 * that it was not measured. Index = column * cpus + row.
 */

import type { Columns } from "../api/columns";
import { MODES, type Mode } from "../api/modes";
import type { Span, StripHeader, Tick } from "../api/types";

export const FULL = 254;
export const UNMEASURED = 255;

export type Colour = readonly [number, number, number];
export type Palette = Record<Mode | "idle", Colour>;

export interface Strip {
  from: number;
  column_s: number;
  columns: number;
  cpus: number[];
  modes: Record<Mode, Uint8Array>;
  average_busy: Float32Array;
  average_kernel: Float32Array;
}

export function stripOf({ header, arrays }: Columns<StripHeader>): Strip {
  const modes = Object.fromEntries(MODES.map((mode) => [mode, arrays[mode] as Uint8Array])) as Strip["modes"];
  const { from, column_s, columns, cpus } = header;
  const average_busy = arrays.average_busy as Float32Array;
  const average_kernel = arrays.average_kernel as Float32Array;
  return { from, column_s, columns, cpus, modes, average_busy, average_kernel };
}

export const endOf = (strip: Strip): number => strip.from + strip.columns * strip.column_s;

export type Shares = Record<Mode, number> & { kernel: number; busy: number };

/** null: not measured. */
export function shares(strip: Strip, column: number, row: number): Shares | null {
  const at = column * strip.cpus.length + row;
  const { user, system, irq, softirq, steal, iowait } = strip.modes;
  if (user[at] === undefined || user[at] === UNMEASURED) return null;
  const part = (mode: Uint8Array): number => (mode[at] === UNMEASURED ? 0 : mode[at]! / FULL);
  const found = {
    user: part(user),
    system: part(system),
    irq: part(irq),
    softirq: part(softirq),
    steal: part(steal),
    iowait: part(iowait),
  };
  const kernel = found.system + found.irq + found.softirq;
  return { ...found, kernel, busy: Math.min(1, kernel + found.user + found.steal) };
}

/** The kernel's share first: a core that the kernel holds is worse than one that works. */
const badness = (system: number, irq: number, softirq: number, user: number, steal: number): number =>
  (system + irq + softirq + steal) * 1024 + user;

/** From the first to the last column in which anything was measured. */
export function measured(strip: Strip): Span | null {
  let [first, last] = [-1, -1];
  for (let column = 0; column < strip.columns; column++) {
    if (Number.isNaN(strip.average_busy[column]!)) continue;
    if (first < 0) first = column;
    last = column;
  }
  return first < 0 ? null : { from: strip.from + first * strip.column_s, to: strip.from + (last + 1) * strip.column_s };
}

export interface Worst {
  column: number;
  row: number;
  cpu: number;
  at: number;
  shares: Shares;
}

/** The worst cell whose middle lies in `span`, or null if nothing was measured there. */
export function worstIn(strip: Strip, span: Span): Worst | null {
  const rows = strip.cpus.length;
  const first = Math.max(0, Math.ceil((span.from - strip.from) / strip.column_s - 0.5));
  const last = Math.min(strip.columns - 1, Math.floor((span.to - strip.from) / strip.column_s - 0.5 + 1e-9));
  const { user, system, irq, softirq, steal } = strip.modes;
  let most = -1;
  let found = -1;
  for (let at = first * rows; at < (last + 1) * rows; at++) {
    if (user[at] === UNMEASURED) continue;
    const bad = badness(system[at]!, irq[at]!, softirq[at]!, user[at]!, steal[at]!);
    if (bad > most) {
      most = bad;
      found = at;
    }
  }
  if (found < 0) return null;
  const column = Math.floor(found / rows);
  const row = found % rows;
  return {
    column,
    row,
    cpu: strip.cpus[row]!,
    at: strip.from + column * strip.column_s,
    shares: shares(strip, column, row)!,
  };
}

/** Mean of the averages over the columns of `span`; null where nothing was measured. */
export function averageIn(strip: Strip, span: Span): { busy: number; kernel: number } | null {
  const first = Math.max(0, Math.floor((span.from - strip.from) / strip.column_s));
  const last = Math.min(strip.columns, Math.max(first + 1, Math.ceil((span.to - strip.from) / strip.column_s)));
  let [busy, kernel, count] = [0, 0, 0];
  for (let column = first; column < last; column++) {
    const one = strip.average_busy[column];
    if (one === undefined || Number.isNaN(one)) continue;
    busy += one;
    kernel += strip.average_kernel[column]!;
    count++;
  }
  return count ? { busy: busy / count, kernel: kernel / count } : null;
}

/** The modes that some core was in for a tenth of some column in view, and "none" where one was not measured. */
export function occurring(strip: Strip, span: Span): Set<string> {
  const rows = strip.cpus.length;
  const first = Math.max(0, Math.floor((span.from - strip.from) / strip.column_s));
  const end = Math.min(strip.columns, Math.ceil((span.to - strip.from) / strip.column_s));
  const found = new Set<string>();
  for (const mode of MODES) {
    const cells = strip.modes[mode];
    for (let at = first * rows; at < end * rows; at++) {
      if (cells[at] === UNMEASURED) found.add("none");
      else if (cells[at]! >= FULL / 10) {
        found.add(mode);
        break;
      }
    }
  }
  return found;
}

/** How busy the cores were in the mean; null unless that was measured in all of the span. */
export function busyThroughout(strip: Strip, span: Span): number | null {
  const first = Math.floor((span.from - strip.from) / strip.column_s);
  const last = Math.ceil((span.to - strip.from) / strip.column_s);
  const known = strip.average_busy.subarray(Math.max(0, first), last);
  if (first < 0 || known.length < last - first || known.some(Number.isNaN)) return null;
  return known.reduce((sum, one) => sum + one, 0) / known.length;
}

const WELL_USED = 0.85;

/** Pixels that a core gets: whole ones while they fit, so that rows do not differ; less than one for very many cores. */
export function rowHeight(cpus: number, most: number, tallest = 24): number {
  if (cpus <= 0) return tallest;
  const whole = Math.floor(most / cpus);
  // Where whole pixels would leave much of the room empty, rows that differ by one are the smaller evil.
  return Math.min(tallest, cpus <= most && whole * cpus >= WELL_USED * most ? whole : most / cpus);
}

/**
 * Paints every cell as one pixel, `height` rows high: with more cores than that, a pixel shows the worst of its cores, never
 * their mean. Cells that were not measured stay transparent, so that the hatching below shows.
 */
export function paint(strip: Strip, palette: Palette, height = strip.cpus.length): Uint8ClampedArray<ArrayBuffer> {
  const rows = strip.cpus.length;
  const tall = Math.max(1, Math.min(rows, height));
  const out = new Uint8ClampedArray(strip.columns * tall * 4);
  const words = new Uint32Array(out.buffer);
  const table = shades(palette);
  const { user, system, irq, softirq, steal, iowait } = strip.modes;
  for (let column = 0, at = 0; column < strip.columns; column++) {
    let row = 0;
    for (let y = 0; y < tall; y++) {
      const end = tall === rows ? row + 1 : Math.floor(((y + 1) * rows) / tall);
      let most = -1;
      let found = -1;
      for (; row < end; row++, at++) {
        if (user[at] === UNMEASURED) continue;
        const bad = badness(system[at]!, irq[at]!, softirq[at]!, user[at]!, steal[at]!);
        if (bad > most) {
          most = bad;
          found = at;
        }
      }
      if (found < 0) continue;
      words[y * strip.columns + column] = shade(
        table,
        user[found]!,
        system[found]!,
        irq[found]!,
        softirq[found]!,
        steal[found]!,
        iowait[found]!,
      );
    }
  }
  return out;
}

export interface Held {
  column: number;
  row: number;
  mode: Mode;
}

/** More of them would hide the rest; then they are seen without help. */
const MOST_HELD = 3000;

/** Cells whose core was held by the kernel or taken away all the time. On a picture of hours such a cell is one pixel. */
export function held(strip: Strip, least = 0.9): Held[] {
  const { user, system, irq, softirq, steal } = strip.modes;
  const out: Held[] = [];
  for (let at = 0; at < user.length; at++) {
    if (user[at] === UNMEASURED || system[at]! + irq[at]! + softirq[at]! + steal[at]! < least * FULL) continue;
    if (out.length === MOST_HELD) return [];
    const mode = (["system", "irq", "softirq", "steal"] as const).reduce((best, one) =>
      strip.modes[one][at]! > strip.modes[best][at]! ? one : best,
    );
    out.push({ column: Math.floor(at / strip.cpus.length), row: at % strip.cpus.length, mode });
  }
  return out;
}

/** Strengths 0..255 of each mode over the colour of idleness, three bytes each, in the order of MODES. */
export function shades(palette: Palette): Uint8Array {
  const table = new Uint8Array(MODES.length * 256 * 3);
  MODES.forEach((mode, index) => {
    for (let strength = 0; strength < 256; strength++) {
      // A little is visible, and only a core that is held all the time is fully coloured.
      const ratio = Math.min(1, strength / FULL);
      const over = ratio < 0.02 ? 0 : 0.07 + 0.93 * ratio ** 1.7;
      for (let part = 0; part < 3; part++)
        table[(index * 256 + strength) * 3 + part] =
          palette.idle[part]! + (palette[mode][part]! - palette.idle[part]!) * over;
    }
  });
  return table;
}

/** Of a busy core's time, the kernel's share from which its colour begins to show, and at which nothing else does. */
const [KERNEL_SHOWS, KERNEL_RULES] = [0.4, 0.8];

/** How strong: how busy the core was. Which hue: the user's, or that of the strongest other mode, or between as they share the time. */
function shade(
  table: Uint8Array,
  user: number,
  system: number,
  irq: number,
  softirq: number,
  steal: number,
  iowait: number,
): number {
  const held = system + irq + softirq + steal;
  const busy = Math.min(FULL, user + held);
  if (iowait > busy * 2) return pixel(table, 5 * 256 + iowait, 0, 0);
  let mode = 1;
  let most = system;
  if (irq > most) [mode, most] = [2, irq];
  if (softirq > most) [mode, most] = [3, softirq];
  if (steal > most) mode = 4;
  const share = busy > 0 ? (held / busy - KERNEL_SHOWS) / (KERNEL_RULES - KERNEL_SHOWS) : 0;
  return pixel(table, busy, mode * 256 + busy, Math.max(0, Math.min(1, share)));
}

/** Two colours of the table, mixed, as the bytes of a pixel on a little-endian machine: every browser's. */
function pixel(table: Uint8Array, first: number, second: number, share: number): number {
  const [a, b] = [first * 3, second * 3];
  const mixed = (part: number): number => table[a + part]! + (table[b + part]! - table[a + part]!) * share;
  return ((255 << 24) | (mixed(2) << 16) | (mixed(1) << 8) | mixed(0)) >>> 0;
}

/**
 * The strip with a tick in its place: one more column at the end and one less at the start, or a column that was not yet
 * written when the strip was read. null if the tick has no place in it.
 */
export function advanced(strip: Strip, tick: Tick, most: number): Strip | null {
  const rows = strip.cpus.length;
  if (tick.cpus.length !== rows) return null;
  // A tick is written when it ends; it belongs where its middle lies.
  const place = Math.floor((tick.at - strip.column_s / 2 - strip.from) / strip.column_s);
  if (place < 0 || place > strip.columns + most) return null;
  const columns = Math.max(place + 1, strip.columns);
  const dropped = Math.max(0, columns - most);
  const count = columns - dropped;
  const column = place - dropped;
  if (column < 0) return null;
  const modes = {} as Strip["modes"];
  for (const mode of MODES) {
    const cells = new Uint8Array(count * rows).fill(UNMEASURED);
    cells.set(strip.modes[mode].subarray(dropped * rows));
    for (let row = 0; row < rows; row++) {
      const value = tick[mode]?.[row];
      cells[column * rows + row] =
        value === null || value === undefined ? UNMEASURED : Math.round(Math.min(1, value) * FULL);
    }
    modes[mode] = cells;
  }
  const line = (before: Float32Array, value: number | null): Float32Array => {
    const points = new Float32Array(count).fill(NaN);
    points.set(before.subarray(dropped));
    points[column] = value ?? NaN;
    return points;
  };
  return {
    ...strip,
    from: strip.from + dropped * strip.column_s,
    columns: count,
    modes,
    average_busy: line(strip.average_busy, tick.average_busy),
    average_kernel: line(strip.average_kernel, tick.average_kernel),
  };
}
