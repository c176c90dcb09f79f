import { describe, expect, it } from "vitest";
import { random, synthetic, treeOf } from "./fixtures";
import { barsOf, between, firstAfter, hit, narrowIn, nearest, panned, revealing, zoomed } from "./layout";

describe("layout", () => {
  it("puts children inside their parent, one after another", () => {
    const tree = synthetic(5000, { seed: 7, compared: true }),
      bars = barsOf(tree);
    for (let node = 1; node < tree.count; node++) {
      const parent = tree.parent[node]!;
      expect(bars.left[node]).toBeGreaterThanOrEqual(bars.left[parent]! - 1e-6);
      expect(bars.right[node]).toBeLessThanOrEqual(bars.right[parent]! + 1e-6);
      expect(bars.right[node]! - bars.left[node]!).toBeCloseTo(tree.width[node]!);
      if (tree.depth[node] === tree.depth[node - 1])
        expect(bars.left[node]).toBeGreaterThanOrEqual(bars.right[node - 1]! - 1e-6);
    }
  });

  it("hits what a linear search finds", () => {
    const tree = synthetic(3000, { seed: 8 }),
      bars = barsOf(tree),
      next = random(5);
    for (let i = 0; i < 3000; i++) {
      const level = Math.floor(next() * (tree.depths + 1)),
        x = next() * tree.total;
      let expected = -1;
      for (let node = 0; node < tree.count; node++)
        if (tree.depth[node] === level && bars.left[node]! <= x && x < bars.right[node]!) expected = node;
      expect(hit(bars, level, x)).toBe(expected);
    }
    expect([hit(bars, -1, 1), hit(bars, 999, 1), hit(bars, 0, -1), hit(bars, 0, tree.total)]).toEqual([-1, -1, -1, -1]);
  });

  it("finds the neighbour where nothing is", () => {
    const tree = treeOf([
        ["a;x", 2],
        ["a", 6],
        ["b;y", 2],
      ]),
      bars = barsOf(tree);
    const name = (bar: number) => tree.name(bar);
    expect(name(nearest(bars, 2, 3))).toBe("x");
    expect(name(nearest(bars, 2, 7))).toBe("y");
    expect(name(nearest(bars, 2, 100))).toBe("y");
    expect([nearest(bars, 3, 0), nearest(bars, -1, 0)]).toEqual([-1, -1]);
    expect(firstAfter(bars, 2, 1000)).toBe(tree.count);
  });

  it("counts frames that are too narrow, in the window only", () => {
    const tree = treeOf([
        ["a", 90],
        ["b;c", 1],
        ["d", 9],
      ]),
      bars = barsOf(tree);
    expect(narrowIn(bars, { x0: 0, x1: 100 }, 2)).toEqual({ narrow: 2, deepest: 2 });
    expect(narrowIn(bars, { x0: 0, x1: 90 }, 2)).toEqual({ narrow: 0, deepest: 1 });
    expect(narrowIn(bars, { x0: 90, x1: 91 }, 0.5)).toEqual({ narrow: 0, deepest: 2 });
    expect(narrowIn(bars, { x0: 0, x1: 100 }, 2, 2)).toEqual({ narrow: 1, deepest: 2 });
  });

  it("zooms around a point and never beyond the whole", () => {
    const whole = { x0: 0, x1: 100 };
    expect(zoomed(whole, whole, 50, 0.5)).toEqual({ x0: 25, x1: 75 });
    expect(zoomed({ x0: 0, x1: 10 }, whole, 0, 100)).toEqual(whole);
    expect(zoomed({ x0: 90, x1: 100 }, whole, 95, 2)).toEqual({ x0: 80, x1: 100 });
    expect(panned({ x0: 10, x1: 30 }, whole, -50)).toEqual({ x0: 0, x1: 20 });
    expect(panned({ x0: 10, x1: 30 }, whole, 500)).toEqual({ x0: 80, x1: 100 });
    expect(between(whole, { x0: 10, x1: 20 }, 1)).toEqual({ x0: 10, x1: 20 });
    expect(between(whole, { x0: 10, x1: 20 }, 0)).toEqual(whole);
  });

  it("reveals a narrow frame by the widest ancestor that shows it", () => {
    const tree = treeOf([
        ["a;b;c", 1],
        ["a;b", 9],
        ["a", 90],
        ["z", 900],
      ]),
      bars = barsOf(tree);
    const node = tree.follow(["a", "b", "c"]),
      all = { x0: 0, x1: 1000 };
    expect(tree.name(revealing(tree, bars, node, all, 1000)!)).toBe("b");
    expect(revealing(tree, bars, tree.follow(["z"]), all, 1000)).toBeNull();
    expect(tree.name(revealing(tree, bars, tree.follow(["z"]), { x0: 0, x1: 10 }, 1000)!)).toBe("all");
  });
});
