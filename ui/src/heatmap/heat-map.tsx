// The heat map: when the node was busy, to the part of a second, and where a searched function ran. A range is selected by
// a click (its second), a drag (from cell to cell) or keys; with Ctrl, Cmd or Alt it is what is compared with.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../flame/colours";
import { count, plural, share } from "../format";
import { CellTip } from "./cell-tip";
import {
  between,
  type Cell,
  cellAt,
  columnRange,
  folded,
  type HeatData,
  isFine,
  moved,
  narrowed,
  type Range,
  rangeOf,
  samplesIn,
  timeOf,
} from "./cells";
import { HeatBar, SPANS } from "./heat-bar";
import { drawAxes, drawBlind, drawCells, drawMarks, FOOT, gridOf, LEFT, lookOf, sized, within } from "./paint";
import type { Scale } from "./palette";

export interface HeatMapProps {
  /** heatFrom(columns); with `painted` cells in which a searched function ran are painted. */
  readonly data: HeatData;
  readonly theme: Theme;
  readonly selection: Range | null;
  readonly compare: Range | null;
  /** `core` is set when one cell or one row of a map of cores was chosen. */
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
  /** Only the picture, without controls and axes. */
  readonly ribbon?: boolean;
  /** What a shared time axis shows: columns then stand below their time on it. Else they fill the width. */
  readonly view?: Range | null;
}

interface Drag {
  readonly from: Cell;
  readonly to: Cell;
  readonly compares: boolean;
}

