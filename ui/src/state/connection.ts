/** How the page is connected to the server, in words that say what to do about it. */

import type { AnswerError, LiveState } from "../api/source";

/** "denied": the server is there, and its token is another than the one that this page came with. */
export interface Connection {
  state: LiveState | "none" | "denied";
  why: string;
  since: number;
}

/** What becomes of a connection when its stream says something. Every try of a page that is denied is lost again. */
export function after(before: Connection, state: LiveState, why: string, now: number): Connection {
  if (state === "lost" && before.state === "denied") return before;
  return { state, why, since: before.state === state ? before.since : now };
}

/** What becomes of it when the server did not answer why the stream broke. */
export function refused(before: Connection, error: AnswerError, now: number): Connection {
  return error.status === 401 ? { state: "denied", why: error.what, since: now } : before;
}
