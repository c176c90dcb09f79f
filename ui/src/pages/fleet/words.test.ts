import { expect, test } from "vitest";
import type { FleetGroup, FleetIncident, FleetNode } from "../../api/types";
import { byNode, causeTerms, chance, matching, shown, sortedBy, terms, worstOf } from "./words";

const node = (name: string, sick: boolean, labels: Record<string, string>) =>
  ({ node: name, sick, labels }) as unknown as FleetNode;
const group = (significant: boolean) => ({ significant }) as unknown as FleetGroup;

test("terms of a pair are joined by and", () => {
  expect(
    terms([
      { label: "image", value: "v14" },
      { label: "zone", value: "a" },
    ]),
  ).toBe("image=v14 and zone=a");
});

test("a chance too small for a number is not shown as none", () => {
  expect(chance(0)).toBe("< 1e-300");
  expect(chance(2.4e-7)).toBe("2e-7");
  expect(chance(0.5)).toBe("0.50");
});

test("where something is significant only that is shown", () => {
  expect(shown([group(true), group(false)])).toHaveLength(1);
  expect(shown([group(false), group(false), group(false), group(false)])).toHaveLength(3);
});

test("every word that is typed has to be there", () => {
  const nodes = [node("a1", true, { zone: "x" }), node("a2", false, { zone: "x" }), node("b1", true, { zone: "y" })];
  expect(matching(nodes, "zone=x sick").map((each) => each.node)).toEqual(["a1"]);
  expect(matching(nodes, " ")).toHaveLength(3);
});

test("a whole label is meant exactly, and a cause is one as well", () => {
  const nodes = [node("a1", true, { image: "v14" }), node("a2", false, { image: "v141" }), node("b", true, {})];
  const incident = { node: "b", pattern: "zombie-memcg", culprit: "ecs.service" } as unknown as FleetIncident;
  const known = byNode([incident]);
  expect(matching(nodes, "image=v14").map((each) => each.node)).toEqual(["a1"]);
  expect(matching(nodes, "v14")).toHaveLength(2);
  expect(matching(nodes, causeTerms("zombie-memcg", "ecs.service"), known).map((each) => each.node)).toEqual(["b"]);
});

test("a node is opened on its worst incident, and of those on the last", () => {
  const one = (id: string, severity: string, from: number) => ({ id, severity, from }) as unknown as FleetIncident;
  const all = [one("a", "warning", 9), one("b", "critical", 1), one("c", "critical", 5)];
  expect(worstOf(all)?.id).toBe("c");
  expect(worstOf([])).toBeNull();
});

test("unknown values come last, whichever way a column is sorted", () => {
  const rows = [{ n: 2 }, { n: null }, { n: 10 }];
  expect(sortedBy(rows, (row) => row.n, false).map((row) => row.n)).toEqual([2, 10, null]);
  expect(sortedBy(rows, (row) => row.n, true).map((row) => row.n)).toEqual([10, 2, null]);
});
