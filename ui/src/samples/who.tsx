/** Who ran in the chosen time: the same groups as the root level of the flame graph, as a table. */

import type { Group } from "../api/groups";
import type { Level, WhoRow } from "../api/types";
import { Current } from "../chrome/current";
import { Icon } from "../chrome/icons";
import { Loading, Problem } from "../chrome/states";
import { GROUP_NAMES } from "../flame";
import { compact, count, percent } from "../format";
import { filters, group, type ListFilter, navigate, sampleParams, setFilter, useDocument } from "../state";
import { NoSamples } from "./none";
import { settled } from "./span";

const TOP = 200;

/** The filter that keeps what a group has. */
export function filterFor(by: Level, row: Group): { name: ListFilter; value: string } | null {
  const found = (name: ListFilter, value: string | number | null) =>
    value === null ? null : { name, value: String(value) };
  if (by === "process") return found("pid", row.pid);
  if (by === "thread") return found("tid", row.tid);
  if (by !== "owner") return found(by, row[by]);
  if (row.unit === row.name) return found("unit", row.unit);
  return found("pod", row.pod) ?? found("container", row.container) ?? found("comm", row.comm);
}

export function only(by: Level, row: Group): void {
  const wanted = filterFor(by, row);
  if (wanted) setFilter(wanted.name, [wanted.value]);
}

export function Who({ height }: { height: number }) {
  const by: Level = group.value === "none" ? "process" : group.value;
  const answer = useDocument("who", { ...sampleParams(settled.value), by, top: TOP }, { lasting: true });
  if (answer.problem) return <Problem error={answer.problem} again={answer.again} />;
  if (!answer.data) return <Loading title="Counting who ran" />;
  const { who, others, total } = answer.data;
  return (
    <Current class="who" style={{ maxHeight: `${height}px` }} answer={answer} of={answer.data}>
      {!who.length && (
        <p class="zs-empty">
          <NoSamples span={answer.data} />
        </p>
      )}
      {who.length > 0 && (
        <table>
          <caption class="hidden-text">Who ran, by {GROUP_NAMES[by]}</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="who-by" role="group" aria-label="Who is counted">
                  {(["owner", "process", "thread"] as const).map((level) => (
                    <button
                      key={level}
                      type="button"
                      aria-pressed={by === level}
                      onClick={() => navigate({ group: level, zoom: [] })}
                    >
                      {GROUP_NAMES[level]}
                    </button>
                  ))}
                </span>
              </th>
              <th scope="col" class="number" title="cores in the mean of this time">
                cores
              </th>
              <th scope="col" class="number">
                share
              </th>
              <th scope="col" class="who-bar-head">
                <i class="swatch mode-system" /> kernel <i class="swatch mode-user" /> user
              </th>
              <th scope="col" class="number">
                samples
              </th>
              <th scope="col">of</th>
            </tr>
          </thead>
          <tbody>
            {who.map((row) => (
              <Row key={row.name} row={row} by={by} most={who[0]!.ratio} />
            ))}
          </tbody>
        </table>
      )}
      {others.groups > 0 && (
        <p class="faint">
          and {count(others.groups)} more with {compact(others.samples)} of {compact(total)} samples
        </p>
      )}
    </Current>
  );
}

function Row({ row, by, most }: { row: WhoRow; by: Level; most: number }) {
  const wanted = filterFor(by, row);
  const chosen = wanted !== null && filters.value[wanted.name].includes(wanted.value);
  const owner = [row.pod, row.unit].find((each) => each && each !== row.name);
  const wide = (part: number): string => `${(100 * row.ratio * part) / most}%`;
  return (
    <tr class={chosen ? "chosen" : ""}>
      <th scope="row">
        {wanted ? (
          <button type="button" onClick={() => only(by, row)} title={`Only ${row.name}`}>
            {row.name} <Icon name="filter" size={10} />
          </button>
        ) : (
          row.name
        )}
      </th>
      <td class="number">{row.cpus === null ? "–" : row.cpus.toFixed(2)}</td>
      <td class="number">{percent(row.ratio)}</td>
      <td>
        <span class="who-bar" role="img" aria-label={`${percent(row.kernel_ratio)} of it in the kernel`}>
          <i class="mode-system" style={{ width: wide(row.kernel_ratio) }} />
          <i class="mode-user" style={{ width: wide(1 - row.kernel_ratio) }} />
        </span>
      </td>
      <td class="number">{count(row.samples)}</td>
      <td class="faint">{owner ?? ""}</td>
    </tr>
  );
}
