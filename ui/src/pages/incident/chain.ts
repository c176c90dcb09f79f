// The chain of a diagnosis as stations of a path: the symptom, which core, who held it, in which function, why that took so
// long, who is to blame, and how to fix it. Each station knows the place in the views that proves it.

import { rank } from "../../api/severity";
import type { Cause, ChainLink, Incident, Span, Symptom } from "../../api/types";
import { around, recordedPart } from "../../axis/axis";
import { exactly } from "../../flame/search";
import { measured } from "../../format";
import type { Filters, Target } from "../../state/place";

export type StationKind =
  | "symptom"
  | "core"
  | "hog"
  | "kernel"
  | "measurement"
  | "blind"
  | "leak"
  | "culprit"
  | "cost"
  | "fix";

export interface Station {
  kind: StationKind;
  label: string;
  headline: string;
  fact: string;
  value: string | null;
  at: number | null;
  source: string | null;
  place: Target | null;
  /** What opens there, for the tooltip and the screen reader. */
  opens: string;
  /** More facts of the same step, worst first. */
  more: string[];
}

const AROUND_S = 20;
const HOUR_S = 3600;
const SOURCES: Record<string, string> = {
  cores: "/proc/stat, per core",
  samples: "sampled stacks",
  events: "events",
  census: "cgroup census",
  counters: "kernel counters",
  cgroup_stats: "cgroup statistics",
  waiting: "waiting tasks",
  disks: "disks",
  mounts: "mounts",
  interrupts: "/proc/interrupts",
  gpu_seconds: "the driver of the GPU",
  gpus: "the driver of the GPU",
  "node.json": "node facts",
};

/** Where a fact was read, in words. */
export function readFrom(source: string | null): string {
  return source === null ? "inferred" : (SOURCES[source] ?? source);
}

export function guiltySpan(incident: Incident): Span {
  const placed = incident.symptoms.filter((symptom) => symptom.seconds > 0);
  if (!placed.length) return { from: incident.from - 10, to: Math.max(incident.to, incident.from + 1) };
  return { from: Math.min(...placed.map((each) => each.at)), to: Math.max(...placed.map((each) => each.to)) };
}

/** As long as the incident, directly before it, else after it: what the node does when nothing is wrong. */
export function quietSpan(incident: Incident, bounds: Span | null): Span | null {
  const guilty = guiltySpan(incident);
  const long = Math.max(1, Math.min(10, guilty.to - guilty.from));
  const start = Math.min(guilty.from, incident.from);
  const end = Math.max(guilty.to, incident.to);
  if (!bounds || start - bounds.from >= 1) return recordedPart({ from: start - long, to: start }, bounds);
  return bounds.to - end >= 1 ? recordedPart({ from: end, to: end + long }, bounds) : null;
}

/** The core that was lost: of the symptom that shows it best, else of the longest that names one. */
export function lostCore(incident: Incident): Symptom | null {
  const named = incident.symptoms.filter((symptom) => symptom.cpu !== null);
  const shows = (symptom: Symptom) => symptom.core_rank ?? Number.MAX_SAFE_INTEGER;
  return named.sort((a, b) => shows(a) - shows(b) || b.seconds - a.seconds)[0] ?? null;
}

export function stations(incident: Incident, cause: Cause | null, bounds: Span | null = null): Station[] {
  const maker = new Maker(incident, cause, bounds);
  const core = lostCore(incident);
  const first = maker.symptom(core);
  const found = first ? [first] : [];
  if (core && core.table !== "events" && first?.fact !== core.text) found.push(maker.core(core));
  if (!cause) return found;
  for (const link of cause.chain) {
    if (link.step === "symptom") continue;
    const made = maker.station(link);
    const before = found[found.length - 1];
    // Several measurements of one kind are one station; the first is the strongest.
    if (before && before.kind === made.kind && made.kind === "measurement") before.more.push(made.fact);
    else found.push(made);
  }
  const blamed = found.find((station) => station.kind === "culprit");
  if (blamed) blamed.place = maker.proofOfCulprit(found);
  found.push(maker.fix(cause));
  return found;
}

const ASKED: Record<string, string> = {
  container: "In which containers",
  "requested by": "Requested by",
  "restart policy": "Restarted by its policy",
};

class Maker {
  private readonly guilty: Span;
  private readonly view: Span;

  constructor(
    private readonly incident: Incident,
    private readonly cause: Cause | null,
    private readonly bounds: Span | null,
  ) {
    this.guilty = guiltySpan(incident);
    this.view = recordedPart(around({ from: incident.from, to: incident.to }, AROUND_S), bounds);
  }

  /** What was noticed: the worst symptom, and one that is not merely the lost core or the hog where there is any. */
  symptom(core: Symptom | null): Station | null {
    const others = this.incident.symptoms.filter((symptom) => symptom !== core && symptom.role !== "hog");
    const ranked = [...(others.length ? others : core ? [core] : this.incident.symptoms)].sort(
      (a, b) => rank(a.severity) - rank(b.severity) || a.at - b.at,
    );
    const [first, ...rest] = ranked;
    if (!first) return null;
    const span = first.seconds > 0 ? { from: first.at, to: first.to } : { from: first.at - 1, to: first.at + 1 };
    return {
      kind: "symptom",
      label: "Symptom",
      headline: heading(first),
      fact: first.text,
      value: first.seconds > 0 ? measured(first.seconds, "s") : null,
      at: first.at,
      source: tableOf(first),
      place: {
        page: "node",
        view: this.view,
        selection: recordedPart(span, this.bounds),
        filters: onCore(first.cpu),
      },
      opens: `${first.table === "events" ? "the event" : first.cpu === null ? "these seconds" : "the core"} on the time axis`,
      more: rest.map((symptom) => symptom.text),
    };
  }

