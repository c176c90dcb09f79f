/**
 * The live stream: server-sent events, read with fetch. EventSource cannot send the token in a header, and a cookie goes
 * to every port of the host, so to every user's server on it. Reconnecting is done here, with patience.
 */

import type { LiveHandlers } from "./source";
import type { LiveEvents } from "./types";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;
/** Ticks come every second while the recorder runs; silence beyond this is a dead connection that was never closed. */
const SILENCE_MS = 40_000;

/** Opens the stream; the signal ends it. */
export type Connect = (signal: AbortSignal) => Promise<Response>;

export function listen(connect: Connect, handlers: LiveHandlers): () => void {
  let stream: AbortController | null = null;
  let wait = FIRST_WAIT_MS;
  let timer = 0;
  let ended = false;

  const heard = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => lost("no message for 40 seconds"), SILENCE_MS);
  };

  const take = (kind: string, data: string): void => {
    heard();
    const said: unknown = JSON.parse(data);
    if (kind === "tick") handlers.tick?.(said as LiveEvents["tick"]);
    else if (kind === "event") handlers.event?.(said as LiveEvents["event"]);
    else if (kind === "incidents") handlers.incidents?.(said as LiveEvents["incidents"]);
    else if (kind === "recorder") {
      const { running } = said as LiveEvents["recorder"];
      // Without a recorder the server sends nothing but comments.
      if (!running) clearTimeout(timer);
      handlers.recorder?.(running);
    }
  };

  const open = async (): Promise<void> => {
    const own = new AbortController();
    stream = own;
    try {
      const response = await connect(own.signal);
      if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
      wait = FIRST_WAIT_MS;
      handlers.state?.("open");
      heard();
      for await (const { kind, data } of messages(response.body)) take(kind, data);
    } catch {
      // Said below, and tried again.
    }
    if (stream === own) lost("the connection broke");
  };

  const lost = (why: string): void => {
    stream?.abort();
    stream = null;
    clearTimeout(timer);
    if (ended) return;
    handlers.state?.("lost", why);
    timer = window.setTimeout(() => void open(), wait);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  };

  const now = (): void => {
    if (stream || ended) return;
    clearTimeout(timer);
    wait = FIRST_WAIT_MS;
    void open();
  };
  window.addEventListener("online", now);
  const shown = (): void => {
    if (!document.hidden) now();
  };
  document.addEventListener("visibilitychange", shown);

  handlers.state?.("connecting");
  void open();
  return () => {
    ended = true;
    clearTimeout(timer);
    stream?.abort();
    stream = null;
    window.removeEventListener("online", now);
    document.removeEventListener("visibilitychange", shown);
    handlers.state?.("ended");
  };
}

/** Server-sent events of a body: the text before an empty line, by its `event:` and `data:` lines. */
async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<{ kind: string; data: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let left = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (left + value).split(/\r?\n\r?\n/);
      left = parts.pop() ?? "";
      for (const part of parts) {
        const message = parsed(part);
        if (message) yield message;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

export function parsed(text: string): { kind: string; data: string } | null {
  let kind = "message";
  const data: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue; // a comment
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("event:")) kind = value;
    else if (line.startsWith("data:")) data.push(value);
  }
  return data.length ? { kind, data: data.join("\n") } : null;
}
