/** All commands from the keyboard, in one list: keys, the palette and the help page are made from it. */

import { signal } from "@preact/signals";
import { titleOf } from "../api/incident";
import type { Span } from "../api/types";
import { overlaps } from "../axis/axis";
import {
  compareWithBefore,
  follow,
  panBy,
  select,
  stepBy,
  swap,
  wholeRecording,
  widen,
  zoomBy,
  zoomToSelection,
} from "../axis/moves";
import { selectWorst } from "../axis/worst";
import type { Grouping } from "../flame/look";
import { act } from "../flame/remote";
import { clock } from "../format";
import {
  by,
  chosen,
  colour,
  compare,
  dark,
  extent,
  filtered,
  filters,
  following,
  group,
  icicle,
  incidents,
  info,
  inverted,
  NO_FILTERS,
  navigate,
  type Page,
  page,
  recordings,
  refresh,
  replace,
  sampleParams,
  selection,
  setFilter,
  setTheme,
  tracks,
  type View,
  zoneOffset,
  zoom,
} from "../state";
import { strip } from "../strip/load";

import { saving } from "./download";
import { copyLink } from "./share";

import { typedSpan } from "./typed-time";

export interface Command {
  title: string;
  group: string;
  /** As KeyboardEvent.key; "ctrl+k" for modifiers. The first is shown. */
  keys?: string[];
  when?(): boolean;
  run(): void;
}

export const paletteOpen = signal(false);
export const helpOpen = signal(false);

const onNode = (): boolean => page.value === "node";
const pageCommand = (title: string, to: Page, keys: string[]): Command => ({
  title,
  group: "Go to",
  keys,
  run: () => navigate({ page: to }),
});
const viewCommand = (title: string, view: View, keys: string[], change = {}): Command => ({
  title,
  group: "Views",
  keys,
  run: () => navigate({ page: "node", look: view, ...change }),
});

const FRAME = "The frame at the cursor";
/** The flame graph does it, with the frame that was pointed at last; wherever the focus is. */
const frameCommand = (title: string, key: string, keys: string[], group = "Views"): Command => ({
  title,
  group,
  keys,
  when: onNode,
  run: () => void act(key),
});

const CYCLE: readonly Grouping[] = ["program", "owner", "process", "thread", "none"];
const after = (now: Grouping): Grouping => CYCLE[(CYCLE.indexOf(now) + 1) % CYCLE.length]!;

/** One thing for each press, the innermost first. */
function clear(): void {
  if (act("Escape")) return;
  if (zoom.value.length) return replace({ zoom: [] });
  if (compare.value) return navigate({ compare: null });
  if (selection.value) select(null);
}

