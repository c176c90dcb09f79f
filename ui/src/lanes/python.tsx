/** What Python was doing: a row for each thread, a bar for each run of looks that saw the same line of own code. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { PythonLane } from "../api/types";
import { toX } from "../axis/axis";
import { sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { css, colourOf as frameColour, inkOn } from "../flame/colours";
import { count, duration } from "../format";
import { colourOf, dark, filters, setFilter, view } from "../state";
import { areLoaded, lanes } from "./load";
import { barsOf } from "./python-bars";
import { Row, type TipRow } from "./row";

export const THREAD_PX = 15;
/** The server answers with a lane in windows of up to this. */
const LANE_S = 900;
/** Rows before the reader asks for more. */
export const FEW_THREADS = 4;
const MANY_THREADS = 40;

export const pythonThreads = signal(FEW_THREADS);

type Named = Pick<PythonLane, "program" | "comm" | "rank" | "main" | "tid">;

/** jx.py main 1859, train.py rank 3 77, jx.py feeder 1877 */
export function threadName({ program, comm, rank, main, tid }: Named): string {
  const which = main ? (rank === null ? "main" : "") : comm && program ? comm : "thread";
  return [program ?? comm ?? "Python", rank === null ? "" : `rank ${rank}`, which, tid].filter(Boolean).join(" ");
}

/** Those that pass the filters. A server has filtered them already; a file has what was put into it. */
function kept(): PythonLane[] {
  const { pid, tid } = filters.value;
  const has = (wanted: readonly string[], value: number): boolean => !wanted.length || wanted.includes(String(value));
  return (lanes.value?.python ?? []).filter((one) => has(pid, one.pid) && has(tid, one.tid));
}

export function PythonRows() {
  const found = kept();
  const left = lanes.value?.python_left_out ?? 0;
  const isWide = view.value.to - view.value.from > LANE_S;
  if (!found.length)
    return (
      <Row label="Python" class="chart-row python-row flat" height={14} blind={/^python stacks$/}>
        <span class="lane-note">
          {isWide
            ? `zoom in to ${duration(LANE_S)} or less to see what Python threads were doing`
            : !areLoaded()
              ? "not loaded"
              : filters.value.tid.length || filters.value.pid.length || filters.value.comm.length
                ? "no Python thread matches the filters"
                : "no Python thread was read in view"}
        </span>
      </Row>
    );
  return (
    <>
      {found.map((thread) => (
        <Row
          key={`${thread.pid} ${thread.tid}`}
          label={
            <button
              type="button"
              class="track-label thread"
              tabIndex={-1}
              title={`${threadName(thread)}: only this thread`}
              onClick={() => setFilter("tid", [String(thread.tid)])}
            >
              {threadName(thread)}
            </button>
          }
          class="chart-row python-row"
          height={THREAD_PX}
          blind={/^python stacks$/}
        >
          <ThreadCanvas thread={thread} />
        </Row>
      ))}
      {(left > 0 || pythonThreads.value > FEW_THREADS) && (
        <Row
          label={
            <button
              type="button"
              class="track-label thread"
              onClick={() => (pythonThreads.value = left > 0 ? MANY_THREADS : FEW_THREADS)}
            >
              {left > 0 ? `+ ${count(left)} more` : "show fewer"}
            </button>
          }
          class="chart-row python-row more"
          height={THREAD_PX}
        >
          {null}
        </Row>
      )}
    </>
  );
}

function ThreadCanvas({ thread }: { thread: PythonLane }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = plotWidth.value;
  const shown = view.value;
  const theme = dark.value ? "dark" : "light";
  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, THREAD_PX);
    if (!context) return;
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const bar of barsOf(thread, (at) => toX(shown, width, at), width)) {
      const fill = frameColour(bar.what, null, "python", "kind", theme);
      // Waiting is a frame, not a fainter fill: words on it keep the contrast of the ground.
      context.fillStyle = css(fill);
      if (bar.waits) {
        context.globalAlpha = 0.25;
        context.fillRect(bar.x, 1, bar.width, THREAD_PX - 2);
        context.globalAlpha = 1;
        context.fillRect(bar.x, THREAD_PX - 3, bar.width, 2);
      } else context.fillRect(bar.x, 1, bar.width, THREAD_PX - 2);
      if (bar.width < 40) continue;
      context.save();
      context.beginPath();
      context.rect(bar.x, 0, bar.width, THREAD_PX);
      context.clip();
      context.fillStyle = bar.waits ? colourOf("--ink") : inkOn(fill);
      context.fillText(bar.what, bar.x + 3, THREAD_PX / 2);
      context.restore();
    }
  });
  return (
    <canvas
      ref={canvas}
      class="chart"
      role="img"
      aria-label={`${threadName(thread)}: ${thread.what.length} spans, first in ${thread.what[0] ?? "nothing"}`}
    />
  );
}

/** What each thread was doing at a moment, for the tip. */
export function pythonRows(at: number): TipRow[] {
  return kept().map((thread): TipRow => {
    const n = thread.from.findLastIndex((from) => from <= at + 0.5);
    const near = n >= 0 && (thread.to[n] ?? 0) >= at - 1;
    const before = at < (thread.from[0] ?? Infinity) - 0.5;
    const doing = near ? `${thread.waits[n] ? "waits in " : ""}${thread.what[n]}` : before ? "not yet seen" : null;
    return [threadName(thread), "--gpu-lowest", doing];
  });
}
