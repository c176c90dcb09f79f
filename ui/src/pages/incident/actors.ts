// Three parts that are easily taken for one another. The hog burnt the core and is often innocent: it only asked the
// kernel a question. The culprit made the answer expensive. Who waited was affected, and is neither.

import type { Actor, Cause, Incident, Symptom } from "../../api/types";
import { duration, measured, percent } from "../../format";
import { lostCore } from "./chain";

export interface Part {
  role: "hog" | "culprit" | "victim";
  title: string;
  means: string;
  names: string[];
  /** Where there is no name. */
  none: string;
  facts: string[];
}

export function actorName(actor: Actor): string {
  const who = actor.comm ?? actor.unit ?? actor.container ?? actor.pod ?? actor.cgroup;
  if (!who) return "not named";
  return actor.unit && actor.unit !== who ? `${who} (${actor.unit})` : who;
}

export function parts(incident: Incident, cause: Cause | null): Part[] {
  return [hog(cause), culprit(cause), victims(incident)];
}

function hog(cause: Cause | null): Part {
  const part: Part = {
    role: "hog",
    title: "Hog",
    means: "used up the core. Stopping it stops the symptom, usually not the cause.",
    names: [],
    none: "not named",
    facts: [],
  };
  if (!cause) return part;
  const { hog: actor } = cause;
  part.names = [actorName(actor)];
  if (actor.pid !== null) part.facts.push(`pid ${actor.pid}`);
  if (actor.cores != null) part.facts.push(`${measured(actor.cores, "cores")} busy`);
  if (actor.cpu_ratio != null) part.facts.push(`${percent(actor.cpu_ratio)} of the node`);
  if (actor.baseline_cores != null) part.facts.push(`usually ${measured(actor.baseline_cores, "cores")}`);
  const container = actor.container_name ?? actor.container;
  const pod = actor.namespace && actor.pod ? `${actor.namespace}/${actor.pod}` : actor.pod;
  for (const where of [
    container && `container ${container}`,
    actor.image && `image ${actor.image}`,
    pod && `pod ${pod}`,
  ])
    if (where) part.facts.push(where);
  return part;
}

function culprit(cause: Cause | null): Part {
  const part: Part = {
    role: "culprit",
    title: "Culprit",
    means: "made the kernel's work that large. This is the one to change.",
    names: [],
    none: "not named",
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

/** Older recorders did not note whom a symptom hurt; then only the cards are known. */
function victims(incident: Incident): Part {
  const hurt = incident.symptoms.filter(({ role }) => role === undefined || role === "victim");
  const core = lostCore(incident);
  const names = [...cards(hurt), ...hurt.map(({ victim }) => victim), core?.victim].filter((name) => name != null);
  return {
    role: "victim",
    title: "Victim",
    means: "affected, not at fault.",
    names: [...new Set(names)],
    none: hurt.some(({ role }) => role === undefined) ? "not named" : "none",
    facts: [...new Set(hurt.flatMap(howLong))].slice(0, 3),
  };
}

function howLong(symptom: Symptom): string[] {
  if (typeof symptom.usec_since_napi === "number") return [`not served for ${duration(symptom.usec_since_napi / 1e6)}`];
  return symptom.title && symptom.seconds > 0 ? [`${symptom.title} for ${duration(symptom.seconds)}`] : [];
}

/** Network cards, with the queues that are known. By driver only where no interface is named: it is the same card. */
function cards(symptoms: readonly Symptom[]): string[] {
  const name = symptoms.some((symptom) => typeof symptom.interface === "string") ? "interface" : "driver";
  const queues = new Map<string, Set<number>>();
  for (const { [name]: card, queue } of symptoms) {
    if (typeof card !== "string" || !card) continue;
    const known = queues.get(card) ?? new Set();
    queues.set(card, typeof queue === "number" ? known.add(queue) : known);
  }
  return [...queues].flatMap(([card, known]) =>
    known.size ? [...known].map((queue) => `${card}, queue ${queue}`) : [card],
  );
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

/** What a confidence means; the number alone explains nothing. Older recorders noted no strength apart from it. */
export function confidence(cause: Cause): string {
  const strength = cause.strength ?? cause.confidence;
  if (strength >= 0.85) return "The kernel functions, the measurements and the culprit all fit.";
  if (strength >= 0.6)
    return "The frames fit and a number confirms them; something was not measured, or no culprit is known.";
  if (strength >= 0.35) return "It fits what was sampled, but no number confirms it. Look before you act.";
  return "There is little evidence for it; it is listed because nothing fits better.";
}
