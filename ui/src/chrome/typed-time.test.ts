import { expect, it } from "vitest";
import { typedSpan } from "./typed-time";

// From 23:00 of one day to 02:00 of the next, in a zone of +1 h.
const MIDNIGHT = 1_700_002_800 - (1_700_002_800 % 86_400) - 3600 + 86_400;
const ALL = { from: MIDNIGHT - 3600, to: MIDNIGHT + 7200 };
const typed = (text: string) => typedSpan(text, ALL, 3600);

it("finds the time in the recording's days", () => {
  expect(typed("23:30:10")).toEqual({ from: MIDNIGHT - 1790, to: MIDNIGHT - 1789 });
  expect(typed("0:30")).toEqual({ from: MIDNIGHT + 1800, to: MIDNIGHT + 1860 });
});

it("takes a range, also over midnight", () => {
  expect(typed("23:59:00..00:01:00")).toEqual({ from: MIDNIGHT - 60, to: MIDNIGHT + 60 });
  expect(typed("23:59 - 0:01")).toEqual({ from: MIDNIGHT - 60, to: MIDNIGHT + 60 });
});

it("knows no time that was not recorded, and nothing else", () => {
  expect(typed("12:00")).toBeNull();
  expect(typed("flame")).toBeNull();
  expect(typedSpan("12:00", { from: 0, to: 0 }, 0)).toBeNull();
});
