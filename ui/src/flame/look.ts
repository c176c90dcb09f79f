// What a reader chose to see, as plain data: what a link keeps.

import type { ColourBy } from "./colours";
import type { Search } from "./search";
import type { Transform } from "./transforms";

export const VIEWS = ["flame", "chart", "sandwich", "top", "who", "python"] as const;
export type FlameView = (typeof VIEWS)[number];

/** The root level: whose the stacks are. */
export const GROUPS = [
  "program",
  "none",
  "owner",
  "process",
  "thread",
  "unit",
  "pod",
  "container",
  "image",
  "comm",
] as const;
export type Grouping = (typeof GROUPS)[number];
export const GROUP_NAMES: Record<Grouping, string> = {
  none: "none",
  owner: "unit or pod",
  program: "program",
  process: "process",
  thread: "thread",
  unit: "unit",
  pod: "pod",
  container: "container",
  image: "image",
  comm: "name",
};

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
  readonly group: Grouping;
  /** Names from the root to the frame that is zoomed to. */
  readonly zoom: readonly string[];
}

export const FIRST_LOOK: FlameLook = {
  view: "flame",
  inverted: false,
  icicle: true,
  colour: "kind",
  search: { text: "", mode: "highlight" },
  fn: "",
  transforms: [],
  group: "program",
  zoom: [],
};

/** What the views are called, and the key that opens each. */
export const VIEW_NAMES: Record<FlameView, readonly [string, string]> = {
  flame: ["Flame graph", "1"],
  chart: ["Timeline", "2"],
  sandwich: ["Sandwich", "3"],
  top: ["Functions", "4"],
  who: ["Who ran", "5"],
  python: ["Python", "6"],
};
