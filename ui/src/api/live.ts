/**
 * The live stream. EventSource reconnects by itself while the server is there, but gives up for good on an HTTP error
 * (a restarting server behind a proxy, 409 when nothing is being recorded), so reconnecting is done here, with patience.
 */

import type { LiveHandlers } from "./source";
import type { LiveEvents } from "./types";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;
/** Ticks come every second while the recorder runs; silence beyond this is a dead connection that nobody closed. */
const SILENCE_MS = 40_000;

export function listen(url: string, ready: () => Promise<unknown>, handlers: LiveHandlers): () => void {
  let stream: EventSource | null = null;
  let wait = FIRST_WAIT_MS;
  let timer = 0;
  let ended = false;

  const heard = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => lost("no message for 40 seconds"), SILENCE_MS);
  };

  const open = async (): Promise<void> => {
    await ready();
    if (ended) return;
    stream = new EventSource(url);
    stream.onopen = () => {
      wait = FIRST_WAIT_MS;
      handlers.state?.("open");
      heard();
    };
    stream.onerror = () => lost("the connection broke");
    const on = <K extends keyof LiveEvents>(kind: K, handle: (data: LiveEvents[K]) => void): void =>
      stream?.addEventListener(kind, (message) => {
        heard();
        handle(JSON.parse((message as MessageEvent<string>).data) as LiveEvents[K]);
      });
    on("tick", (tick) => handlers.tick?.(tick));
    on("event", (event) => handlers.event?.(event));
    on("incidents", (incidents) => handlers.incidents?.(incidents));
    on("recorder", ({ running }) => {
      // Without a recorder there is nothing to hear but comments, which EventSource keeps to itself.
      if (!running) clearTimeout(timer);
      handlers.recorder?.(running);
    });
  };

  const lost = (why: string): void => {
    stream?.close();
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
    stream?.close();
    window.removeEventListener("online", now);
    document.removeEventListener("visibilitychange", shown);
    handlers.state?.("ended");
  };
}
