// Made from docs/api.json by `npm run types`: change src/zombiescope/web/shapes, not this file.

export interface ErrorAnswer {
  error: { what: string; fix: string | null; mend: string | null };
}

export interface Actor {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  cgroup: string | null;
  container: string | null;
  pod: string | null;
  container_name?: string | null;
  image?: string | null;
  namespace?: string | null;
  cores: number | null;
  baseline_cores: number | null;
  cpu_ratio: number | null;
  baseline_cpu_ratio: number | null;
}

export interface Against {
  from: number;
  to: number;
  total: number;
}

export interface AllowedFinding {
  id: string;
  rule: string;
  unit: string | null;
  severity: Severity;
  why: string;
  evidence: Evidence[];
  fix: string[];
  reason: string;
}

export type Audit = Audited | NotAudited;

export interface Audited {
  schema: string;
  available: true;
  root: string;
  live: boolean;
  platform: string | null;
  units: number;
  services_started: number;
  findings: Finding[];
  allowed: AllowedFinding[];
  stale: StaleLine[];
  missing: Missing[];
}

export interface Busiest {
  at: number;
  busy: number;
}

export interface Cause {
  pattern: string;
  proof: "kernel" | "golden" | "literature";
  confidence: number;
  strength?: number;
  summary: string;
  hog: Actor;
  culprit: Actor | null;
  frames: string[];
  chain: ChainLink[];
  fix: Fix;
}

export interface Census {
  total: number | null;
  live: number | null;
  dying: number | null;
  growth_per_hour: number | null;
  verdict: Verdict | null;
}

export interface Censuses {
  a: Census;
  b: Census;
}

/** One normalised path; "" sums the rest. Not exact: a lower bound. `names`: how many names its cgroups had; `charged_to`: who asked for them, where the creator only carries out. */
export interface CgroupLeak {
  path: string;
  dying: number;
  created: number | null;
  removed: number | null;
  released: number | null;
  exact: boolean | null;
  names: number | null;
  creator: Creator;
  changed: number;
  charged_to: string | null;
}

export interface Cgroups {
  schema: string;
  node: string;
  kernel: string | null;
  at: number | null;
  source: "recording" | "now";
  memory: MemoryCgroups;
  growth_per_hour: number | null;
  verdict: Verdict | null;
  why: string | null;
  leaks: CgroupLeak[];
  forecast: Forecast;
}

/** `path` are kernel functions, outermost first, and `means` is what they are for; older recorders noted neither. */
export interface ChainLink {
  step: string;
  fact: string;
  value: number | string | null;
  value_unit: string | null;
  at: number | null;
  source: string | null;
  counter?: string | null;
  path?: string[];
  means?: string | null;
}

/** One of the arrays behind the header of columns. */
export interface ColumnArray {
  name: string;
  type: "u8" | "u16" | "u32" | "i32" | "f32" | "f64";
  length: number;
}

export interface Container {
  id: string;
  name: string | null;
  image: string | null;
  runtime: string | null;
  namespace: string | null;
  pod: string | null;
  pod_uid: string | null;
  cgroup: string | null;
  started: number | null;
  exited: number | null;
  code: number | null;
  alive: boolean;
  runs: number | null;
  restarts: number | null;
  restart_policy: string | null;
  starts: number;
  requester: Requester;
}

/** Containers that are one thing to a person; `starts` counts in the window. */
export interface ContainerFamily {
  name: string;
  kind: "pod" | "name" | "image" | "unknown";
  namespace: string | null;
  image: string | null;
  ids: number;
  starts: number;
  restarts: number | null;
  alive: number;
  exited: number;
  failed: number;
  succeeded: number;
  last_code: number | null;
  per_hour: number | null;
  longest_s: number | null;
  requester: Requester;
  restart_policy: string | null;
  loop: "in place" | "failing" | "quick" | null;
  text: string | null;
}

export interface Containers {
  schema: string;
  from: number;
  to: number;
  node: string;
  total: number;
  alive: number;
  left_out: number;
  families: ContainerFamily[];
  containers: Container[];
}

