/** What the pointer is on: one core in one moment, or the lanes at that moment. */

import { MODES } from "../api/modes";
import { clock, compact, duration, percent } from "../format";
import { gpuLines, pressureLines, zombieLines } from "../lanes/charts";
import { lanes } from "../lanes/load";
import { pythonRows } from "../lanes/python";
import { valueAt } from "../lanes/series";
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
  const zombies = zombieLines();
  const pressure = pressureLines();
  const gap = lanes.value?.gaps.find((one) => at >= one.from && at < one.to);
  const rows: [string, string, string | null][] = [
    ...[...zombies.lines]
      .reverse()
      .map(
        (line) =>
          [
            line.name === "dying" ? "dying memory cgroups" : "all memory cgroups",
            line.colour,
            figure(valueAt(zombies.at, line.values, at, 120)),
          ] as [string, string, string | null],
      ),
    ...[...pressure.lines]
      .reverse()
      .map(
        (line) =>
          [
            `${line.name === "mem" ? "memory" : line.name} pressure`,
            line.colour,
            ratio(valueAt(pressure.at, line.values, at, 120)),
          ] as [string, string, string | null],
      ),
    ...gpuRows(at),
    ...pythonRows(at),
  ];
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
          {rows.map(([name, colour, value]) => (
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

/** Nothing on a node without a GPU. */
function gpuRows(at: number): [string, string, string | null][] {
  const found = lanes.value?.gpus;
  if (!found?.count) return [];
  const rows = [...gpuLines().lines].reverse().map((line): [string, string, string | null] => {
    const value = valueAt(found.at, line.values, at, 120);
    return [gpuWords(line.name, at), line.colour, value === null ? null : percent(value / 100)];
  });
  const power = valueAt(found.at, found.power_w, at, 120);
  return [...rows, ["GPU power", "--faint", power === null ? null : `${Math.round(power)} W`]];
}

function gpuWords(line: string, at: number): string {
  const found = lanes.value?.gpus;
  if (line === "mean") return (found?.count ?? 0) > 1 ? `mean of ${found?.count} GPUs` : "GPU utilisation";
  const number = found ? valueAt(found.at, found.lowest_gpu, at, 120) : null;
  return number === null ? "least busy GPU" : `least busy: GPU ${number}`;
}

const figure = (value: number | null): string | null => (value === null ? null : compact(value));
const ratio = (value: number | null): string | null => (value === null ? null : percent(value, 3));
