/** What Python was doing: a line for each thread, a bar for each run of looks that saw the same line of own code. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { toX } from "../axis/axis";
import { sharp } from "../axis/canvas";
import { plotWidth } from "../axis/moves";
import { css, colourOf as frameColour } from "../flame/colours";
import { colourOf, dark, view } from "../state";
import { lanes } from "./load";
import { barsOf } from "./python-bars";

export const THREAD_PX = 15;

export function pythonThreads(): number {
  return lanes.value?.python.length ?? 0;
}

export function PythonLanes() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = plotWidth.value;
  const shown = view.value;
  const found = lanes.value?.python ?? [];
  const theme = dark.value ? "dark" : "light";
  useLayoutEffect(() => {
    const context = canvas.current && sharp(canvas.current, width, THREAD_PX * found.length);
    if (!context) return;
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    found.forEach((thread, row) => {
      const y = row * THREAD_PX;
      for (const bar of barsOf(thread, (at) => toX(shown, width, at), width)) {
        context.globalAlpha = bar.waits ? 0.45 : 1;
        context.fillStyle = css(frameColour(bar.what, null, "python", "kind", theme));
        context.fillRect(bar.x, y + 1, bar.width, THREAD_PX - 2);
        context.globalAlpha = 1;
        if (bar.width < 40) continue;
        context.save();
        context.beginPath();
        context.rect(bar.x, y, bar.width, THREAD_PX);
        context.clip();
        context.fillStyle = colourOf("--ink");
        context.fillText(bar.what, bar.x + 3, y + THREAD_PX / 2);
        context.restore();
      }
    });
  });
  return <canvas ref={canvas} class="chart" aria-hidden="true" />;
}

/** What each thread was doing at a moment, for the tip. */
export function pythonRows(at: number): [string, string, string | null][] {
  return (lanes.value?.python ?? []).map((thread): [string, string, string | null] => {
    const n = thread.from.findLastIndex((from) => from <= at + 0.5);
    const near = n >= 0 && (thread.to[n] ?? 0) >= at - 1;
    const doing = near ? `${thread.waits[n] ? "waits in " : ""}${thread.what[n]}` : null;
    return [`${thread.comm ?? "Python"} (${thread.tid})`, "--gpu-lowest", doing];
  });
}
