import { describe, expect, it } from "vitest";
import type { Cgroups, HistoryPoint } from "../../api/types";
import { growthWords, milestones, verdict } from "./forecast";
import { series, summary } from "./series";

const AT = 1743476542;
const DAY = 86400;

function cgroups(change: Partial<Cgroups> = {}): Cgroups {
  return {
    schema: "zombiescope.cgroups/1",
    node: "n",
    kernel: "5.4.0",
    at: AT,
    source: "recording",
    memory: {
      hierarchy: "v1",
      total: 68680,
      live: 240,
      dying: 68440,
      created: null,
      removed: null,
      released: null,
      lost: null,
    },
    growth_per_hour: 327,
    verdict: "watch",
    why: "",
    leaks: [],
    forecast: { estimated: true, read_cost_now_s: 0.4, costs_1s_at: AT + 5 * DAY, costs_5s_at: AT + 60 * DAY },
    ...change,
  };
}

describe("forecast in words", () => {
  it("names the days on which it hurts", () => {
    const [one, five] = milestones(cgroups(), 0);
    expect(one).toMatchObject({ cost: "1 s", mood: "bad", words: "2025-04-06 03:02:22, in 5 days at this pace" });
    expect(five).toMatchObject({ cost: "5 s", mood: "watch", words: "2025-05-31 03:02:22, in 60 days at this pace" });
  });

  it("says when it costs that much already", () => {
    const [one, five] = milestones(
      cgroups({ forecast: { estimated: true, read_cost_now_s: 2, costs_1s_at: null, costs_5s_at: AT + DAY } }),
      0,
    );
    expect([one!.words, five!.mood]).toEqual(["it costs more than that already", "bad"]);
    const passed = milestones(
      cgroups({ forecast: { estimated: true, read_cost_now_s: null, costs_1s_at: AT - 7200, costs_5s_at: null } }),
      0,
    );
    expect(passed[0]!.words).toBe("reached 2 h ago");
  });

  it("tells not measured from never", () => {
    const none = { estimated: true, read_cost_now_s: null, costs_1s_at: null, costs_5s_at: null };
    const words = (change: Partial<Cgroups>) => milestones(cgroups(change), 0)[0]!.words;
    expect(words({ forecast: none })).toContain("what a read costs was not measured");
    expect(words({ forecast: { ...none, read_cost_now_s: 0.01 }, growth_per_hour: null })).toContain(
      "growth was not measured",
    );
    expect(words({ forecast: { ...none, read_cost_now_s: 0.01 }, growth_per_hour: 0 })).toBe(
      "never at this pace: they do not grow",
    );
  });

  it("tells growth and verdict", () => {
    expect([growthWords(327.3), growthWords(-10), growthWords(0.2), growthWords(null)]).toEqual([
      "+327 an hour, +7,855 a day",
      "−10 an hour, −240 a day",
      "not growing",
      "growth not measured",
    ]);
    expect([verdict(cgroups()).title, verdict(cgroups({ verdict: null })).title]).toEqual(["Watch them", "Not known"]);
  });
});

describe("history", () => {
  const point = (at: number, boot: string, dying: number | null): HistoryPoint => ({
    at,
    boot,
    dying,
    memory_cgroups: dying === null ? null : dying + 10,
    restarts: 2,
    cores_saturated_s: 0.5,
    recorded_s: 60,
    longest_saturation_s: 0.5,
    longest_cpu: null,
    busy_ratio: null,
    system_ratio: null,
    critical_events: 0,
    nic_events: 0,
    lost: 0,
  });
  const points = [point(0, "a", 100), point(60, "a", 200), point(120, "b", 3), point(180, "b", 5), point(900, "b", 40)];

  it("leaves a hole at a reboot and where nothing was recorded", () => {
    const made = series(points);
    expect(made.dying).toEqual([100, 200, null, 3, 5, null, 40]);
    expect(made.at).toEqual([0, 60, 90, 120, 180, 210, 900]);
    expect(made.reboots).toEqual([120]);
    expect(series([{ ...point(0, "a", 1), restarts: 0 }]).restarts).toEqual([null]);
    expect([...made.at].sort((a, b) => a - b)).toEqual(made.at);
  });

  it("sums up, and has nothing to say of nothing", () => {
    expect(summary(points)).toMatchObject({ reboots: 1, most: { dying: 200, at: 60 }, restarts: 10, saturated_s: 2.5 });
    expect(summary([])).toBeNull();
    expect(series([])).toMatchObject({ at: [], reboots: [] });
  });
});
