/** Flame graph, chart, sandwich and table of the chosen samples. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Columns } from "../api/columns";
import { FrozenSource } from "../api/frozen";
import { source } from "../api/source";
import type { FlamegraphHeader, Span } from "../api/types";
import { length } from "../axis/axis";
import { plotWidth, select, swap } from "../axis/moves";
import { selectWorst } from "../axis/worst";
import { Current } from "../chrome/current";
import { Download, saving } from "../chrome/download";
import { Icon } from "../chrome/icons";
import { Empty, Loading, NoPermission, Problem } from "../chrome/states";
import { chartFrom, type FlameLook, FlamePanel, FlameTree, ratesOf, readTransforms, writtenTransforms } from "../flame";
import { clock, compact, duration } from "../format";
import {
  colour,
  compare,
  dark,
  extent,
  filters,
  fn,
  following,
  group,
  icicle,
  info,
  inverted,
  look,
  navigate,
  replace,
  sampleParams,
  search,
  selection,
  setFilter,
  transforms,
  useColumns,
  zoneOffset,
  zoom,
} from "../state";
import { format, formatSpan, START } from "../state/place";
import { worstIn } from "../strip/cells";
import { strip } from "../strip/load";
import { NoSamples } from "./none";
import { PythonTable } from "./python";
import { settled } from "./span";
import { Who } from "./who";

const NODES = 100_000;
const FORMATS = ["speedscope", "perfetto", "firefox", "pprof", "collapsed", "perf-script", "otlp"];

/** Folding this many samples takes seconds; opening a page must not cost that. */
export const UNASKED = 10_000_000;

export function Flames({ height }: { height: number }) {
  const span = settled.value;
  const other = compare.value;
  const [insisted, insist] = useState("");
  const many = samplesIn(span);
  const asks = many > UNASKED && selection.value === null && insisted !== formatSpan(span);
  const ready = length(span) > 0 && plotWidth.value > 0 && !asks;
  const by = group.value === "none" ? "" : group.value;
  const params = { ...sampleParams(span), against: formatSpan(other), nodes: NODES, by };
  // A view changes with each turn of the wheel; a selection is made once and wants its answer at once.
  const calm = { wait_ms: selection.value ? 0 : 120, patient: following.value };
  const answer = useColumns("flamegraph", ready ? params : null, calm);
  const upsideParams = ready && inverted.value ? { ...params, invert: 1 } : null;
  const upside = useColumns("flamegraph", upsideParams, calm);
  const hz = info.value?.hz ?? null;
  const tree = useMemo(() => (answer.data ? treeOf(answer.data, hz) : null), [answer.data, hz]);
  const invertedTree = useMemo(
    () => (upside.data && !upside.loading ? treeOf(upside.data, hz, true) : null),
    [upside.data, upside.loading, hz],
  );
  const chart = useChart(span);
  const absent = useAbsent(span);
  const offset = zoneOffset.value;
  const done = useMemo(() => readTransforms(transforms.value), [transforms.value]);
  const shown: FlameLook = {
    view: look.value,
    inverted: inverted.value,
    icicle: icicle.value,
    colour: colour.value,
    search: search.value,
    fn: fn.value,
    transforms: done,
    group: group.value,
    zoom: zoom.value,
  };
  if (asks) return <Invitation span={span} samples={many} fold={() => insist(formatSpan(span))} />;
  if (answer.problem) return <Problem error={answer.problem} again={answer.again} />;
  if (!tree) return <Loading title="Folding stacks" />;
  const blind = (info.value?.missing ?? []).filter((one) => /stack|sample/.test(one.source));
  if (!tree.total && blind.length) return <NoPermission missing={blind} />;
  // A page in a file folds at once, and does not say of what time.
  const { frozen } = source();
  const drawn = frozen ? span : answer.data!.header;
  return (
    <Current
      class="samples-flames"
      answer={look.value === "chart" ? chart.answer : look.value === "who" || look.value === "python" ? null : answer}
      of={frozen ? null : (look.value === "chart" ? chart.answer.data : answer.data)?.header}
    >
      <FlamePanel
        tree={tree}
        invertedTree={invertedTree}
        look={shown}
        onLook={change}
        theme={dark.value ? "dark" : "light"}
        height={height}
        chart={chart.data}
        chartTitle={<ChartTitle of={chart.of} />}
        chartEmpty={
          chart.error ? (
            <Problem small error={chart.error} />
          ) : chart.of ? (
            <Loading small title="Putting samples in order" />
          ) : (
            <Empty small title="Nothing was recorded here" />
          )
        }
        title={`${info.value?.node ?? ""} ${clock(drawn.from, offset)}, ${duration(length(drawn))}`}
        clock={(at, digits) => clock(at, offset, digits)}
        tables={{
          who: <Who height={height} />,
          ...(info.value?.tables.python ? { python: <PythonTable span={span} height={height} /> } : {}),
        }}
        absent={absent ?? <NoSamples span={drawn} />}
        onSelectTime={(from, to) => select({ from, to })}
        {...(other ? { onSwap: swap } : {})}
        {...htmlExport(span)}
        tools={<Exports span={span} />}
      />
    </Current>
  );
}

