import { describe, expect, it } from "vitest";
import {
  colourOf,
  contrast,
  crc32,
  css,
  deltaColour,
  FRAME_INK,
  inkOn,
  mixed,
  nodeColours,
  packed,
  parsed,
  unpacked,
} from "./colours";
import { treeOf } from "./fixtures";

describe("colours", () => {
  it("are those of the command line's SVG", () => {
    // zombiescope.query.colours.of(Function(...))
    expect(crc32("123456789")).toBe(0xcbf43926);
    expect(css(colourOf("mem_cgroup_iter", "[kernel]", "kernel", "kind", "light"))).toBe("#ecc689");
    expect(css(colourOf("main", "python3.11", "user", "kind", "light"))).toBe("#84a1eb");
    expect(css(colourOf("ünï", null, "jit", "kind", "light"))).toBe("#b9ef9f");
    expect(css(deltaColour(5, 10, "light"))).toBe("#f9beb5");
    expect(css(colourOf("all", null, "root", "kind", "light"))).toBe("#c8c4bc");
  });

  it("stay when another range is selected", () => {
    const [one, other] = [
      treeOf([
        ["a;b@kernel", 1],
        ["c", 4],
      ]),
      treeOf([
        ["x;y", 9],
        ["a;b@kernel", 2],
      ]),
    ];
    for (const by of ["kind", "module"] as const) {
      const colour = (tree: typeof one) => nodeColours(tree, by, "dark")[tree.follow(["a", "b"])];
      expect(colour(one)).toBe(colour(other));
    }
  });

  it("tell kinds apart by hue, and modules when asked", () => {
    const by = (kind: string) => colourOf("f", "m", kind, "kind", "light");
    const [kernel, user, jit] = [by("kernel"), by("user"), by("jit")];
    expect(kernel[0]).toBeGreaterThan(kernel[2]);
    expect(user[2]).toBeGreaterThan(user[0]);
    expect(jit[1]).toBeGreaterThan(Math.max(jit[0], jit[2]));
    expect(colourOf("f", "libc", "user", "module", "light")).not.toEqual(
      colourOf("f", "libssl", "user", "module", "light"),
    );
    expect(colourOf("f", null, "unknown", "module", "light")).toEqual([180, 180, 180]);
    expect(colourOf("f", null, "kernel", "module", "light")).toEqual(colourOf("f", null, "kernel", "kind", "light"));
  });

  it.each(["light", "dark"] as const)("are light enough for black text (%s)", (theme) => {
    const luminance = (part: number) => ((part / 255 + 0.055) / 1.055) ** 2.4;
    const contrast = (rgb: readonly number[]) =>
      (0.2126 * luminance(rgb[0]!) + 0.7152 * luminance(rgb[1]!) + 0.0722 * luminance(rgb[2]!) + 0.05) / 0.05;
    for (let i = 0; i < 200; i++) {
      for (const kind of ["kernel", "module", "bpf", "user", "jit", "inlined", "vdso", "root"]) {
        for (const by of ["kind", "module"] as const)
          expect(contrast(colourOf(`f${i}`, `m${i}`, kind, by, theme))).toBeGreaterThan(4.5);
      }
      expect(contrast(deltaColour(i - 100, 50, theme))).toBeGreaterThan(4.5);
    }
  });

  it("show a change by its sign and strength", () => {
    for (const theme of ["light", "dark"] as const) {
      const [grew, shrank, same] = [deltaColour(10, 5, theme), deltaColour(-10, 5, theme), deltaColour(0, 5, theme)];
      expect(grew[0]).toBeGreaterThan(grew[2] + 60);
      expect(shrank[2]).toBeGreaterThan(shrank[0] + 60);
      expect(Math.max(...same) - Math.min(...same)).toBeLessThan(15);
      expect(deltaColour(1, 5, theme)).not.toEqual(grew);
    }
  });

  it("are packed as a canvas stores them", () => {
    expect(unpacked(packed([1, 2, 3]))).toEqual([1, 2, 3]);
    expect(new Uint8Array(Uint32Array.of(packed([1, 2, 3])).buffer)).toEqual(Uint8Array.of(1, 2, 3, 255));
    expect(unpacked(mixed(packed([0, 0, 0]), packed([200, 100, 50]), 0.5))).toEqual([100, 50, 25]);
    expect([parsed("#abc"), parsed(" #0102ff "), parsed("rgb(1, 2, 3)"), parsed("")]).toEqual([
      [170, 187, 204],
      [1, 2, 255],
      [1, 2, 3],
      [0, 0, 0],
    ]);
  });
});

describe("text on frames and bars", () => {
  const KINDS_SEEN = ["kernel", "user", "module", "jit", "python", "bpf", "owner", "unknown", "root"];
  const names = ["<module>", "train_step jx.py:40", "memcg_numa_stat_show", "a", "zz", "PjitFunction", "kubelet"];

  it.each(["light", "dark"] as const)("can be read on every colour of the %s theme", (theme) => {
    for (const kind of KINDS_SEEN)
      for (const by of ["kind", "module"] as const)
        for (const name of names) {
          const fill = colourOf(name, "libc.so.6", kind, by, theme);
          const said = `${kind} ${by} ${name} ${css(fill)}`;
          expect(contrast(parsed(inkOn(fill)), fill), said).toBeGreaterThanOrEqual(4.5);
          expect(contrast(parsed(FRAME_INK), fill), said).toBeGreaterThanOrEqual(4.5);
        }
  });

  it("is measured as WCAG does", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
    expect(contrast(parsed("#e6e8ec"), parsed("#d9ca92"))).toBeCloseTo(1.34, 1);
  });
});
