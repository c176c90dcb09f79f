import { describe, expect, it } from "vitest";
import { synthetic, treeOf } from "./fixtures";
import { FlameTree, NO_MODULE } from "./tree";

const ANSWER = {
  header: {
    names: ["all", "main", "read"],
    modules: ["app"],
    kinds: ["root", "user", "kernel"],
    total: 10,
    pruned: { branches: 2, samples: 3, below_ratio: 0.01 },
    total_recording_samples: 100,
  },
  arrays: {
    name: [0, 1, 2, 2],
    module: [NO_MODULE, 0, NO_MODULE, 0],
    kind: [0, 1, 2, 1],
    parent: [-1, 0, 1, 1],
    depth: [0, 1, 2, 2],
    value: [10, 10, 4, 3],
    self: [0, 1, 4, 2],
  },
};

describe("FlameTree", () => {
  it("reads the answer of the server", () => {
    const tree = FlameTree.from(ANSWER);
    expect([0, 1, 2, 3].map((node) => [tree.name(node), tree.module(node), tree.kind(node)])).toEqual([
      ["all", null, "root"],
      ["main", "app", "user"],
      ["read", null, "kernel"],
      ["read", "app", "user"],
    ]);
    expect([tree.total, tree.depths, tree.recordingSamples, tree.isDifference]).toEqual([10, 3, 100, false]);
    expect([...tree.levels]).toEqual([0, 1, 2, 4]);
    expect([tree.firstChild[1], tree.childEnd[1], tree.childEnd[3]]).toEqual([2, 4, 0]);
  });

  it("knows what the server left out below a node", () => {
    expect([...FlameTree.from(ANSWER).lost()]).toEqual([0, 2, 0, 1]);
  });

  it("says which column is missing", () => {
    const { value: _, ...arrays } = ANSWER.arrays;
    expect(() => FlameTree.from({ header: ANSWER.header, arrays })).toThrow("no column value");
  });

  it("follows a path of names as far as it goes", () => {
    const tree = treeOf([
      ["a;b;c", 1],
      ["a;d", 2],
    ]);
    expect(tree.name(tree.follow(["a", "b", "c"]))).toBe("c");
    expect(tree.name(tree.follow(["a", "b", "x", "c"]))).toBe("b");
    expect(tree.follow([])).toBe(0);
  });

  it("is in order for random trees: parents first, siblings together by name, sums right", () => {
    for (let seed = 1; seed <= 5; seed++) inOrder(synthetic(2000, { seed, compared: seed % 2 === 0 }));
  });

  it("weighs the other window as if it were as long", () => {
    const tree = treeOf([
      ["a", 30, 5],
      ["b", 0, 5],
      ["c", 10, 0],
    ]);
    expect(tree.scale).toBe(4);
    const delta = Object.fromEntries([1, 2, 3].map((node) => [tree.name(node), tree.delta(node)]));
    expect(delta).toEqual({ a: 10, b: -20, c: 10 });
    expect([0, 1, 2, 3].map((node) => tree.width[node])).toEqual([40, 25, 10, 5]);
  });

  it("has a scale also where one side is empty", () => {
    expect(treeOf([["a", 0, 7]]).scale).toBe(1);
    expect(treeOf([["a", 7, 0]], true).scale).toBe(0);
  });
});

function inOrder(tree: FlameTree): void {
  const sums = Float64Array.from(tree.self);
  for (let node = tree.count - 1; node > 0; node--) {
    expect(tree.parent[node]).toBeLessThan(node);
    expect(tree.depth[node]).toBe(tree.depth[tree.parent[node]!]! + 1);
    if (node > 1) {
      expect(tree.parent[node]).toBeGreaterThanOrEqual(tree.parent[node - 1]!);
      if (tree.parent[node] === tree.parent[node - 1]) expect(tree.name(node) >= tree.name(node - 1)).toBe(true);
    }
    expect(sums[node]).toBeCloseTo(tree.value[node]!);
    sums[tree.parent[node]!]! += sums[node]!;
  }
  expect(sums[0]).toBeCloseTo(tree.total);
}