export interface Core {
  user: number | null;
  nice: number | null;
  system: number | null;
  irq: number | null;
  softirq: number | null;
  steal: number | null;
  iowait: number | null;
  idle: number | null;
  busy: number | null;
  cpu: number;
  longest_saturation_s: number | null;
  longest_busy_s: number | null;
  busiest: Busiest | null;
}

export interface CoreChange {
  cpu: number;
  busy: Pair;
  longest_saturation_s: Pair;
}

export interface CoreChanges {
  aggregate: Record<string, Pair>;
  cores: CoreChange[];
}

export interface Cores {
  schema: string;
  from: number;
  to: number;
  node: string;
  interval_s: number | null;
  aggregate: ModesBusy;
  cores: Core[];
}

export interface Creator {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  container: string | null;
}

export interface Damage {
  file: string;
  what: string;
}

/** `noted` is missing where the doctor of a running recorder answers instead of a diagnosis. */
export interface Diagnosis {
  schema: string;
  node: string;
  window: Span;
  incidents: Incident[];
  noted?: string[];
  not_checked: string[];
}

export interface Difference {
  schema: string;
  a: Side;
  b: Side;
  cores: CoreChanges;
  units: UnitChange[];
  functions: FunctionChange[];
  cgroups: Censuses;
}

export interface Events {
  schema: string;
  from: number;
  to: number;
  node: string;
  events: TimelineEvent[];
}

export interface Evidence {
  file: string;
  line: number | null;
  text: string;
}

export interface Finding {
  id: string;
  rule: string;
  unit: string | null;
  severity: Severity;
  why: string;
  evidence: Evidence[];
  fix: string[];
}

/** `steps` are the lines of the plan as text, `commands` which of them can be pasted into a shell. Older recorders noted no plan, and the oldest no commands. */
export interface Fix {
  summary: string;
  steps: string[];
  commands?: boolean[];
  plan?: FixStep[];
}

export interface FixStep {
  kind: "command" | "advice";
  text: string;
  comment: string;
  touches?: string;
  undo?: string;
  check?: string;
}

/** Arrays name, module, kind, depth, start, end, samples. */
export interface FlamechartHeader {
  schema: string;
  node: string;
  arrays: ColumnArray[];
  from: number;
  to: number;
  names: string[];
  modules: string[];
  kinds: string[];
  rows_left_off: number;
}

/** Arrays name, module, kind, parent, depth, value, self, and in a difference base, base_self. */
export interface FlamegraphHeader {
  schema: string;
  node: string;
  arrays: ColumnArray[];
  from: number;
  to: number;
  total: number;
  pruned: Pruned;
  against?: Against;
  base_total: number | null;
  scale: number;
  invert: boolean;
  total_recording_samples: number;
  names: string[];
  modules: string[];
  kinds: string[];
}

/** What one read of the root's statistics costs, and when that reaches one and five seconds: always estimated, from what one cgroup costs. */
export interface Forecast {
  estimated: boolean;
  read_cost_now_s: number | null;
  costs_1s_at: number | null;
  costs_5s_at: number | null;
}

export interface Frame {
  name: string;
  module: string | null;
  kind: string;
}

