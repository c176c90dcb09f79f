/** What is shown where a picture cannot be: it is coming, there is nothing, it went wrong, or it may not be read. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { AnswerError } from "../api/source";
import type { Missing } from "../api/types";
import { capital, sentence } from "../format";
import { copy } from "./clipboard";
import { Icon, type IconName } from "./icons";

interface Says {
  title: string;
  children?: ComponentChildren;
  /** For a small place inside a view. */
  small?: boolean;
}

function State({ icon, kind, title, children, small }: Says & { icon: IconName; kind: string }) {
  return (
    <div class={`state ${kind}${small ? " small" : ""}`} role={kind === "error" ? "alert" : "status"}>
      <Icon name={icon} />
      <div>
        <strong>{title}</strong>
        {children && <div class="state-text">{children}</div>}
      </div>
    </div>
  );
}

export const Empty = (says: Says) => <State icon="empty" kind="empty" {...says} />;

export function Loading({ title = "Loading", small, children }: Partial<Says>) {
  return (
    <State icon="wait" kind="loading" title={title} small={small ?? false}>
      {children}
    </State>
  );
}

export function Problem({ error, again, small }: { error: AnswerError; again?: () => void; small?: boolean }) {
  return (
    <State icon="warning" kind="error" title={capital(error.what)} small={small ?? false}>
      {error.fix && <p>{sentence(error.fix)}</p>}
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
    <State icon="lock" kind="denied" title={capital(error.what)}>
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

/** A source that this recorder was not allowed to read: why, and the command that grants it. */
export function NoPermission({ missing, small }: { missing: Missing[]; small?: boolean }) {
  return (
    <State
      icon="lock"
      kind="denied"
      small={small ?? false}
      title={
        missing.length === 1 ? `${missing[0]!.source} was not recorded` : `${missing.length} sources were not recorded`
      }
    >
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
    </State>
  );
}

export function Copyable({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const write = async (): Promise<void> => {
    setCopied(await copy(text));
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span class="copyable">
      <code>{text}</code>
      <button type="button" class="icon-button" onClick={() => void write()} aria-label={`Copy ${text}`} title="Copy">
        <Icon name={copied ? "check" : "copy"} />
      </button>
    </span>
  );
}
