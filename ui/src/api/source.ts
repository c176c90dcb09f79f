/**
 * Where answers come from: the server (http.ts), or the page itself when it was frozen into one file (frozen.ts).
 * Views ask `source()` and never know which of the two it is.
 */

import type { Columns } from "./columns";
import { FrozenSource } from "./frozen";
import { HttpSource } from "./http";
import type { ColumnHeaders, Documents, LiveEvents } from "./types";

export type Param = string | number | boolean | null | undefined | readonly (string | number)[];
export type Params = Record<string, Param>;

export interface LiveHandlers {
  tick?(tick: LiveEvents["tick"]): void;
  event?(event: LiveEvents["event"]): void;
  incidents?(incidents: LiveEvents["incidents"]): void;
  /** The recorder stopped, or started again; the stream continues. */
  recorder?(running: boolean): void;
  /** "open" again after "lost" means: ticks are missing in between, ask for them. */
  state?(state: LiveState, why?: string): void;
}

/** The server's description says what is answered there. */
export type DocumentPath = keyof Documents;
export type ColumnPath = keyof ColumnHeaders;

export type LiveState = "connecting" | "open" | "lost" | "ended";

export interface Source {
  readonly frozen: boolean;
  json<P extends DocumentPath>(path: P, params?: Params, signal?: AbortSignal): Promise<Documents[P]>;
  columns<P extends ColumnPath>(path: P, params?: Params, signal?: AbortSignal): Promise<Columns<ColumnHeaders[P]>>;
  /** Begins to listen; the answer ends it. */
  live(params: Params, handlers: LiveHandlers): () => void;
  /** Saves an answer as a file; null where there is no server. */
  readonly download: ((path: string, params?: Params, name?: string) => Promise<void>) | null;
}

interface Answered {
  error: { what: string; fix?: string | null };
}

/** What the server said was wrong, and how to fix it. */
export class AnswerError extends Error {
  constructor(
    readonly status: number,
    readonly what: string,
    readonly fix: string | null = null,
  ) {
    super(what);
  }

  /** As the server writes it. */
  static answered(status: number, { error }: Answered): AnswerError {
    return new AnswerError(status, error.what, error.fix ?? null);
  }

  /** Whatever was thrown. */
  static of(error: unknown): AnswerError {
    if (error instanceof AnswerError) return error;
    return new AnswerError(-1, error instanceof Error ? error.message : String(error));
  }
}

/** The server is away. The header says so and the page recovers by itself: what is on the screen may stay. */
export const silent = (error: AnswerError): boolean => error.status === 0;

/** Sorted, without what is not set, so that the same question is always written the same way. */
export function query(params: Params): string {
  const out = new URLSearchParams();
  for (const name of Object.keys(params).sort()) {
    const value = params[name];
    if (value === null || value === undefined || value === "" || value === false) continue;
    const values = Array.isArray(value) ? (value as readonly (string | number)[]) : [value === true ? 1 : value];
    for (const one of values) out.append(name, String(one));
  }
  return out.toString();
}

export function question(path: string, params: Params = {}): string {
  const asked = query(params);
  return asked ? `${path}?${asked}` : path;
}

let chosen: Source | null = null;

export function source(): Source {
  chosen ??= FrozenSource.embedded() ?? new HttpSource();
  return chosen;
}

/** For tests and fixtures. */
export function useSource(other: Source): void {
  chosen = other;
}
