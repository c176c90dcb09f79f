import { describe, expect, it } from "vitest";
import { drawPath } from "./layout";

describe("drawPath", () => {
  it("keeps rows as equal as can be", () => {
    expect(drawPath(8, 1200).columns).toBe(4);
    expect(drawPath(7, 1200).columns).toBe(4);
    expect(drawPath(5, 1200).columns).toBe(5);
  });

  it("fills the width and never leaves it", () => {
    for (const width of [300, 700, 1180, 1900]) {
      const { boxes, height } = drawPath(8, width);
      expect(Math.max(...boxes.map((box) => box.x + box.width))).toBeCloseTo(width);
      expect(Math.max(...boxes.map((box) => box.y + box.height))).toBe(height);
      for (const [number, a] of boxes.entries())
        for (const b of boxes.slice(number + 1)) {
          const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
          expect(apart).toBe(true);
        }
    }
  });

  it("joins each station to the next, through the gap below a row", () => {
    const { boxes, lines } = drawPath(8, 1200);
    expect(lines).toHaveLength(7);
    expect(lines[0]).toMatch(/^M[\d.]+ 71H[\d.]+$/);
    const turn = lines[3]!;
    expect(turn).toContain("Q");
    expect(Number(/^M([\d.]+) 142V/.exec(turn)?.[1])).toBeCloseTo(boxes[3]!.x + boxes[3]!.width / 2, 0);
    expect(turn.endsWith(`V${boxes[4]!.y - 5}`)).toBe(true);
  });

  it("is drawn upright where there is no room, and is nothing for nothing", () => {
    const { columns, lines } = drawPath(3, 240);
    expect(columns).toBe(1);
    expect(lines.every((line) => /^M[\d.]+ [\d.]+V[\d.]+$/.test(line))).toBe(true);
    expect(drawPath(0, 1000)).toMatchObject({ boxes: [], lines: [], height: 0 });
  });
});
