/** One row of the time axis: a label, a picture in the axis' own width, and its scale. */

import type { ComponentChildren } from "preact";
import { cut, toX } from "../axis/axis";
import { plotWidth } from "../axis/moves";
import { clock } from "../format";
import { info, view, zoneOffset } from "../state";
import { areLoaded, lanes } from "./load";

/** What a moment is in a lane, for the tip: name, colour, value; null: not measured. */
export type TipRow = readonly [name: string, colour: string, value: string | null];

export interface Lane {
  /** In what this browser remembers: a lane that is renamed comes back. */
  id: string;
  title: string;
  /** Whether this recording has anything for it: others are neither drawn nor offered. */
  has(): boolean;
  Draw(): ComponentChildren;
  tip?(at: number): TipRow[];
}

const EVERYTHING = /^(recorder|everything)$/;

interface RowSays {
  label: ComponentChildren;
  class: string;
  scale?: string[];
  height?: number;
  /** Sources without which this lane sees nothing. */
  blind?: RegExp;
  children: ComponentChildren;
}

export function Row({ label, class: kind, scale, height, blind, children }: RowSays) {
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

/** A lane without a single point says why, if it is known. */
export function NotMeasured({ at, missing }: { at: readonly number[]; missing: RegExp }) {
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
