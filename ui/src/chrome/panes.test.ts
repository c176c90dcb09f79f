import { expect, it } from "vitest";
import { HEAT_AROUND_PX, RIBBON_PX, SPLITTER_PX, shared } from "./panes";

const FITS = { axis: null, heat: null };
const flame = (height: number, wanted: number, chosen: Parameters<typeof shared>[2] = FITS): number => {
  const { axis, heat } = shared(height, wanted, chosen);
  return height - axis - heat - (chosen.heat === null ? 4 : HEAT_AROUND_PX) - 2 * SPLITTER_PX;
};

it.each([
  ["1440 x 900", 818],
  ["1024 x 768", 685],
])("leaves two fifths of %s to the flame graph", (_, height) => {
  expect(flame(height, 400) / height).toBeGreaterThan(0.41);
  expect(shared(height, 400, FITS).heat).toBe(RIBBON_PX);
});

it("gives the axis no more than it can use", () => {
  expect(shared(1200, 260, FITS).axis).toBe(260);
});

it("does what the reader dragged, and never drags the flame graph away", () => {
  expect(shared(900, 260, { axis: 150, heat: 60 })).toEqual({ axis: 150, heat: 60 });
  expect(flame(700, 260, { axis: 5000, heat: 5000 })).toBeGreaterThanOrEqual(140);
});
