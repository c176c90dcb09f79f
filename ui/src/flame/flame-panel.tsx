// Everything about one selection of samples in one panel: flame graph, chart, sandwich and table, with what all of them
// share (search, transforms, colours, export). It holds nothing that a link should keep: that is `look`, and the host's.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { download } from "../chrome/clipboard";
import { clock, count } from "../format";
import type { ChartData } from "./chart-data";
import type { Theme } from "./colours";
import { differenceWords } from "./difference";
import { Flame } from "./flame";
import { FlameChart } from "./flame-chart";
import { Legend } from "./legend";
import { type FlameLook, type FlameView, VIEWS } from "./look";
import { surround } from "./remote";
import { Sandwich } from "./sandwich";
import { matchesOf, patternOf, type Search } from "./search";
import { useShapes } from "./shapes";
import { svgOf } from "./svg";
import { Chips, Toolbar } from "./toolbar";
import type { TopRow } from "./top";
import { TopTable } from "./top-table";
import { type FunctionKey, maskOf, says, type Transform } from "./transforms";
import type { FlameTree } from "./tree";

export interface FlamePanelProps {
  /** Of the selection; in a comparison the difference. Not inverted. */
  readonly tree: FlameTree;
  /** The same inverted by the server, which leaves out leaves that only look hot; else it is done here. */
  readonly invertedTree?: FlameTree | null;
  /** For the time-ordered view; null while there is none. */
  readonly chart?: ChartData | null;
  /** Shown instead of a chart, such as a choice of cores. */
  readonly chartEmpty?: ComponentChildren;
  /** Shown next to the chart, such as its core. */
  readonly chartTitle?: ComponentChildren;
  readonly look: FlameLook;
  readonly onLook: (change: Partial<FlameLook>) => void;
  readonly theme: Theme;
  readonly height?: number;
  /** The title of an exported picture. */
  readonly title: string;
  readonly clock?: (at: number, digits: number) => string;
  readonly onSelectTime?: (from: number, to: number) => void;
  /** "Save as HTML": the host knows how a page is frozen. */
  readonly onExportHtml?: () => void;
  /** In a comparison: exchange both ranges. Without it they are exchanged here only. */
  readonly onSwap?: () => void;
  /** Views that are the host's own, by name. */
  readonly tables?: Partial<Record<FlameView, ComponentChildren>>;
  /** Why there are no samples here: the host knows what was recorded, and what is filtered. */
  readonly absent?: ComponentChildren;
  /** More buttons, such as links to other exports. */
  readonly tools?: ComponentChildren;
}

const HOSTED: ReadonlySet<FlameView> = new Set(["who", "python"]);

