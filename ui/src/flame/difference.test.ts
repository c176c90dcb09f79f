import { describe, expect, it } from "vitest";
import { differenceWords } from "./difference";
import { treeOf } from "./fixtures";
import { topOf } from "./top";
import { FlameTree, ratesOf } from "./tree";
import { changed, factsOf } from "./words";

/** A lasted 44 s, B 37 s, at 99 samples a second of each core. */
const RATES = ratesOf(44, 37, 99)!;
const compared = (rows: Parameters<typeof treeOf>[0]): FlameTree => {
  const tree = treeOf(rows);
  return new FlameTree({ ...tree, rates: RATES, scale: RATES.there / RATES.here });
};

describe("a comparison in words", () => {
  it("of a steady load over windows of unequal length finds no change", () => {
    const tree = compared([
      ["main;step", 2 * 99 * 44, 2 * 99 * 37],
      ["main;load", 99 * 44, 99 * 37],
    ]);
    expect(differenceWords(topOf(tree), tree)).toBe(
      "A: 3.00 cores, B: 3.00 cores in all. No function differs by 2% or more.",
    );
    expect(Math.abs(tree.delta(tree.follow(["main"])) * RATES.here)).toBeLessThan(1e-9);
  });

  it("names what changed most, whichever way", () => {
    const tree = compared([
      ["main;step", 99 * 44, 2 * 99 * 37],
      ["main;walk", 3 * 99 * 44, 99 * 37],
    ]);
    expect(differenceWords(topOf(tree), tree)).toBe(
      "A: 4.00 cores, B: 3.00 cores in all. A has 2.00 cores more in walk, 1.00 cores less in step.",
    );
    const { lines } = factsOf(tree, tree.follow(["main", "walk"]));
    expect(lines).toContainEqual(["A", "3.00 cores · 75.0%"]);
    expect(lines).toContainEqual(["B", "1.00 cores · 33.3%"]);
    expect(changed(tree.delta(tree.follow(["main", "walk"])), tree)).toBe("+2.00 cores");
  });
});
