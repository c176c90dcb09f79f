/** The one time axis: ruler, incidents, cores and the lanes of lanes/list.tsx above each other, and what is chosen over all of them. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Loading, Problem } from "../chrome/states";
import { hideTip, showTip } from "../chrome/tip";
import { count, day, zoneName } from "../format";
import { IncidentSpans } from "../lanes/incidents";
import { shownLanes } from "../lanes/list";
import { useLanes } from "../lanes/load";
import { Row } from "../lanes/row";
import { TRACK_PX, TrackCanvas, TrackLabel, tracksTitle, useTracks } from "../lanes/tracks";
import { info, view, zoneOffset } from "../state";
import { strip, useStrip } from "../strip/load";
import { StripCanvas, stripHeight } from "../strip/strip";
import { CellTip, LaneTip } from "../strip/tips";
import { marks } from "./axis";
import { attach, type Pointing } from "./gestures";
import { plotWidth } from "./moves";
import { Overlay } from "./overlay";
import { SelectionBar } from "./selection";
import { axisLoading } from "./toolbar";

export const averageShown = signal(true);

export function Timeline() {
  const body = useRef<HTMLDivElement>(null);
  const surface = useRef<HTMLDivElement>(null);
  const cores = useStrip();
  const found = useLanes();
  const cells = strip.value;
  const drawn = useTracks();
  const loading = cores.loading || found.loading;
  useLayoutEffect(() => {
    axisLoading.value = loading;
    return () => {
      axisLoading.value = false;
    };
  }, [loading]);

  useLayoutEffect(() => {
    const measure = (): void => {
      if (surface.current) plotWidth.value = surface.current.clientWidth;
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(surface.current!);
    return () => watch.disconnect();
  }, []);

  useEffect(
    () =>
      attach(surface.current!, {
        cell: () => Math.max(info.value?.interval_s ?? 1, strip.value?.column_s ?? 1),
        hover,
      }),
    [],
  );

  const hover = (pointing: Pointing | null): void => {
    if (!pointing) return hideTip();
    const canvas = body.current?.querySelector(".strip")?.getBoundingClientRect();
    const y = canvas ? pointing.clientY - canvas.top : -1;
    if (canvas && y >= 0 && y < canvas.height)
      showTip(pointing.clientX, pointing.clientY, <CellTip at={pointing.at} share={y / canvas.height} />);
    else showTip(pointing.clientX, pointing.clientY, <LaneTip at={pointing.at} />);
  };

  return (
    <section class="timeline" aria-label="Time axis">
      <div class="timeline-scroll">
        <div class="timeline-body" ref={body}>
          <Row label={<DayLabel />} class="ruler-row">
            <Ruler />
          </Row>
          <Row label="Incidents" class="incident-row">
            <IncidentSpans />
          </Row>
          <Row
            label={<CoresLabel />}
            class="strip-row"
            scale={["100%", "50%", "0%"]}
            height={stripHeight(cells?.cpus.length ?? 0)}
          >
            <StripCanvas average={averageShown.value} />
            {!cells && cores.loading && <Loading small title="Reading the cores" />}
            {cores.problem && <Problem small error={cores.problem} again={cores.again} />}
          </Row>
          {drawn.found.map((track) => (
            <Row
              key={track.name}
              label={<TrackLabel track={track} />}
              class="track-row"
              height={TRACK_PX}
              scale={track.scale ? [track.scale] : []}
            >
              <TrackCanvas track={track} />
            </Row>
          ))}
          {drawn.by !== "none" && <TracksNote drawn={drawn} />}
          {shownLanes().map(({ id, Draw }) => (
            <Draw key={id} />
          ))}
          <div
            class="surface"
            ref={surface}
            tabIndex={0}
            role="group"
            aria-label="Time axis. Arrow keys step and zoom, V selects what is in view, E the worst second."
            aria-describedby="chosen-in-words"
          />
          <Overlay />
        </div>
      </div>
      {found.problem && <Problem small error={found.problem} again={found.again} />}
      <SelectionBar />
    </section>
  );
}

/** Why there are no tracks yet, or how many more there would be. */
function TracksNote({ drawn }: { drawn: ReturnType<typeof useTracks> }) {
  const { by, many, found, others, answer } = drawn;
  const words = many
    ? "zoom in to see tracks: all of this would have to be read"
    : answer.problem
      ? answer.problem.what
      : !answer.data
        ? "counting samples …"
        : found.length
          ? others > 0
            ? `and ${count(others)} more; filter for one to see it`
            : ""
          : "no sample here";
  if (!words) return null;
  return (
    <Row label={<span class="faint">{tracksTitle(by)}</span>} class="track-row" height={TRACK_PX}>
      <span class="lane-note">{words}</span>
    </Row>
  );
}

function CoresLabel() {
  const cpus = strip.value?.cpus ?? [];
  if (!cpus.length) return <span class="lane-name">Cores</span>;
  return (
    <span class="core-label">
      <small>{cpus[0]}</small>
      <span class="lane-name">
        {cpus.length} {cpus.length === 1 ? "core" : "cores"}
      </span>
      <small>{cpus.length > 1 ? cpus[cpus.length - 1] : ""}</small>
    </span>
  );
}

function DayLabel() {
  const known = info.value;
  if (!known) return null;
  return <span class="lane-name faint">{day(view.value.from, zoneOffset.value)}</span>;
}

function Ruler() {
  const offset = zoneOffset.value;
  const width = plotWidth.value;
  const found = marks(view.value, width, offset);
  return (
    <div class="ruler" aria-hidden="true">
      {found
        .filter((mark) => mark.x < width - 90)
        .map((mark, n) => (
          <span key={mark.at} style={{ transform: `translateX(${Math.round(mark.x)}px)` }}>
            {n > 0 && mark.day ? <b>{mark.day.slice(5)} </b> : null}
            {mark.label}
          </span>
        ))}
      <i class="ruler-zone" title={`times are in the node's zone, ${zoneName(offset)}`}>
        {zoneName(offset)}
      </i>
    </div>
  );
}
