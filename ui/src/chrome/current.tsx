/** A picture that says so when it belongs to an earlier question than the one shown above it. */

import type { ComponentChildren } from "preact";
import type { Span } from "../api/types";
import { clock } from "../format";
import { type Answer, away, following, zoneOffset } from "../state";

interface Shown {
  class: string;
  style?: Record<string, string>;
  /** null: what is drawn says it itself. */
  answer: Answer<unknown> | null;
  /** The time that the data is of. */
  of: Span | null | undefined;
  children: ComponentChildren;
}

export function Current({ class: name, style, answer, of, children }: Shown) {
  const lost = away.value !== null;
  // The live tail moves all the time: while it is followed an answer is some seconds old by intention.
  const old = answer?.stale && (lost || !following.value);
  return (
    <div class={name + (old ? (lost ? " stale lost" : " stale") : "")} style={style}>
      {old && of && (
        <p class="stale-note" role="status">
          {lost
            ? `The server does not answer. This is of the earlier selection, ${words(of)}.`
            : `Showing ${words(of)}, loading …`}
        </p>
      )}
      {children}
    </div>
  );
}

function words({ from, to }: Span): string {
  const decimals = to - from < 60 ? 1 : 0;
  return `${clock(from, zoneOffset.value, decimals)} – ${clock(to, zoneOffset.value, decimals)}`;
}
