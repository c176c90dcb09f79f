import { describe, expect, it } from "vitest";
import { type Line, synthetic, treeOf } from "./fixtures";
import { callees, callers, inverted } from "./invert";
import { topOf, totalsOf } from "./top";
import { apply, applyAll, read, swapped, type Transform, written } from "./transforms";
import type { FlameTree } from "./tree";
import { stackText } from "./words";

const fn = (name: string, module: string | null = null) => ({ name, module });

/** Stacks and the samples that end in them, for comparing by eye. */
function stacks(tree: FlameTree): Record<string, number> {
  const found: Record<string, number> = {};
  for (let node = 1; node < tree.count; node++)
    if (tree.self[node]) found[stackText(tree, node, ";")] = tree.self[node]!;
  return found;
}

const CASE = treeOf([
  ["main;f;g;f;h", 4],
  ["main;f;g", 3],
  ["main;f;f;f", 2],
  ["main;k@kernel;l@kernel", 5],
  ["main;x;k@kernel", 1],
]);

describe("transforms", () => {
  it.each<[Transform, Record<string, number>]>([
    [
      { kind: "focus", fn: fn("g") },
      { "g;f;h": 4, g: 3 },
    ],
    [
      { kind: "focus", fn: fn("f") },
      { "f;g;f;h": 4, "f;g": 3, "f;f;f": 2 },
    ],
    [{ kind: "focus-self", fn: fn("f") }, { "main;f;f;f": 2 }],
    [
      { kind: "drop", fn: fn("g") },
      { "main;f;f;f": 2, "main;k;l": 5, "main;x;k": 1 },
    ],
    [
      { kind: "merge", fn: fn("f") },
      { "main;g;h": 4, "main;g": 3, main: 2, "main;k;l": 5, "main;x;k": 1 },
    ],
    [
      { kind: "collapse", fn: fn("f") },
      { "main;f": 9, "main;k;l": 5, "main;x;k": 1 },
    ],
    [
      { kind: "collapse-module", module: "[kernel]" },
      { "main;f;g;f;h": 4, "main;f;g": 3, "main;f;f;f": 2, "main;[kernel]": 5, "main;x;[kernel]": 1 },
    ],
    [{ kind: "collapse-recursion" }, { "main;f;g;f;h": 4, "main;f;g": 3, "main;f": 2, "main;k;l": 5, "main;x;k": 1 }],
    [
      { kind: "collapse-recursion", fn: fn("f") },
      { "main;f;h": 4, "main;f;g": 3, "main;f": 2, "main;k;l": 5, "main;x;k": 1 },
    ],
  ])("$kind", (transform, expected) => expect(stacks(apply(CASE, transform))).toEqual(expected));

  it("keep the total, except where they choose samples", () => {
    for (let seed = 1; seed <= 6; seed++) {
      const tree = synthetic(3000, { seed, functions: 40, compared: true });
      const named = fn(tree.name(5), tree.module(5));
      const keeping: Transform[] = [
        { kind: "merge", fn: named },
        { kind: "collapse", fn: named },
        { kind: "collapse-recursion", fn: named },
        { kind: "collapse-recursion" },
        { kind: "collapse-module", module: "libc.so.6" },
      ];
      for (const made of [
        ...keeping.map((each) => apply(tree, each)),
        applyAll(tree, keeping),
        inverted(tree, { below: 0 }),
        swapped(swapped(tree)),
      ]) {
        expect(made.total).toBeCloseTo(tree.total);
        expect(made.baseTotal).toBeCloseTo(tree.baseTotal);
        expect(made.width[0]).toBeCloseTo(tree.width[0]!);
      }
      const { total } = totalsOf(topOf(tree), named),
        self = totalsOf(topOf(tree), named).self;
      expect(apply(tree, { kind: "focus", fn: named }).total).toBeCloseTo(total);
      expect(apply(tree, { kind: "drop", fn: named }).total).toBeCloseTo(tree.total - total);
      expect(apply(tree, { kind: "focus-self", fn: named }).total).toBeCloseTo(self);
    }
  });

  it("carry what the server left out along", () => {
    const lines: Line[] = [
        ["a;b;c", 5],
        ["a;b", 2],
      ],
      full = treeOf(lines);
    const cut = Object.assign(Object.create(Object.getPrototypeOf(full)), full, {
      self: full.self.map((each, node) => (full.name(node) === "c" ? each - 3 : each)),
    }) as FlameTree;
    const merged = apply(cut, { kind: "merge", fn: fn("c") });
    expect(merged.total).toBe(7);
    expect(merged.lost()[merged.follow(["a", "b"])]).toBe(3);
    const turned = inverted(cut, { below: 0 });
    expect(turned.total).toBe(7);
    expect(turned.value[turned.follow(["[left out: too narrow]"])]).toBe(3);
  });

  it("collapse the kernel, which has no module, by its kind", () => {
    const tree = treeOf([["main;k@bpf;l@bpf;m", 2]]),
      bare = {
        ...tree.functions,
        module: tree.functions.module.map((each, fn) => (tree.functions.kind[fn] === "bpf" ? null : each)),
      };
    const made = apply(Object.assign(Object.create(Object.getPrototypeOf(tree)), tree, { functions: bare }), {
      kind: "collapse-module",
      module: "bpf",
    });
    expect(stacks(made)).toEqual({ "main;bpf;m": 2 });
    expect([made.module(2), made.kind(2)]).toEqual([null, "bpf"]);
  });

  it("mean a name in one module, or in all if none is given", () => {
    const tree = treeOf([
      ["x!f", 1],
      ["y!f", 2],
    ]);
    expect(apply(tree, { kind: "drop", fn: fn("x!f", "x") }).total).toBe(2);
    expect(apply(tree, { kind: "drop", fn: fn("x!f", "z") }).total).toBe(3);
  });

  it("are written into an address and read again", () => {
    const all: Transform[] = [
      { kind: "focus", fn: fn("std::map<int, A~B>::operator[](int@)", "lib c.so:1") },
      { kind: "drop", fn: fn("f") },
      { kind: "collapse-recursion" },
      { kind: "collapse-recursion", fn: fn("g") },
      { kind: "collapse-module", module: "[kernel]" },
      { kind: "merge", fn: fn("m") },
      { kind: "collapse", fn: fn("c") },
      { kind: "focus-self", fn: fn("s") },
    ];
    expect(read(written(all))).toEqual(all);
    expect(read("q:x~f~f:~%%%~")).toEqual([]);
  });

  it("exchange both sides", () => {
    const tree = treeOf([
        ["a", 30, 5],
        ["b", 10, 5],
      ]),
      other = swapped(tree);
    expect([other.total, other.baseTotal, other.scale]).toEqual([10, 40, 0.25]);
    expect(other.delta(other.follow(["a"]))).toBe(-2.5);
    expect(other.width[1]! / other.width[0]!).toBeCloseTo(tree.width[1]! / tree.width[0]!);
    expect(swapped(CASE)).toBe(CASE);
  });
});

