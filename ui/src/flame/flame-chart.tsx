// The time-ordered chart of one core or thread: the same frames, left to right as they ran. Gaps are idle time.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { copy } from "../chrome/clipboard";
import { count, duration, plural } from "../format";
import { BarCanvas } from "./bar-canvas";
import { type ChartData, levelOf, stackAt } from "./chart-data";
import { type ColourBy, functionColours, type Theme } from "./colours";
import { type Extent, extentOf, narrowIn, nearest, panned } from "./layout";
import { Menu, type MenuItem } from "./menu";
import { useGlide } from "./motion";
import { forget, pointAt, type Remote } from "./remote";
import { FactsTip } from "./tip";
import type { FunctionKey } from "./transforms";
import { type Facts, narrowNote, placeOf } from "./words";

export interface FlameChartProps {
  readonly data: ChartData;
  readonly theme: Theme;
  readonly colour: ColourBy;
  readonly matches?: Uint8Array | null;
  readonly maxHeight?: number;
  /** A moment as it is shown, for the axis and tooltips; Unix seconds and how many digits of the second. */
  readonly clock: (at: number, digits: number) => string;
  readonly onFunction?: (fn: FunctionKey) => void;
  /** "Select this time": the span of a bar. */
  readonly onSelect?: (from: number, to: number) => void;
}

