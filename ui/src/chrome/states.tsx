/** What is shown where a picture cannot be: it is coming, there is nothing, it went wrong, or it may not be read. */

import type { ComponentChildren } from "preact";
import { type AnswerError, source } from "../api/source";
import type { Missing } from "../api/types";
import { capital, sentence } from "../format";
import { Copyable } from "./copy";
import { Icon, type IconName } from "./icons";

interface Says {
  title: string;
  children?: ComponentChildren;
  /** For a small place inside a view. */
  small?: boolean;
}

type Kind = "empty" | "good" | "loading" | "error" | "denied";
const ICONS: Record<Kind, IconName> = {
  empty: "empty",
  good: "check",
  loading: "wait",
  error: "warning",
  denied: "lock",
};

function State({ kind, title, children, small, alert }: Says & { kind: Kind; alert?: boolean }) {
  return (
    <div class={`state ${kind}${small ? " small" : ""}`} role={alert ? "alert" : "status"}>
      <Icon name={ICONS[kind]} />
      <div>
        <strong>{title}</strong>
        {children && <div class="state-text">{children}</div>}
      </div>
    </div>
  );
}

/** `good`: that there is nothing is what one hopes for. */
export const Empty = ({ good, ...says }: Says & { good?: boolean }) => (
  <State kind={good ? "good" : "empty"} {...says} />
);

export const Loading = ({ title = "Loading", ...says }: Partial<Says>) => (
  <State kind="loading" title={title} {...says} />
);

export function Problem({ error, again, small }: { error: AnswerError; again?: () => void; small?: boolean }) {
  const title = capital(error.what);
  const fix = error.fix && <p>{sentence(error.fix)}</p>;
  // A file has what was put into it: trying again would not help.
  if (source().frozen && error.status === 404)
    return (
      <Empty title={title} small={small ?? false}>
        {fix}
      </Empty>
    );
  return (
    <State
      kind={error.status === 401 || error.status === 403 ? "denied" : "error"}
      title={title}
      small={small ?? false}
      alert
    >
      {fix}
      {again && (
        <button type="button" class="button" onClick={again}>
          Try again
        </button>
      )}
    </State>
  );
}

/** The server wants a token: it was printed once, where the server was started. */
export function AskToken({ error }: { error: AnswerError }) {
  const open = (event: Event): void => {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get("token");
    if (!token) return;
    // The same way in as the printed address.
    location.hash = `token=${encodeURIComponent(
      String(token)
        .trim()
        .replace(/^.*#token=/, ""),
    )}`;
    location.reload();
  };
  return (
    <State kind="denied" title={capital(error.what)}>
      {error.fix && <p>{capital(error.fix)}, or paste the token:</p>}
      <form class="button-row" onSubmit={open}>
        <input class="plain" type="password" name="token" aria-label="Token" autofocus autocomplete="off" />
        <button type="submit" class="button">
          Open
        </button>
      </form>
    </State>
  );
}

/** Sources that this recorder was not allowed to read: why, and the command that grants each. */
export function NoPermission({ missing, small }: { missing: readonly Missing[]; small?: boolean }) {
  const title =
    missing.length === 1 ? `${missing[0]!.source} was not recorded` : `${missing.length} sources were not recorded`;
  return (
    <State kind="denied" small={small ?? false} title={title}>
      <MissingList missing={missing} />
    </State>
  );
}

export function MissingList({ missing }: { missing: readonly Missing[] }) {
  return (
    <dl class="missing">
      {missing.map((one) => (
        <div key={one.source}>
          <dt>{one.source}</dt>
          <dd>{one.why}</dd>
          {one.grant && (
            <dd>
              <Copyable text={one.grant} />
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}
