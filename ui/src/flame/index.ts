// Flame graphs: components with plain props, and the mathematics under them. Nothing here knows of servers or addresses.

import "./flame.css";

export { FlamePanel, type FlamePanelProps } from "./FlamePanel";
export { FIRST_LOOK, VIEWS, type FlameLook, type FlameView } from "./look";
export { Flame, type FlameProps } from "./Flame";
export { FlameChart, type FlameChartProps } from "./FlameChart";
export { Sandwich, type SandwichProps } from "./Sandwich";
export { TopTable, type TopTableProps } from "./TopTable";
export { SearchBox, type SearchBoxProps } from "./SearchBox";
export { Legend } from "./Legend";
export { FLAME_KEYS, HEAT_KEYS } from "./keys";
export { FlameTree, scaleOf, type ColumnsLike, type FunctionTable, type Pruned } from "./tree";
export { chartFrom, type ChartData } from "./chart-data";
export { foldChart, foldCounts, foldHeat, foldSamples, leafCounts, type FoldOptions, type SampleTable } from "./fold";
export {
  applyAll,
  read as readTransforms,
  says,
  written as writtenTransforms,
  type FunctionKey,
  type Transform,
} from "./transforms";
export { matchesOf, patternOf, type Search, type SearchMode } from "./search";
export { svgOf, type SvgOptions } from "./svg";
export { packedTree } from "./pack";
export { copy, download } from "./copy";
export { colourOf, css, type ColourBy, type Theme } from "./colours";
