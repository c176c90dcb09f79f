// What a reader chose to see, as plain data: what a link keeps.

import type { ColourBy } from "./colours";
import type { Search } from "./search";
import type { Transform } from "./transforms";

export const VIEWS = ["flame", "chart", "sandwich", "top"] as const;
export type FlameView = (typeof VIEWS)[number];

/** What a link keeps. */
export interface FlameLook {
  readonly view: FlameView;
  readonly inverted: boolean;
  /** Whether the root hangs from the top. */
  readonly icicle: boolean;
  readonly colour: ColourBy;
  readonly search: Search;
  /** The function of the sandwich, marked in graph and table; "" for none. */
  readonly fn: string;
  readonly transforms: readonly Transform[];
}

export const FIRST_LOOK: FlameLook = {
  view: "flame",
  inverted: false,
  icicle: true,
  colour: "kind",
  search: { text: "", mode: "highlight" },
  fn: "",
  transforms: [],
};

/** What the views are called, and the key that opens each. */
export const VIEW_NAMES: Record<FlameView, readonly [string, string]> = {
  flame: ["Flame graph", "1"],
  chart: ["In time", "2"],
  sandwich: ["Sandwich", "3"],
  top: ["Functions", "4"],
};