export function FlamePanel(props: FlamePanelProps) {
  const { look, onLook, theme, height = 520 } = props;
  const [isSwapped, setSwapped] = useState(false);
  const [step, setStep] = useState<{ count: number; direction: 1 | -1 }>({ count: 0, direction: 1 });
  const [place, setPlace] = useState({ at: 0, of: 0 });
  const { zoom } = look;
  const [focused, setFocused] = useState(0);
  const pattern = useMemo(() => patternOf(look.search.text), [look.search.text]);
  const fn: FunctionKey | null = look.fn ? { name: look.fn, module: null } : null;
  const shapes = useShapes(props, isSwapped, pattern.regexp);
  const { tree, graph, matches, graphMatches, matched, total, rows } = shapes;
  const marked = useMemo(() => (fn ? maskOf(graph.functions, fn) : null), [graph, look.fn]);
  const chartMatches = useMemo(
    () => (props.chart && pattern.regexp ? matchesOf(props.chart.functions, pattern.regexp) : null),
    [props.chart, pattern.regexp],
  );

  const addTransform = (made: Transform): void => {
    const known = look.transforms.findIndex((each) => says(each) === says(made));
    if (made.kind === "collapse-recursion" && !made.fn && known >= 0) return remove(known);
    if (known < 0) onLook({ transforms: [...look.transforms, made], zoom: [] });
  };
  const remove = (at: number): void => onLook({ transforms: look.transforms.filter((_, i) => i !== at) });
  const go = (direction: 1 | -1): void => setStep({ count: step.count + 1, direction });
  const open = (key: FunctionKey): void => onLook({ view: "sandwich", fn: key.name });
  const onSearch = (text: string): void => onLook({ search: { ...look.search, text } });
  const invert = (): void => onLook({ inverted: !look.inverted, zoom: [] });
  const undo = (): boolean => {
    if (look.transforms.length) remove(look.transforms.length - 1);
    return look.transforms.length > 0;
  };
  const keys = useRef<Record<string, () => unknown>>({});
  keys.current = {
    n: () => go(1),
    N: () => go(-1),
    u: undo,
    r: () => addTransform({ kind: "collapse-recursion" }),
    "/": () => setFocused(focused + 1),
  };
  useEffect(
    () => surround({ key: (pressed) => Object.hasOwn(keys.current, pressed) && keys.current[pressed]!() !== false }),
    [],
  );
  const saveSvg = (): void =>
    download(
      "flamegraph.svg",
      "image/svg+xml",
      svgOf(graph, {
        title: props.title,
        colour: look.colour,
        flip: !look.icicle,
        zoom: graph.follow(zoom),
        matches: graphMatches,
      }),
    );

  const own = props.tables?.[look.view];
  const views = VIEWS.filter((view) => !HOSTED.has(view) || props.tables?.[view] !== undefined);
  const empty = !tree.total && !tree.baseTotal && own === undefined;
  const flame = (tall: number) => (
    <Flame
      tree={graph}
      theme={theme}
      colour={look.colour}
      matches={graphMatches}
      fades={look.search.mode === "highlight" || !pattern.regexp}
      marked={look.view === "top" ? marked : null}
      flip={!look.icicle}
      maxHeight={tall}
      step={step}
      zoom={zoom}
      onZoom={(path) => onLook({ zoom: path })}
      onTransform={addTransform}
      onFunction={open}
      onSearch={onSearch}
      onMatch={(at, of) => setPlace({ at, of })}
    />
  );
  const table = (
    <TopTable
      rows={rows}
      total={tree.total}
      theme={theme}
      colour={look.colour}
      matches={matches}
      chosen={fn && chosenOf(rows, fn)}
      height={height - 30}
      tree={tree}
      onChoose={(key) => onLook({ fn: key?.name ?? "" })}
      onOpen={open}
    />
  );
  return (
    <section class="zs-panel" aria-label="Flame graph">
      <Toolbar
        look={look}
        views={views}
        onLook={onLook}
        error={pattern.error}
        matched={matched}
        total={total}
        place={place}
        focused={focused}
        onStep={go}
        onInvert={invert}
        onRecursion={() => addTransform({ kind: "collapse-recursion" })}
        onSvg={saveSvg}
        tools={props.tools}
        onSwap={tree.isDifference ? (props.onSwap ?? (() => setSwapped(!isSwapped))) : null}
        onHtml={props.onExportHtml ?? null}
      />
      <Chips transforms={look.transforms} onRemove={remove} onClear={() => onLook({ transforms: [] })} />
      {tree.isDifference && (
        <p class="zs-difference" role="status">
          {differenceWords(rows, tree)}
        </p>
      )}
      {empty ? (
        <Empty pattern={look.search} transforms={look.transforms.length} absent={props.absent} onLook={onLook} />
      ) : (
        <>
          {look.view === "flame" && flame(height)}
          {look.view === "chart" &&
            (props.chart ? (
              <>
                {props.chartTitle}
                <FlameChart
                  data={props.chart}
                  theme={theme}
                  colour={look.colour}
                  matches={chartMatches}
                  maxHeight={height}
                  clock={props.clock ?? plainClock}
                  onFunction={open}
                  {...(props.onSelectTime ? { onSelect: props.onSelectTime } : {})}
                />
              </>
            ) : (
              <div class="zs-empty">
                {props.chartEmpty ?? "Choose one core or one thread to see its samples in the order of time."}
              </div>
            ))}
          {look.view === "sandwich" && (
            <div class="zs-split">
              {table}
              <Sandwich
                tree={tree}
                fn={fn}
                theme={theme}
                colour={look.colour}
                matches={matches}
                height={height - 40}
                onFunction={open}
                onTransform={addTransform}
                onSearch={onSearch}
              />
            </div>
          )}
          {own}
          {look.view === "top" && (
            <div class="zs-split">
              {table}
              {flame(height - 30)}
            </div>
          )}
          {own === undefined && (
            <Legend
              tree={look.view === "chart" || look.view === "sandwich" ? tree : graph}
              colour={look.colour}
              theme={theme}
              searched={matches !== null}
            />
          )}
        </>
      )}
    </section>
  );
}

function Empty({
  pattern,
  transforms,
  absent,
  onLook,
}: {
  pattern: Search;
  transforms: number;
  absent: ComponentChildren;
  onLook: FlamePanelProps["onLook"];
}) {
  const isFiltered = pattern.mode === "filter" && pattern.text !== "";
  return (
    <div class="zs-empty" role="status">
      {isFiltered ? (
        <>
          No stack matches <code>{pattern.text}</code>.{" "}
          <button type="button" onClick={() => onLook({ search: { text: "", mode: "filter" } })}>
            Clear the search
          </button>
        </>
      ) : transforms ? (
        <>
          {count(transforms)} transforms leave no samples.{" "}
          <button type="button" onClick={() => onLook({ transforms: [] })}>
            Remove them
          </button>
        </>
      ) : (
        (absent ?? "No samples in this range.")
      )}
    </div>
  );
}

function chosenOf(rows: readonly TopRow[], fn: FunctionKey): FunctionKey {
  return rows.find((row) => row.name === fn.name) ?? fn;
}

const plainClock = (at: number, digits: number): string => clock(at, 0, digits);
