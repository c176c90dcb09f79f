import { describe, expect, it } from "vitest";
import { synthetic, treeOf } from "./fixtures";
import { cycle, filtered, matchedSamples, matchesOf, outermost, patternOf } from "./search";
import { arranged, topOf } from "./top";

const TREE = treeOf([
  ["main;read;vfs_read@kernel", 5],
  ["main;write", 3],
  ["main;read;parse;read", 2],
]);
const search = (text: string, tree = TREE) => matchesOf(tree.functions, patternOf(text).regexp);

describe("search", () => {
  it("counts a sample once, however often its stack matches", () => {
    expect(matchedSamples(TREE, search("read"))).toBe(7);
    expect(matchedSamples(TREE, search("^vfs_|^write$"))).toBe(8);
    expect(matchedSamples(TREE, search("nothing"))).toBe(0);
    expect(matchedSamples(TREE, search("all"))).toBe(0);
  });

  it("ignores case unless a capital is typed, and looks into modules", () => {
    const tree = treeOf([
      ["A", 1],
      ["a", 2],
      ["k@kernel", 4],
    ]);
    expect([matchedSamples(tree, search("^a$", tree)), matchedSamples(tree, search("^A$", tree))]).toEqual([3, 1]);
    expect(matchedSamples(tree, search("\\[kernel\\]", tree))).toBe(4);
  });

  it("says why an expression is invalid, and matches nothing then", () => {
    const pattern = patternOf("read(");
    expect(pattern.regexp).toBeNull();
    expect(pattern.error).toMatch(/read\(/);
    expect(patternOf("")).toEqual({ regexp: null, error: null });
  });

  it("goes through matches, the widest first", () => {
    expect(cycle(TREE, search("read|write")).map((node) => TREE.name(node))).toEqual(["read", "write"]);
  });

  it("keeps only stacks with a match, and as many samples as it said", () => {
    for (const text of ["read", "parse", "write|vfs", "tcp.*queue"]) {
      for (const tree of [TREE, synthetic(3000, { seed: 4, compared: true })]) {
        const matches = search(text, tree),
          kept = filtered(tree, matches);
        expect(kept.total).toBeCloseTo(matchedSamples(tree, matches));
        expect(matchedSamples(kept, matches)).toBeCloseTo(kept.total);
        expect(outermost(kept, matches).length).toBe(outermost(tree, matches).length);
      }
    }
  });
});

describe("top", () => {
  it("has self and total of each function, recursion counted once", () => {
    const rows = Object.fromEntries(topOf(TREE).map((row) => [row.name, [row.self, row.total]]));
    expect(rows).toEqual({ main: [0, 10], read: [2, 7], vfs_read: [5, 5], write: [3, 3], parse: [0, 2] });
  });

  it("adds self up to the total", () => {
    const tree = synthetic(5000, { seed: 2 });
    expect(topOf(tree).reduce((sum, row) => sum + row.self, 0)).toBeCloseTo(tree.total);
  });

  it("sorts by each column and filters", () => {
    const rows = topOf(TREE),
      names = (by: Parameters<typeof arranged>[1]) => arranged(rows, by).map((row) => row.name);
    expect(names({ by: "self", descending: true })).toEqual(["vfs_read", "write", "read", "main", "parse"]);
    expect(names({ by: "total", descending: false })[0]).toBe("parse");
    expect(names({ by: "name", descending: false })).toEqual(["main", "parse", "read", "vfs_read", "write"]);
    expect(names({ by: "module", descending: false })[0]).toBe("vfs_read");
    expect(
      arranged(rows, { by: "self", descending: true }, (row) => /read/.test(row.name)).map((row) => row.name),
    ).toEqual(["vfs_read", "read"]);
  });

  it("sorts a difference by what changed most, whichever way", () => {
    const rows = topOf(
      treeOf([
        ["a", 10, 10],
        ["b", 30, 10],
        ["c", 0, 20],
      ]),
    );
    expect(arranged(rows, { by: "delta", descending: true }).map((row) => [row.name, row.selfDelta])).toEqual([
      ["b", 20],
      ["c", -20],
      ["a", 0],
    ]);
  });
});
