import { describe, expect, it } from "vitest";
import { treeOf } from "./fixtures";
import { ticksOf } from "./flame-chart";
import { LabelCache, levelAt, rowOf } from "./paint";
import { changeOf, factsOf, prunedNote, spoken, stackText } from "./words";

const TREE = treeOf([
  ["main;read@kernel", 60],
  ["main", 20],
  ["other", 20],
]);
const READ = TREE.follow(["main", "read"]);

describe("words", () => {
  it("say how much a frame is of all and of what is zoomed to", () => {
    const { lines, place } = factsOf(TREE, READ, TREE.follow(["main"]));
    expect(lines).toEqual([
      ["samples", "60 · 60.0% of all"],
      ["of main", "75.0%"],
      ["self", "60 · 60.0% of all"],
    ]);
    expect(place).toBe("kernel");
    expect(spoken(TREE, READ)).toMatch(/^read, kernel\. samples 60 , 60.0% of all; .*depth 2, 1 of 1, 0 callees\.$/);
  });

  it("say what changed, and what is new or vanished", () => {
    const tree = treeOf([
      ["a", 30, 10],
      ["b", 0, 10],
      ["c", 10, 0],
    ]);
    expect(changeOf(tree, tree.follow(["a"]))).toBe("+25.0 points, +10 samples");
    expect(changeOf(tree, tree.follow(["b"]))).toBe("−50.0 points, −20 samples; vanished");
    expect(changeOf(tree, tree.follow(["c"]))).toBe("+25.0 points, +10 samples; new");
  });

  it("write a stack outermost first", () => expect(stackText(TREE, READ)).toBe("main\nread"));

  it("own up to what the server left out", () => {
    const tree = Object.assign(Object.create(Object.getPrototypeOf(TREE)), TREE, {
      pruned: { branches: 1211, samples: 5, below_ratio: 0.0005 },
    });
    expect(prunedNote(tree)).toBe(
      "1,211 branches below 0.05% left out by the server; 5.00% of the samples are in them and end at their callers here.",
    );
    expect(prunedNote(TREE)).toBe("");
  });

  it("are cut to the room of a frame, once", () => {
    const labels = new LabelCache();
    expect([
      labels.fit("function", 8),
      labels.fit("function", 5),
      labels.fit("function", 5),
      labels.fit("function", 2),
    ]).toEqual(["function", "func…", "func…", ""]);
  });
});

describe("rows", () => {
  it.each([true, false])("lead to levels and back (root below: %s)", (flip) => {
    const scene = { firstLevel: 1, levels: 7, flip };
    for (let level = 1; level < 8; level++) expect(levelAt(scene, rowOf(scene, level) * 18 + 9)).toBe(level);
    expect(rowOf(scene, 1)).toBe(flip ? 6 : 0);
  });
});

describe("ticksOf", () => {
  it("are round, and tell themselves apart", () => {
    expect(ticksOf(100.2, 110.1, 10)).toEqual({ at: [101, 102, 103, 104, 105, 106, 107, 108, 109, 110], digits: 0 });
    expect(ticksOf(0, 0.01, 5).digits).toBe(3);
    expect(ticksOf(0, 86400, 6).at).toEqual([0, 21600, 43200, 64800, 86400]);
  });
});
