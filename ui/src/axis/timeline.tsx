/** The one time axis: ruler, incidents, cores, events, zombies, pressure, GPUs and Python above each other, and what is chosen over all of them. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Loading, Problem } from "../chrome/states";
import { hideTip, showTip } from "../chrome/tip";
import { clock, compact, count, day, percent, zoneName } from "../format";
import { CHART_PX, Chart, gpuLines, pressureLines, zombieLines } from "../lanes/charts";
import { Events } from "../lanes/events";
import { IncidentSpans } from "../lanes/incidents";
import { areLoaded, lanes, useLanes } from "../lanes/load";
import { PythonLanes, pythonThreads, THREAD_PX } from "../lanes/python";
import { TRACK_PX, TrackCanvas, TrackLabel, tracksTitle, useTracks } from "../lanes/tracks";
import { info, view, zoneOffset } from "../state";
import { strip, useStrip } from "../strip/load";
import { StripCanvas, stripHeight } from "../strip/strip";
import { CellTip, LaneTip } from "../strip/tips";
import { cut, marks, toX } from "./axis";
import { attach, type Pointing } from "./gestures";
import { plotWidth } from "./moves";
import { Overlay } from "./overlay";
import { SelectionBar } from "./selection";
import { Toolbar } from "./toolbar";

export const averageShown = signal(true);

const EVERYTHING = /^(recorder|everything)$/;

export function Timeline() {
  const body = useRef<HTMLDivElement>(null);
  const surface = useRef<HTMLDivElement>(null);
  const cores = useStrip();
  const found = useLanes();
  const cells = strip.value;
  const zombies = zombieLines();
  const pressure = pressureLines();
  const gpus = gpuLines();
  const drawn = useTracks();

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
      <Toolbar loading={cores.loading || found.loading} />
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
          <Row label="Events" class="event-row" blind={/kernel log|kmsg/}>
            <Events />
          </Row>
          <Row {...lane("Zombies", zombies, compact(zombies.top))} class="chart-row" blind={/cgroup|census/}>
            {zombies.at.length > 0 && <Chart {...zombies} />}
            <ReadOnce />
            <NotMeasured at={zombies.at} missing={/cgroup|census/} />
          </Row>
          <Row {...lane("Pressure", pressure, percent(pressure.top))} class="chart-row" blind={/pressure|psi/i}>
            {pressure.at.length > 0 && <Chart {...pressure} />}
            <NotMeasured at={pressure.at} missing={/pressure|psi/i} />
          </Row>
          {(gpus.at.length > 0 || !!info.value?.gpu_driver) && (
            <Row {...lane(gpuName(), gpus, "100%")} class="chart-row gpu-row" blind={/^gpu$/}>
              {gpus.at.length > 0 && <Chart {...gpus} />}
              <NotMeasured at={gpus.at} missing={/^gpu$/} />
            </Row>
          )}
          {pythonThreads() > 0 && (
            <Row
              label={<span class="lane-name">Python</span>}
              class="chart-row python-row"
              height={THREAD_PX * pythonThreads()}
              blind={/^python stacks$/}
            >
              <PythonLanes />
            </Row>
          )}
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
        ? "counting who ran …"
        : found.length
          ? others > 0
            ? `and ${count(others)} more; filter for one to see it`
            : ""
          : "nobody was sampled here";
  if (!words) return null;
  return (
    <Row label={<span class="faint">{tracksTitle(by)}</span>} class="track-row" height={TRACK_PX}>
      <span class="lane-note">{words}</span>
    </Row>
  );
}

interface RowSays {
  label: ComponentChildren;
  class: string;
  scale?: string[];
  height?: number;
  /** Sources without which this lane sees nothing. */
  blind?: RegExp;
  children: ComponentChildren;
}

function Row({ label, class: kind, scale, height, blind, children }: RowSays) {
  return (
    <div class={`axis-row ${kind}`} style={height ? { height: `${height}px` } : undefined}>
      <div class="axis-label">{label}</div>
      <div class="axis-plot">
        {blind && <Gaps of={blind} />}
        {children}
      </div>
      <div class="axis-scale" aria-hidden="true">
        {scale?.map((text) => (
          <span key={text}>{text}</span>
        ))}
      </div>
    </div>
  );
}

function Named({ name, lines }: { name: string; lines: { name: string; colour: string; dash?: number[] }[] }) {
  return (
    <span class="lane-name">
      {name}
      <small>
        {[...lines].reverse().map((line) => (
          <span key={line.name}>
            <svg width="12" height="6" aria-hidden="true">
              <path
                d="M0 3h12"
                stroke={`var(${line.colour})`}
                stroke-width="2"
                stroke-dasharray={line.dash?.join(" ")}
              />
            </svg>
            {line.name === "memory cgroups" ? "all" : line.name}
          </span>
        ))}
      </small>
    </span>
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

function gpuName(): string {
  const number = lanes.value?.gpus.count || info.value?.gpus.length || 0;
  return number > 1 ? `${number} GPUs` : "GPU";
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

const EMPTY_PX = 20;

/** A lane without a single point is low, and has no scale. */
function lane(name: string, { at, lines }: { at: number[]; lines: Parameters<typeof Named>[0]["lines"] }, top: string) {
  const empty = !at.length;
  return {
    label: <Named name={name} lines={empty ? [] : lines} />,
    height: empty ? EMPTY_PX : CHART_PX,
    ...(empty ? {} : { scale: [top, "0"] }),
  };
}

/** One reading makes no line: an import may have a single one. */
function ReadOnce() {
  const found = lanes.value?.zombies;
  if (found?.at.length !== 1 || found.dying[0] == null) return null;
  return (
    <span class="lane-note">
      {count(found.dying[0])} dying, read once at {clock(found.at[0]!, zoneOffset.value)}
    </span>
  );
}

/** A lane without a single point says why, if it is known. */
function NotMeasured({ at, missing }: { at: number[]; missing: RegExp }) {
  if (!lanes.value || at.length) return null;
  const why = info.value?.missing.find((one) => missing.test(one.source));
  return (
    <span class="lane-note">
      {why ? `not recorded: ${why.why}` : areLoaded() ? "not measured in view" : "not loaded"}
    </span>
  );
}

/** Where nothing was recorded is hatched, in the lanes that it concerns. The strip needs none: its cells say it themselves. */
function Gaps({ of }: { of: RegExp }) {
  const width = plotWidth.value;
  const shown = view.value;
  const offset = zoneOffset.value;
  return (
    <div class="gaps" aria-hidden="true">
      {(lanes.value?.gaps ?? [])
        .filter((gap) => EVERYTHING.test(gap.source) || of.test(gap.source))
        .map((gap) => {
          const visible = cut(gap, shown);
          if (!visible) return null;
          const left = toX(shown, width, visible.from);
          const wide = Math.max(2, toX(shown, width, visible.to) - left);
          return (
            <div
              key={`${gap.from}${gap.source}`}
              class="gap"
              style={{ left: `${left}px`, width: `${wide}px` }}
              title={`no ${gap.source} from ${clock(gap.from, offset)} to ${clock(gap.to, offset)}${gap.why ? `: ${gap.why}` : ""}`}
            />
          );
        })}
    </div>
  );
}