export interface FunctionChange {
  name: string;
  module: string | null;
  kind: string;
  self_ratio: Pair;
  total_ratio: Pair;
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

/** A source saw nothing in this span. */
export interface Gap {
  from: number;
  to: number;
  source: string;
  why: string;
}

/** u32 values (columns*rows, column by column), with `paint` also u32 painted. */
export interface HeatmapHeader {
  schema: string;
  node: string;
  arrays: ColumnArray[];
  by: "subsecond" | "core";
  start: number;
  column_s: number;
  columns: number;
  rows: number;
  cores: number[] | null;
  total: number;
  max: number;
  blind: [number, number][];
}

/** What the mean of all cores hid around it. */
export interface Hidden {
  average_busy: number;
  average_kernel: number;
  core: number;
  core_kernel: number;
  seconds: number;
  at: number;
}

export interface History {
  schema: string;
  node: string;
  points: HistoryPoint[];
}

/** A span that starts at `at`; counts of cgroups are the last of the span. */
export interface HistoryPoint {
  at: number;
  boot: string;
  recorded_s: number;
  cores_saturated_s: number;
  longest_saturation_s: number;
  longest_cpu: number | null;
  busy_ratio: number | null;
  system_ratio: number | null;
  memory_cgroups: number | null;
  dying: number | null;
  restarts: number;
  critical_events: number;
  nic_events: number;
  lost: number;
}

export interface Incident {
  from: number;
  to: number;
  id: string;
  state: "open" | "closed";
  severity: Severity;
  symptoms: Symptom[];
  causes: Cause[];
  ruled_out: RuledOut[];
  recurrences: number[];
  not_checked?: string[];
  node: string;
}

/** An incident in one line. */
export interface IncidentNote {
  from: number;
  to: number;
  id: string;
  state: "open" | "closed";
  severity: Severity;
  summary: string | null;
}

export interface Info {
  schema: string;
  from: number;
  to: number;
  node: string;
  kernel: string | null;
  machine: string | null;
  os: string | null;
  timezone: string | null;
  cpus: number | null;
  left_out: number[];
  labels: Record<string, string>;
  boots: string[];
  samples: number;
  tables: Record<string, number>;
  bytes: number;
  parquet_parts: number;
  log_segments: number;
  gaps: Gap[];
  damage: Damage[];
  missing: Missing[];
  live: boolean;
  zone_offset_s: number;
  hz: number | null;
  interval_s: number | null;
  version: string;
  note: string | null;
}

export interface Lanes {
  schema: string;
  from: number;
  to: number;
  node: string;
  events: TimelineEvent[];
  events_left_off: number;
  zombies: Zombies;
  pressure: Pressure;
  gaps: Gap[];
}

export interface MemoryCgroups {
  hierarchy: string | null;
  total: number | null;
  live: number | null;
  dying: number | null;
  created: number | null;
  removed: number | null;
  released: number | null;
  lost: number | null;
}

/** A source that could not be read, and the command that grants it. */
export interface Missing {
  source: string;
  why: string;
  grant: string | null;
}

/** What part of a time was spent how. */
export interface Modes {
  user: number | null;
  nice: number | null;
  system: number | null;
  irq: number | null;
  softirq: number | null;
  steal: number | null;
  iowait: number | null;
  idle: number | null;
}

export interface ModesBusy {
  user: number | null;
  nice: number | null;
  system: number | null;
  irq: number | null;
  softirq: number | null;
  steal: number | null;
  iowait: number | null;
  idle: number | null;
  busy: number | null;
}

/** The recording is of another machine, and only the server's own can be looked at. */
export interface NotAudited {
  schema: string;
  available: false;
  why: string;
}

/** As the doctor of a recorder notes it, which knows of one node only. */
export interface NotedIncident {
  from: number;
  to: number;
  id: string;
  state: "open" | "closed";
  severity: Severity;
  symptoms: Symptom[];
  causes: Cause[];
  ruled_out: RuledOut[];
  recurrences: number[];
  not_checked?: string[];
}

export interface OneIncident {
  schema: string;
  from: number;
  to: number;
  id: string;
  state: "open" | "closed";
  severity: Severity;
  symptoms: Symptom[];
  causes: Cause[];
  ruled_out: RuledOut[];
  recurrences: number[];
  not_checked?: string[];
  node: string;
  window: Span;
}

/** Before, after, and after less before. */
export interface Pair {
  a: number | null;
  b: number | null;
  delta: number | null;
}

export interface Pressure {
  at: number[];
  cpu: (number | null)[];
  memory: (number | null)[];
  io: (number | null)[];
}

export interface Pruned {
  branches: number;
  samples: number;
  below_ratio: number;
}

export interface RecorderCost {
  cpu_ratio: number | null;
  rss_bytes: number | null;
  bytes_per_hour: number | null;
  lost: number;
}

export interface RecorderState {
  running: boolean;
}

export interface RecordingEntry {
  key: string;
  title: string;
  node: string | null;
  from: number | null;
  to: number | null;
  live: boolean;
  note: string | null;
}

export interface RecordingList {
  schema: string;
  recordings: RecordingEntry[];
}

/** Who ran the client that asked for a container. */
export interface Requester {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  command: string | null;
}

export interface RuledOut {
  pattern: string;
  because: string;
  value: number | string | null;
  value_unit: string | null;
}

export type Severity = "info" | "warning" | "critical";

export interface Side {
  from: number;
  to: number;
  node: string;
  samples: number;
}

export interface Span {
  from: number;
  to: number;
}

export interface Stack {
  value: number;
  ratio: number;
  frames: Frame[];
}

export interface Stacks {
  schema: string;
  from: number;
  to: number;
  node: string;
  total: number;
  functions: FunctionRow[];
  stacks: Stack[];
}

/** A line of the baseline that no finding needs any more. */
export interface StaleLine {
  id: string;
  line: number;
  reason: string;
}

export interface Status {
  schema: string;
  running: boolean;
  pid: number | null;
  recording: string | null;
  node: string | null;
  timezone: string | null;
  since: number | null;
  until: number | null;
  cost: RecorderCost | null;
  bytes: number | null;
  gaps: Gap[];
  missing: Missing[];
  left_out: number[];
  incidents: NotedIncident[];
}

/** u8 arrays columns*cpus named by mode, f32 average_busy and average_kernel, i32 worst_core. */
export interface StripHeader {
  schema: string;
  node: string;
  arrays: ColumnArray[];
  from: number;
  to: number;
  column_s: number;
  columns: number;
  cpus: number[];
  from_samples: boolean;
}

/** With the facts of its kind beside these: mode, ratio, interface, queue ... From `title` on it is what the detector of its kind declares; older recorders noted no such fields. */
export interface Symptom {
  kind: string;
  at: number;
  to: number;
  cpu: number | null;
  seconds: number;
  severity: Severity;
  group: string | null;
  text: string;
  title?: string;
  role?: "core" | "hog" | "victim";
  table?: string;
  core_rank?: number | null;
  victim?: string | null;
  [more: string]: unknown;
}

/** One second of a recorder that runs; `at` is its end. */
export interface Tick {
  at: number;
  interval_s: number;
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

export interface TimelineEvent {
  at: number;
  kind: string;
  source: string;
  severity: Severity;
  text: string;
  fields: Record<string, unknown>;
}

export interface UnitChange {
  name: string;
  kind: string;
  cores: Pair;
  ratio: Pair;
}

export type Verdict = "harmless" | "watch" | "costly";

export interface Worst {
  schema: string;
  from: number;
  to: number;
  node: string;
  second: WorstSecond | null;
  hidden: Hidden | null;
}

/** The second in which the kernel held a core most; who ran there is null without samples. */
export interface WorstSecond {
  at: number;
  cpu: number;
  modes: Modes;
  kernel: number;
  samples: number | null;
  comm: string | null;
  pid: number | null;
  unit: string | null;
  container: string | null;
  task_ratio: number | null;
  path: string[];
}

export interface Zombies {
  at: number[];
  total: (number | null)[];
  live: (number | null)[];
  dying: (number | null)[];
}

/** What is answered as JSON. */
export interface Documents {
  recordings: RecordingList;
  info: Info;
  status: Status;
  worst: Worst;
  cgroups: Cgroups;
  containers: Containers;
  history: History;
  audit: Audit;
  lanes: Lanes;
  cores: Cores;
  events: Events;
  functions: Stacks;
  diff: Difference;
  incidents: Diagnosis;
  [path: `incidents/${string}`]: OneIncident;
}

/** What stands before the arrays of an answer in columns. */
export interface ColumnHeaders {
  strip: StripHeader;
  heatmap: HeatmapHeader;
  flamegraph: FlamegraphHeader;
  flamechart: FlamechartHeader;
}

/** What a running recorder sends. */
export interface LiveEvents {
  tick: Tick;
  event: TimelineEvent;
  incidents: IncidentNote[];
  recorder: RecorderState;
}
