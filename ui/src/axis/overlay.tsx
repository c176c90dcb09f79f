/** What is chosen, drawn over every lane: only these boxes move while a hand drags, so that a drag is never late. */

import type { Span } from "../api/types";
import { clock } from "../format";
import { lanes } from "../lanes/load";
import { compare, selection, view, zoneOffset } from "../state";
import { precision, toX } from "./axis";
import { draft, plotWidth, pointed } from "./moves";

export function Overlay() {
  const dragged = draft.value;
  const chosen = dragged?.kind === "select" ? dragged.span : selection.value;
  const other = dragged?.kind === "compare" ? dragged.span : compare.value;
  return (
    <div class="overlay" aria-hidden="true">
      {(lanes.value?.events ?? [])
        .filter((one) => one.kind === "mark")
        .map((one) => (
          <Line key={`${one.at}${one.text}`} at={one.at} />
        ))}
      {other && <Box span={other} kind="compare" letter={chosen ? "B" : ""} />}
      {chosen && <Box span={chosen} kind="select" letter={other ? "A" : ""} />}
      <Pointer />
    </div>
  );
}

function Box({ span, kind, letter }: { span: Span; kind: string; letter: string }) {
  const width = plotWidth.value;
  const left = Math.max(-2, toX(view.value, width, span.from));
  const right = Math.min(width + 2, toX(view.value, width, span.to));
  if (right < 0 || left > width) return null;
  return (
    <div
      class={`chosen ${kind}`}
      style={{ transform: `translateX(${left}px)`, width: `${Math.max(2, right - left)}px` }}
    >
      {letter && <b>{letter}</b>}
    </div>
  );
}

/** A mark goes through all lanes; its flag is among the events. */
function Line({ at }: { at: number }) {
  const x = toX(view.value, plotWidth.value, at);
  return x < 0 || x > plotWidth.value ? null : (
    <i class="mark-line" style={{ transform: `translateX(${Math.round(x)}px)` }} />
  );
}

function Pointer() {
  const at = pointed.value;
  if (at === null) return null;
  const width = plotWidth.value;
  const x = toX(view.value, width, at);
  const text = clock(at, zoneOffset.value, precision(view.value, width));
  return (
    <div class={`pointer${x > width - 90 ? " flipped" : ""}`} style={{ transform: `translateX(${x}px)` }}>
      <span>{text}</span>
    </div>
  );
}
