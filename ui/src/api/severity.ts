/** How bad things are. */

import type { Severity } from "./types";

/** Worst first. */
export const SEVERITIES: readonly Severity[] = ["critical", "warning", "info"];

/** 0 is the worst. */
export const rank = (severity: Severity): number => SEVERITIES.indexOf(severity);

export const worse = (a: Severity, b: Severity): Severity => (rank(a) <= rank(b) ? a : b);
