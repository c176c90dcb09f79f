// The heat map: a component with plain props, and the mathematics of cells and colours under it.

import "../flame/flame.css";
import "./heatmap.css";

export { HeatMap, type HeatMapProps } from "./HeatMap";
export { ROW_CHOICES } from "./HeatBar";
export {
  cellAt,
  heatFrom,
  isFine,
  narrowed,
  samplesIn,
  stepped,
  timeOf,
  type Cell,
  type HeatData,
  type HeatHeader,
  type Range,
} from "./cells";
export { levelOf, type Scale } from "./palette";
