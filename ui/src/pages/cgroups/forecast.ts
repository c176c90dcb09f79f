// What the zombies will cost, in words: how long one read of the root's memory statistics takes now, and on which day it
// reaches the lengths that hurt. A network card gives up after 5 s.

import type { Cgroups } from "../../api/types";
import { away, count, duration, moment } from "../../format";

export type Mood = "good" | "watch" | "bad" | "unknown";

export interface Milestone {
  cost: string;
  hurts: string;
  at: number | null;
  words: string;
  mood: Mood;
}

const MILESTONES = [
  { key: "costs_1s_at", cost: 1, hurts: "a core is lost for a second at each read" },
  { key: "costs_5s_at", cost: 5, hurts: "a network card is reset" },
] as const;

export function milestones(document: Cgroups, zoneOffsetS: number): Milestone[] {
  const at = document.at ?? 0;
  return MILESTONES.map(({ key, cost, hurts }) => {
    const when = document.forecast[key];
    const now = document.forecast.read_cost_now_s;
    const base = { cost: duration(cost), hurts, at: when };
    if (now !== null && now >= cost) return { ...base, words: "it costs more than that already", mood: "bad" as const };
    if (when !== null) {
      if (when <= at) return { ...base, words: `reached ${away(when, at)}`, mood: "bad" as const };
      const soon = when - at < 14 * 86400;
      return {
        ...base,
        words: `${moment(when, zoneOffsetS)}, ${away(when, at)} at this pace`,
        mood: soon ? ("bad" as const) : ("watch" as const),
      };
    }
    if (now === null)
      return { ...base, words: "not known: what a read costs was not measured", mood: "unknown" as const };
    const growth = document.growth_per_hour;
    if (growth === null) return { ...base, words: "not known: growth was not measured", mood: "unknown" as const };
    return {
      ...base,
      words: growth <= 0 ? "never at this pace: they do not grow" : "not within the time that can be foreseen",
      mood: "good" as const,
    };
  });
}

export function growthWords(perHour: number | null): string {
  if (perHour === null) return "growth not measured";
  if (Math.abs(perHour) < 0.5) return "not growing";
  const daily = perHour * 24;
  return `${perHour > 0 ? "+" : "−"}${count(Math.abs(perHour))} an hour, ${perHour > 0 ? "+" : "−"}${count(Math.abs(daily))} a day`;
}

export const VERDICTS: Record<string, { mood: Mood; title: string }> = {
  harmless: { mood: "good", title: "Harmless" },
  watch: { mood: "watch", title: "Watch them" },
  costly: { mood: "bad", title: "Costly" },
};

export function verdict(document: Cgroups): { mood: Mood; title: string } {
  return (
    (document.verdict !== null ? VERDICTS[document.verdict] : undefined) ?? { mood: "unknown", title: "Not known" }
  );
}
