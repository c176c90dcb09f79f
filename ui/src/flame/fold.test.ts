import { describe, expect, it } from "vitest";
import { decode } from "../api/columns";
import type { FlamegraphHeader } from "../api/types";
import { synthetic, treeOf } from "./fixtures";
import { foldCounts, type SampleTable } from "./fold";
import { packedTree } from "./pack";
import { svgOf } from "./svg";
import { FlameTree } from "./tree";
import { stackText } from "./words";

const START = 1_700_000_000;

/** main;a;b, main;a;unlock, main;c as nodes 3, 4, 5. */
const TABLE: SampleTable = {
  time: [0, 0.4, 0.5, 1.25, 1.5, 2, 2.98].map((at) => START + at),
  leaf: [3, 3, 4, 5, 3, 5, 3],
  cpu: [0, 1, 0, 0, 1, 1, 0],
  parent: [-1, 0, 1, 2, 2, 1],
  fn: [0, 1, 2, 3, 4, 5],
  functions: {
    name: ["all", "main", "a", "b", "unlock", "c"],
    module: [null, "app", "app", "app", "[kernel]", "app"],
    kind: ["root", "user", "user", "user", "kernel", "user"],
  },
  weight: 2,
  skid: Uint8Array.of(0, 0, 0, 0, 1, 0),
  recordingSamples: 14,
};

const stacks = (tree: FlameTree): Record<string, number> =>
  Object.fromEntries(
    [...tree.self.keys()]
      .filter((node) => tree.self[node])
      .map((node) => [stackText(tree, node, ";"), tree.self[node]!]),
  );

/** Samples of a range, as their table counts them. */
const counts = (from = 0, to = 9): Float64Array => {
  const found = new Float64Array(TABLE.parent.length);
  for (let i = 0; i < TABLE.time.length; i++)
    if (TABLE.time[i]! >= START + from && TABLE.time[i]! < START + to) found[TABLE.leaf[i]!]! += TABLE.weight;
  return found;
};

describe("foldCounts", () => {
  it("grows the branches in which samples ended", () => {
    const tree = foldCounts(TABLE, counts(), null);
    expect(stacks(tree)).toEqual({ "main;a;b": 8, "main;a;unlock": 2, "main;c": 4 });
    expect(tree.recordingSamples).toBe(14);
    expect(stacks(foldCounts(TABLE, counts(0.5, 1), null))).toEqual({ "main;a;unlock": 2 });
    expect(foldCounts(TABLE, counts(9), null).count).toBe(1);
  });

  it("inverts, and charges leaves that only look hot to their callers", () => {
    const tree = foldCounts(TABLE, counts(), null, true);
    expect([tree.inverted, tree.total]).toEqual([true, 14]);
    expect(tree.value[tree.follow(["a"])]).toBe(2);
    expect(tree.value[tree.follow(["b", "a", "main"])]).toBe(8);
    expect(tree.follow(["unlock"])).toBe(0);
  });

  it("compares two ranges as if they were equally long", () => {
    const tree = foldCounts(TABLE, counts(0, 1), counts(1, 3));
    expect([tree.total, tree.baseTotal, tree.scale]).toEqual([6, 8, 0.75]);
    const c = tree.follow(["main", "c"]);
    expect([tree.value[c], tree.base![c], tree.delta(c)]).toEqual([0, 4, -3]);
  });
});

describe("what is saved", () => {
  it("is the same tree after packing and reading it again", () => {
    for (const compared of [false, true]) {
      const tree = synthetic(2000, { seed: 6, compared }),
        again = FlameTree.from(decode<FlamegraphHeader>(packedTree(tree)));
      expect(again.count).toBe(tree.count);
      expect([...again.value]).toEqual([...tree.value]);
      expect(again.width).toEqual(tree.width);
      for (let node = 0; node < tree.count; node += 37) {
        expect([again.name(node), again.module(node), again.kind(node)]).toEqual([
          tree.name(node),
          tree.module(node),
          tree.kind(node),
        ]);
      }
    }
  });

  it("draws what is zoomed to, with names that would break XML", () => {
    const tree = treeOf([
      ['operator<<\u0001"&;f', 9],
      ["thin", 0.001],
      ["other", 91],
    ]);
    const svg = svgOf(tree, { title: "a < b", colour: "kind", flip: false });
    expect(svg).toContain("operator&lt;&lt;?&quot;&amp;");
    expect(svg).toContain("1 frame below 1 px hidden");
    expect(svg.match(/<rect x/g)?.length).toBe(4);
    const zoomed = svgOf(tree, { title: "", colour: "kind", flip: true, zoom: tree.follow(["other"]) });
    expect(zoomed.match(/<rect x/g)?.length).toBe(2);
    expect(zoomed).toContain('opacity=".5"');
  });
});
