/** Who ran in the chosen time: the same groups as the root level of the flame graph, as a table. */

import type { Group } from "../api/groups";
import type { Level, WhoRow } from "../api/types";
import { Current } from "../chrome/current";
import { Icon } from "../chrome/icons";
import { Loading, Problem } from "../chrome/states";
import { GROUP_NAMES } from "../flame";
import { compact, count, percent } from "../format";
import { compare, filters, group, type ListFilter, navigate, sampleParams, setFilter, useDocument } from "../state";
import { NoSamples } from "./none";
import { settled } from "./span";

const TOP = 200;

/** The filter that keeps what a group has. */
export function filterFor(by: Level, row: Group): { name: ListFilter; value: string } | null {
  const found = (name: ListFilter, value: string | number | null) =>
    value === null ? null : { name, value: String(value) };
  if (by === "process") return found("pid", row.pid);
  if (by === "program") return found("pid", row.pid);
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
  const other = compare.value;
  const before = useDocument(other && "who", { ...sampleParams(other), by, top: TOP }, { lasting: true });
  if (answer.problem) return <Problem error={answer.problem} again={answer.again} />;
  if (!answer.data) return <Loading title="Counting who ran" />;
  const { who, others, total } = answer.data;
  const b = other ? new Map((before.data?.who ?? []).map((row) => [row.name, row])) : null;
  const rows = ranked(who, b);
  const owned = rows.some((row) => ownerOf(row) !== undefined);
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
                  {(["program", "owner", "process", "thread"] as const).map((level) => (
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
              <th scope="col" class="number" title="Cores used, in the mean of this time">
                {b ? "Cores, A" : "Cores"}
              </th>
              {b && (
                <>
                  <th scope="col" class="number" title="Cores used, in the mean of the other time">
                    Cores, B
                  </th>
                  <th scope="col" class="number">
                    Change
                  </th>
                </>
              )}
              <th scope="col" class="number">
                Share
              </th>
              <th scope="col" class="who-bar-head">
                <i class="swatch mode-system" /> kernel <i class="swatch mode-user" /> user
              </th>
              <th scope="col" class="number">
                Samples
              </th>
              {owned && <th scope="col">Unit or pod</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.name} row={row} by={by} most={who[0]?.ratio || 1} b={b} owned={owned} />
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

type Other = ReadonlyMap<string, WhoRow> | null;

const changeOf = (row: WhoRow, b: Other): number => (row.cpus ?? 0) - (b?.get(row.name)?.cpus ?? 0);

/** In a comparison the largest change first, and those that only the other side has. Pure. */
export function ranked(rows: readonly WhoRow[], b: Other): readonly WhoRow[] {
  if (!b) return rows;
  const here = new Set(rows.map((row) => row.name));
  const gone = [...b.values()].filter((row) => !here.has(row.name));
  const all = [...rows, ...gone.map((row) => ({ ...row, samples: 0, ratio: 0, cpus: row.cpus === null ? null : 0 }))];
  return all.sort((one, other) => Math.abs(changeOf(other, b)) - Math.abs(changeOf(one, b)));
}

const STEADY = 0.005;

/** Its pod or unit, where that is not what the row is called already. */
const ownerOf = (row: WhoRow): string | undefined =>
  [row.pod, row.unit].find((each) => each && each !== row.name) ?? undefined;

function Row({ row, by, most, b, owned }: { row: WhoRow; by: Level; most: number; b: Other; owned: boolean }) {
  const change = changeOf(row, b);
  const wanted = filterFor(by, row);
  const chosen = wanted !== null && filters.value[wanted.name].includes(wanted.value);
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
      {b && (
        <>
          <td class="number">{(b.get(row.name)?.cpus ?? 0).toFixed(2)}</td>
          <td class={`number ${change > STEADY ? "zs-grew" : change < -STEADY ? "zs-shrank" : "faint"}`}>
            {change > STEADY ? "▲ +" : change < -STEADY ? "▼ −" : "±"}
            {Math.abs(change).toFixed(2)}
          </td>
        </>
      )}
      <td class="number">{percent(row.ratio)}</td>
      <td>
        <span class="who-bar" role="img" aria-label={`${percent(row.kernel_ratio)} of it in the kernel`}>
          <i class="mode-system" style={{ width: wide(row.kernel_ratio) }} />
          <i class="mode-user" style={{ width: wide(1 - row.kernel_ratio) }} />
        </span>
      </td>
      <td class="number">{count(row.samples)}</td>
      {owned && <td class="faint">{ownerOf(row) ?? ""}</td>}
    </tr>
  );
}
