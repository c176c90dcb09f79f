/** Where the reader is, and how the address shows it. Pure: state.ts holds the signals. */

import type { Span } from "../api/types";
import type { ColourBy } from "../flame/colours";
import { FIRST_LOOK, type FlameView, GROUPS, type Grouping, VIEWS } from "../flame/look";
import type { Search } from "../flame/search";

export const PAGES = ["home", "node", "incidents", "incident", "cgroups", "audit", "fleet"] as const;
export type Page = (typeof PAGES)[number];

export type View = FlameView;

export interface Filters {
  cpu: string[];
  pid: string[];
  tid: string[];
  comm: string[];
  unit: string[];
  container: string[];
  pod: string[];
  image: string[];
  mode: "" | "kernel" | "user";
  match: string;
  /** Only samples with Python functions on them, or stacks without those; as the server reads it. */
  python: "" | "true" | "false";
}

export const LISTS = ["cpu", "pid", "tid", "comm", "unit", "container", "pod", "image"] as const;
export type ListFilter = (typeof LISTS)[number];

export const NO_FILTERS: Filters = {
  cpu: [],
  pid: [],
  tid: [],
  comm: [],
  unit: [],
  container: [],
  pod: [],
  image: [],
  mode: "",
  match: "",
  python: "",
};

export interface Place {
  page: Page;
  /** The name of a page that there is not: an address may be mistyped, or of another version. */
  lost: string;
  /** Empty: the first recording that the server has. */
  rec: string;
  /** Whose recording the link is of: another server may have another one under the same key. Empty: not known. */
  node: string;
  /** The beginning of the id of a boot of it: clouds and containers give many machines one name. Empty: not known. */
  boot: string;
  /** What the time axis shows. null: all of the recording, or the last minutes of a live one. */
  view: Span | null;
  selection: Span | null;
  compare: Span | null;
  filters: Filters;
  look: View;
  /** Callees above callers: the hottest leaf is the root. */
  inverted: boolean;
  /** The root hangs from the top, as most stacks are read; false: it is at the bottom, as a flame. */
  icicle: boolean;
  search: Search;
  /** The function that sandwich shows. */
  fn: string;
  /** Names from the root to the frame that the flame graph is zoomed to. */
  zoom: readonly string[];
  /** The root level of the flame graph, and whom the table of who ran counts. */
  group: Grouping;
  /** Whose tracks are below the cores; none: no tracks. */
  tracks: Grouping;
  /** What was done to the tree (focus, drop, collapse ...), as the flame graph writes it. */
  transforms: string;
  colour: ColourBy;
  /** Rows of the heat map are parts of a second, or cores. */
  by: "subsecond" | "core";
  /** Into how many parts the heat map cuts a second. */
  rows: number;
  incidentId: string;
}

export const START: Place = {
  page: "home",
  lost: "",
  rec: "",
  node: "",
  boot: "",
  view: null,
  selection: null,
  compare: null,
  filters: NO_FILTERS,
  look: FIRST_LOOK.view,
  inverted: FIRST_LOOK.inverted,
  icicle: FIRST_LOOK.icicle,
  search: FIRST_LOOK.search,
  fn: FIRST_LOOK.fn,
  zoom: FIRST_LOOK.zoom,
  group: FIRST_LOOK.group,
  tracks: "none",
  transforms: "",
  colour: FIRST_LOOK.colour,
  by: "subsecond",
  rows: 50,
  incidentId: "",
};

/** Where a link leads: a page, and of the rest only what it wants to show there. */
export interface Target extends Partial<Omit<Place, "filters" | "search">> {
  page: Page;
  filters?: Partial<Filters>;
  search?: string;
}

/**
 * A target as `navigate` takes it. What the reader had filtered or searched before does not stay, or the proof would not be
 * seen; the recording stays unless another is named, and so does how graphs are drawn.
 */
export function leading({ filters, search = "", ...rest }: Target): Partial<Place> {
  const {
    rec: _rec,
    node: _node,
    boot: _boot,
    colour: _colour,
    icicle: _icicle,
    group: _group,
    tracks: _tracks,
    ...start
  } = START;
  return { ...start, ...rest, filters: { ...NO_FILTERS, ...filters }, search: { text: search, mode: "highlight" } };
}

