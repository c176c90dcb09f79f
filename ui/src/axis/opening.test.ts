import { describe, expect, it } from "vitest";
import { opening } from "./opening";

const ALL = { from: 0, to: 3600 };

describe("what a recording is opened on", () => {
  it("is all of it", () => {
    expect(opening(ALL, null, ALL)).toBeNull();
    expect(opening(ALL, null, null)).toBeNull();
    expect(opening(ALL, { from: 100, to: 400 }, ALL)).toBeNull();
  });

  it("is what surrounds a short selection", () => {
    expect(opening(ALL, { from: 1000, to: 1010 }, ALL)).toEqual({ from: 950, to: 1060 });
    expect(opening(ALL, { from: 3599, to: 3600 }, ALL)).toEqual({ from: 3540, to: 3600 });
  });

  it("is where cores were measured, if that is a small part", () => {
    expect(opening(ALL, null, { from: 3000, to: 3200 })).toEqual({ from: 2950, to: 3250 });
    expect(opening(ALL, null, { from: 3578, to: 3600 })).toEqual({ from: 3540, to: 3600 });
  });
});
