// The heat map: when the node was busy, to the part of a second, and where a searched function ran. A range is selected by
// a click (its second), a drag (from cell to cell) or keys; with Ctrl, Cmd or Alt it is what is compared with.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../flame/colours";
import { Tip } from "../flame/Tip";
import { count, counted, percent } from "../flame/words";
import { between, canFold, cellAt, cellSeconds, columnRange, folded, isFine, narrowed, rangeOf, samplesIn, stepped, timeOf, type Cell, type HeatData, type Range } from "./cells";
import { FOOT, LEFT, drawAxes, drawBlind, drawCells, drawMarks, gridOf, lookOf, sized } from "./paint";
import { legendMarks, levelOf, type Scale } from "./palette";

export const ROW_CHOICES = [10, 20, 25, 50, 99, 100, 200] as const;

export interface HeatMapProps {
  /** heatFrom(columns); with `painted` cells in which a searched function ran are painted. */
  readonly data: HeatData;
  readonly theme: Theme;
  readonly selection: Range | null;
  readonly compare: Range | null;
  /** `core` is said when one cell or one row of a map of cores was chosen. */
  readonly onSelect: (range: Range | null, core: number | null) => void;
  readonly onCompare: (range: Range | null) => void;
  /** Into how many parts a second is cut, 10 to 200. */
  readonly onRows?: (rows: number) => void;
  readonly by?: "subsecond" | "core";
  readonly onBy?: (by: "subsecond" | "core") => void;
  /** The core that is selected on a map of cores. */
  readonly core?: number | null;
  readonly clock: (at: number, digits: number) => string;
  /** What is painted, for the words. */
  readonly searched?: string;
  readonly height?: number;
  readonly onOtherKey?: (event: KeyboardEvent) => void;
}

const SPANS = [[1, "second"], [60, "minute"], [3600, "hour"]] as const;

interface Drag {
  readonly from: Cell;
  readonly to: Cell;
  readonly compares: boolean;
}

