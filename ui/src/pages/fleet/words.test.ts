import { expect, test } from "vitest";
import type { FleetGroup, FleetNode } from "../../api/types";
import { chance, matching, shown, terms } from "./words";

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
