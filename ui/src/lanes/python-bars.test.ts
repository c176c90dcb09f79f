import { describe, expect, it } from "vitest";
import { barsOf } from "./python-bars";

const thread = {
  pid: 7,
  tid: 7,
  comm: "trainer",
  program: "train.py",
  rank: null,
  main: true,
  gpu: false,
  from: [0, 1, 2, 9, 20],
  to: [0.9, 1.9, 2.5, 9, 21],
  what: ["step train.py:40", "step train.py:40", "next train.py:112", "next train.py:112", "late x.py:1"],
  waits: [false, false, true, true, false],
};

describe("what Python was doing", () => {
  it("is one bar where spans say the same, and leaves out what is not in view", () => {
    const bars = barsOf(thread, (at) => at * 10, 100);
    expect(bars.map(({ x, width, what }) => [x, width, what])).toEqual([
      [0, 19, "step train.py:40"],
      [20, 5, "next train.py:112"],
      [90, 1, "next train.py:112"],
    ]);
    expect(bars.map((bar) => bar.waits)).toEqual([false, true, true]);
  });
});
