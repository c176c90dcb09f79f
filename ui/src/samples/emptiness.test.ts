import { expect, test } from "vitest";
import { NO_FILTERS } from "../state/place";
import { emptiness, type Facts, filterWords } from "./emptiness";

const at = 1_700_000_000; // 22:13:20 UTC
const FACTS: Facts = {
  span: { from: at + 10, to: at + 20 },
  node: "lab",
  recorded: { from: at, to: at + 60 },
  gaps: [],
  filters: NO_FILTERS,
  busy: null,
  zone: 0,
};
const gap = (from: number, to: number, source = "stack samples") => ({
  from: at + from,
  to: at + to,
  source,
  why: "no imported file covers it",
});
const kubelet = { ...NO_FILTERS, comm: ["kubelet"] };

test("a range outside of the recording says what the recording covers", () => {
  expect(emptiness({ ...FACTS, span: { from: at + 100, to: at + 110 }, filters: kubelet })).toEqual({
    kind: "outside",
    words:
      "2023-11-14 22:15:00 – 22:15:10 is outside of this recording: lab was recorded 2023-11-14 22:13:20 – 22:14:20.",
  });
});

test("a range that was not recorded says why, also under filters", () => {
  for (const filters of [NO_FILTERS, kubelet])
    expect(emptiness({ ...FACTS, gaps: [gap(5, 14), gap(12, 30)], filters, busy: 0 })).toEqual({
      kind: "unrecorded",
      words: "No samples were recorded 22:13:30 – 22:13:40: no imported file covers it.",
    });
});

test("a range that was recorded in part says how much of it was not", () => {
  expect(emptiness({ ...FACTS, gaps: [gap(18, 30)], busy: 0 }).words).toBe(
    "No samples 22:13:30 – 22:13:40; 2 s of it were not recorded: no imported file covers it.",
  );
});

test("a gap of a source that has nothing to do with samples explains nothing", () => {
  expect(emptiness({ ...FACTS, gaps: [gap(0, 60, "systemd")] }).kind).toBe("unknown");
});

test("a range that was filtered out names the filters", () => {
  expect(emptiness({ ...FACTS, filters: kubelet, busy: 0 })).toEqual({
    kind: "filtered",
    words: "No sample of 22:13:30 – 22:13:40 matches the filters: name=kubelet.",
  });
});

test("idle is reported only where it was measured", () => {
  expect(emptiness({ ...FACTS, busy: 0.004 }).words).toBe(
    "No samples 22:13:30 – 22:13:40: the node was idle, its cores 0.40% busy.",
  );
  for (const busy of [null, 0.5])
    expect(emptiness({ ...FACTS, busy })).toEqual({
      kind: "unknown",
      words: "No samples were recorded 22:13:30 – 22:13:40; why is not known.",
    });
});

test("filters in words", () => {
  expect(filterWords({ ...NO_FILTERS, cpu: ["3", "5"], mode: "kernel", match: "a|b", python: "true" })).toBe(
    "core=3, core=5, mode=kernel, frame=a|b, python=only",
  );
  expect(filterWords(NO_FILTERS)).toBe("");
});
