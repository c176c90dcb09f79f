/** Pointer and wheel over the axis: drag selects, with shift or ctrl it compares, an edge of the selection can be moved. */

import type { Span } from "../api/types";
import { compare, selection, view } from "../state";
import { CLICK_PX, clicked, ordered, toTime, toX, wheelFactor } from "./axis";
import { compareWith, draft, panBy, plotWidth, pointed, select, zoomBy, zoomToSelection } from "./moves";

const EDGE_PX = 5;

export interface Pointing {
  at: number;
  x: number;
  clientX: number;
  clientY: number;
}

interface Hands {
  /** Seconds that one cell under the pointer is wide: what a click selects. */
  cell(): number;
  hover(pointing: Pointing | null): void;
}

/** Listens on `surface`, whose width is that of the axis. The answer stops it. */
export function attach(surface: HTMLElement, hands: Hands): () => void {
  let anchor: number | null = null;
  let startX = 0;
  let moved = false;
  let kind: "select" | "compare" = "select";
  const stop = new AbortController();
  const options = { signal: stop.signal };

  const where = (event: MouseEvent): Pointing => {
    const box = surface.getBoundingClientRect();
    const x = Math.max(0, Math.min(box.width, event.clientX - box.left));
    return { at: toTime(view.value, box.width, x), x, clientX: event.clientX, clientY: event.clientY };
  };

  // The axis takes the focus from the keyboard only: a drag needs no frame around it.
  surface.addEventListener(
    "mousedown",
    (event) => {
      event.preventDefault();
      (document.activeElement as HTMLElement | null)?.blur();
    },
    options,
  );
  surface.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      surface.setPointerCapture(event.pointerId);
      const { at, x } = where(event);
      kind = event.shiftKey || event.ctrlKey || event.metaKey ? "compare" : "select";
      const edge =
        kind === "select" ? (grabbed(x, selection.value, "select") ?? grabbed(x, compare.value, "compare")) : null;
      anchor = edge ? edge.anchor : at;
      if (edge) kind = edge.kind;
      startX = x;
      moved = edge !== null;
      hands.hover(null);
    },
    options,
  );

  surface.addEventListener(
    "pointermove",
    (event) => {
      const pointing = where(event);
      pointed.value = pointing.at;
      if (anchor === null) {
        surface.style.cursor =
          (grabbed(pointing.x, selection.value, "select") ?? grabbed(pointing.x, compare.value, "compare"))
            ? "ew-resize"
            : "";
        hands.hover(pointing);
        return;
      }
      moved ||= Math.abs(pointing.x - startX) >= CLICK_PX;
      if (moved) draft.value = { span: ordered(anchor, pointing.at), kind };
    },
    options,
  );

  const finish = (event: PointerEvent): void => {
    if (anchor === null) return;
    const chosen = draft.value?.span ?? null;
    const { at } = where(event);
    anchor = null;
    draft.value = null;
    if (event.type === "pointercancel") return;
    const span: Span | null = moved ? chosen : clicked(at, hands.cell(), view.value);
    if (!span) return;
    if (kind === "compare") compareWith(span);
    else select(span);
  };
  surface.addEventListener("pointerup", finish, options);
  surface.addEventListener("pointercancel", finish, options);
  surface.addEventListener("dblclick", zoomToSelection, options);
  surface.addEventListener(
    "pointerleave",
    () => {
      pointed.value = null;
      hands.hover(null);
    },
    options,
  );
  surface.addEventListener(
    "wheel",
    (event) => {
      const sideways =
        Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
      const zooms = event.ctrlKey || event.metaKey;
      // As in Perfetto and the Firefox Profiler: the wheel alone scrolls, or lanes below the edge could not be reached.
      if (!sideways && !zooms) return;
      event.preventDefault();
      if (sideways && !zooms) panBy((sideways / Math.max(1, plotWidth.value)) * 1.5);
      else zoomBy(wheelFactor(event.deltaY, event.deltaMode), where(event).at);
    },
    { ...options, passive: false },
  );
  return () => stop.abort();
}

/** The far edge of a span whose near edge is under the pointer. */
function grabbed(
  x: number,
  span: Span | null,
  kind: "select" | "compare",
): { anchor: number; kind: "select" | "compare" } | null {
  if (!span) return null;
  const left = toX(view.value, plotWidth.value, span.from);
  const right = toX(view.value, plotWidth.value, span.to);
  if (right - left > 4 * EDGE_PX || x < left || x > right) {
    if (Math.abs(x - left) <= EDGE_PX) return { anchor: span.to, kind };
    if (Math.abs(x - right) <= EDGE_PX) return { anchor: span.from, kind };
  }
  return null;
}
