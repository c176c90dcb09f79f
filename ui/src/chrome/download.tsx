/** Downloads. They are fetched with the token and then saved: a plain link cannot carry a header. */

import type { ComponentChildren } from "preact";
import { AnswerError, type Params, source } from "../api/source";

/** Saves an answer of the server as a file; null where there is no server. */
export function saving(path: string, params: Params, name?: string): (() => void) | null {
  const from = source();
  if (!from.download) return null;
  return () => {
    from.download?.(path, params, name).catch((error: unknown) => {
      const said = AnswerError.of(error);
      window.alert(`not saved: ${said.what}${said.fix ? `; ${said.fix}` : ""}`);
    });
  };
}

export function Download(props: {
  path: string;
  params: Params;
  name?: string;
  class?: string;
  role?: "menuitem";
  children: ComponentChildren;
}) {
  const save = saving(props.path, props.params, props.name);
  return (
    save && (
      <button type="button" class={props.class} role={props.role} onClick={save}>
        {props.children}
      </button>
    )
  );
}
