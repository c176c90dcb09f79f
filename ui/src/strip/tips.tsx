/** What the pointer is on: one core in one moment, or the lanes at that moment. */

import { MODES } from "../api/modes";
import { clock, duration, percent } from "../format";
import { tipRows } from "../lanes/list";
import { lanes } from "../lanes/load";
import { zoneOffset } from "../state";
import { shares } from "./cells";
import { strip } from "./load";

export function CellTip({ at, share }: { at: number; share: number }) {
  const cells = strip.value;
  if (!cells) return null;
  const column = Math.floor((at - cells.from) / cells.column_s);
  const row = Math.min(cells.cpus.length - 1, Math.floor(share * cells.cpus.length));
  const offset = zoneOffset.value;
  const found = column >= 0 && column < cells.columns ? shares(cells, column, row) : null;
  const start = cells.from + column * cells.column_s;
  const busy = cells.average_busy[column];
  const kernel = cells.average_kernel[column];
  return (
    <div class="tip-cell">
      <div class="tip-head">
        <strong>core {cells.cpus[row]}</strong>
        <span>{clock(start, offset, cells.column_s < 1 ? 1 : 0)}</span>
      </div>
      {cells.column_s > 1.5 && <div class="faint">worst second of {duration(cells.column_s)}</div>}
      {!found && <div class="faint">not measured</div>}
      {found && (
        <table class="tip-modes">
          <tbody>
            {MODES.filter((mode) => found[mode] >= 0.005)
              .sort((a, b) => found[b] - found[a])
              .map((mode) => (
                <tr key={mode}>
                  <td>
                    <i class={`swatch mode-${mode}`} />
                    {mode}
                  </td>
                  <td>
                    <span class={`tip-bar mode-${mode}`} style={{ width: `${found[mode] * 90}px` }} />
                  </td>
                  <td>{percent(found[mode])}</td>
                </tr>
              ))}
            {found.busy < 0.005 && (
              <tr>
                <td colSpan={3} class="faint">
                  idle
                </td>
              </tr>
            )}
          </tbody>
        </table>
      )}
      {busy !== undefined && !Number.isNaN(busy) && (
        <div class="tip-foot">
          the node's average: {percent(busy)} busy, {percent(kernel)} in the kernel
        </div>
      )}
    </div>
  );
}

export function LaneTip({ at }: { at: number }) {
  const offset = zoneOffset.value;
  const gap = lanes.value?.gaps.find((one) => at >= one.from && at < one.to);
  return (
    <div class="tip-cell">
      <div class="tip-head">
        <strong>{clock(at, offset, 1)}</strong>
      </div>
      {gap && (
        <div class="tip-warn">
          no {gap.source} was recorded{gap.why ? `: ${gap.why}` : ""}
        </div>
      )}
      <table class="tip-modes">
        <tbody>
          {tipRows(at).map(([name, colour, value]) => (
            <tr key={name}>
              <td>
                <svg width="10" height="10" aria-hidden="true">
                  <circle cx="5" cy="5" r="4" fill={`var(${colour})`} />
                </svg>{" "}
                {name}
              </td>
              <td>{value ?? <span class="faint">not measured</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
