import { beforeAll, describe, expect, it, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("document", { documentElement: { dataset: {} }, getElementById: () => null });
let heatSpan: typeof import("./span").heatSpan;
beforeAll(async () => {
  ({ heatSpan } = await import("./span"));
});

const ALL = { from: 0, to: 43_200 };

describe("what the heat map shows", () => {
  it("is the view, while a second has a pixel", () => {
    expect(heatSpan({ from: 100, to: 400 }, { from: 200, to: 210 }, null, ALL)).toEqual({ from: 100, to: 400 });
    expect(heatSpan(ALL, null, null, ALL)).toBe(ALL);
  });

  it("is the minute around a short selection in a long view", () => {
    expect(heatSpan(ALL, { from: 1000, to: 1008 }, null, ALL)).toEqual({ from: 974, to: 1034 });
    expect(heatSpan(ALL, { from: 2, to: 4 }, null, ALL)).toEqual({ from: 0, to: 60 });
  });

  it("stays when something in it is selected", () => {
    const before = { from: 974, to: 1034 };
    expect(heatSpan(ALL, { from: 990, to: 991 }, before, ALL)).toBe(before);
    expect(heatSpan(ALL, { from: 2000, to: 2001 }, before, ALL)).toEqual({ from: 1970, to: 2030 });
  });

  it("is a long selection itself", () => {
    expect(heatSpan(ALL, { from: 1000, to: 1100 }, null, ALL)).toEqual({ from: 1000, to: 1100 });
  });
});
