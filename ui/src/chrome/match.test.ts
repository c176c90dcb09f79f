import { expect, it } from "vitest";
import { matching } from "./match";

const ALL = [
  "Go to Home",
  "Views Flame graph",
  "Views In the order of time",
  "Time Whole recording",
  "Filters Kernel samples only",
];
const found = (typed: string): string[] => matching(ALL, typed, (one) => one);

it("keeps the order when nothing is typed", () => expect(found(" ")).toEqual(ALL));
it("wants every word", () => expect(found("flame view")).toEqual(["Views Flame graph"]));
it("puts beginnings of words first", () => expect(found("me")[0]).toBe("Go to Home"));
it("takes signs as they are", () => expect(found("(.*")).toEqual([]));
it("prefers a word that begins so", () =>
  expect(matching(["Sometimes", "Time"], "time", (one) => one)).toEqual(["Time", "Sometimes"]));
