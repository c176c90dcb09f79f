/**
 * One state for every view. `place` is what the address says; everything else is computed from it, or asked of the
 * server. Only `navigate` (a new entry for the back button) and `replace` (the same entry) change it.
 */

import { batch, computed, signal } from "@preact/signals";
import type { Info, RecordingEntry, Span } from "../api/types";
import { type Filters, format, kept, NO_FILTERS, type Place, parse, START } from "./place";

export type { Filters, ListFilter, Page, Place, Target, View } from "./place";
export { LISTS, leading, NO_FILTERS } from "./place";

const place = signal<Place>(START);

export const recordings = signal<RecordingEntry[]>([]);
/** The server shows a fleet, too. */
export const hasFleet = signal(false);
export const info = signal<Info | null>(null);
/** The live tail is shown and moves; dragging, zooming or a link to a window pauses it. */
export const following = signal(false);
/** Where the axis ends while a recording grows: moved by ticks while they are followed, else it rests. */
export const tail = signal(0);
/** The last tick that was heard of. */
export const newest = signal(0);

/** Lets the axis reach to what has been recorded by now. */
export function catchUp(): void {
  tail.value = Math.max(tail.value, newest.value);
}
export const TAIL_S = 300;

export const page = computed(() => place.value.page);
export const rec = computed(() => place.value.rec);
/** The node that the address is of. */
export const linked = computed(() => place.value.node);
export const selection = computed(() => place.value.selection);
export const compare = computed(() => place.value.compare);
export const filters = computed(() => place.value.filters);
export const search = computed(() => place.value.search);
export const look = computed(() => place.value.look);
export const inverted = computed(() => place.value.inverted);
export const icicle = computed(() => place.value.icicle);
export const transforms = computed(() => place.value.transforms);
export const fn = computed(() => place.value.fn);
export const colour = computed(() => place.value.colour);
export const zoom = computed(() => place.value.zoom);
export const group = computed(() => place.value.group);
export const tracks = computed(() => place.value.tracks);
export const lost = computed(() => place.value.lost);
export const rows = computed(() => place.value.rows);
export const by = computed(() => place.value.by);
export const incidentId = computed(() => place.value.incidentId);

/** The clock that the page speaks: that of the recorded node. */
export const zoneOffset = computed(() => info.value?.zone_offset_s ?? 0);

/** All that was recorded so far. */
export const extent = computed<Span>(() => {
  const known = info.value;
  return known ? { from: known.from, to: Math.max(known.to, tail.value) } : { from: 0, to: 0 };
});

/** The same for links, which must not lead outside of it; null until it is known. */
export const recorded = computed(() => (info.value ? extent.value : null));

/** What the time axis shows; {0, 0} until the recording is known. */
export const view = computed<Span>(() => {
  const all = extent.value;
  if (following.value) return { from: Math.max(all.from, all.to - TAIL_S), to: Math.max(all.to, all.from + 60) };
  return place.value.view ?? all;
});

/** What pictures of samples are made from: the selection, or everything in view. */
export const chosen = computed<Span>(() => selection.value ?? view.value);

export const current = (): Place => place.value;

export const filtered = computed(() => JSON.stringify(filters.value) !== JSON.stringify(NO_FILTERS));

/** Parameters that every question about samples carries. */
export function sampleParams(
  span: Span | null,
  withFilters: Filters = filters.value,
): Record<string, string | string[]> {
  const { cpu, pid, tid, comm, unit, container, pod, image, mode, match, python } = withFilters;
  const window: Record<string, string> = span ? { from: span.from.toFixed(3), to: span.to.toFixed(3) } : {};
  return { rec: rec.value, ...window, cpu, pid, tid, comm, unit, container, pod, image, mode, match, python };
}

type Change = Partial<Place>;
let written = 0;
let pending = 0;

/** Goes somewhere: the back button returns. */
export function navigate(change: Change): void {
  flush();
  // A link does not include whether the tail was followed, but going back must restore it.
  history.replaceState({ following: following.value }, "");
  if (move(change)) history.pushState(null, "", address());
}

/** Adjusts where the reader is, without a new entry. The address follows when the hand rests. */
export function replace(change: Change): void {
  if (!move(change)) return;
  clearTimeout(pending);
  pending = window.setTimeout(flush, Math.max(0, 250 - (performance.now() - written)) + 50);
}

/** A link to this view that says whose recording it is, also where the address leaves that out. */
export function shareLink(): string {
  const key = place.value.rec || recordings.value[0]?.key || "";
  const at = inHash() ? `#${format(place.value)}` : `?${format({ ...place.value, rec: key })}`;
  return new URL(at, location.href).href;
}

/** The address of a place that differs from this one, for links. */
export function linkTo(change: Change): string {
  return written_as(changed(change));
}

export function setFilter<K extends keyof Filters>(name: K, value: Filters[K]): void {
  navigate({ filters: { ...filters.value, [name]: value } });
}

/** Another recording may be of another node. */
function changed(change: Change): Place {
  const node = change.rec === undefined || change.rec === place.value.rec ? {} : { node: "", boot: "" };
  return kept(place.value, { ...place.value, ...(change.page ? { lost: "" } : {}), ...node, ...change });
}

function move(change: Change): boolean {
  const next = changed(change);
  const same = format(next) === format(place.value);
  batch(() => {
    if (change.view || change.selection) following.value = false;
    place.value = next;
  });
  return !same;
}

function flush(): void {
  clearTimeout(pending);
  if (!pending) return;
  pending = 0;
  written = performance.now();
  history.replaceState(history.state, "", address());
}

// A file has no server to give it another query, and some browsers refuse one; there the state follows the #.
const inHash = (): boolean => location.protocol === "file:" || document.getElementById("frozen") !== null;

const written_as = (at: Place): string => (inHash() ? "#" : "?") + format(at);
const address = (): string => (inHash() ? `#${format(place.value)}` : `${location.pathname}?${format(place.value)}`);

function fromAddress(): Place {
  const hash = location.hash.slice(1);
  return parse(inHash() || (!location.search && hash.includes("=")) ? hash : location.search);
}

export const FOUNDING = "founding-case";

/** The address names no page and no recording: it may be opened on what matters most. */
export const opensAnywhere = (): boolean => format(place.value) === format(START);

/** Reads the address, and again whenever the reader goes back or forward. */
export function begin(): void {
  place.value = fromAddress();
  window.addEventListener("popstate", (event) => {
    clearTimeout(pending);
    pending = 0;
    const next = kept(place.value, fromAddress());
    const { following: followed = false } = (event.state ?? {}) as { following?: boolean };
    batch(() => {
      following.value = followed && !!info.value?.live && !next.view && !next.selection;
      place.value = next;
    });
  });
}
