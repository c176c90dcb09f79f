// Three parts that are easily taken for one another. The hog burnt the core and is often innocent: it only asked the
// kernel a question. The culprit made the answer expensive. Who waited was affected, and is neither.

import type { Actor, Cause, Incident, Symptom } from "../../api/types";
import { duration, measured, percent } from "../../format";

export interface Part {
  role: "hog" | "culprit" | "waiter";
  title: string;
  means: string;
  names: string[];
  facts: string[];
}

export function actorName(actor: Actor): string {
  const who = actor.comm ?? actor.unit ?? actor.container ?? actor.pod ?? actor.cgroup;
  if (!who) return "an unknown task";
  return actor.unit && actor.unit !== who ? `${who} (${actor.unit})` : who;
}

export function parts(incident: Incident, cause: Cause | null): Part[] {
  return [hog(cause), culprit(cause), waiters(incident)];
}

function hog(cause: Cause | null): Part {
  const part: Part = {
    role: "hog",
    title: "Hog",
    means: "used up the core. Stopping it stops the symptom, usually not the cause.",
    names: [],
    facts: [],
  };
  if (!cause) return part;
  const { hog: actor } = cause;
  part.names = [actorName(actor)];
  if (actor.pid !== null) part.facts.push(`pid ${actor.pid}`);
  if (actor.cores != null) part.facts.push(`${measured(actor.cores, "cores")} busy`);
  if (actor.cpu_ratio != null) part.facts.push(`${percent(actor.cpu_ratio)} of the node`);
  if (actor.baseline_cores != null) part.facts.push(`usually ${measured(actor.baseline_cores, "cores")}`);
  for (const where of [actor.container && `container ${actor.container}`, actor.pod && `pod ${actor.pod}`])
    if (where) part.facts.push(where);
  return part;
}

function culprit(cause: Cause | null): Part {
  const part: Part = {
    role: "culprit",
    title: "Culprit",
    means: "made the kernel's work that large. This is the one to change.",
    names: [],
    facts: [],
  };
  if (!cause?.culprit) return part;
  part.names = [actorName(cause.culprit)];
  const same = cause.culprit.comm !== null && cause.culprit.comm === cause.hog.comm;
  if (same) part.facts.push("hog and culprit are the same here");
  const leak = cause.chain.find((link) => link.step === "leak");
  if (leak) part.facts.push(leak.fact);
  return part;
}

const VICTIMS = ["event", "nic_starved", "run_queue_delay", "stall", "throttled", "packet_loss", "steal"];

function waiters(incident: Incident): Part {
  const part: Part = {
    role: "waiter",
    title: "Waited",
    means: "was affected, and did nothing wrong.",
    names: [],
    facts: [],
  };
  const names = new Set<string>();
  const hurt = incident.symptoms.filter((symptom) => VICTIMS.includes(symptom.kind));
  const byInterface = hurt.some((symptom) => typeof symptom.interface === "string");
  for (const symptom of hurt) {
    const name = victim(symptom, byInterface);
    if (name && ![...names].some((known) => known.startsWith(name))) names.add(name);
    if (symptom.kind === "event" && typeof symptom.usec_since_napi === "number") {
      part.facts.push(`not served for ${duration(symptom.usec_since_napi / 1e6)}`);
    } else if (symptom.seconds > 0)
      part.facts.push(`${symptom.kind.replaceAll("_", " ")} for ${duration(symptom.seconds)}`);
  }
  const core = incident.symptoms.find((symptom) => symptom.kind === "core_saturated");
  if (core?.cpu !== null && core !== undefined) names.add(`everything else on core ${core.cpu}`);
  part.names = [...names];
  part.facts = [...new Set(part.facts)].slice(0, 3);
  return part;
}

/** Whom it hurt. A driver is named only where no symptom names an interface: it is the same card. */
function victim(symptom: Symptom, byInterface: boolean): string | null {
  const text = (value: unknown) => (typeof value === "string" && value ? value : null);
  const card = text(symptom.interface) ?? (byInterface ? null : text(symptom.driver));
  if (card) return typeof symptom.queue === "number" ? `${card}, queue ${symptom.queue}` : card;
  if (symptom.kind === "run_queue_delay" || symptom.kind === "stall")
    return symptom.cpu === null ? null : `tasks on core ${symptom.cpu}`;
  return symptom.group;
}

const PROOFS: Record<string, { name: string; means: string }> = {
  kernel: {
    name: "reproduced on a real kernel",
    means: "The lab reproduces this fault on a running kernel, and it is detected there.",
  },
  golden: {
    name: "known from a documented case",
    means: "A published case was replayed, and it is detected there.",
  },
  literature: {
    name: "known from literature only",
    means: "It was never reproduced here, so its confidence stays at or below 60%.",
  },
};

export function proof(cause: Cause): { name: string; means: string } {
  return PROOFS[cause.proof] ?? { name: cause.proof, means: "" };
}

/** What a confidence stands for; the number alone explains nothing. */
export function confidence(cause: Cause): string {
  if (cause.confidence >= 0.85) return "The frames, the numbers beside them and the culprit all fit.";
  if (cause.confidence >= 0.6)
    return "The frames fit and a number confirms them; something was not measured, or no culprit is known.";
  if (cause.confidence >= 0.35) return "It fits what was sampled, but no number confirms it. Look before you act.";
  return "There is little evidence for it; it is listed because nothing fits better.";
}
