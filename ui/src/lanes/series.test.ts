import { describe, expect, it } from "vitest";
import type { TimelineEvent } from "../api/types";
import { iconOf, kindWords, leader } from "./kinds";
import { highest, pieces, valueAt } from "./series";

const VIEW = { from: 0, to: 100 };

describe("series", () => {
  it("breaks the line where nothing was measured", () => {
    const found = pieces([0, 10, 20, 30, 40], [1, 2, null, 4, 5], VIEW, 100, 12, 10);
    expect(found.map((piece) => piece.length)).toEqual([2, 2]);
    expect(found[0]![1]).toEqual([10, 9]);
  });

  it("keeps the peak of a pixel", () => {
    const at = Array.from({ length: 1000 }, (_, n) => n / 10);
    const values = at.map((_, n) => (n === 503 ? 10 : 0));
    const found = pieces(at, values, VIEW, 100, 12, 10)[0]!;
    expect(found.length).toBeLessThanOrEqual(101);
    expect(Math.min(...found.map(([, y]) => y))).toBe(1);
  });

  it("draws the line into the picture from the neighbours outside of it", () => {
    expect(pieces([-50, 150], [1, 3], VIEW, 100, 12, 3)[0]!.map(([x]) => x)).toEqual([-50, 150]);
    expect(highest([-50, 50, 150, 300], [1, 2, 3, 99], VIEW)).toBe(3);
  });

  it("knows what held at a time, and forgets what was long ago", () => {
    expect(valueAt([10, 20, 30], [1, 2, null], 25, 15)).toBe(2);
    expect(valueAt([10, 20, 30], [1, 2, null], 35, 15)).toBeNull();
    expect(valueAt([10, 20], [1, 2], 99, 15)).toBeNull();
    expect(valueAt([10], [1], 5, 15)).toBeNull();
  });
});

const event = (kind: string, severity: TimelineEvent["severity"] = "info"): TimelineEvent => ({
  at: 0,
  kind,
  source: "",
  severity,
  text: "",
  fields: {},
});

describe("kinds", () => {
  it("has an icon for everything", () => {
    expect(
      [
        "nic_tx_timeout",
        "soft_lockup",
        "rcu_stall",
        "oom_kill",
        "unit_restart",
        "unit_failed",
        "ray_node_dead",
        "pod_evicted",
        "mark",
        "anything",
      ].map((kind) => iconOf(event(kind))),
    ).toEqual(["nic", "lockup", "stall", "oom", "restart", "failed", "ray", "pod", "mark", "log"]);
  });

  it("names the worst of a cluster", () => {
    expect(leader([event("a"), event("b", "critical"), event("c", "critical")]).kind).toBe("b");
    expect(kindWords("nic_tx_timeout")).toBe("NIC tx timeout");
  });
});
