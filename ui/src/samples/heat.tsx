/** The heat map of the time that is looked at, given its data and what a hand on it means. */

import { useMemo, useRef } from "preact/hooks";
import type { Span } from "../api/types";
import { length } from "../axis/axis";
import { compareWith, plotWidth, select } from "../axis/moves";
import { Current } from "../chrome/current";
import { choosePane } from "../chrome/panes";
import { Loading, Problem } from "../chrome/states";
import { patternOf } from "../flame";
import { clock } from "../format";
import { type HeatData, HeatMap, heatFrom } from "../heatmap";
import {
  by,
  compare,
  dark,
  extent,
  filters,
  following,
  navigate,
  rows,
  sampleParams,
  search,
  selection,
  setFilter,
  useColumns,
  view,
  zoneOffset,
} from "../state";
import { START } from "../state/place";
import { HEAT_S, heatSpan, settled } from "./span";

/** A file that was frozen with other rows begins with those. */
const frozenRows = Number(document.getElementById("frozen")?.dataset.rows) || null;
const MOST_COLUMNS = 2000;
const OPENED_PX = 80;

/** Rows of a ribbon: a tenth of a second each, as many as it has pixels for. */
const RIBBON_ROWS = 10;

export function Heat({ height, ribbon = false }: { height: number; ribbon?: boolean }) {
  const before = useRef<Span | null>(null);
  const shown = following.value ? settled.value : heatSpan(view.value, selection.value, before.current, extent.value);
  before.current = shown;
  const text = search.value.text;
  const paint = text && patternOf(text).regexp ? spelled(text) : "";
  const columns = Math.max(200, Math.min(MOST_COLUMNS, Math.floor(plotWidth.value)));
  // By core the rows are cores already: a filter on one of them would leave a single row.
  const chosen = by.value === "core" ? { ...filters.value, cpu: [] } : filters.value;
  const params = {
    ...sampleParams(shown, chosen),
    by: by.value,
    rows: frozenRows && rows.value === START.rows ? frozenRows : ribbon ? RIBBON_ROWS : rows.value,
    columns: length(shown) > HEAT_S ? columns : MOST_COLUMNS,
    paint,
  };
  const ready = length(shown) > 0 && plotWidth.value > 0;
  const answer = useColumns("heatmap", ready ? params : null, {
    wait_ms: 150,
    patient: following.value,
  });
  const data = useMemo(() => (answer.data ? heatFrom(answer.data) : null), [answer.data]);
  const core =
    filters.value.cpu.length === 1 && /^\d+$/.test(filters.value.cpu[0]!) ? Number(filters.value.cpu[0]) : null;
  const offset = zoneOffset.value;

  const choose = (range: Span | null, at: number | null): void => {
    if (range && at !== null && at !== core)
      navigate({ selection: range, filters: { ...filters.value, cpu: [String(at)] } });
    else select(range);
  };
  const name = ribbon ? (
    <button
      type="button"
      class="ribbon-name"
      tabIndex={-1}
      title="Show the heat map in full: its rows, scale and legend"
      onClick={() => choosePane("heat", OPENED_PX)}
    >
      Heat map ▸
    </button>
  ) : null;
  if (answer.problem) return <Problem small error={answer.problem} again={answer.again} />;
  if (!data) return <Loading small title="Counting samples" />;
  return (
    <Current class={ribbon ? "samples-heat ribbon" : "samples-heat"} answer={answer} of={spanOf(data)}>
      {name}
      <HeatMap
        data={data}
        view={following.value ? view.value : shown}
        theme={dark.value ? "dark" : "light"}
        selection={selection.value}
        compare={compare.value}
        onSelect={choose}
        onCompare={compareWith}
        onRows={(count) => navigate({ rows: count })}
        by={by.value}
        onBy={(next) => navigate({ by: next })}
        core={core}
        searched={text}
        height={height}
        ribbon={ribbon}
        clock={(at, digits) => clock(at, offset, digits)}
      />
      {core !== null && by.value === "core" && (
        <button type="button" class="button quiet" onClick={() => setFilter("cpu", [])}>
          All cores
        </button>
      )}
    </Current>
  );
}

const spanOf = ({ start, columnS, columns }: HeatData): Span => ({ from: start, to: start + columnS * columns });

/** Lower-case text ignores case on the page; the server needs a flag for that. */
const spelled = (text: string): string => (/[A-Z]/.test(text) ? text : `(?i)${text}`);
