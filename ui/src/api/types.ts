/**
 * The documents that the server answers with: the same keys that the commands print with --json.
 * Times are Unix seconds, ratios 0..1, null = not measured. Keys that the page does not read are left out.
 */

export interface Span {
  from: number;
  to: number;
}

export const MODES = ["user", "system", "irq", "softirq", "steal", "iowait"] as const;
export type Mode = (typeof MODES)[number];
export type Severity = "info" | "warning" | "critical";

export interface RecordingEntry {
  key: string;
  title: string;
  /** null until it is built or read. */
  node: string | null;
  from: number | null;
  to: number | null;
  live: boolean;
  note: string | null;
}

export interface Missing {
  source: string;
  why: string;
  grant: string | null;
}

export interface Gap extends Span {
  source: string;
  why?: string | null;
}

export interface Info extends Span {
  node: string;
  kernel: string | null;
  machine: string | null;
  os: string | null;
  timezone: string | null;
  cpus: number | null;
  labels: Record<string, string>;
  samples: number;
  bytes: number;
  tables: Record<string, number>;
  gaps: Gap[];
  missing: Missing[];
  live: boolean;
  zone_offset_s: number;
  hz: number | null;
  interval_s: number | null;
  version: string;
}

/** `strip`: u8 arrays columns*cpus named by MODES, f32 average_busy and average_kernel, i32 worst_core. */
export interface StripHeader extends Span {
  column_s: number;
  columns: number;
  cpus: number[];
}

export interface TimelineEvent {
  at: number;
  kind: string;
  source: string;
  severity: Severity;
  text: string;
  fields: Record<string, unknown>;
}

export interface Lanes {
  events: TimelineEvent[];
  events_left_off: number;
  zombies: { at: number[]; total: (number | null)[]; live: (number | null)[]; dying: (number | null)[] };
  pressure: { at: number[]; cpu: (number | null)[]; memory: (number | null)[]; io: (number | null)[] };
  gaps: Gap[];
  marks?: TimelineEvent[];
}

/** `heatmap`: u32 values (columns*rows, column-major), with `paint` also u32 painted. */
export interface HeatmapHeader {
  start: number;
  column_s: number;
  columns: number;
  rows: number;
  max: number;
  total: number;
  cores?: number[];
  blind: [number, number][];
}

/** `flamegraph`: arrays name, module, kind, parent, depth, value, self, and in a difference base, base_self. */
export interface FlamegraphHeader {
  total: number;
  base_total?: number;
  scale?: number;
  pruned: { branches: number; samples: number; below_ratio: number };
  names: string[];
  modules: string[];
  kinds: string[];
  total_recording_samples?: number;
}

/** `flamechart`: arrays name, module, kind, depth, start, end, samples. */
export interface FlamechartHeader extends Span {
  names: string[];
  modules: string[];
  kinds: string[];
  rows_left_off: number;
}

export interface FunctionRow {
  name: string;
  module: string | null;
  kind: string;
  self: number;
  total: number;
  self_ratio: number;
  total_ratio: number;
}

export interface Stacks extends Span {
  node: string;
  total: number;
  functions: FunctionRow[];
  stacks: { value: number; ratio: number; frames: { name: string; module: string | null; kind: string }[] }[];
}

export interface Actor {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  cgroup: string | null;
  container: string | null;
  pod: string | null;
  cores?: number | null;
  baseline_cores?: number | null;
  cpu_ratio?: number | null;
  baseline_cpu_ratio?: number | null;
}

export interface Symptom {
  kind: string;
  at: number;
  cpu?: number | null;
  seconds: number;
  text: string;
  severity?: Severity;
  [fact: string]: unknown;
}

export interface ChainLink {
  step: string;
  fact: string;
  value: number | string | null;
  value_unit: string | null;
  at: number | null;
  source: string | null;
}

export interface Cause {
  pattern: string;
  proof: "kernel" | "golden" | "literature";
  confidence: number;
  summary: string;
  hog: Actor;
  culprit: Actor | null;
  frames: string[];
  chain: ChainLink[];
  fix: { summary: string; steps: string[] };
}

export interface RuledOut {
  pattern: string;
  because: string;
  value: number | string | null;
  value_unit: string | null;
}

export interface Incident extends Span {
  id: string;
  state: "open" | "closed";
  severity: Severity;
  symptoms: Symptom[];
  causes: Cause[];
  ruled_out: RuledOut[];
  recurrences?: number[];
  not_checked?: string[];
  summary?: string;
}

export interface Diagnosis {
  node: string;
  window: Span;
  incidents: Incident[];
}

export interface CgroupLeak {
  path: string;
  dying: number | null;
  created: number | null;
  released: number | null;
  creator: { comm: string | null; pid: number | null; unit: string | null; container: string | null } | null;
}

export interface Cgroups {
  node: string;
  kernel: string | null;
  at: number | null;
  source: string;
  memory: { hierarchy: number | null; total: number | null; live: number | null; dying: number | null };
  growth_per_hour: number | null;
  verdict: "harmless" | "watch" | "costly" | null;
  why: string | null;
  leaks: CgroupLeak[];
  forecast: { read_cost_now_s: number | null; costs_1s_at: number | null; costs_5s_at: number | null } | null;
}

export interface HistoryPoint {
  at: number;
  boot: string | null;
  cores_saturated_s: number | null;
  memory_cgroups: number | null;
  dying: number | null;
  restarts: number | null;
  [figure: string]: unknown;
}

export interface History {
  node: string;
  points: HistoryPoint[];
}

export interface Finding {
  id: string;
  unit: string | null;
  severity: Severity;
  why: string;
  evidence: unknown;
  fix: unknown;
  [more: string]: unknown;
}

export interface Audit {
  available?: boolean;
  why?: string;
  root: string;
  live: boolean;
  platform: unknown;
  findings: Finding[];
  allowed: Finding[];
  missing: Missing[];
}

export interface Worst {
  second: {
    at: number;
    cpu: number;
    modes: Record<string, number>;
    comm: string | null;
    pid: number | null;
    unit: string | null;
    path: string[];
  } | null;
  hidden: {
    average_busy: number;
    average_kernel: number;
    core: number;
    core_kernel: number;
    seconds: number;
    at: number;
  } | null;
}

export interface Tick {
  /** When it ended. */
  at: number;
  interval_s?: number;
  cpus: number[];
  user: (number | null)[];
  system: (number | null)[];
  irq: (number | null)[];
  softirq: (number | null)[];
  steal: (number | null)[];
  iowait: (number | null)[];
  average_busy: number | null;
  average_kernel: number | null;
  dying: number | null;
  total: number | null;
  hz_samples: number | null;
}

export interface IncidentNote extends Span {
  id: string;
  state: "open" | "closed";
  severity: Severity;
  summary: string;
}
