// Thirty days of zombies with uPlot. Reboots are lines of their own, with a word: a reboot that helped is the proof that
// nothing else did.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock, compact, count, day, duration, moment } from "../../format";
import "uplot/dist/uPlot.min.css";
import { colourOf, dark, zoneOffset } from "../../state";
import type { Series } from "./series";

const TALL = 260;

export function HistoryChart({ series, label }: { series: Series; label: string }) {
  const holder = useRef<HTMLDivElement>(null);
  const isDark = dark.value;
  const zone = zoneOffset.value;
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const data: uPlot.AlignedData = [series.at, series.restarts, series.dying, series.total, series.saturated];
    const chart = new uPlot(options(element.clientWidth, series, zone), data, element);
    const watch = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: TALL }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, [series, isDark, zone]);
  return <div ref={holder} class="pg-chart" role="img" aria-label={label} />;
}

function options(width: number, series: Series, zone: number): uPlot.Options {
  const ink = colourOf("--faint");
  const line = colourOf("--line");
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: "11px system-ui, sans-serif",
  };
  return {
    width,
    height: TALL,
    padding: [14, 12, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date((at + zone) * 1e3), "Etc/UTC"),
    cursor: { y: false, points: { size: 6 } },
    scales: {
      y: { range: (_, __, most) => [0, Math.max(10, most * 1.08)] },
      restarts: { range: (_, __, most) => [0, Math.max(4, (most ?? 0) * 3)] },
    },
    axes: [
      { ...axis, space: 80, values: (_, at) => at.map((each) => tickName(each, series, zone)) },
      { ...axis, size: 56, values: (_, values) => values.map(compact) },
      { ...axis, scale: "restarts", side: 1, size: 44, grid: { show: false }, show: series.restarts.some(Boolean) },
    ],
    series: [
      { label: "from", value: (_, at) => (at === null ? "–" : moment(at, zone)) },
      {
        label: "restarts",
        scale: "restarts",
        stroke: "transparent",
        width: 0,
        paths: uPlot.paths.bars!({ size: [0.8, 14] }),
        fill: faded("--warn", 30),
        points: { show: false },
        value: said,
      },
      {
        label: "dying",
        stroke: colourOf("--zombie"),
        width: 2,
        fill: faded("--zombie", 18),
        points: { show: false },
        value: said,
      },
      { label: "all", stroke: colourOf("--faint"), width: 1, dash: [4, 3], points: { show: false }, value: said },
      { label: "cores lost", show: false, value: (_, value) => (value === null ? "–" : duration(value)) },
    ],
    hooks: { draw: [(chart) => drawReboots(chart, series.reboots)] },
  };
}

const faded = (variable: string, part: number): string =>
  `color-mix(in srgb, ${colourOf(variable)} ${part}%, transparent)`;

/** A day where days are shown, else the time of day. */
function tickName(at: number, { at: all }: Series, zone: number): string {
  const long = (all[all.length - 1] ?? 0) - (all[0] ?? 0);
  return long > 3 * 86400 ? day(at, zone).slice(5) : clock(at, zone).slice(0, long > 1200 ? 5 : 8);
}

const said = (_: uPlot, value: number | null): string => (value === null ? "–" : count(value));

function drawReboots(chart: uPlot, reboots: readonly number[]): void {
  const { ctx, bbox } = chart;
  const dense = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = colourOf("--accent");
  ctx.fillStyle = colourOf("--accent");
  ctx.lineWidth = dense;
  ctx.font = `${11 * dense}px system-ui, sans-serif`;
  for (const at of reboots) {
    const x = Math.round(chart.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.setLineDash([5 * dense, 4 * dense]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    const room = x + 60 * dense < bbox.left + bbox.width;
    ctx.textAlign = room ? "left" : "right";
    ctx.fillText("rebooted", x + (room ? 4 : -4) * dense, bbox.top + 12 * dense);
  }
  ctx.restore();
}
