/** How a core spends its time, as far as the strip draws it: each is an array of its answer. */
export const MODES = ["user", "system", "irq", "softirq", "steal", "iowait"] as const;
export type Mode = (typeof MODES)[number];
