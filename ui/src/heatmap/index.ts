// The heat map: a component with plain props, and the mathematics of cells and colours under it.

import "../flame/flame.css";
import "./heatmap.css";

export {
  type Cell,
  cellAt,
  type HeatData,
  heatFrom,
  isFine,
  narrowed,
  type Range,
  samplesIn,
  stepped,
  timeOf,
} from "./cells";
export { ROW_CHOICES } from "./heat-bar";
export { HeatMap, type HeatMapProps } from "./heat-map";
export { levelOf, type Scale } from "./palette";