describe("inverted", () => {
  it("starts where the time was spent", () => {
    expect(
      stacks(
        inverted(
          treeOf([
            ["a;b;c", 4],
            ["d;c", 1],
            ["a;b", 2],
          ]),
        ),
      ),
    ).toEqual({ "a;b;c": 4, "d;c": 1, "a;b": 2 });
    const tree = inverted(
      treeOf([
        ["a;b;c", 4],
        ["d;c", 1],
        ["a;b", 2],
      ]),
    );
    expect([tree.inverted, tree.value[tree.follow(["c"])], tree.value[tree.follow(["c", "b"])]]).toEqual([true, 5, 4]);
  });

  it("charges leaves that only look hot to their callers", () => {
    const tree = treeOf([
      ["a;b;unlock@kernel", 4],
      ["unlock@kernel", 1],
    ]);
    const skid = Uint8Array.from(tree.functions.name, (name) => (name === "unlock" ? 1 : 0));
    expect(stacks(inverted(tree, { skid }))).toEqual({ "a;b": 4, unlock: 1 });
  });

  it("counts what it gives up, and loses nothing", () => {
    const tree = synthetic(5000, { seed: 3 }),
      turned = inverted(tree, { below: 0.01 });
    expect(turned.total).toBeCloseTo(tree.total);
    expect(turned.pruned.branches).toBeGreaterThan(0);
    expect(turned.pruned.samples).toBeCloseTo(turned.lost().reduce((a, b) => a + b));
    for (const value of turned.value) expect(value).toBeGreaterThanOrEqual(0.01 * tree.total);
  });
});

describe("sandwich", () => {
  it("has callers and callees of one function, each sample once", () => {
    const up = callers(CASE, fn("f"), 0),
      down = callees(CASE, fn("f"));
    expect(stacks(down)).toEqual({ "f;g;f;h": 4, "f;g": 3, "f;f;f": 2 });
    expect(stacks(up)).toEqual({ "main;f": 9 });
    expect(up.total).toBe(down.total);
    const kernel = callers(CASE, fn("k"), 0);
    expect(kernel.value[kernel.follow(["k", "x"])]).toBe(1);
    expect(kernel.value[kernel.follow(["k", "main"])]).toBe(5);
  });

  it("has the function's total on both sides in random trees", () => {
    const tree = synthetic(4000, { seed: 9, functions: 60, compared: true });
    for (const row of topOf(tree).slice(0, 20)) {
      const key = fn(row.name, row.module),
        total = totalsOf(topOf(tree), key).total;
      expect(callees(tree, key).total).toBeCloseTo(total);
      expect(callers(tree, key).total).toBeCloseTo(total);
    }
  });

  it("is empty for a function that is not there", () => expect(callers(CASE, fn("missing")).total).toBe(0));
});
