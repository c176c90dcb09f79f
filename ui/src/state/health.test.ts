import { expect, test } from "vitest";
import type { PartHealth } from "../api/types";
import { alarms } from "./health";

const part = (given: Partial<PartHealth>): PartHealth => ({
  name: "live diagnosis",
  state: "failed",
  since: 1_700_000_000,
  last_success: null,
  work: 0,
  why: "",
  fix: "",
  failures: 1,
  pid: null,
  rss_bytes: null,
  obscured_by: null,
  ...given,
});

test("a failed live diagnosis names since when, why, what follows, and how to learn more", () => {
  expect(alarms([part({ why: "SIGSEGV in a diagnosis pass" })], 0)).toEqual([
    {
      name: "live diagnosis",
      words: "Live diagnosis has failed since 22:13:20: SIGSEGV in a diagnosis pass. Incidents are not detected.",
      fix: "zombiescope selftest",
    },
  ]);
});

test("a hung part, without a reason, with the fix that it names itself", () => {
  const [one] = alarms([part({ name: "compaction", state: "hung", fix: "kill -CONT 7" })], 3600);
  expect(one).toEqual({
    name: "compaction",
    words: "Compaction has not responded since 23:13:20.",
    fix: "kill -CONT 7",
  });
});

test("parts that work or are switched off raise no alarm", () => {
  expect(alarms([part({ state: "ok" }), part({ state: "off", why: "not configured" })], 0)).toEqual([]);
});

test("of a dead recorder one alarm, not one for each part that it looked after", () => {
  const found = alarms(
    [
      part({ name: "recorder", why: "process 7 has died" }),
      part({ obscured_by: "recorder" }),
      part({ name: "metrics", why: "port 9321 is taken." }),
    ],
    0,
  );
  expect(found.map(({ words }) => words)).toEqual([
    "Recorder has failed since 22:13:20: process 7 has died. Nothing is recorded.",
    "Metrics has failed since 22:13:20: port 9321 is taken.",
  ]);
});
