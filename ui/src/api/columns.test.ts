import { describe, expect, it } from "vitest";
import { decode, encode } from "./columns";

describe("columns", () => {
  it("gives back what was written, each array at a multiple of eight", () => {
    const arrays = {
      busy: Uint8Array.of(1, 2, 255),
      depth: Uint16Array.of(7),
      name: Uint32Array.of(4294967295, 1),
      parent: Int32Array.of(-1, 0),
      average: Float32Array.of(0.5, NaN),
      value: Float64Array.of(1e300),
    };
    const { header, arrays: back } = decode(
      encode({ schema: "zombiescope.strip/1", cpus: [0, 1], note: "café" }, arrays),
    );
    expect(header.cpus).toEqual([0, 1]);
    expect(header.note).toBe("café");
    for (const [name, array] of Object.entries(arrays)) {
      expect(back[name]).toEqual(array);
      expect(back[name]!.byteOffset % 8).toBe(0);
    }
  });

  it("says what is wrong with bytes that are something else", () => {
    expect(() => decode(new ArrayBuffer(3))).toThrow("cut off");
    expect(() => decode(new TextEncoder().encode("<!doctype html>").buffer as ArrayBuffer)).toThrow("ZSC1");
    const whole = encode({ schema: "x/1" }, { value: Float64Array.of(1, 2, 3) });
    expect(() => decode(whole.slice(0, whole.byteLength - 8))).toThrow("cut off in value");
  });
});