/** Commands with keys; they hold for the life of the page. */
export const COMMANDS: Command[] = [
  pageCommand("Home", "home", ["g h"]),
  pageCommand("Node: time axis, heat map, flame graph", "node", ["g n"]),
  pageCommand("Incidents", "incidents", ["g i"]),
  pageCommand("Cgroups", "cgroups", ["g c"]),
  pageCommand("Audit", "audit", ["g a"]),
  pageCommand("Fleet: what sick nodes share", "fleet", ["g f"]),

  { title: "Step left", group: "Time", keys: ["ArrowLeft", "a", ","], when: onNode, run: () => stepBy(-1) },
  { title: "Step right", group: "Time", keys: ["ArrowRight", "d", "."], when: onNode, run: () => stepBy(1) },
  { title: "Zoom in", group: "Time", keys: ["+", "=", "w", "ArrowUp"], when: onNode, run: () => zoomBy(0.67) },
  { title: "Zoom out", group: "Time", keys: ["-", "s", "ArrowDown"], when: onNode, run: () => zoomBy(1.5) },
  { title: "Move the view left", group: "Time", keys: ["shift+arrowleft"], when: onNode, run: () => panBy(-0.5) },
  { title: "Move the view right", group: "Time", keys: ["shift+arrowright"], when: onNode, run: () => panBy(0.5) },
  { title: "Whole recording", group: "Time", keys: ["0"], when: onNode, run: wholeRecording },
  {
    title: "Zoom to the selection",
    group: "Time",
    keys: ["z"],
    when: () => onNode() && selection.value !== null,
    run: zoomToSelection,
  },
  { title: "Select the worst second in view", group: "Time", keys: ["e"], when: onNode, run: () => void selectWorst() },
  { title: "Select everything in view", group: "Time", keys: ["v"], when: onNode, run: () => select(chosen.value) },
  {
    title: "Next incident",
    group: "Time",
    keys: ["]"],
    when: () => onNode() && !!incidents.value?.length,
    run: () => nextIncident(1),
  },
  {
    title: "Previous incident",
    group: "Time",
    keys: ["["],
    when: () => onNode() && !!incidents.value?.length,
    run: () => nextIncident(-1),
  },
  {
    title: "Widen the selection",
    group: "Time",
    keys: [">"],
    when: () => onNode() && selection.value !== null,
    run: () => widen(1.5),
  },
  {
    title: "Narrow the selection",
    group: "Time",
    keys: ["<"],
    when: () => onNode() && selection.value !== null,
    run: () => widen(0.67),
  },
  {
    title: "Compare the selection with the time before it",
    group: "Time",
    keys: ["b"],
    when: () => onNode() && selection.value !== null,
    run: compareWithBefore,
  },
  {
    title: "Swap selection and comparison",
    group: "Time",
    keys: ["x"],
    when: () => onNode() && compare.value !== null,
    run: swap,
  },
  {
    title: "Reset the zoom of the flame graph, then the comparison, then the selection",
    group: "Time",
    keys: ["Escape"],
    when: onNode,
    run: clear,
  },
  {
    title: "Follow or pause the live tail",
    group: "Time",
    keys: ["l"],
    when: () => !!info.value?.live,
    run: () => follow(!following.value),
  },

  viewCommand("Flame graph", "flame", ["1"]),
  viewCommand("Timeline: the samples of one core or thread in their order", "chart", ["2"]),
  viewCommand("Sandwich: callers and callees of a function", "sandwich", ["3"]),
  viewCommand("Functions: the top table", "top", ["4"]),
  viewCommand("Who ran: programs, units, processes, threads", "who", ["5"]),
  viewCommand("Python: what each thread was doing, line by line", "python", ["6"]),
  {
    title: "Group by program, unit or pod, process, thread, not at all",
    group: "Views",
    keys: ["p"],
    when: onNode,
    run: () => navigate({ group: after(group.value), zoom: [] }),
  },
  {
    title: "Tracks of units or pods, processes, threads, none",
    group: "Views",
    keys: ["shift+t"],
    when: onNode,
    run: () => navigate({ tracks: after(tracks.value) }),
  },
  {
    title: "Inverted: start where the time was spent",
    group: "Views",
    keys: ["i"],
    when: onNode,
    run: () => navigate({ inverted: !inverted.value }),
  },
  {
    title: "Root at the top or at the bottom",
    group: "Views",
    keys: ["o"],
    when: onNode,
    run: () => navigate({ icicle: !icicle.value }),
  },
  {
    title: "Colour by kind or by module",
    group: "Views",
    keys: ["k"],
    when: onNode,
    run: () => navigate({ colour: colour.value === "kind" ? "module" : "kind" }),
  },
  {
    title: "Heat map by part of a second or by core",
    group: "Views",
    keys: ["h"],
    when: onNode,
    run: () => navigate({ by: by.value === "core" ? "subsecond" : "core" }),
  },
  {
    title: "Search functions",
    group: "Views",
    keys: ["/", "ctrl+f"],
    when: onNode,
    run: () => focusOn(".node-page input[type=search], .node-page .zs-search input"),
  },
  frameCommand("Next match", "n", ["n"]),
  frameCommand("Previous match", "N", ["shift+n"]),
  frameCommand("Collapse all direct recursion", "r", ["r"]),
  frameCommand("Undo the last transform", "u", ["u"]),

  frameCommand("Focus on the function", "j", ["j"], FRAME),
  frameCommand("Focus on its own samples", "J", ["shift+j"], FRAME),
  frameCommand("Drop samples with it", "q", ["q"], FRAME),
  frameCommand("Merge it into its callers", "m", ["m"], FRAME),
  frameCommand("Collapse its module", "M", ["shift+m"], FRAME),
  frameCommand("Collapse what it calls", "E", ["shift+e"], FRAME),
  frameCommand("Collapse its recursion", "R", ["shift+r"], FRAME),
  frameCommand("Sandwich: its callers and callees", "S", ["shift+s"], FRAME),
  frameCommand("Select its time (in the timeline)", "V", ["shift+v"], FRAME),
  frameCommand("Copy its name", "c", ["c"], FRAME),
  frameCommand("Copy its stack", "C", ["shift+c"], FRAME),

  { title: "Add a filter", group: "Filters", keys: ["f"], run: () => focusOn("#filter-text") },
  { title: "Kernel samples only", group: "Filters", keys: ["shift+k"], run: () => toggleMode("kernel") },
  { title: "User samples only", group: "Filters", keys: ["shift+u"], run: () => toggleMode("user") },
  {
    title: "Samples with Python functions only",
    group: "Filters",
    run: () => setFilter("python", filters.value.python === "true" ? "" : "true"),
  },
  {
    title: "Remove all filters",
    group: "Filters",
    keys: ["shift+f"],
    when: () => filtered.value,
    run: () => navigate({ filters: NO_FILTERS }),
  },

  { title: "All commands", group: "Page", keys: ["ctrl+k", ":"], run: () => (paletteOpen.value = true) },
  { title: "Keys", group: "Page", keys: ["?"], run: () => (helpOpen.value = true) },
  { title: "Light or dark", group: "Page", keys: ["t"], run: () => setTheme(dark.value ? "light" : "dark") },
  {
    title: "Copy a link to this view",
    group: "Page",
    keys: ["y"],
    run: () => void copyLink(),
  },
];