export function HeatMap(props: HeatMapProps) {
  const { theme, selection, compare, clock } = props;
  const box = useRef<HTMLDivElement>(null), under = useRef<HTMLCanvasElement>(null), over = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [scale, setScale] = useState<Scale>("log");
  const [drag, setDrag] = useState<Drag | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [anchor, setAnchor] = useState<{ cell: Cell; compares: boolean } | null>(null);
  const [pointed, setPointed] = useState<{ cell: Cell; x: number; y: number } | null>(null);
  const [said, setSaid] = useState("");
  const [spanS, setSpan] = useState(1);
  const heat = useMemo(() => narrowed(folded(props.data, spanS), Math.max(50, width - LEFT - 1)), [props.data, spanS, width]);
  const grid = useMemo(() => gridOf(heat, width, props.height ?? 220), [heat, width, props.height]);
  const look = useMemo(() => (box.current ? lookOf(box.current) : null), [theme, width > 0]);

  useLayoutEffect(() => {
    const measure = (): void => setWidth(box.current!.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (!look || width < 1) return;
    const started = performance.now(), context = sized(under.current!, width, grid.height + FOOT);
    if (!context) return;
    drawCells(context, heat, grid, look, scale);
    drawBlind(context, heat, grid, look);
    drawAxes(context, heat, grid, look, clock);
    under.current!.dataset["ms"] = (performance.now() - started).toFixed(2);
  }, [heat, grid, look, scale, width]);

  const drafted = drag ? rangeFor(heat, drag.from, drag.to) : anchor && cursor ? rangeFor(heat, anchor.cell, cursor) : null;
  const compares = drag?.compares ?? anchor?.compares ?? false;
  const row = heat.cores ? rowFor(heat, drag, props.core ?? null) : null;
  useLayoutEffect(() => {
    if (!look || width < 1) return;
    const context = sized(over.current!, width, grid.height + FOOT);
    if (!context) return;
    drawMarks(context, heat, grid, look, {
      selection: drafted && !compares ? drafted : selection, compare: drafted && compares ? drafted : compare, row, cursor,
    });
  }, [heat, grid, look, width, selection, compare, drafted?.from, drafted?.to, compares, row, cursor]);

  const cellUnder = (event: MouseEvent, clamped = false): Cell | null => {
    const { left, top } = over.current!.getBoundingClientRect();
    const column = Math.floor((event.clientX - left - LEFT) / grid.cell.w), line = Math.floor((event.clientY - top) / grid.cell.h);
    const inside = column >= 0 && column < heat.columns && line >= 0 && line < heat.rows;
    if (!inside && !clamped) return null;
    const kept = Math.min(heat.rows - 1, Math.max(0, line));
    return { column: Math.min(heat.columns - 1, Math.max(0, column)), row: heat.cores ? kept : heat.rows - 1 - kept };
  };
  const choose = (range: Range | null, asCompare: boolean, core: number | null = null): void => {
    if (asCompare) props.onCompare(range);
    else props.onSelect(range, core);
    setSaid(range ? `${asCompare ? "Compared with" : "Selected"} ${clock(range.from, 3)} to ${clock(range.to, 3)}, ${counted(samplesIn(heat, range), "sample")}` : "Nothing selected");
  };
  const finish = (event: PointerEvent): void => {
    if (!drag) return;
    const to = cellUnder(event, true) ?? drag.to, isClick = same(drag.from, to);
    setDrag(null);
    if (isClick && event.shiftKey && selection) {
      const cell = rangeOf(heat, to);
      return choose({ from: Math.min(selection.from, cell.from), to: Math.max(selection.to, cell.to) }, drag.compares);
    }
    const core = heat.cores && drag.from.row === to.row ? (heat.cores[to.row] ?? null) : null;
    choose(isClick ? columnRange(heat, to) : rangeFor(heat, drag.from, to), drag.compares, core);
  };

  const describe = (cell: Cell): string => {
    const at = cell.column * heat.rows + cell.row, value = heat.values[at]!;
    const where = heat.cores ? `, core ${heat.cores[cell.row]}` : "";
    const hits = heat.painted ? `, ${percent(heat.painted[at]!, value)} with a match` : "";
    return `${clock(timeOf(heat, cell), isFine(heat) && heat.spanS === 1 ? 3 : 0)}${where}: ${counted(value, "sample")}${hits}`;
  };
  const onKey = (event: KeyboardEvent): void => {
    const here = cursor ?? (selection ? cellAt(heat, selection.from) : busiest(heat));
    const up = heat.cores ? -1 : 1;
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, up], ArrowDown: [0, -up], PageUp: [-10, 0], PageDown: [10, 0], Home: [-1e9, 0], End: [1e9, 0],
    };
    const move = moves[event.key], withCompare = event.ctrlKey || event.metaKey || event.altKey;
    if (move) {
      let column = here.column + move[0], at = here.row + move[1];
      // Time goes on: above the last part of a second is the first of the next.
      if (!heat.cores && isFine(heat) && at >= heat.rows) { column++; at = 0; }
      if (!heat.cores && isFine(heat) && at < 0) { column--; at = heat.rows - 1; }
      const cell = { column: Math.min(heat.columns - 1, Math.max(0, column)), row: Math.min(heat.rows - 1, Math.max(0, at)) };
      if (event.shiftKey && !anchor) setAnchor({ cell: here, compares: withCompare });
      setCursor(cell);
      setSaid(describe(cell));
    } else if (event.key === " ") {
      if (!anchor) { setAnchor({ cell: here, compares: withCompare }); setCursor(here); setSaid("Selection started"); }
      else { setAnchor(null); choose(rangeFor(heat, anchor.cell, here), anchor.compares || withCompare, null); }
    } else if (event.key === "Enter") {
      const core = heat.cores ? (heat.cores[here.row] ?? null) : null;
      if (anchor) choose(rangeFor(heat, anchor.cell, here), anchor.compares || withCompare, null);
      else choose(columnRange(heat, here), withCompare, core);
      setAnchor(null);
    } else if (event.key === "Escape") {
      if (!anchor && !cursor && !selection && !compare) return props.onOtherKey?.(event);
      if (anchor) setAnchor(null);
      else if (compare) choose(null, true);
      else { choose(null, false); setCursor(null); }
    } else if ((event.key === "," || event.key === ".") && selection) choose(stepped(heat, selection, event.key === "," ? -1 : 1), false);
    else return props.onOtherKey?.(event);
    event.preventDefault();
    event.stopPropagation();
  };
  const onKeyUp = (event: KeyboardEvent): void => {
    if (event.key !== "Shift" || !anchor || !cursor) return;
    setAnchor(null);
    choose(rangeFor(heat, anchor.cell, cursor), anchor.compares, null);
  };
  // Cells of another map are other cells.
  useEffect(() => { setCursor(null); setAnchor(null); }, [props.data.start, props.data.columns, props.data.rows, props.data.cores, spanS]);

  return (
    <section class="zs-heat" aria-label="Heat map">
      <div class="zs-bar">
        {props.onBy && (
          <span class="zs-group" role="group" aria-label="Rows are">
            <button type="button" aria-pressed={!heat.cores} onClick={() => props.onBy!("subsecond")}>Part of the second</button>
            <button type="button" aria-pressed={Boolean(heat.cores)} onClick={() => props.onBy!("core")}>Core</button>
          </span>
        )}
        {canFold(props.data, 60) && (
          <label class="zs-choice">Column <select value={String(heat.spanS)} title="What the rows are parts of" onChange={(event) => setSpan(Number(event.currentTarget.value))}>
            {SPANS.filter(([span]) => span === 1 || canFold(props.data, span)).map(([span, name]) => <option key={span} value={String(span)}>{name}</option>)}
          </select></label>
        )}
        {props.onRows && !heat.cores && heat.spanS === 1 && (
          <label class="zs-choice">Rows <select value={String(props.data.rows)} onChange={(event) => props.onRows!(Number(event.currentTarget.value))}>
            {[...new Set([...ROW_CHOICES, props.data.rows])].sort((a, b) => a - b).map((rows) => <option key={rows} value={String(rows)}>{rows} · {(1000 / rows).toFixed(rows > 100 || 1000 % rows === 0 ? 0 : 1)} ms</option>)}
          </select></label>
        )}
        <span class="zs-group" role="group" aria-label="Scale of the colours">
          <button type="button" aria-pressed={scale === "log"} title="Low counts stand out" onClick={() => setScale("log")}>Log</button>
          <button type="button" aria-pressed={scale === "linear"} title="Equal steps of count" onClick={() => setScale("linear")}>Linear</button>
        </span>
        <span class="zs-group" role="group" aria-label="Selection">
          <button type="button" disabled={!selection} title="Step back by its length (,)" aria-label="step back" onClick={() => choose(stepped(heat, selection!, -1), false)}>◀</button>
          <button type="button" disabled={!selection} title="Step on by its length (.)" aria-label="step on" onClick={() => choose(stepped(heat, selection!, 1), false)}>▶</button>
          <button type="button" disabled={!selection} title="Select nothing: show everything (Esc)" onClick={() => choose(null, false)}>All</button>
        </span>
        {compare && <button type="button" class="zs-compare-button" title="Stop comparing" onClick={() => choose(null, true)}>compared with {clock(compare.from, 1)} – {clock(compare.to, 1)} ×</button>}
        <span class="zs-push" />
        <HeatLegend heat={heat} scale={scale} searched={props.searched} />
      </div>
      <div class="zs-heat-box" ref={box} style={{ height: `${grid.height + FOOT}px` }}>
        <canvas ref={under} aria-hidden="true" style={{ width: `${width}px`, height: `${grid.height + FOOT}px` }} />
        <canvas ref={over} tabIndex={0} role="application" aria-roledescription="heat map" style={{ width: `${width}px`, height: `${grid.height + FOOT}px` }}
          aria-label={spokenHeat(heat, clock)} onKeyDown={onKey} onKeyUp={onKeyUp}
          onPointerDown={(event) => {
            const cell = event.button === 0 ? cellUnder(event) : null;
            if (!cell) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            setCursor(null);
            setAnchor(null);
            setDrag({ from: cell, to: cell, compares: event.ctrlKey || event.metaKey || event.altKey });
          }}
          onPointerMove={(event) => {
            if (drag) { const to = cellUnder(event, true)!; if (!same(to, drag.to)) setDrag({ ...drag, to }); }
            const cell = cellUnder(event);
            setPointed(cell ? { cell, x: event.clientX, y: event.clientY } : null);
          }}
          onPointerUp={finish} onPointerCancel={() => setDrag(null)} onPointerLeave={() => setPointed(null)}
          onDblClick={(event) => { const cell = cellUnder(event); if (cell && isFine(heat)) choose(rangeOf(heat, cell), event.ctrlKey || event.metaKey || event.altKey); }}
          onContextMenu={(event) => { if (event.ctrlKey) event.preventDefault(); }}
        />
      </div>
      <p class="hidden-text" aria-live="polite">{said}</p>
      {pointed && <CellTip heat={heat} cell={pointed.cell} x={pointed.x} y={pointed.y} clock={clock} draft={drafted} />}
    </section>
  );
}

