import { describe, expect, it } from "vitest";
import { decode } from "../api/columns";
import { random, synthetic, treeOf } from "./fixtures";
import { foldChart, foldHeat, foldSamples, type SampleTable } from "./fold";
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

describe("foldSamples", () => {
  it("counts all samples, each by its weight", () => {
    expect(stacks(foldSamples(TABLE))).toEqual({ "main;a;b": 8, "main;a;unlock": 2, "main;c": 4 });
    expect(foldSamples(TABLE).recordingSamples).toBe(14);
  });

  it("takes a range from its first moment to before its last, and some cores", () => {
    expect(stacks(foldSamples(TABLE, { range: { from: START + 0.5, to: START + 2 } }))).toEqual({
      "main;a;unlock": 2,
      "main;c": 2,
      "main;a;b": 2,
    });
    expect(stacks(foldSamples(TABLE, { cpus: [1] }))).toEqual({ "main;a;b": 4, "main;c": 2 });
    expect(foldSamples(TABLE, { range: { from: START + 9, to: START + 10 } }).count).toBe(1);
  });

  it("shares no sample between ranges that meet, and loses none", () => {
    const next = random(3),
      cuts = [START, ...Array.from({ length: 20 }, () => START + 3 * next()), START + 3].sort((a, b) => a - b);
    const total = cuts
      .slice(1)
      .reduce((sum, to, i) => sum + foldSamples(TABLE, { range: { from: cuts[i]!, to } }).total, 0);
    expect(total).toBe(14);
  });

  it("inverts, and charges leaves that only look hot to their callers", () => {
    const tree = foldSamples(TABLE, { inverted: true });
    expect([tree.inverted, tree.total]).toEqual([true, 14]);
    expect(tree.value[tree.follow(["a"])]).toBe(2);
    expect(tree.value[tree.follow(["b", "a", "main"])]).toBe(8);
    expect(tree.follow(["unlock"])).toBe(0);
  });

  it("compares two ranges as if they were equally long", () => {
    const tree = foldSamples(TABLE, {
      range: { from: START, to: START + 1 },
      against: { from: START + 1, to: START + 3 },
    });
    expect([tree.total, tree.baseTotal, tree.scale]).toEqual([6, 8, 0.75]);
    const c = tree.follow(["main", "c"]);
    expect([tree.value[c], tree.base![c], tree.delta(c)]).toEqual([0, 4, -3]);
  });
});

describe("foldHeat", () => {
  it("puts each sample into its cell and paints those with a wanted function", () => {
    const heat = foldHeat(TABLE, { from: START, to: START + 3 }, 4, Uint8Array.of(0, 0, 0, 0, 0, 1));
    expect([heat.start, heat.columns, heat.total, heat.max]).toEqual([START, 3, 14, 2]);
    expect([...heat.values]).toEqual([2, 2, 2, 0, 0, 2, 2, 0, 2, 0, 0, 2]);
    expect([...heat.painted!]).toEqual([0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
  });
});

describe("foldChart", () => {
  it("merges consecutive samples while the frame stays, and leaves idle time empty", () => {
    const chart = foldChart(
      { ...TABLE, time: [0, 0.01, 0.02, 0.5].map((at) => START + at), leaf: [3, 4, 5, 3], cpu: [0, 0, 0, 0] },
      { from: START, to: START + 1 },
      0,
      0.02,
    );
    const bars = [...chart.bars.fn.keys()].map((bar) => [
      chart.functions.name[chart.bars.fn[bar]!],
      +chart.bars.left[bar]!.toFixed(3),
      +chart.bars.right[bar]!.toFixed(3),
      chart.samples[bar],
    ]);
    expect(bars).toEqual([
      ["main", 0, 0.03, 6],
      ["main", 0.5, 0.51, 2],
      ["a", 0, 0.02, 4],
      ["c", 0.02, 0.03, 2],
      ["a", 0.5, 0.51, 2],
      ["b", 0, 0.01, 2],
      ["unlock", 0.01, 0.02, 2],
      ["b", 0.5, 0.51, 2],
    ]);
    expect([...chart.bars.levels]).toEqual([0, 2, 5, 8]);
  });

  it("is of one core only", () => {
    expect(foldChart(TABLE, { from: START, to: START + 3 }, 1, 0.02).samples.reduce((a, b) => Math.max(a, b))).toBe(2);
    expect(foldChart(TABLE, { from: START, to: START + 3 }, 7, 0.02).bars.fn.length).toBe(0);
  });
});

describe("what is saved", () => {
  it("is the same tree after packing and reading it again", () => {
    for (const compared of [false, true]) {
      const tree = synthetic(2000, { seed: 6, compared }),
        again = FlameTree.from(decode(packedTree(tree)));
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
