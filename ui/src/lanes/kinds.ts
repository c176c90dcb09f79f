/** What an event is, to the eye: its icon and the words for its kind. Pure. */

import { rank } from "../api/severity";
import type { TimelineEvent } from "../api/types";
import type { IconName } from "../chrome/icons";
import { capital } from "../format";

const ICONS: [RegExp, IconName][] = [
  [/^gpu|xid/, "lockup"],
  [/^nic|link|tx_timeout/, "nic"],
  [/lockup/, "lockup"],
  [/rcu|hung|stall/, "stall"],
  [/oom/, "oom"],
  [/^unit_restart|restart/, "restart"],
  [/^ray/, "ray"],
  [/failed|dead|crash|panic/, "failed"],
  [/^cgroup/, "churn"],
  [/^pod|^kube|evict/, "pod"],
  [/^mark$/, "mark"],
];

export function iconOf({ kind }: TimelineEvent): IconName {
  return ICONS.find(([pattern]) => pattern.test(kind))?.[1] ?? "log";
}

/** nic_tx_timeout -> NIC tx timeout */
export function kindWords(kind: string): string {
  const words = kind.replaceAll("_", " ").replace(/\b(nic|rcu|oom|gpu)\b/g, (word) => word.toUpperCase());
  return capital(words);
}

/** The event that represents its cluster: the worst, and of those the first. */
export function leader(events: readonly TimelineEvent[]): TimelineEvent {
  return events.reduce((best, one) => (rank(one.severity) < rank(best.severity) ? one : best));
}
