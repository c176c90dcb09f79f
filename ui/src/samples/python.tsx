/** What each Python thread was doing in the chosen time: main threads first, line by line of own code. */

import type { PythonThread, Span } from "../api/types";
import { Current } from "../chrome/current";
import { Icon } from "../chrome/icons";
import { Loading, Problem } from "../chrome/states";
import { count, percent } from "../format";
import { lanes } from "../lanes/load";
import { threadName } from "../lanes/python";
import { sampleParams, setFilter, useDocument } from "../state";
import { NoSamples } from "./none";

const TOP = 60;
const LINES = 3;

interface Line {
  place: string;
  ratio: number;
  /** The whole stack that was seen there most, outermost first. */
  stack: string;
}

/** Lines of own code by their share of the looks at the thread. Pure. */
export function linesOf(thread: PythonThread): Line[] {
  const found = new Map<string, Line>();
  for (const { own, ratio, frames } of thread.stacks) {
    const place = `${own.function} ${own.file.replace(/^.*\//, "")}:${own.line}`;
    const known = found.get(place);
    if (known) known.ratio += ratio;
    else
      found.set(place, {
        place,
        ratio,
        stack: frames.map((each) => `${each.function} ${each.file}:${each.line}`).join("\n"),
      });
  }
  return [...found.values()].sort((a, b) => b.ratio - a.ratio);
}

/** Main threads first, then by looks. Pure. */
export function mainFirst(threads: readonly PythonThread[]): PythonThread[] {
  return [...threads].sort((a, b) => Number(b.pid === b.tid) - Number(a.pid === a.tid) || b.looks - a.looks);
}

export function PythonTable({ span, height }: { span: Span; height: number }) {
  const { rec, from, to, pid, tid, comm } = sampleParams(span);
  const answer = useDocument("python", { rec, from, to, pid, tid, comm, top: TOP }, { lasting: true });
  if (answer.problem) return <Problem error={answer.problem} again={answer.again} />;
  if (!answer.data) return <Loading title="Reading Python stacks" />;
  const { threads, left_out } = answer.data;
  return (
    <Current class="who" style={{ maxHeight: `${height}px` }} answer={answer} of={answer.data}>
      {!threads.length && (
        <p class="zs-empty">
          <NoSamples span={answer.data} />
        </p>
      )}
      {threads.length > 0 && (
        <table>
          <caption class="hidden-text">What Python threads were doing</caption>
          <thead>
            <tr>
              <th scope="col">Thread</th>
              <th scope="col" class="number" title="How often its stack was read">
                Looks
              </th>
              <th scope="col" class="number" title="Looks at which it was on no core and did not want to be">
                Waiting
              </th>
              <th scope="col">Where, in its own code</th>
            </tr>
          </thead>
          <tbody>
            {mainFirst(threads).map((each) => (
              <Row key={each.tid} thread={each} />
            ))}
          </tbody>
        </table>
      )}
      {left_out > 0 && <p class="faint">and {count(left_out)} more threads; filter for one to see it</p>}
    </Current>
  );
}

function Row({ thread }: { thread: PythonThread }) {
  const known = lanes.value?.python.find((each) => each.tid === thread.tid && each.pid === thread.pid);
  const about = known ?? { program: null, rank: null, main: thread.pid === thread.tid };
  return (
    <tr>
      <th scope="row">
        <button type="button" onClick={() => setFilter("tid", [String(thread.tid)])} title="Only this thread">
          {threadName({ ...about, comm: thread.comm, tid: thread.tid })} <Icon name="filter" size={10} />
        </button>
      </th>
      <td class="number">{count(thread.looks)}</td>
      <td class="number">{percent(thread.waiting_ratio)}</td>
      <td class="python-lines">
        {linesOf(thread)
          .slice(0, LINES)
          .map(({ place, ratio, stack }) => (
            <span key={place} title={stack}>
              <b>{percent(ratio)}</b> <code>{place}</code>
            </span>
          ))}
      </td>
    </tr>
  );
}