export function parse(text: string): Place {
  const given = new URLSearchParams(text);
  const one = <T extends string>(name: string, allowed: readonly T[], otherwise: T): T => {
    const value = given.get(name) as T | null;
    return value !== null && allowed.includes(value) ? value : otherwise;
  };
  const from = Number(given.get("from") ?? NaN);
  const to = Number(given.get("to") ?? NaN);
  const filters: Filters = {
    ...NO_FILTERS,
    mode: one("mode", ["", "kernel", "user"], ""),
    match: given.get("match") ?? "",
    python: one("python", ["", "true", "false"], ""),
  };
  for (const name of LISTS) filters[name] = given.getAll(name).filter((value) => value !== "");
  const named = given.get("page") ?? "";
  return {
    lost: named && !(PAGES as readonly string[]).includes(named) ? named.slice(0, 60) : "",
    page: one("page", PAGES, given.has("id") ? "incident" : given.has("from") || given.has("sel") ? "node" : "home"),
    rec: given.get("rec") ?? "",
    node: given.get("node") ?? "",
    boot: given.get("boot") ?? "",
    view: from < to ? { from, to } : null,
    selection: parseSpan(given.get("sel")),
    compare: parseSpan(given.get("cmp")),
    filters,
    look: one("view", VIEWS, "flame"),
    inverted: given.get("inv") === "1",
    icicle: given.get("icicle") !== "0",
    search: { text: given.get("q") ?? "", mode: one("qmode", ["highlight", "filter"], "highlight") },
    fn: given.get("fn") ?? "",
    zoom: (given.get("zoom") ?? "").split(";").filter(Boolean).map(unescaped),
    group: one("group", GROUPS, START.group),
    tracks: one("tracks", GROUPS, START.tracks),
    transforms: given.get("do") ?? "",
    colour: one("colour", ["kind", "module"], "kind"),
    by: one("by", ["subsecond", "core"], "subsecond"),
    rows: Math.max(1, Math.min(1000, Math.floor(Number(given.get("rows"))) || START.rows)),
    incidentId: given.get("id") ?? "",
  };
}

/** The shortest address that `parse` reads as the same place. */
export function format(place: Place): string {
  const out = new URLSearchParams();
  const say = (name: string, value: string, silent = ""): void => {
    if (value !== silent) out.set(name, value);
  };
  say("page", place.lost || place.page);
  say("id", place.page === "incident" ? place.incidentId : "");
  say("rec", place.rec);
  say("node", place.node);
  say("boot", place.boot);
  if (place.view) {
    say("from", seconds(place.view.from));
    say("to", seconds(place.view.to));
  }
  say("sel", formatSpan(place.selection));
  say("cmp", formatSpan(place.compare));
  for (const name of LISTS) for (const value of place.filters[name]) out.append(name, value);
  say("mode", place.filters.mode);
  say("match", place.filters.match);
  say("python", place.filters.python);
  say("view", place.look, "flame");
  say("inv", place.inverted ? "1" : "");
  say("icicle", place.icicle ? "" : "0");
  say("q", place.search.text);
  say("qmode", place.search.mode, "highlight");
  say("fn", place.fn);
  say("zoom", place.zoom.map(escaped).join(";"));
  say("group", place.group, START.group);
  say("tracks", place.tracks, START.tracks);
  say("do", place.transforms);
  say("colour", place.colour, "kind");
  say("by", place.by, "subsecond");
  say("rows", String(place.rows), String(START.rows));
  // ":" and "," need no escape in a query, and a link is read by people.
  return out.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%3B", ";");
}

/** Frames are separated by ";", as collapsed stacks are: one inside of a name is written as an escape. */
const escaped = (name: string): string => name.replace(/[%;]/g, (letter) => (letter === "%" ? "%25" : "%3B"));
const unescaped = (text: string): string => text.replace(/%25|%3B/g, (code) => (code === "%25" ? "%" : ";"));

function parseSpan(text: string | null): Span | null {
  const match = /^(-?[\d.]+)\.\.(-?[\d.]+)$/.exec(text ?? "");
  if (!match) return null;
  const [from, to] = [Number(match[1]), Number(match[2])];
  return from < to ? { from, to } : null;
}

export function formatSpan(span: Span | null): string {
  return span ? `${seconds(span.from)}..${seconds(span.to)}` : "";
}

/** Milliseconds are enough for a link; a sample is 10 ms. */
const seconds = (at: number): string => String(Math.round(at * 1000) / 1000);

/** `next`, but with the very objects of `previous` where they say the same: signals then stay silent. */
export function kept(previous: Place, next: Place): Place {
  const out = { ...next } as unknown as Record<string, unknown>;
  const before = previous as unknown as Record<string, unknown>;
  for (const name of Object.keys(out))
    if (JSON.stringify(out[name]) === JSON.stringify(before[name])) out[name] = before[name];
  return out as unknown as Place;
}
