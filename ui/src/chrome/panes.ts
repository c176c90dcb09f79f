/** How the height of the node page is shared out: axis, heat map, flame graph. Pure but for what a browser keeps. */

import { signal } from "@preact/signals";

/** What the reader dragged, in pixels. Of the axis null: as fits. Of the heat map null: folded to a ribbon. */
export interface Chosen {
  axis: number | null;
  heat: number | null;
}

export interface Panes {
  axis: number;
  /** Of the picture itself. */
  heat: number;
}

/** Below this there is no room for three panes: panes are stacked and the page scrolls. */
export const SPLIT_MIN = { width: 700, height: 480 };
export const SPLITTER_PX = 9;
/** Controls and times around the picture of a heat map. */
export const HEAT_AROUND_PX = 62;
/** A heat map that is folded: its picture, and what is around it. */
export const RIBBON_PX = 18;
const RIBBON_AROUND_PX = 4;
const FLAME_SHARE = 0.42;
const FLAME_LEAST = 150;
const AXIS_LEAST = 90;
export const HEAT_LEAST = 30;

/**
 * What each gets of `height`, of which the axis would like `wanted`. The flame graph has two fifths of it until the reader
 * decides otherwise, and is never dragged away: what would be left over for it is taken from the axis.
 */
export function shared(height: number, wanted: number, chosen: Chosen): Panes {
  const around = chosen.heat === null ? RIBBON_AROUND_PX : HEAT_AROUND_PX;
  const rest = height - 2 * SPLITTER_PX - around;
  const heat =
    chosen.heat === null ? RIBBON_PX : Math.max(HEAT_LEAST, Math.min(chosen.heat, rest - FLAME_LEAST - AXIS_LEAST));
  const most = rest - heat - (chosen.axis === null ? FLAME_SHARE * height : FLAME_LEAST);
  return { axis: Math.round(Math.max(AXIS_LEAST, Math.min(chosen.axis ?? wanted, most))), heat: Math.round(heat) };
}

const KEPT = "zombiescope.panes";

function stored(): Chosen {
  try {
    const said = JSON.parse(localStorage.getItem(KEPT) ?? "null") as Partial<Chosen> | null;
    const pixels = (value: unknown): number | null => (typeof value === "number" && value > 0 ? value : null);
    return { axis: pixels(said?.axis), heat: pixels(said?.heat) };
  } catch {
    return { axis: null, heat: null };
  }
}

/** Kept in this browser, not in the address: a link must not change another's screen. */
export const panes = signal<Chosen>(stored());

export function choosePane(name: keyof Chosen, pixels: number | null): void {
  const folds = name === "heat" && pixels !== null && pixels < HEAT_LEAST;
  panes.value = { ...panes.value, [name]: pixels === null || folds ? null : Math.round(pixels) };
  try {
    localStorage.setItem(KEPT, JSON.stringify(panes.value));
  } catch {
    // not kept: the panes still stay for this visit
  }
}
