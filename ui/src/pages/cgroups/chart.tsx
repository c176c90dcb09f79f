// Thirty days of zombies. Reboots are separate lines, with a label: a reboot that helped is the proof that nothing else
// did. Lines are cut where nothing was measured, as those of the lanes are (lanes/series.ts).

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { marks, toTime, toX } from "../../axis/axis";
import { compact, count, duration, moment } from "../../format";
import { highest, type Point, pieces } from "../../lanes/series";
import { zoneOffset } from "../../state";
import type { Series } from "./series";

const TALL = 240;
const PLOT = { left: 56, right: 44, top: 14, bottom: 22 };
const BAR_PX = 10;
/** Of the height: bars of restarts stand below the lines. */
const BARS = 1 / 3;

export function HistoryChart({ series, label }: { series: Series; label: string }) {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [pointed, point] = useState<number | null>(null);
  useLayoutEffect(() => {
    const measure = (): void => setWidth(holder.current!.clientWidth);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(holder.current!);
    return () => watch.disconnect();
  }, []);
  const wide = Math.max(10, width - PLOT.left - PLOT.right);
  const near = pointed === null ? series.at.length - 1 : nearest(series, wide, pointed - PLOT.left);
  return (
    <div ref={holder} class="pg-chart">
      {width > 0 && (
        <svg
          width={width}
          height={TALL}
          role="img"
          aria-label={label}
          onPointerMove={(event) => point(event.clientX - event.currentTarget.getBoundingClientRect().left)}
          onPointerLeave={() => point(null)}
        >
          <Picture series={series} wide={wide} near={pointed === null ? null : near} />
        </svg>
      )}
      <Reading series={series} near={near} />
    </div>
  );
}

const viewOf = ({ at }: Series) => ({ from: at[0] ?? 0, to: Math.max((at[0] ?? 0) + 1, at[at.length - 1] ?? 0) });

/** The point at a pixel that has any reading. Pure. */
export function nearest(series: Series, wide: number, x: number): number {
  const at = toTime(viewOf(series), wide, x);
  let best = -1;
  series.at.forEach((each, n) => {
    if (series.dying[n] === null && series.total[n] === null) return;
    if (best < 0 || Math.abs(each - at) < Math.abs(series.at[best]! - at)) best = n;
  });
  return best;
}

function Picture({ series, wide, near }: { series: Series; wide: number; near: number | null }) {
  const zone = zoneOffset.value;
  const view = viewOf(series);
  const high = TALL - PLOT.top - PLOT.bottom;
  const { at, dying, total, restarts } = series;
  const top = Math.max(10, highest(at, total, view), highest(at, dying, view)) * 1.08;
  const most = Math.max(4, highest(at, restarts, view) / BARS);
  const x = (time: number): number => toX(view, wide, time);
  const y = (value: number, of: number): number => high - (value / of) * high;
  const path = (found: Point[][]): string =>
    found.map((piece) => `M${piece.map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L")}`).join("");
  const lines = pieces(at, dying, view, wide, high, top);
  const area = lines.map(
    (piece) => `${path([piece])}L${piece[piece.length - 1]![0].toFixed(1)} ${high}L${piece[0]![0].toFixed(1)} ${high}Z`,
  );
  return (
    <g transform={`translate(${PLOT.left} ${PLOT.top})`}>
      {[0, 0.5, 1].map((part) => (
        <g key={part} class="pg-grid">
          <line x2={wide} y1={high * part} y2={high * part} />
          <text x={-8} y={high * part + 4} text-anchor="end">
            {compact(top * (1 - part))}
          </text>
        </g>
      ))}
      {marks(view, wide, zone).map((mark) => (
        <text key={mark.at} class="pg-tick" x={mark.x} y={high + 16} text-anchor="middle">
          {mark.day && !mark.label.includes("-") ? `${mark.day.slice(5)} ${mark.label}` : mark.label}
        </text>
      ))}
      {at.map((each, n) =>
        restarts[n] ? (
          <rect
            key={each}
            class="pg-restarts"
            x={x(each) - BAR_PX / 2}
            y={y(restarts[n]!, most)}
            width={BAR_PX}
            height={high - y(restarts[n]!, most)}
          />
        ) : null,
      )}
      <path class="pg-area" d={area.join("")} />
      <path class="pg-all" d={path(pieces(at, total, view, wide, high, top))} />
      <path class="pg-dying" d={path(lines)} />
      {series.reboots.map((each) => (
        <g key={each} class="pg-reboot" transform={`translate(${x(each).toFixed(1)} 0)`}>
          <line y2={high} />
          <text x={x(each) + 60 < wide ? 4 : -4} y={12} text-anchor={x(each) + 60 < wide ? "start" : "end"}>
            rebooted
          </text>
        </g>
      ))}
      {near !== null && near >= 0 && <line class="pg-pointer" x1={x(at[near]!)} x2={x(at[near]!)} y2={high} />}
    </g>
  );
}

/** The values under the pointer, or at the end. */
function Reading({ series, near }: { series: Series; near: number }) {
  const said = (value: number | null | undefined): string => (value == null ? "–" : count(value));
  if (near < 0) return null;
  const saturated = series.saturated[near];
  return (
    <p class="pg-reading faint">
      {moment(series.at[near]!, zoneOffset.value)} · <b>{said(series.dying[near])}</b> dying of{" "}
      {said(series.total[near])} · {said(series.restarts[near])} restarts
      {saturated ? ` · cores held for ${duration(saturated)}` : ""}
    </p>
  );
}