export function HeatMap(props: HeatMapProps) {
  const { theme, selection, compare, clock } = props;
  const box = useRef<HTMLDivElement>(null),
    under = useRef<HTMLCanvasElement>(null),
    over = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [scale, setScale] = useState<Scale>("auto");
  const [drag, setDrag] = useState<Drag | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [anchor, setAnchor] = useState<{ cell: Cell; compares: boolean } | null>(null);
  const [pointed, setPointed] = useState<{ cell: Cell; x: number; y: number } | null>(null);
  const [said, setSaid] = useState("");
  const [spanS, setSpan] = useState(1);
  const heat = useMemo(
    () => narrowed(folded(props.data, spanS), Math.max(50, width - LEFT - 1)),
    [props.data, spanS, width],
  );
  const grid = useMemo(
    () => gridOf(heat, width, props.height ?? 220, props.view, props.ribbon),
    [heat, width, props.height, props.view?.from, props.view?.to, props.ribbon],
  );
  const foot = props.ribbon ? 0 : FOOT;
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
    const started = performance.now(),
      context = sized(under.current!, width, grid.height + foot);
    if (!context) return;
    within(context, grid, () => {
      drawCells(context, heat, grid, look, scale);
      drawBlind(context, heat, grid, look);
    });
    if (!props.ribbon) drawAxes(context, heat, grid, look, clock);
    under.current!.dataset.ms = (performance.now() - started).toFixed(2);
  }, [heat, grid, look, scale, width]);

  const drafted = drag
    ? between(heat, drag.from, drag.to)
    : anchor && cursor
      ? between(heat, anchor.cell, cursor)
      : null;
  const compares = drag?.compares ?? anchor?.compares ?? false;
  const row = heat.cores ? rowFor(heat, drag, props.core ?? null) : null;
  useLayoutEffect(() => {
    if (!look || width < 1) return;
    const context = sized(over.current!, width, grid.height + foot);
    if (!context) return;
    within(context, grid, () =>
      drawMarks(context, heat, grid, look, {
        selection: drafted && !compares ? drafted : selection,
        compare: drafted && compares ? drafted : compare,
        row,
        cursor,
      }),
    );
  }, [heat, grid, look, width, selection, compare, drafted?.from, drafted?.to, compares, row, cursor]);

  const cellUnder = (event: MouseEvent, clamped = false): Cell | null => {
    const { left, top } = over.current!.getBoundingClientRect();
    const column = Math.floor((event.clientX - left - grid.left) / grid.cell.w),
      line = Math.floor((event.clientY - top) / grid.cell.h);
    const inside =
      event.clientX - left >= LEFT && column >= 0 && column < heat.columns && line >= 0 && line < heat.rows;
    if (!inside && !clamped) return null;
    const kept = Math.min(heat.rows - 1, Math.max(0, line));
    return { column: Math.min(heat.columns - 1, Math.max(0, column)), row: heat.cores ? kept : heat.rows - 1 - kept };
  };
  const choose = (range: Range | null, asCompare: boolean, core: number | null = null): void => {
    if (asCompare) props.onCompare(range);
    else props.onSelect(range, core);
    setSaid(
      range
        ? `${asCompare ? "Compared with" : "Selected"} ${clock(range.from, 3)} to ${clock(range.to, 3)}, ${plural(samplesIn(heat, range), "sample")}`
        : "Nothing selected",
    );
  };
  const finish = (event: PointerEvent): void => {
    if (!drag) return;
    const to = cellUnder(event, true) ?? drag.to,
      isClick = same(drag.from, to);
    setDrag(null);
    if (isClick && event.shiftKey && selection) {
      const cell = rangeOf(heat, to);
      return choose({ from: Math.min(selection.from, cell.from), to: Math.max(selection.to, cell.to) }, drag.compares);
    }
    const core = heat.cores && drag.from.row === to.row ? (heat.cores[to.row] ?? null) : null;
    choose(isClick ? columnRange(heat, to) : between(heat, drag.from, to), drag.compares, core);
  };

  const describe = (cell: Cell): string => {
    const at = cell.column * heat.rows + cell.row,
      value = heat.values[at]!;
    const where = heat.cores ? `, core ${heat.cores[cell.row]}` : "";
    const hits = heat.painted ? `, ${share(heat.painted[at]!, value)} with a match` : "";
    return `${clock(timeOf(heat, cell), isFine(heat) && heat.spanS === 1 ? 3 : 0)}${where}: ${plural(value, "sample")}${hits}`;
  };
  const onKey = (event: KeyboardEvent): void => {
    const here = cursor ?? (selection ? cellAt(heat, selection.from) : busiest(heat));
    const cell = moved(heat, here, event.key),
      withCompare = event.ctrlKey || event.metaKey || event.altKey;
    if (cell) {
      if (event.shiftKey && !anchor) setAnchor({ cell: here, compares: withCompare });
      setCursor(cell);
      setSaid(describe(cell));
    } else if (event.key === " ") {
      if (!anchor) {
        setAnchor({ cell: here, compares: withCompare });
        setCursor(here);
        setSaid("Selection started");
      } else {
        setAnchor(null);
        choose(between(heat, anchor.cell, here), anchor.compares || withCompare, null);
      }
    } else if (event.key === "Enter") {
      const core = heat.cores ? (heat.cores[here.row] ?? null) : null;
      if (anchor) choose(between(heat, anchor.cell, here), anchor.compares || withCompare, null);
      else choose(columnRange(heat, here), withCompare, core);
      setAnchor(null);
    } else if (event.key === "Escape" && anchor) {
      setAnchor(null);
    } else {
      if (event.key === "Escape") setCursor(null);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const onKeyUp = (event: KeyboardEvent): void => {
    if (event.key !== "Shift" || !anchor || !cursor) return;
    setAnchor(null);
    choose(between(heat, anchor.cell, cursor), anchor.compares, null);
  };
  // Cells of another map are other cells.
  useEffect(() => {
    setCursor(null);
    setAnchor(null);
  }, [props.data.start, props.data.columns, props.data.rows, props.data.cores, spanS]);

  return (
    <section class="zs-heat" aria-label="Heat map">
      {!props.ribbon && (
        <HeatBar
          heat={heat}
          data={props.data}
          scale={scale}
          onScale={setScale}
          onSpan={setSpan}
          onRows={props.onRows}
          onBy={props.onBy}
          selection={selection}
          compare={compare}
          onChoose={choose}
          clock={clock}
          searched={props.searched}
        />
      )}
      <div class="zs-heat-box" ref={box} style={{ height: `${grid.height + foot}px` }}>
        <canvas ref={under} aria-hidden="true" style={{ width: `${width}px`, height: `${grid.height + foot}px` }} />
        <canvas
          ref={over}
          tabIndex={0}
          role="application"
          aria-roledescription="heat map"
          style={{ width: `${width}px`, height: `${grid.height + foot}px` }}
          aria-label={spokenHeat(heat, clock)}
          onKeyDown={onKey}
          onKeyUp={onKeyUp}
          onPointerDown={(event) => {
            const cell = event.button === 0 ? cellUnder(event) : null;
            if (!cell) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            setCursor(null);
            setAnchor(null);
            setDrag({ from: cell, to: cell, compares: event.ctrlKey || event.metaKey || event.altKey });
          }}
          onPointerMove={(event) => {
            if (drag) {
              const to = cellUnder(event, true)!;
              if (!same(to, drag.to)) setDrag({ ...drag, to });
            }
            const cell = cellUnder(event);
            setPointed(cell ? { cell, x: event.clientX, y: event.clientY } : null);
          }}
          onPointerUp={finish}
          onPointerCancel={() => setDrag(null)}
          onPointerLeave={() => setPointed(null)}
          onDblClick={(event) => {
            const cell = cellUnder(event);
            if (cell && isFine(heat)) choose(rangeOf(heat, cell), event.ctrlKey || event.metaKey || event.altKey);
          }}
          onContextMenu={(event) => {
            if (event.ctrlKey) event.preventDefault();
          }}
        />
      </div>
      <p class="hidden-text" aria-live="polite">
        {said}
      </p>
      {pointed && <CellTip heat={heat} cell={pointed.cell} x={pointed.x} y={pointed.y} clock={clock} draft={drafted} />}
    </section>
  );
}

function rowFor(heat: HeatData, drag: Drag | null, core: number | null): number | null {
  if (drag) return drag.from.row === drag.to.row ? drag.to.row : null;
  const row = core === null ? -1 : (heat.cores?.indexOf(core) ?? -1);
  return row < 0 ? null : row;
}

const same = (a: Cell, b: Cell): boolean => a.column === b.column && a.row === b.row;

function busiest(heat: HeatData): Cell {
  let best = 0;
  for (let cell = 1; cell < heat.values.length; cell++) if (heat.values[cell]! > heat.values[best]!) best = cell;
  return { column: Math.floor(best / heat.rows), row: best % heat.rows };
}

function spokenHeat(heat: HeatData, clock: HeatMapProps["clock"]): string {
  const cell = busiest(heat);
  const what = heat.cores
    ? `cores, ${heat.columnS} seconds a column`
    : `parts of each ${SPANS.find(([span]) => span === heat.spanS)?.[1] ?? "second"}`;
  return (
    `Heat map of ${plural(heat.total, "sample")} by ${what}, from ${clock(heat.start, 0)}. ` +
    (heat.max ? `The busiest cell has ${count(heat.max)} at ${clock(timeOf(heat, cell), 3)}. ` : "It is empty. ") +
    (heat.blind.length ? `${plural(heat.blind.length, "span")} not recorded. ` : "") +
    (heat.leftOut.length ? `${plural(heat.leftOut.length, "span")} not in this file. ` : "") +
    "Arrow keys move, Enter selects the second, Shift and arrows a range."
  );
}