export function FlameChart(props: FlameChartProps) {
  const { data, theme, colour } = props,
    { bars } = data;
  const whole = useMemo<Extent>(() => ({ x0: 0, x1: Math.max(1e-6, data.to - data.from) }), [data]);
  const { view, moving, glide, jump } = useGlide(whole);
  const [cursor, setCursor] = useState<number | null>(null);
  const [width, setWidth] = useState(1000);
  const [menu, setMenu] = useState<{ bar: number; x: number; y: number } | null>(null);
  const [said, setSaid] = useState("");
  const colours = useMemo(() => {
    const byFunction = functionColours(data.functions, colour, theme);
    return Uint32Array.from(bars.fn, (fn) => byFunction[fn]!);
  }, [data, colour, theme]);
  const { narrow, deepest } = useMemo(() => narrowIn(bars, view, (view.x1 - view.x0) / width), [bars, view, width]);
  const label = useCallback((bar: number) => data.functions.name[bars.fn[bar]!]!, [data]);
  const facts = (bar: number): Facts => {
    const fn = bars.fn[bar]!,
      from = bars.left[bar]!,
      to = bars.right[bar]!;
    return {
      name: label(bar),
      place: placeOf(data.functions.module[fn]!, data.functions.kind[fn]!),
      lines: [
        ["from", props.clock(data.from + from, 3)],
        ["for", duration(to - from)],
        ["samples", count(data.samples[bar]!)],
        ["depth", String(levelOf(bars, bar) + 1)],
      ],
    };
  };
  const point = (bar: number): void => {
    if (bar < 0) return;
    setCursor(bar);
    const { name, lines } = facts(bar);
    setSaid(`${name}; ${lines.map((line) => line.join(" ")).join("; ")}`);
    if (bars.right[bar]! < view.x0 || bars.left[bar]! > view.x1) jump(panned(view, whole, bars.left[bar]! - view.x0));
  };
  const show = (bar: number): void => {
    const { x0, x1 } = extentOf(bars, bar),
      room = (x1 - x0) * 0.05;
    glide({ x0: Math.max(0, x0 - room), x1: Math.min(whole.x1, x1 + room) });
  };
  const items = (bar: number): MenuItem[] => {
    const fn = bars.fn[bar]!,
      key = { name: data.functions.name[fn]!, module: data.functions.module[fn]! };
    const stack = stackAt(bars, bar).map(label).join("\n");
    return [
      { label: "Zoom here", key: "Enter", act: () => show(bar) },
      ...(props.onSelect
        ? [
            {
              label: "Select this time",
              key: "V",
              act: () => props.onSelect!(data.from + bars.left[bar]!, data.from + bars.right[bar]!),
            },
          ]
        : []),
      ...(props.onFunction
        ? [{ label: "Callers and callees (sandwich)", key: "S", act: () => props.onFunction!(key) }]
        : []),
      { label: "Copy name", key: "c", apart: true, act: () => void copy(key.name) },
      { label: "Copy stack", key: "C", act: () => void copy(stack) },
    ];
  };
  const key = useRef<(key: string) => boolean>(() => false);
  key.current = (pressed) => {
    if (pressed === "Escape") {
      if (cursor === null && view.x1 - view.x0 >= whole.x1 * 0.999) return false;
      setCursor(null);
      glide(whole);
      return true;
    }
    const item = cursor === null ? undefined : items(cursor).find((each) => each.key === pressed);
    item?.act();
    return item !== undefined;
  };
  const remote = useMemo<Remote>(() => ({ key: (pressed) => key.current(pressed) }), []);
  useEffect(() => {
    pointAt(remote);
    return () => forget(remote);
  }, []);
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const here = cursor ?? nearest(bars, 0, (view.x0 + view.x1) / 2);
    const middle = cursor === null ? (view.x0 + view.x1) / 2 : (bars.left[cursor]! + bars.right[cursor]!) / 2;
    const level = here < 0 ? 0 : levelOf(bars, here);
    switch (event.key) {
      case "ArrowRight":
        if (here + 1 < bars.levels[level + 1]!) point(cursor === null ? here : here + 1);
        break;
      case "ArrowLeft":
        if (here - 1 >= bars.levels[level]!) point(cursor === null ? here : here - 1);
        break;
      case "ArrowDown":
        point(nearest(bars, level + 1, middle));
        break;
      case "ArrowUp":
        point(nearest(bars, level - 1, middle));
        break;
      case "Enter":
        if (cursor !== null) show(cursor);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const notes = [
    narrowNote(narrow),
    data.leftOff ? `${plural(data.leftOff, "frame")} left out by the server; select a shorter range to see them.` : "",
  ].filter(Boolean);
  return (
    <div class="zs-flame zs-chart">
      <BarCanvas
        bars={bars}
        colours={colours}
        matches={props.matches ?? null}
        fades
        view={view}
        whole={whole}
        theme={theme}
        moving={moving}
        dimmed={0}
        firstLevel={0}
        levels={Math.max(1, deepest + 1)}
        flip={false}
        cursor={cursor}
        maxHeight={props.maxHeight ?? 560}
        label={label}
        levelOf={(bar) => levelOf(bars, bar)}
        roleName="flame chart"
        description={`Time-ordered chart from ${props.clock(data.from, 0)} to ${props.clock(data.to, 0)}, ${plural(bars.fn.length, "bar")}. Arrow keys move, Enter zooms.`}
        tip={(bar) => <FactsTip facts={facts(bar)} />}
        onPick={(bar) => {
          if (bar !== null) {
            point(bar);
            show(bar);
          }
        }}
        onMenu={(bar, x, y) => {
          setCursor(bar);
          setMenu({ bar, x, y });
        }}
        onView={jump}
        onKey={onKey}
        onWidth={(wide) => setWidth(Math.max(1, wide))}
        axis={<TimeAxis view={view} from={data.from} width={width} clock={props.clock} />}
      />
      {notes.length > 0 && <p class="zs-notes">{notes.join(" ")}</p>}
      <p class="hidden-text" aria-live="polite">
        {said}
      </p>
      {menu && (
        <Menu x={menu.x} y={menu.y} title={label(menu.bar)} items={items(menu.bar)} onClose={() => setMenu(null)} />
      )}
    </div>
  );
}

function TimeAxis({
  view,
  from,
  width,
  clock,
}: {
  view: Extent;
  from: number;
  width: number;
  clock: FlameChartProps["clock"];
}) {
  const ticks = ticksOf(from + view.x0, from + view.x1, Math.max(2, Math.floor(width / 110)));
  const scale = width / (view.x1 - view.x0);
  return (
    <div class="zs-axis" aria-hidden="true">
      {ticks.at.map((at) => (
        <span key={at} style={{ left: `${(at - from - view.x0) * scale}px` }}>
          {clock(at, ticks.digits)}
        </span>
      ))}
    </div>
  );
}

/** Round moments, at most so many, and how many digits of a second tell them apart. */
export function ticksOf(from: number, to: number, most: number): { at: number[]; digits: number } {
  const steps = [
    1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800,
    3600, 7200, 21600,
  ];
  const step = steps.find((each) => (to - from) / each <= most) ?? 86400,
    at = [];
  for (let number = Math.ceil(from / step); number * step <= to && at.length <= most + 1; number++)
    at.push(number * step);
  return { at, digits: step >= 1 ? 0 : Math.min(4, Math.ceil(-Math.log10(step) - 1e-9)) };
}
