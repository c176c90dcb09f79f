/**
 * The server's answers. A token comes once in the address (#token=...), is taken out of it, kept for this tab, sent as
 * a bearer, and exchanged for a cookie, since neither EventSource nor a download can carry a header.
 */

import { type Columns, decode, MEDIA_TYPE } from "./columns";
import { listen } from "./live";
import {
  AnswerError,
  type ColumnPath,
  type DocumentPath,
  type LiveHandlers,
  type Params,
  question,
  type Source,
} from "./source";
import type { ColumnHeaders, Documents } from "./types";

const ROOT = "/api/v1/";
const KEPT = "zombiescope.token";

export class HttpSource implements Source {
  readonly frozen = false;
  private readonly token: string | null = takeToken();
  private session: Promise<unknown> | null = null;

  async json<P extends DocumentPath>(path: P, params: Params = {}, signal?: AbortSignal): Promise<Documents[P]> {
    return (await (await this.ask(path, params, "application/json", signal)).json()) as Documents[P];
  }

  async columns<P extends ColumnPath>(
    path: P,
    params: Params = {},
    signal?: AbortSignal,
  ): Promise<Columns<ColumnHeaders[P]>> {
    return decode<ColumnHeaders[P]>(await (await this.ask(path, params, MEDIA_TYPE, signal)).arrayBuffer());
  }

  live(params: Params, handlers: LiveHandlers): () => void {
    return listen(ROOT + question("live", params), () => this.open(), handlers);
  }

  href(path: string, params: Params = {}): string {
    return ROOT + question(path, params);
  }

  private async ask(path: string, params: Params, accept: string, signal?: AbortSignal): Promise<Response> {
    if (this.token) await this.open();
    const headers: Record<string, string> = { Accept: accept };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const init: RequestInit = { headers, credentials: "same-origin" };
    if (signal) init.signal = signal;
    let response: Response;
    try {
      response = await fetch(ROOT + question(path, params), init);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new AnswerError(
        0,
        "the server does not answer",
        "is zombiescope still running? start it again, and the page reconnects by itself",
      );
    }
    if (!response.ok) throw await failure(response);
    return response;
  }

  private open(): Promise<unknown> {
    if (!this.token) return Promise.resolve();
    this.session ??= fetch(`${ROOT}session`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.token}` },
      credentials: "same-origin",
    }).catch(() => {
      this.session = null;
    });
    return this.session;
  }
}

async function failure(response: Response): Promise<AnswerError> {
  try {
    return AnswerError.answered(response.status, await response.json());
  } catch {
    return new AnswerError(response.status, `the server answered ${response.status} ${response.statusText}`);
  }
}

function takeToken(): string | null {
  const hash = new URLSearchParams(location.hash.slice(1));
  const given = hash.get("token");
  if (given) {
    hash.delete("token");
    const rest = hash.toString();
    history.replaceState(history.state, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
    sessionStorage.setItem(KEPT, given);
    return given;
  }
  return sessionStorage.getItem(KEPT);
}
