// The documents as these pages read them: the types of ui/src/api with the keys that only these pages look at.

import type * as api from "../api/types";

export type { Actor, ChainLink, HistoryPoint, Missing, RuledOut, Severity, Span, Worst } from "../api/types";

export interface Symptom extends api.Symptom {
  to: number;
  cpu: number | null;
  severity: api.Severity;
  group: string | null;
}

export interface Fix {
  summary: string;
  steps: string[];
  /** Which of the steps can be pasted into a shell; the others are advice. */
  commands?: boolean[];
}

export interface Cause extends Omit<api.Cause, "fix"> {
  fix: Fix;
}

export interface Incident extends Omit<api.Incident, "symptoms" | "causes"> {
  node?: string;
  causes: Cause[];
  symptoms: Symptom[];
}

export interface Diagnosis {
  node: string | null;
  window: api.Span;
  incidents: Incident[];
  not_checked?: string[];
}

export interface Leak extends api.CgroupLeak {
  removed?: number | null;
  exact?: boolean | null;
}

export interface Cgroups extends Omit<api.Cgroups, "leaks" | "memory" | "forecast"> {
  memory: {
    hierarchy: string | null;
    total: number | null;
    live: number | null;
    dying: number | null;
    created?: number | null;
    removed?: number | null;
    released?: number | null;
    lost?: number | null;
  };
  leaks: Leak[];
  forecast: NonNullable<api.Cgroups["forecast"]>;
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
  severity: api.Severity;
  why: string;
  evidence: Evidence[];
  fix: string[];
  reason?: string;
}

export interface Audit {
  /** false: the recording is of another machine, and only this one can be looked at. */
  available?: boolean;
  why?: string;
  root: string;
  live: boolean;
  platform: string | null;
  units: number;
  services_started: number;
  findings: Finding[];
  allowed: Finding[];
  missing: api.Missing[];
}