  core(lost: Symptom): Station {
    return {
      kind: "core",
      label: "Where",
      headline: `core ${lost.cpu}`,
      fact: lost.text,
      value: measured(lost.seconds, "s"),
      at: lost.at,
      source: tableOf(lost),
      place: { page: "node", view: this.view, selection: { from: lost.at, to: lost.to }, filters: onCore(lost.cpu) },
      opens: `core ${lost.cpu} on the strip, these seconds selected`,
      more: [],
    };
  }

  station(link: ChainLink): Station {
    const common = {
      fact: link.fact,
      value: measured(link.value, link.value_unit),
      at: link.at,
      source: link.source,
      more: [],
    };
    switch (link.step) {
      case "hog":
        return {
          ...common,
          kind: "hog",
          label: "Who held it",
          headline: hogName(this.cause),
          place: this.hogPlace(),
          opens: "its stacks in these seconds",
        };
      case "kernel function":
        return {
          ...common,
          kind: "kernel",
          label: "Kernel function",
          headline: hottest(this.cause) ?? "the kernel",
          fact: link.means ?? link.fact,
          place: this.kernelPlace(),
          opens: "the flame graph with this function marked",
        };
      case "culprit":
        return {
          ...common,
          kind: "culprit",
          label: "Caused by",
          headline: link.fact,
          place: null,
          fact: "the one to change",
          opens: "the numbers that point to it",
        };
      case "leak":
        return {
          ...common,
          kind: "leak",
          label: "Source of the leak",
          headline: common.value ?? "a leak",
          place: this.bySource(link),
          opens: opensSource(link.source),
        };
      case "container":
      case "requested by":
      case "restart policy":
        return {
          ...common,
          kind: "leak",
          label: ASKED[link.step] ?? link.step,
          headline:
            link.step === "container" ? (common.value ?? "containers") : (link.fact.split(": ")[0] ?? link.fact),
          place: this.bySource(link),
          opens: opensSource(link.source),
        };
      case "cost":
        return {
          ...common,
          kind: "cost",
          label: "What it cost",
          headline: common.value ?? "work of GPUs",
          place: this.bySource(link),
          opens: opensSource(link.source),
        };
      case "not seen":
        return {
          ...common,
          kind: "blind",
          label: "No data",
          headline: "no stacks",
          place: this.bySource(link),
          opens: opensSource(link.source),
        };
      default:
        return {
          ...common,
          kind: "measurement",
          label: link.step === "zombies" ? "Why it was slow" : "Measured",
          headline: (link.step === "zombies" ? measured(link.value, "zombies") : common.value) ?? link.step,
          place: this.bySource(link),
          opens: opensSource(link.source),
        };
    }
  }

  fix(cause: Cause): Station {
    return {
      kind: "fix",
      label: "Fix",
      headline: cause.fix.summary,
      fact: "the plan, step by step",
      value: null,
      at: null,
      source: null,
      place: null,
      opens: "the plan below",
      more: [],
    };
  }

  /** What names the culprit is the last number before it that was read somewhere. */
  proofOfCulprit(found: Station[]): Target | null {
    const before = found.slice(
      0,
      found.findIndex((station) => station.kind === "culprit"),
    );
    return (
      [...before].reverse().find(({ source, place }) => source !== null && source !== "catalogue" && place !== null)
        ?.place ?? null
    );
  }

  bySource(link: ChainLink): Target {
    const at = link.at ?? this.incident.from;
    if (link.source === "census" || link.source === "containers") return { page: "cgroups", view: this.view };
    if (link.source === "events") {
      // Restarts are counted by the hour, so the hour is shown; the guilty seconds stay selected in it.
      const hour = recordedPart({ from: at - HOUR_S, to: Math.max(at, this.incident.to) + AROUND_S }, this.bounds);
      return { page: "node", view: hour, selection: this.guilty };
    }
    if (link.source === "samples") return this.kernelPlace();
    const core = lostCore(this.incident);
    return {
      page: "node",
      view: this.view,
      selection: this.guilty,
      filters: core && link.source === "cores" ? onCore(core.cpu) : {},
    };
  }

  private who(): Partial<Filters> {
    const hog = this.cause?.hog;
    if (hog?.comm) return { comm: [hog.comm] };
    return hog?.unit ? { unit: [hog.unit] } : {};
  }

  private hogPlace(): Target {
    return { page: "node", view: this.view, selection: this.guilty, filters: this.who() };
  }

  private kernelPlace(): Target {
    const name = hottest(this.cause);
    return {
      page: "node",
      view: this.view,
      selection: this.guilty,
      filters: { ...this.who(), mode: "kernel" },
      search: name ? exactly(name) : "",
    };
  }
}

export function onCore(cpu: number | null): Partial<Filters> {
  return cpu === null ? {} : { cpu: [String(cpu)] };
}

export function hottest(cause: Cause | null): string | null {
  return cause?.frames[cause.frames.length - 1] ?? null;
}

function hogName(cause: Cause | null): string {
  const hog = cause?.hog;
  return hog?.comm ?? hog?.unit ?? hog?.container ?? hog?.cgroup ?? "not named";
}

/** As a heading. Older recorders noted only the sentence. */
const heading = (symptom: Symptom): string => symptom.title ?? symptom.text;
const tableOf = (symptom: Symptom): string => symptom.table ?? "recording";

function opensSource(source: string | null): string {
  return source === "census" || source === "containers"
    ? "the cgroups page"
    : source === "events"
      ? "the hour before, with its events"
      : "these seconds in the views";
}