function CellTip({ heat, cell, x, y, clock, draft }: { heat: HeatData; cell: Cell; x: number; y: number; clock: HeatMapProps["clock"]; draft: Range | null }) {
  if (cell.column >= heat.columns || cell.row >= heat.rows) return null;
  const at = cell.column * heat.rows + cell.row, value = heat.values[at]!;
  const blind = heat.blind.some(([from, to]) => timeOf(heat, cell) >= from && timeOf(heat, cell) < to);
  return (
    <Tip x={x} y={y}>
      <div class="zs-tip-name">{clock(timeOf(heat, cell), isFine(heat) && heat.spanS === 1 ? 3 : 0)}{heat.cores && ` · core ${heat.cores[cell.row]}`}</div>
      <div class="zs-tip-place">{isFine(heat) ? lengthOf(cellSeconds(heat)) : lengthOf(heat.columnS)}</div>
      <dl>
        <div><dt>samples</dt><dd>{blind && !value ? "not recorded" : count(value)}</dd></div>
        {heat.painted && <div><dt>with a match</dt><dd>{count(heat.painted[at]!)} · {percent(heat.painted[at]!, value)}</dd></div>}
        {draft && <div><dt>range</dt><dd>{(draft.to - draft.from).toFixed(3)} s · {counted(samplesIn(heat, draft), "sample")}</dd></div>}
      </dl>
      {!draft && <div class="zs-tip-hint">click: this column · drag: from cell to cell · double-click: this cell · Ctrl: compare</div>}
    </Tip>
  );
}

