// Functions by their own time and their total: sorted by any column, filtered by the search, linked to the graph. Only the
// rows in sight exist, so ten thousand functions scroll like ten.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, plural, share } from "../format";
import { type ColourBy, colourOf, css, type Theme } from "./colours";
import { arranged, type TopColumn, type TopOrder, type TopRow } from "./top";
import { type FunctionKey, isSame } from "./transforms";
import type { FlameTree } from "./tree";
import { changed, placeOf } from "./words";

export interface TopTableProps {
  /** Of the tree that is shown (top.ts topOf). */
  readonly rows: readonly TopRow[];
  readonly tree: FlameTree;
  readonly total: number;
  readonly theme: Theme;
  readonly colour: ColourBy;
  /** 1 for each function that a search found: only those are listed. */
  readonly matches?: Uint8Array | null;
  readonly chosen: FunctionKey | null;
  readonly height?: number;
  /** One click or Space: mark it in the graph. */
  readonly onChoose: (fn: FunctionKey | null) => void;
  /** Double click or Enter: its callers and callees. */
  readonly onOpen?: (fn: FunctionKey) => void;
}

const ROW_PX = 24;
const START: TopOrder = { by: "self", descending: true };
/** Of a comparison: what changed most, whichever way. */
const CHANGED: TopOrder = { by: "delta", descending: true };

export function TopTable(props: TopTableProps) {
  const { rows, matches, chosen } = props,
    compared = rows.some((row) => row.selfDelta !== null);
  const [chosenOrder, setOrder] = useState<TopOrder | null>(null);
  const order = chosenOrder ?? (compared ? CHANGED : START);
  const [top, setTop] = useState(0);
  const body = useRef<HTMLDivElement>(null);
  const sorted = useMemo(
    () => arranged(rows, order, matches ? (row) => matches[row.fn] === 1 : undefined),
    [rows, order, matches],
  );
  const height = props.height ?? 420,
    at = chosen ? sorted.findIndex((row) => isSame(row, chosen)) : -1;
  useEffect(() => {
    body.current!.scrollTop = 0;
  }, [order, matches]);
  useEffect(() => {
    if (at < 0) return;
    const box = body.current!,
      y = at * ROW_PX;
    if (y < box.scrollTop || y + ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
  }, [at]);
  const first = Math.max(0, Math.floor(top / ROW_PX) - 4),
    end = Math.min(sorted.length, Math.ceil((top + height) / ROW_PX) + 4);

  const sort = (by: TopColumn): void =>
    setOrder(
      order.by === by ? { by, descending: !order.descending } : { by, descending: by !== "name" && by !== "module" },
    );
  const head = (by: TopColumn, label: string, title: string) => (
    <div
      role="columnheader"
      aria-sort={order.by === by ? (order.descending ? "descending" : "ascending") : "none"}
      class={`zs-col-${by}`}
    >
      <button type="button" onClick={() => sort(by)} title={title}>
        {label}
        <span aria-hidden="true" class="zs-sort">
          {order.by === by ? (order.descending ? "↓" : "↑") : ""}
        </span>
      </button>
    </div>
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[event.key];
    if (step !== undefined) {
      const row = sorted[Math.min(sorted.length - 1, Math.max(0, (at < 0 ? -1 : at) + step))];
      if (row) props.onChoose(keyed(row));
    } else if (event.key === "Enter" && chosen) props.onOpen?.(chosen);
    else if (event.key === "Escape" && chosen) props.onChoose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="zs-top"
      role="table"
      aria-label={`Functions, ${plural(sorted.length, "row")}`}
      aria-rowcount={sorted.length + 1}
    >
      <div class={`zs-top-head ${compared ? "zs-compared" : ""}`} role="row">
        {head("self", compared ? "Self, A" : "Self", "Samples taken in the function itself")}
        {head("total", compared ? "Total, A" : "Total", "Samples with the function on the stack")}
        {compared && head("delta", "Change", "Self time of A less that of B, the largest change first")}
        {head("name", "Function", "By name")}
        {head("module", "Module", "By module")}
      </div>
      <div
        class="zs-top-body"
        ref={body}
        role="rowgroup"
        tabIndex={0}
        style={{ height: `${height}px` }}
        onKeyDown={onKeyDown}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        aria-label="Arrow keys choose a function, Enter shows callers and callees"
      >
        <div class="zs-top-room" style={{ height: `${sorted.length * ROW_PX}px` }}>
          {sorted.slice(first, end).map((row, i) => (
            <Row key={row.fn} row={row} index={first + i} {...props} compared={compared} chosen={isSame(row, chosen)} />
          ))}
        </div>
        {!sorted.length && <p class="zs-empty">{matches ? "No function matches the search." : "No samples."}</p>}
      </div>
    </div>
  );
}

const keyed = ({ name, module }: TopRow): FunctionKey => ({ name, module });

function Row({
  row,
  index,
  tree,
  total,
  compared,
  chosen,
  theme,
  colour,
  onChoose,
  onOpen,
}: {
  row: TopRow;
  index: number;
  total: number;
  compared: boolean;
  chosen: boolean;
} & Pick<TopTableProps, "tree" | "theme" | "colour" | "onChoose" | "onOpen">) {
  const delta = row.selfDelta ?? 0;
  const width = (part: number): string => `${total ? Math.min(100, (100 * part) / total) : 0}%`;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={chosen}
      style={{ top: `${index * ROW_PX}px` }}
      class={`zs-top-row ${chosen ? "zs-chosen" : ""} ${compared ? "zs-compared" : ""}`}
      title={`${row.name}\n${placeOf(row.module, row.kind)}`}
      onClick={() => onChoose(chosen ? null : keyed(row))}
      onDblClick={() => onOpen?.(keyed(row))}
    >
      <div role="cell" class="zs-col-self">
        <i class="zs-share" style={{ width: width(row.self) }} />
        <b>{share(row.self, total)}</b>
        <span>{count(row.self)}</span>
      </div>
      <div role="cell" class="zs-col-total">
        <i class="zs-share" style={{ width: width(row.total) }} />
        <b>{share(row.total, total)}</b>
        <span>{count(row.total)}</span>
      </div>
      {compared && (
        <div role="cell" class={`zs-col-delta ${delta > 0.5 ? "zs-grew" : delta < -0.5 ? "zs-shrank" : ""}`}>
          {delta > 0.5 ? "▲ " : delta < -0.5 ? "▼ " : ""}
          {changed(delta, tree)}
        </div>
      )}
      <div role="cell" class="zs-col-name">
        <i class="zs-dot" style={{ background: css(colourOf(row.name, row.module, row.kind, colour, theme)) }} />
        {row.name}
      </div>
      <div role="cell" class="zs-col-module">
        {row.module ?? row.kind}
      </div>
    </div>
  );
}
