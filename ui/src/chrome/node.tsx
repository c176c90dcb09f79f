/** The node: the time axis, and below it what the samples of the chosen time say. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Timeline } from "../axis/timeline";
import { FrozenNote } from "../pages";
import { Flames } from "../samples/flames";
import { Heat } from "../samples/heat";
import { settle } from "../samples/span";
import { info } from "../state";
import { strip } from "../strip/load";
import { stripRoom, stripWants } from "../strip/strip";
import { choosePane, panes, SPLIT_MIN, shared } from "./panes";
import { Splitter } from "./splitter";

const FLAME_PX = 480;
const HEAT_PX = 110;
const STRIP_PX = { least: 44, good: 144, most: 192, tallest: 600 };
const ROW_GAP_PX = 3;
/** What has to be in view without scrolling, in addition to the cores. */
const FIRST = ".ruler-row, .incident-row, .lane-gpu, .python-row";
/** The path of frames above the graph, the legend and the notes below it. */
const FLAME_AROUND_PX = 58;

export function NodePage() {
  useEffect(settle, []);
  const page = useRef<HTMLDivElement>(null);
  const room = useRoom(page);
  const title = <h1 class="hidden-text">{info.value?.node}: cores, events and samples over time</h1>;
  if (!room.split)
    return (
      <div class="node-page" ref={page}>
        {title}
        <Timeline />
        <section class="samples" aria-label="Samples of the chosen time">
          <FrozenNote />
          <Heat height={HEAT_PX} />
          <Flames height={FLAME_PX} />
        </section>
      </div>
    );
  const { axis, heat } = shared(room.height, room.wanted, panes.value);
  return (
    <div class="node-page split" ref={page}>
      {title}
      <div class="pane" style={{ height: `${axis}px` }}>
        <Timeline />
      </div>
      <Splitter label="Height of the time axis" value={axis} onChange={(pixels) => choosePane("axis", pixels)} />
      <section class="samples" aria-label="Samples of the chosen time">
        <FrozenNote />
        <Heat height={heat} ribbon={panes.value.heat === null} />
        <Splitter label="Height of the heat map" value={heat} onChange={(pixels) => choosePane("heat", pixels)} />
        <FlamePane />
      </section>
    </div>
  );
}

/** As high as what is left, however many lines its controls take. */
function FlamePane() {
  const pane = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(200);
  useLayoutEffect(() => {
    const measure = (): void => {
      const bars = pane.current!.querySelectorAll<HTMLElement>(".zs-bar, .zs-chips");
      const controls = [...bars].reduce((sum, bar) => sum + bar.offsetHeight, 0);
      setHeight(Math.max(120, pane.current!.clientHeight - controls - FLAME_AROUND_PX));
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(pane.current!);
    const changes = new MutationObserver(measure);
    changes.observe(pane.current!, { childList: true, subtree: true });
    return () => {
      watch.disconnect();
      changes.disconnect();
    };
  }, []);
  return (
    <div class="pane flame-pane" ref={pane}>
      <Flames height={height} />
    </div>
  );
}

/** What the page has to share out, and what the axis would like; the strip of cores takes what its lanes leave. */
function useRoom(page: { current: HTMLDivElement | null }) {
  const [room, setRoom] = useState({ split: false, height: 0, wanted: 300 });
  const chosen = panes.value;
  useLayoutEffect(() => {
    const main = document.getElementById("main")!;
    const measure = (): void => {
      const split = main.clientWidth >= SPLIT_MIN.width && main.clientHeight >= SPLIT_MIN.height;
      const tall = (name: string): number => page.current?.querySelector<HTMLElement>(name)?.offsetHeight ?? 0;
      const lanes = tall(".timeline-body") + tall(".selection-bar") + 6 - tall(".strip-row");
      const height = main.clientHeight;
      const wanted = lanes + stripWants(strip.value?.cpus.length ?? 0);
      const axis = shared(height, wanted, panes.value).axis;
      // Other lanes are scrolled to; cores, GPUs and Python threads are what one came for.
      const first = [...(page.current?.querySelectorAll<HTMLElement>(FIRST) ?? [])];
      const before = first.reduce((sum, row) => sum + row.offsetHeight + ROW_GAP_PX, tall(".selection-bar") + 10);
      const mine = Math.max(axis - lanes, Math.min(STRIP_PX.good, axis - before));
      const most = panes.value.axis === null ? STRIP_PX.most : STRIP_PX.tallest;
      stripRoom.value = split ? Math.max(STRIP_PX.least, Math.min(most, mine)) : STRIP_PX.most;
      setRoom((before) =>
        before.split === split && before.height === height && Math.abs(before.wanted - wanted) < 2
          ? before
          : { split, height, wanted },
      );
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(main);
    for (const part of page.current?.querySelectorAll(".timeline-body, .selection-bar") ?? []) watch.observe(part);
    return () => watch.disconnect();
  }, [chosen, room.split]);
  return room;
}
