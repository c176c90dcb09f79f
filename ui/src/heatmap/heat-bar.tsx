// The controls and the legend above a heat map.

import { useMemo } from "preact/hooks";
import { count, duration, plural } from "../format";
import { canFold, type HeatData, type Range, shadesOf, stepped } from "./cells";
import { domainOf, legendMarks, levelOf, type Scale } from "./palette";

export const ROW_CHOICES = [10, 20, 25, 50, 99, 100, 200] as const;

export const SPANS = [
  [1, "second"],
  [60, "minute"],
  [3600, "hour"],
] as const;

export interface HeatBarProps {
  /** What is drawn, and what it was made from. */
  readonly heat: HeatData;
  readonly data: HeatData;
  readonly scale: Scale;
  readonly onScale: (scale: Scale) => void;
  readonly onSpan: (seconds: number) => void;
  readonly onRows: ((rows: number) => void) | undefined;
  readonly onBy: ((by: "subsecond" | "core") => void) | undefined;
  readonly selection: Range | null;
  readonly compare: Range | null;
  readonly onChoose: (range: Range | null, asCompare: boolean) => void;
  readonly clock: (at: number, digits: number) => string;
  readonly searched: string | undefined;
}

export function HeatBar({
  heat,
  data,
  scale,
  onScale,
  onSpan,
  onRows,
  onBy,
  selection,
  compare,
  onChoose,
  clock,
  searched,
}: HeatBarProps) {
  return (
    <div class="zs-bar">
      {onBy && (
        <span class="zs-group" role="group" aria-label="Rows are">
          <button type="button" aria-pressed={!heat.cores} onClick={() => onBy("subsecond")}>
            Within each second
          </button>
          <button type="button" aria-pressed={Boolean(heat.cores)} onClick={() => onBy("core")}>
            By core
          </button>
        </span>
      )}
      {canFold(data, 60) && (
        <label class="zs-choice">
          Column{" "}
          <select
            value={String(heat.spanS)}
            title="What the rows are parts of"
            onChange={(event) => onSpan(Number(event.currentTarget.value))}
          >
            {SPANS.filter(([span]) => span === 1 || canFold(data, span)).map(([span, name]) => (
              <option key={span} value={String(span)}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {onRows && !heat.cores && heat.spanS === 1 && (
        <label class="zs-choice">
          Rows{" "}
          <select value={String(data.rows)} onChange={(event) => onRows(Number(event.currentTarget.value))}>
            {[...new Set([...ROW_CHOICES, data.rows])]
              .sort((a, b) => a - b)
              .map((rows) => (
                <option key={rows} value={String(rows)}>
                  {rows} · {duration(1 / rows)}
                </option>
              ))}
          </select>
        </label>
      )}
      <span class="zs-group" role="group" aria-label="Scale of the colours">
        <button
          type="button"
          aria-pressed={scale === "auto"}
          title="As fits: low counts stand out from idleness, and structure from full load"
          onClick={() => onScale("auto")}
        >
          Auto
        </button>
        <button
          type="button"
          aria-pressed={scale === "log"}
          title="Low counts stand out"
          onClick={() => onScale("log")}
        >
          Log
        </button>
        <button
          type="button"
          aria-pressed={scale === "linear"}
          title="Equal steps of count"
          onClick={() => onScale("linear")}
        >
          Linear
        </button>
      </span>
      <span class="zs-group" role="group" aria-label="Selection">
        <button
          type="button"
          disabled={!selection}
          title="Step back by its length (,)"
          aria-label="step back"
          onClick={() => onChoose(stepped(heat, selection!, -1), false)}
        >
          ◀
        </button>
        <button
          type="button"
          disabled={!selection}
          title="Step forward by its length (.)"
          aria-label="step forward"
          onClick={() => onChoose(stepped(heat, selection!, 1), false)}
        >
          ▶
        </button>
        <button
          type="button"
          disabled={!selection}
          title="Clear the selection: show everything (Esc)"
          onClick={() => onChoose(null, false)}
        >
          All
        </button>
      </span>
      {compare && (
        <button
          type="button"
          class="zs-compare-button"
          title={`Compared with ${clock(compare.from, 3)} – ${clock(compare.to, 3)}; stop comparing`}
          aria-label="stop comparing"
          onClick={() => onChoose(null, true)}
        >
          vs {clock(compare.from, 1)} ×
        </button>
      )}
      <span class="zs-push" />
      <HeatLegend heat={heat} scale={scale} searched={searched} />
    </div>
  );
}

function HeatLegend({ heat, scale, searched }: { heat: HeatData; scale: Scale; searched: string | undefined }) {
  const domain = useMemo(() => domainOf(shadesOf(heat)), [heat]);
  return (
    <div
      class="zs-heat-legend"
      role="group"
      aria-label={`${plural(heat.total, "sample")}; a cell has at most ${count(heat.max)}`}
    >
      <span class="faint">{plural(heat.total, "sample")}</span>
      {heat.painted && (
        <span>
          <i class="zs-dot zs-dot-paint" />
          {searched ? <code>{searched}</code> : "matches the search"}
        </span>
      )}
      <span class="zs-ramp" aria-hidden="true">
        <i />
        {legendMarks(domain, scale).map((mark) => (
          <b key={mark} style={{ left: `${100 * levelOf(mark, domain, scale)}%` }}>
            {mark < 10 ? Number(mark.toFixed(1)) : count(Math.round(mark))}
          </b>
        ))}
      </span>
    </div>
  );
}
