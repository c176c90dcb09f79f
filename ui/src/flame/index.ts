// Flame graphs: components with plain props, and the mathematics under them. Nothing here knows of servers or addresses.

import "./flame.css";

export { type ChartData, chartFrom } from "./chart-data";
export { type ColourBy, colourOf, css, type Theme } from "./colours";
export { Flame, type FlameProps } from "./flame";
export { FlameChart, type FlameChartProps } from "./flame-chart";
export { FlamePanel, type FlamePanelProps } from "./flame-panel";
export { foldCounts, type SampleTable } from "./fold";
export { FLAME_KEYS, HEAT_KEYS } from "./keys";
export { Legend } from "./legend";
export { FIRST_LOOK, type FlameLook, type FlameView, GROUP_NAMES, GROUPS, type Grouping, VIEWS } from "./look";
export { packedTree } from "./pack";
export { Sandwich, type SandwichProps } from "./sandwich";
export { matchesOf, patternOf, type Search, type SearchMode } from "./search";
export { SearchBox, type SearchBoxProps } from "./search-box";
export { type SvgOptions, svgOf } from "./svg";
export { TopTable, type TopTableProps } from "./top-table";
export {
  applyAll,
  type FunctionKey,
  read as readTransforms,
  says,
  type Transform,
  written as writtenTransforms,
} from "./transforms";
export { FlameTree, type FunctionTable, ratesOf, scaleOf } from "./tree";
