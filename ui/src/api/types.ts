// Made from docs/api.json by `npm run types`: change src/zombiescope/web/shapes, not this file.

export interface ErrorAnswer {
  error: { what: string; fix: string | null };
}

/** One line of the action log: `who` did what, and how it was before and after. */
export interface ActionLogLine {
  at: number;
  run: string;
  who: Record<string, number | string | null>;
  target: string;
  step: string;
  event: string;
  action: Record<string, unknown> | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  why: string;
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
  owner?: string | null;
  cores: number | null;
  baseline_cores: number | null;
  cpu_ratio: number | null;
  baseline_cpu_ratio: number | null;
  genuine?: boolean | null;
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

/** The tick (or the half second, where ticks are shorter) that starts at `at`. */
export interface Busiest {
  at: number;
  busy: number;
}

export interface Cause {
  pattern: string;
  proof: "kernel" | "golden" | "literature";
  confidence: number;
  strength?: number;
  repair?: "NONE" | "COMPONENT_RESET" | "RESTART_VM" | "REPLACE_VM" | "CONTACT_SUPPORT";
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

/** A lane of lines: what the recording has of disk, network, memory, training steps and others. null: nothing was recorded then. */
export interface Chart {
  name: string;
  unit: "bytes/s" | "ratio" | "s";
  at: number[];
  lines: ChartLine[];
}

export interface ChartLine {
  name: string;
  values: (number | null)[];
}

/** `ok` is null where it could not be known. */
export interface Check {
  name: string;
  ok: boolean | null;
  text: string;
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
  owner: string | null;
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
  cpu: number;
  user: number | null;
  nice: number | null;
  system: number | null;
  irq: number | null;
  softirq: number | null;
  steal: number | null;
  iowait: number | null;
  idle: number | null;
  busy: number | null;
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

/** `gpus` is null unless requested. */
export interface Cores {
  schema: string;
  node: string;
  from: number;
  to: number;
  interval_s: number | null;
  aggregate: ModesBusy;
  cores: Core[];
  gpus: Gpu[] | null;
}

/** Work of GPUs that was not done. `not_known`: GPUs that did less, of which it is unknown whether they waited. */
export interface Cost {
  gpu_seconds_lost: number;
  text: string;
  gpus: GpuLoss[];
  not_known: GpuLoss[];
}

export interface Creator {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  container: string | null;
  uid: number | null;
  exe: string | null;
}

export interface Damage {
  file: string;
  what: string;
}

/** One victim, delayed by one thread on one core: `seconds` in `waits` waits from `from` to `to`. */
export interface Delay {
  victim: Victim;
  by: Party | null;
  cpu: number;
  from: number;
  to: number;
  seconds: number;
  longest_s: number;
  waits: number;
  goes_on: boolean;
  longest_from?: number;
  longest_to?: number;
  through: Party[];
  frames?: string[];
}

/** The longest waits. `known`: where there is a snapshot of the schedule; `too_many`: the window is too long. */
export interface DelayLane {
  waits: LongWait[];
  known: KnownSchedule[];
  too_many: boolean;
}

/** Direct ones first, then those that came through others; of each the longest first. */
export interface DelaysAnswer {
  schema: string;
  node: string;
  from: number;
  to: number;
  delays: Delay[];
  left_out: number;
  reach_s: number | null;
  watched_cpus: number[];
  watched: Watched[];
}

/** `noted` is missing where the live diagnosis of a running recorder answers instead of a diagnosis made now. `live_diagnosis` is there when it failed in the window. */
export interface Diagnosis {
  schema: string;
  node: string;
  window: Span;
  incidents: Incident[];
  noted?: string[];
  not_checked: string[];
  live_diagnosis?: LiveDiagnosisOutage;
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

/** The same object in every answer that holds a plan. `part` says what it is for; `applicable`: `fix` can do it. */
export interface FixStep {
  id: string;
  kind: "change" | "look" | "advice";
  part: "look" | "stop-gap" | "lasting" | "last-resort";
  does: string;
  command: string | null;
  touches: string[];
  risk: string;
  undo: string;
  verify: string;
  state: "planned" | "applied" | "failed" | "undone" | "skipped";
  why: string;
  protected: string | null;
  applicable: boolean;
}

/** `readable`: why the log could not be read, else null. `verified` is null if unknown. */
export interface Fixes {
  schema: string;
  target: string;
  readable: string | null;
  steps: StepState[];
  verified: boolean | null;
  verification: Verification | null;
  log: ActionLogLine[];
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

/** `none`: this server shows no fleet. `done` of `of` node-days were read. */
export interface FleetAnswer {
  schema: string;
  state: "none" | "reading" | "ready" | "failed";
  root: string | null;
  done: number;
  of: number;
  why: string | null;
  report: FleetReport | null;
}

export interface FleetArrival {
  label: string;
  value: string;
  nodes: number;
  sick_after: number;
  sick_before: number;
  first: number;
  last: number;
  p_value: number;
  p_corrected: number;
  significant: boolean;
}

export interface FleetCause {
  pattern: string;
  culprit: string | null;
  nodes: number;
  incidents: number;
  job_hours_lost: number;
  gpu_seconds_lost: number | null;
  first: number;
  last: number;
}

export interface FleetCluster {
  path: string[];
  incidents: number;
  nodes: number;
  patterns: Record<string, number>;
  paths: number;
}

export interface FleetCopy {
  node: string;
  of: string;
}

export interface FleetDamage {
  node: string;
  day: string | null;
  what: string;
}

/** Judged nodes that share a label, a pair of labels, or a side of a number. `lift` null: no other node is affected. `spared`: fewer are affected than elsewhere. `not_judged` nodes of the group are in no figure. `also`: other names of the same nodes, which are indistinguishable. `because`: how the number in `explained_by` explains it. */
export interface FleetGroup {
  label: string;
  value: string;
  text: string;
  sentence: string;
  spared: boolean;
  not_judged: number;
  because: string | null;
  split: FleetSplit | null;
  terms: LabelValue[];
  cause: string | null;
  nodes: number;
  affected: number;
  ratio: number;
  rest: FleetRest;
  lift: number | null;
  p_value: number;
  p_corrected: number;
  significant: boolean;
  also: LabelValue[][];
  explained_by: LabelValue[] | null;
}

export interface FleetIncident {
  node: string;
  id: string | null;
  from: number;
  to: number;
  severity: Severity;
  pattern: string;
  culprit: string | null;
  hog: string | null;
  summary: string | null;
  frames: string[];
  gpu_lost_s: number | null;
  job_lost_s: number;
}

/** `matched` nodes have labels from it; `without` have none; `unknown` are not in the fleet. */
export interface FleetInventory {
  source: string;
  nodes: number;
  matched: number;
  without: string[];
  unknown: string[];
}

/** `most`: how many labels the node lost that lost most. */
export interface FleetLabelsLeftOut {
  nodes: number;
  most: number;
}

export interface FleetNode {
  node: string;
  sick: boolean;
  labels: Record<string, string>;
  labels_changed: boolean;
  kernel: string | null;
  image: string | null;
  zone: string | null;
  instance_type: string | null;
  cpus: number | null;
  from: number | null;
  to: number | null;
  recorded_s: number;
  saturated_s: number | null;
  longest_s: number | null;
  restarts: number | null;
  critical: number | null;
  nic: number | null;
  dying: number | null;
  dying_per_hour: number | null;
  memory_cgroups: number | null;
  lost: number | null;
  damaged: number;
  damage: string | null;
  ahead_s: number | null;
  most_dying: number | null;
  most_memory_cgroups: number | null;
  boot: string | null;
  name: string | null;
  not_judged: string | null;
  labels_left_out: number;
  age_s: number | null;
  boots: number;
  state: "sick" | "healthy" | "not_judged" | "blind" | "copy";
  why: string | null;
  newest: number | null;
}

export interface FleetNotJudged {
  node: string;
  why: string | null;
}

/** How many nodes are affected in each quarter of a number, the lowest values first. `role` course: a step of the illness; given: what a node has anyway. */
export interface FleetNumber {
  name: string;
  noun: string;
  role: "given" | "course";
  is_time: boolean;
  quarters: FleetQuarter[];
}

export interface FleetOnset {
  from: number;
  to: number;
  nodes: number;
  of_nodes: number;
  p_corrected: number;
}

export interface FleetOutlook {
  threshold: number | null;
  learnt_from: number;
  nodes: NodeForecast[];
}

export interface FleetQuarter {
  low: number;
  high: number;
  nodes: number;
  affected: number;
}

export interface FleetRead {
  files: number;
  bytes: number;
  core_seconds: number;
  fresh_items: number;
}

/** `sick` and `healthy` nodes were judged; all others are in no test. */
export interface FleetReport {
  root: string;
  engine: string;
  headline: string;
  window: Span;
  nodes: FleetNode[];
  nodes_in_all: number;
  sick: number;
  healthy: number;
  blind: string[];
  not_judged: FleetNotJudged[];
  copies: FleetCopy[];
  diagnosed_now: string[];
  labels_left_out: FleetLabelsLeftOut;
  inventory: FleetInventory | null;
  incidents: FleetIncident[];
  incidents_in_all: number;
  causes: FleetCause[];
  by: FleetGroup[];
  course: FleetGroup[];
  numbers: FleetNumber[];
  tried: number;
  values_left_out: number;
  alpha: number;
  units: FleetUnit[];
  arrivals: FleetArrival[];
  onsets: FleetOnset[];
  clusters: FleetCluster[];
  forecast: FleetOutlook;
  damage: FleetDamage[];
  read: FleetRead;
}

export interface FleetRest {
  nodes: number;
  affected: number;
}

/** Where a number divides the nodes: at `threshold`, between the values `below` and `above`. */
export interface FleetSplit {
  name: string;
  role: "given" | "course";
  threshold: number;
  below: number;
  above: number;
  is_above: boolean;
  is_time: boolean;
}

export interface FleetUnit {
  unit: string;
  sick: number;
  sick_nodes: number;
  healthy: number;
  healthy_nodes: number;
  p_value: number;
  p_corrected: number;
  not_judged: number;
  significant: boolean;
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

/** Utilisation in percent; temperatures are the highest of the window. */
export interface Gpu {
  gpu: number;
  seconds: number;
  utilisation: number | null;
  lowest_utilisation: number | null;
  highest_utilisation: number | null;
  power_w: number | null;
  highest_power_w: number | null;
  memory_used_bytes: number | null;
  clock_sm_mhz: number | null;
  lowest_clock_sm_mhz: number | null;
  temperature_c: number | null;
  memory_temperature_c: number | null;
  name: string | null;
  uuid: string | null;
  pci: string | null;
  driver: string | null;
  state: string | null;
  memory_bytes: number | null;
  power_limit_w: number | null;
  clock_sm_max_mhz: number | null;
  recovery_action: number | null;
  mig: boolean | null;
  reasons: string[];
  lost_clocks_s: Record<string, number | null>;
  counters: Record<string, number | null>;
  added: Record<string, number | null>;
  processes: GpuProcess[];
}

/** Of each row busy_s and all of `waited` together are wall_s; the walls of all rows are GPUs x seconds. */
export interface GpuAccount {
  schema: string;
  node: string;
  from: number;
  to: number;
  by: "job" | "process" | "gpu";
  rows: GpuSeconds[];
  idle: IdleSpan[];
}

/** `usual` and `now`: ratios of use; watts where `measure` is power. `because`: its threads waited, its cgroup was throttled, it was the hog itself, another GPU of its job waited, or unknown. */
export interface GpuLoss {
  gpu: number;
  whose: string;
  pids: number[];
  measure: "utilisation" | "power";
  usual: number;
  now: number;
  seconds_lost: number;
  seconds: number;
  because: "waited" | "throttled" | "itself" | "job" | "unknown";
  threads: number;
  power_usual_w: number | null;
  power_w: number | null;
}

/** A process that was on a GPU in the window; `to` is null for one that did not leave in it. */
export interface GpuProcess {
  pid: number;
  comm: string | null;
  unit: string | null;
  container: string | null;
  container_name: string | null;
  pod: string | null;
  pod_name: string | null;
  memory_bytes: number | null;
  from: number;
  to: number | null;
}

/** One line of the account. What a line is not about is null. */
export interface GpuSeconds {
  gpu: number | null;
  job: string | null;
  rank: number | null;
  pid: number | null;
  comm: string | null;
  pod: string | null;
  gpus: number;
  wall_s: number;
  busy_s: number;
  waited: Waited;
}

/** Percent of `count` GPUs, their mean and the least busy one; the power of all of them. */
export interface GpuSeries {
  at: number[];
  count: number;
  mean: (number | null)[];
  lowest: (number | null)[];
  lowest_gpu: (number | null)[];
  power_w: (number | null)[];
}

/** `live`: a recorder writes this recording now. No parts: none reports for it on the server's machine. */
export interface Health {
  schema: string;
  live: boolean;
  parts: PartHealth[];
}

/** u32 values (columns*rows, column by column), mostly f32 spread (the same by exact time), with `paint` u32 painted. */
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

/** A GPU that was in use and did next to nothing for a while. */
export interface IdleSpan {
  gpu: number;
  from: number;
  to: number;
  seconds: number;
  usual: number;
  job: string | null;
  rank: number | null;
  pid: number | null;
  phase: "start" | "evaluation" | "checkpoint" | "end" | null;
  state: string;
  text: string;
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
  cost?: Cost | null;
  jobs?: JobFate[];
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
  gpu_driver: string | null;
  gpus: string[];
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

/** A Ray job that was on the node: what became of it, and why. */
export interface JobFate {
  job: string;
  fate: "died" | "failed by itself" | "survived";
  why: string;
  ended: number | null;
  ran_s: number | null;
}

export interface KnownSchedule {
  from: number;
  to: number;
  cpu: number;
}

export interface LabelValue {
  label: string;
  value: string;
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
  gpus: GpuSeries;
  charts: Chart[];
  delays: DelayLane;
  python: PythonLane[];
  python_left_out: number;
  gaps: Gap[];
}

export type Level = "owner" | "unit" | "pod" | "container" | "image" | "program" | "process" | "thread" | "comm";

/** The live diagnosis failed while this was recorded: how often, from the first time to the last, and why last. */
export interface LiveDiagnosisOutage {
  from: number;
  to: number;
  failures: number;
  why: string;
}

/** A task or a softirq that could have run, and who ran on that core then; null: not known. */
export interface LongWait {
  from: number;
  to: number;
  cpu: number;
  victim: string;
  by: string | null;
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

/** `busy` is everything but idle and iowait. */
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

export interface NodeForecast {
  node: string;
  dying: number;
  per_hour: number;
  hours: number | null;
}

/** The recording is of another machine, and only the server's own can be looked at. */
export interface NotAudited {
  schema: string;
  available: false;
  why: string;
}

/** As a recorder's live diagnosis notes it, which knows one node only. */
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
  cost?: Cost | null;
  jobs?: JobFate[];
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
  cost?: Cost | null;
  jobs?: JobFate[];
  node: string;
  window: Span;
}

/** A recorder that runs on this machine, or that was killed (`died`: when) and not started again. */
export interface OneRecorder {
  running: boolean;
  pid: number | null;
  recording: string | null;
  node: string | null;
  timezone: string | null;
  since: number | null;
  until: number | null;
  cost: RecorderCost | null;
  bytes: number | null;
  died: number | null;
  gaps: Gap[];
  missing: Missing[];
  left_out: number[];
  incidents: NotedIncident[];
  parts: PartHealth[];
}

export interface Others {
  groups: number;
  samples: number;
}

/** Before, after, and after less before. */
export interface Pair {
  a: number | null;
  b: number | null;
  delta: number | null;
}

/** `since`: in this state; `last_success` is null for a part that never did its work yet; `work`: how often it did. `why`: what is wrong, or the reason of the last failure; `fix`: the command or setting for it, or empty. `obscured_by`: the part whose silence hides the state of this one. */
export interface PartHealth {
  name: string;
  state: "ok" | "failed" | "hung" | "off";
  since: number;
  last_success: number | null;
  work: number;
  why: string;
  fix: string;
  failures: number;
  pid: number | null;
  rss_bytes: number | null;
  obscured_by: string | null;
}

/** A thread. */
export interface Party {
  pid: number | null;
  tid: number | null;
  comm: string | null;
  unit: string | null;
  container: string | null;
  pod: string | null;
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

export interface PythonFrame {
  function: string;
  file: string;
  line: number;
}

export interface PythonLane {
  pid: number;
  tid: number;
  comm: string | null;
  program: string | null;
  rank: number | null;
  main: boolean;
  gpu: boolean;
  from: number[];
  to: number[];
  what: string[];
  waits: boolean[];
}

export interface PythonSpan {
  from: number;
  to: number;
  looks: number;
  state: string | null;
  function: string;
  file: string;
  line: number;
  own: PythonFrame;
}

/** The innermost frame; `own` the innermost of the program's own code; `frames` all of them, outermost first. */
export interface PythonStack {
  function: string;
  file: string;
  line: number;
  looks: number;
  ratio: number;
  own: PythonFrame;
  frames: PythonFrame[];
}

export interface PythonThread {
  pid: number;
  tid: number;
  comm: string | null;
  looks: number;
  waiting_ratio: number | null;
  stacks: PythonStack[];
  spans: PythonSpan[];
  spans_left_off: number;
}

export interface PythonThreads {
  schema: string;
  from: number;
  to: number;
  node: string;
  every: number;
  left_out: number;
  threads: PythonThread[];
}

export interface RecorderCost {
  cpu_ratio: number | null;
  rss_bytes: number | null;
  bytes_per_hour: number | null;
  lost: number;
  helpers_rss_bytes: number | null;
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
  place: string | null;
  gone: boolean;
}

/** `fleet`: this server shows a fleet, too. */
export interface RecordingList {
  schema: string;
  recordings: RecordingEntry[];
  fleet: boolean;
}

/** The process that asked a runtime for a container; `how` it is known: "command line" or "socket". */
export interface Requester {
  comm: string | null;
  pid: number | null;
  unit: string | null;
  command: string | null;
  container: string | null;
  how: string | null;
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
  who: WhoRow[];
  functions: FunctionRow[];
  stacks: Stack[];
}

/** A line of the baseline that no finding needs any more. */
export interface StaleLine {
  id: string;
  line: number;
  reason: string;
}

/** The recorder that runs longest; `recorders` has all of them. */
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
  died: number | null;
  gaps: Gap[];
  missing: Missing[];
  left_out: number[];
  incidents: NotedIncident[];
  parts: PartHealth[];
  recorders: OneRecorder[];
}

/** What became of a step, by its id; `at`: when that was written down. */
export interface StepState {
  id: string;
  state: "applied" | "failed" | "undone" | "skipped";
  why: string;
  at: number;
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

/** With further facts of its kind: mode, ratio, interface, queue ... From `title` on it is what the detector of its kind declares; older recorders noted no such fields. */
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
  means?: string;
}

export interface TrackNote {
  name: string;
  comm: string | null;
  pid: number | null;
  tid: number | null;
  unit: string | null;
  container: string | null;
  pod: string | null;
  image: string | null;
  samples: number;
}

/** u32 samples and u32 kernel (tracks*columns, track by track). */
export interface TracksHeader {
  schema: string;
  node: string;
  arrays: ColumnArray[];
  from: number;
  to: number;
  by: Level;
  columns: number;
  column_s: number;
  hz: number | null;
  others: number;
  tracks: TrackNote[];
}

export interface UnitChange {
  name: string;
  kind: string;
  cores: Pair;
  ratio: Pair;
}

export type Verdict = "harmless" | "watch" | "costly";

export interface Verification {
  from: number;
  to: number;
  verdict: string;
  checks: Check[];
}

/** A thread, or a softirq: then `softirq` is its name (net_rx, ...), and `queue` the network device or the interrupt that raised it, where that was seen. */
export interface Victim {
  pid: number | null;
  tid: number | null;
  comm: string | null;
  unit: string | null;
  container: string | null;
  pod: string | null;
  softirq: string | null;
  queue: string | null;
}

/** Seconds in which a GPU did nothing, by what it waited for; together with busy_s they are wall_s. */
export interface Waited {
  data: number;
  core: number;
  collective: number;
  storage: number;
  throttled: number;
  stopped: number;
  broken: number;
  unknown: number;
  host: number;
  unused: number;
}

/** A core and the time for which its schedule is known. */
export interface Watched {
  cpu: number;
  from: number;
  to: number;
}

export interface Who {
  schema: string;
  from: number;
  to: number;
  node: string;
  by: Level;
  total: number;
  others: Others;
  who: WhoRow[];
}

/** `cpus`: how many of them it had in the mean; null where the rate of sampling is not known. */
export interface WhoRow {
  name: string;
  comm: string | null;
  pid: number | null;
  tid: number | null;
  unit: string | null;
  container: string | null;
  pod: string | null;
  image: string | null;
  samples: number;
  ratio: number;
  kernel_ratio: number;
  cpus: number | null;
}

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
  gpu: GpuAccount;
  events: Events;
  delays: DelaysAnswer;
  functions: Stacks;
  python: PythonThreads;
  who: Who;
  diff: Difference;
  incidents: Diagnosis;
  [path: `incidents/${string}`]: OneIncident;
  [path: `fixes/${string}`]: Fixes;
  health: Health;
  fleet: FleetAnswer;
}

/** What precedes the arrays of an answer in columns. */
export interface ColumnHeaders {
  strip: StripHeader;
  heatmap: HeatmapHeader;
  flamegraph: FlamegraphHeader;
  flamechart: FlamechartHeader;
  tracks: TracksHeader;
}

/** What a running recorder sends. */
export interface LiveEvents {
  tick: Tick;
  event: TimelineEvent;
  incidents: IncidentNote[];
  recorder: RecorderState;
}