function HeatLegend({ heat, scale, searched }: { heat: HeatData; scale: Scale; searched: string | undefined }) {
  return (
    <div class="zs-heat-legend" aria-label={`${counted(heat.total, "sample")}; a cell has at most ${count(heat.max)}`}>
      <span class="faint">{counted(heat.total, "sample")}</span>
      {heat.painted && <span><i class="zs-dot zs-dot-paint" />{searched ? <code>{searched}</code> : "matches the search"}</span>}
      <span class="zs-ramp" aria-hidden="true"><i />
        {legendMarks(heat.max, scale).map((mark) => <b key={mark} style={{ left: `${100 * levelOf(mark, heat.max, scale)}%` }}>{count(mark)}</b>)}
      </span>
    </div>
  );
}

function rangeFor(heat: HeatData, from: Cell, to: Cell): Range {
  return between(heat, from, to);
}

function rowFor(heat: HeatData, drag: Drag | null, core: number | null): number | null {
  if (drag) return drag.from.row === drag.to.row ? drag.to.row : null;
  const row = core === null ? -1 : (heat.cores?.indexOf(core) ?? -1);
  return row < 0 ? null : row;
}

const lengthOf = (seconds: number): string => (seconds < 1 ? `${+(1000 * seconds).toFixed(1)} ms` : `${+seconds.toFixed(1)} s`);

const same = (a: Cell, b: Cell): boolean => a.column === b.column && a.row === b.row;

function busiest(heat: HeatData): Cell {
  let best = 0;
  for (let cell = 1; cell < heat.values.length; cell++) if (heat.values[cell]! > heat.values[best]!) best = cell;
  return { column: Math.floor(best / heat.rows), row: best % heat.rows };
}

function spokenHeat(heat: HeatData, clock: HeatMapProps["clock"]): string {
  const cell = busiest(heat);
  const what = heat.cores ? `cores, ${heat.columnS} seconds a column` : `parts of each ${SPANS.find(([span]) => span === heat.spanS)?.[1] ?? "second"}`;
  return `Heat map of ${counted(heat.total, "sample")} by ${what}, from ${clock(heat.start, 0)}. ` +
    (heat.max ? `The busiest cell has ${count(heat.max)} at ${clock(timeOf(heat, cell), 3)}. ` : "It is empty. ") +
    (heat.blind.length ? `${counted(heat.blind.length, "span")} not recorded. ` : "") + "Arrow keys move, Enter selects the second, Shift and arrows a range.";
}
