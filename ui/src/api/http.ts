/**
 * The server's answers. A token comes once in the address (#token=...), is taken out of it, kept for this tab, and sent
 * as a bearer with every request, the live stream and downloads too. There is no cookie: browsers send those to every
 * port of a host, and on a shared machine those are other users' servers.
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
    return listen((signal) => this.send("live", params, "text/event-stream", signal), handlers);
  }

  async download(path: string, params: Params = {}, name?: string): Promise<void> {
    const response = await this.ask(path, params, "*/*");
    const named = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name ?? named?.[1] ?? path;
    link.click();
    // The browser reads it after the click has been handled.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  private async ask(path: string, params: Params, accept: string, signal?: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await this.send(path, params, accept, signal);
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

  private send(path: string, params: Params, accept: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Accept: accept };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const init: RequestInit = { headers, credentials: "omit" };
    if (signal) init.signal = signal;
    return fetch(ROOT + question(path, params), init);
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
