// Small pieces that every page is made of: a tag, a panel, a button that copies, and the four states
// that a page can be in when it has nothing to show.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type AnswerError, source } from "../../api/source";
import type { Missing, Severity } from "../../api/types";
import { copy } from "../../chrome/clipboard";
import { Go } from "../../chrome/link";
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

/** Copies, says so, and still gives the text where a page may not write to the clipboard. */
export function Copy({ text, what = "copy" }: { text: string; what?: string }) {
  const [done, setDone] = useState<"" | "copied" | "select it by hand">("");
  const timer = useRef(0);
  const write = async () => {
    const ok = await copy(text);
    setDone(ok ? "copied" : "select it by hand");
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setDone(""), 2000);
  };
  return (
    <button type="button" class="pg-button" aria-live="polite" onClick={() => void write()}>
      {done || what}
    </button>
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
export function Loading({ what, lines = 3 }: { what: string; lines?: number }) {
  return (
    <div class="pg-loading" role="status">
      <span class="hidden-text">{what} …</span>
      {Array.from({ length: lines }, (_, number) => (
        <i key={number} aria-hidden="true" />
      ))}
      <p aria-hidden="true">{what} …</p>
    </div>
  );
}

export function Failed({ error, again }: { error: AnswerError; again: () => void }) {
  const denied = error.status === 401 || error.status === 403;
  if (source().frozen && error.status === 404)
    return <Empty title="Not in this file">{error.fix && <p class="faint">{error.fix}</p>}</Empty>;
  return (
    <div class={`pg-state ${denied ? "pg-denied" : "pg-failed"}`} role="alert">
      <strong>{denied ? "No permission" : "This could not be read"}</strong>
      <p>{error.what}</p>
      {error.fix && <p class="faint">{error.fix}</p>}
      <button type="button" class="pg-button" onClick={again}>
        try again
      </button>
    </div>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren; good?: boolean }) {
  return (
    <div class={`pg-state ${props.good ? "pg-good" : ""}`}>
      <strong>
        <span aria-hidden="true">{props.good ? "✓ " : ""}</span>
        {props.title}
      </strong>
      {props.children}
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
  if (error) return <Failed error={error} again={again} />;
  return <Loading what={props.what} {...(props.lines === undefined ? {} : { lines: props.lines })} />;
}

/** Sources that this recorder may not read, and what would let it. */
export function MissingList({ missing }: { missing: readonly Missing[] }) {
  return (
    <ul class="pg-missing">
      {missing.map((each) => (
        <li key={each.source}>
          <strong>{each.source}</strong> <span>{each.why}</span>
          {each.grant && (
            <div class="pg-grant">
              <code>{each.grant}</code> <Copy text={each.grant} />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
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
