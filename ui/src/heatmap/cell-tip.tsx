// The description of the cell under the pointer.

import { Tip } from "../flame/tip";
import { count, duration, plural, share } from "../format";
import { type Cell, cellSeconds, type HeatData, isFine, type Range, samplesIn, timeOf } from "./cells";

export function CellTip({
  heat,
  cell,
  x,
  y,
  clock,
  draft,
}: {
  heat: HeatData;
  cell: Cell;
  x: number;
  y: number;
  clock: (at: number, digits: number) => string;
  draft: Range | null;
}) {
  if (cell.column >= heat.columns || cell.row >= heat.rows) return null;
  const at = cell.column * heat.rows + cell.row,
    value = heat.values[at]!;
  const within = (spans: HeatData["blind"]): boolean =>
    spans.some(([from, to]) => timeOf(heat, cell) >= from && timeOf(heat, cell) < to);
  const absent = within(heat.leftOut) ? "not in this file" : within(heat.blind) ? "not recorded" : "";
  return (
    <Tip x={x} y={y}>
      <div class="zs-tip-name">
        {clock(timeOf(heat, cell), isFine(heat) && heat.spanS === 1 ? 3 : 0)}
        {heat.cores && ` · core ${heat.cores[cell.row]}`}
      </div>
      <div class="zs-tip-place">{isFine(heat) ? duration(cellSeconds(heat)) : duration(heat.columnS)}</div>
      <dl>
        <div>
          <dt>samples</dt>
          <dd>{absent && !value ? absent : count(value)}</dd>
        </div>
        {heat.painted && (
          <div>
            <dt>with a match</dt>
            <dd>
              {count(heat.painted[at]!)} · {share(heat.painted[at]!, value)}
            </dd>
          </div>
        )}
        {draft && (
          <div>
            <dt>range</dt>
            <dd>
              {duration(draft.to - draft.from)} · {plural(samplesIn(heat, draft), "sample")}
            </dd>
          </div>
        )}
      </dl>
      {!draft && (
        <div class="zs-tip-hint">
          click: this column · drag: from cell to cell · double-click: this cell · Ctrl: compare
        </div>
      )}
    </Tip>
  );
}
