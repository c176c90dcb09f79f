// The drawn path of a diagnosis: stations as links, the lines between them in SVG behind. Without the drawing it is an
// ordered list of links, which is what a screen reader reads.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Go } from "../../chrome/link";
import { clock } from "../../format";
import { zoneOffset } from "../../state";
import { readFrom, type Station } from "./chain";
import { drawPath } from "./layout";

const SIGNS: Record<Station["kind"], string> = {
  symptom: "M3 13h4l3-8 4 14 3-9 1 3h3", // a pulse
  core: "M7 7h10v10H7zM10 3v3M14 3v3M10 18v3M14 18v3M3 10h3M3 14h3M18 10h3M18 14h3",
  hog: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
  kernel: "M9 4C6 4 8 11 5 12c3 1 1 8 4 8M15 4c3 0 1 7 4 8-3 1-1 8-4 8",
  measurement: "M4 20V10M10 20V4M16 20v-7M22 20H2",
  blind: "M3 12c4-6 14-6 18 0-4 6-14 6-18 0zM4 4l16 16", // an eye, crossed out
  leak: "M12 3s6 7 6 11a6 6 0 0 1-12 0c0-4 6-11 6-11z",
  culprit: "M12 3l9 17H3zM12 10v4M12 17v.5",
  cost: "M4 4l6 8 4-3 6 9M20 12v6h-6", // a line that falls
  fix: "M4 13l5 5L20 6",
};

export function ChainPath({ stations }: { stations: readonly Station[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1160);
  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth || 1160);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const drawn = drawPath(stations.length, width);
  return (
    <div class="pg-path" ref={holder} style={{ height: `${drawn.height}px` }}>
      <svg width={width} height={drawn.height} aria-hidden="true">
        <defs>
          <marker
            id="pg-arrow"
            viewBox="0 0 8 8"
            refX="5"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {drawn.lines.map((line, number) => (
          <path key={number} class="pg-line" d={line} marker-end="url(#pg-arrow)" />
        ))}
      </svg>
      <ol>
        {stations.map((station, number) => {
          const box = drawn.boxes[number];
          if (!box) return null;
          const style = { left: `${box.x}px`, top: `${box.y}px`, width: `${box.width}px`, height: `${box.height}px` };
          return (
            <li key={number} style={style}>
              <StationCard station={station} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function StationCard({ station }: { station: Station }) {
  const inside = (
    <>
      <span class="pg-step">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={SIGNS[station.kind]} />
        </svg>
        {station.label}
      </span>
      <strong title={station.headline}>{station.headline}</strong>
      <span class="pg-fact" title={station.fact}>
        {station.fact}
      </span>
      <span class="pg-read">
        {station.kind !== "fix" && readFrom(station.source)}
        {station.at !== null && station.source !== null && ` · ${clock(station.at, zoneOffset.value)}`}
        {station.more.length > 0 && ` · and ${station.more.length} more`}
      </span>
    </>
  );
  const name = `pg-station pg-is-${station.kind}`;
  if (station.kind === "fix")
    return (
      <a class={name} href="#fix" onClick={toPlan}>
        {inside}
      </a>
    );
  if (!station.place) return <div class={name}>{inside}</div>;
  return (
    <Go place={station.place} class={name} title={`opens ${station.opens}`}>
      {inside}
      <span class="hidden-text">; opens {station.opens}</span>
    </Go>
  );
}

/** The address after # may be the state's, so it is not touched. */
function toPlan(event: MouseEvent): void {
  event.preventDefault();
  const plan = document.getElementById("fix");
  plan?.scrollIntoView({ behavior: "smooth", block: "center" });
  plan?.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
}
