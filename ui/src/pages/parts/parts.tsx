// Small pieces that every page is made of: a tag, a panel, a kernel path, and a document that is there or on its way.

import type { ComponentChildren } from "preact";
import type { Severity } from "../../api/types";
import { Go } from "../../chrome/link";
import { Problem } from "../../chrome/states";
import { capital } from "../../format";
import type { Answer, Target } from "../../state";

const SIGNS: Record<Severity, string> = { critical: "▲", warning: "◆", info: "●" };

export function Tag({ severity }: { severity: Severity }) {
  return (
    <span class={`pg-tag pg-${severity}`}>
      <span aria-hidden="true">{SIGNS[severity]}</span> {severity}
    </span>
  );
}

export function Panel(props: {
  title: string;
  id?: string;
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}) {
  const id = props.id ?? props.title.toLowerCase().replace(/[^a-z]+/g, "-");
  return (
    <section class={`pg-panel ${props.class ?? ""}`} aria-labelledby={`${id}-title`} id={id}>
      <header>
        <h2 id={`${id}-title`}>{props.title}</h2>
        {props.aside && <div class="pg-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

export function Page(props: {
  title: string;
  lead?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="pg">
      <header class="pg-head">
        <div>
          <h1>{props.title}</h1>
          {props.lead && <p class="pg-lead">{props.lead}</p>}
        </div>
        {props.aside && <div class="pg-aside">{props.aside}</div>}
      </header>
      {props.children}
    </div>
  );
}

/** What is drawn while nothing is there yet: the shape of what will come, and a word for those who cannot see it. */
function Skeleton({ what, lines = 3 }: { what: string; lines?: number }) {
  return (
    <div class="pg-loading" role="status">
      <span class="hidden-text">{capital(what)} …</span>
      {Array.from({ length: lines }, (_, number) => (
        <i key={number} aria-hidden="true" />
      ))}
      <p aria-hidden="true">{capital(what)} …</p>
    </div>
  );
}

/** The document once it is there; else why it is not. */
export function Loaded<T>(props: {
  answer: Answer<T>;
  what: string;
  lines?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error, again } = props.answer;
  if (data !== null)
    return (
      <>
        {error && (
          <p class="pg-stale" role="status">
            Not refreshed: {error.what}
          </p>
        )}
        {props.children(data)}
      </>
    );
  if (error) return <Problem error={error} again={again} />;
  return <Skeleton what={props.what} {...(props.lines === undefined ? {} : { lines: props.lines })} />;
}

/** A kernel path, outermost first, the hottest last and strongest. */
export function Frames({ frames, place }: { frames: readonly string[]; place?: (frame: string) => Target }) {
  return (
    <ol class="pg-frames" aria-label="kernel path, outermost first">
      {frames.map((frame, number) => (
        <li key={`${number}${frame}`} class={number === frames.length - 1 ? "hot" : ""}>
          {place ? <Go place={place(frame)}>{frame}</Go> : frame}
        </li>
      ))}
    </ol>
  );
}