/** In a comparison with what a sample is a second on each side, so that windows of unequal length can be compared. */
function treeOf(data: Columns<FlamegraphHeader>, hz: number | null, upsideDown = false): FlameTree {
  const { against, from, to } = data.header;
  return FlameTree.from(data, upsideDown, against ? ratesOf(to - from, against.to - against.from, hz) : null);
}

/** In a file: what was recorded and left out of it is not "not recorded". */
function useAbsent(span: Span): string | null {
  const [held, setHeld] = useState(true);
  useEffect(() => {
    const from = source();
    if (from instanceof FrozenSource) void from.holds(span).then(setHeld);
  }, [span]);
  return held
    ? null
    : "Samples of this time are not in this file; the recording has them, or says that it has none: zombiescope serve DIR.";
}

/** About how many there are: the recording's, by its share of the time. */
export function samplesIn(span: Span): number {
  const all = extent.value;
  return length(all) > 0 ? (info.value?.samples ?? 0) * Math.min(1, length(span) / length(all)) : 0;
}

function Invitation({ span, samples, fold }: { span: Span; samples: number; fold: () => void }) {
  return (
    <Empty title="Select a time to see where it went">
      <p>
        In view are {duration(length(span))} and about {compact(samples)} samples. Drag over the axis or the heat map,
        or:
      </p>
      <div class="button-row">
        <button type="button" class="button" onClick={() => void selectWorst()}>
          Select the worst second <kbd>e</kbd>
        </button>
        <button type="button" class="button quiet" onClick={fold}>
          Fold all of it; that takes a while
        </button>
      </div>
    </Empty>
  );
}

/** The browser's Back skips letters typed into the search and zoomed frames; it stops at everything else. */
function change(next: Partial<FlameLook>): void {
  const { view, transforms: made, ...same } = next;
  const go = Object.keys(next).every((name) => name === "search" || name === "zoom") ? replace : navigate;
  go({ ...same, ...(view ? { look: view } : {}), ...(made ? { transforms: writtenTransforms(made) } : {}) });
}

/** A chart is of one core or one thread: the one that is filtered for, else the worst core in sight. */
function useChart(span: Span) {
  const { cpu, tid } = filters.value;
  const worst = strip.value && worstIn(strip.value, span);
  const one =
    tid.length === 1
      ? { tid: tid[0]! }
      : cpu.length === 1 && /^\d+$/.test(cpu[0]!)
        ? { cpu: cpu[0]! }
        : worst
          ? { cpu: String(worst.cpu) }
          : null;
  const only = {
    ...filters.value,
    cpu: one && "cpu" in one ? [one.cpu!] : [],
    tid: one && "tid" in one ? [one.tid!] : [],
  };
  const params = { ...sampleParams(span, only), nodes: NODES };
  const wanted = look.value === "chart" && one !== null && length(span) > 0;
  const answer = useColumns("flamechart", wanted ? params : null, {
    wait_ms: selection.value ? 0 : 120,
    patient: following.value,
  });
  const data = useMemo(() => (answer.data ? chartFrom(answer.data) : null), [answer.data]);
  return { data, error: answer.problem, of: one, answer };
}

function ChartTitle({ of }: { of: { cpu?: string; tid?: string } | null }) {
  if (!of) return null;
  const chosen = of.tid !== undefined || filters.value.cpu.length === 1;
  return (
    <div class="chart-title">
      {of.tid !== undefined ? `Thread ${of.tid}` : `Core ${of.cpu}`}
      {!chosen && (
        <span class="faint"> · the worst in the selection; filter for another core or thread to see that one </span>
      )}
      {!chosen && of.cpu !== undefined && (
        <button type="button" class="button" onClick={() => setFilter("cpu", [of.cpu!])}>
          <Icon name="filter" /> Only core {of.cpu}
        </button>
      )}
    </div>
  );
}

/** The page frozen into a file, with the view that is looked at; nothing to offer where there is no server. */
function htmlExport(span: Span): { onExportHtml?: () => void } {
  const opens = format({
    ...START,
    page: "node",
    look: look.value,
    inverted: inverted.value,
    group: group.value,
    search: search.value,
  });
  const save = saving("page", { ...sampleParams(span), opens });
  return save === null ? {} : { onExportHtml: save };
}

function Exports({ span }: { span: Span }) {
  return (
    <>
      {FORMATS.map((format) => (
        <Download key={format} role="menuitem" path="export" params={{ format, ...sampleParams(span) }}>
          {format}
        </Download>
      ))}
    </>
  );
}