/** What exists only now: recordings, incidents, downloads. */
export function passing(): Command[] {
  const out: Command[] = [];
  for (const one of recordings.value)
    out.push({
      title: one.node && one.node !== one.title ? `${one.title} (${one.node})` : one.title,
      group: "Recordings",
      run: () => openRecording(one.key),
    });
  for (const one of incidents.value ?? [])
    out.push({
      title: titleOf(one),
      group: "Incidents",
      run: () => navigate({ page: "incident", incidentId: one.id }),
    });
  for (const format of ["speedscope", "perfetto", "firefox", "pprof", "collapsed", "perf-script", "otlp"]) {
    const save = saving("export", { format, ...sampleParams(chosen.value) });
    if (save && onNode()) out.push({ title: `Export these samples: ${format}`, group: "Export", run: save });
  }
  return out;
}

/** A typed time or range becomes a selection. */
export function typedTime(text: string): Command | null {
  const offset = zoneOffset.value;
  const span = typedSpan(text, extent.value, offset);
  if (!span) return null;
  const title = `Select ${clock(span.from, offset)} – ${clock(span.to, offset)}`;
  return { title, group: "Time", run: () => selectOnNode(span) };
}

function selectOnNode(span: Span): void {
  navigate({ page: "node" });
  select(span);
}

export function openRecording(key: string): void {
  info.value = null;
  incidents.value = null;
  strip.value = null;
  navigate({
    rec: key,
    node: "",
    view: null,
    selection: null,
    compare: null,
    filters: NO_FILTERS,
    incidentId: "",
    page: page.value === "incident" ? "incidents" : page.value,
  });
  refresh();
}

function nextIncident(direction: 1 | -1): void {
  const all = [...(incidents.value ?? [])].sort((a, b) => a.from - b.from);
  const here = selection.value;
  const next =
    direction === 1
      ? all.find((one) => one.from > (here?.from ?? -Infinity))
      : all.reverse().find((one) => one.from < (here?.from ?? Infinity));
  if (next && !(here && overlaps(here, next) && here.from === next.from))
    select({ from: next.from, to: Math.max(next.to, next.from + 1) });
}

function toggleMode(mode: "kernel" | "user"): void {
  setFilter("mode", filters.value.mode === mode ? "" : mode);
}

function focusOn(selector: string): void {
  const element = document.querySelector<HTMLInputElement>(selector);
  element?.focus();
  element?.select();
}
