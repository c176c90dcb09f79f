/**
 * How every view asks the source: loading, answered, failed, or out of date. An answer stays on the screen until the next is
 * there, so that a live page does not flicker, and a broken connection leaves what was known until it is back.
 */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Columns } from "../api/columns";
import { AnswerError, type ColumnPath, type DocumentPath, type Params, question, silent, source } from "../api/source";
import type { ColumnHeaders, Documents } from "../api/types";
import { fresh } from "./recording";
import { asking, away, heard } from "./server";

export interface Answer<T> {
  data: T | null;
  /** Why the last question was not answered; `data` is then of an earlier one. */
  error: AnswerError | null;
  /** The same where it must be shown: not while it is tried again, nor over a picture while the server is away. */
  problem: AnswerError | null;
  loading: boolean;
  /** `data` answers an earlier question than the current one: its view has to say so. */
  stale: boolean;
  again(): void;
}

interface Asking {
  /** After the question has been still for so long: a wheel that turns asks once. */
  wait_ms?: number;
  /** Wait for the answer before sending the next question: polling must not overtake itself on a slow machine. */
  patient?: boolean;
  /** How often it is sent again while the page is visible; 0: once. */
  every_s?: number;
  /** The answer to another question is shown until this one's is there, as a picture that moves needs it. */
  lasting?: boolean;
}

interface Kept<T> {
  key: string | null;
  /** The question that `data` answers. */
  of: string | null;
  data: T | null;
  error: AnswerError | null;
  loading: boolean;
}

const NOTHING = { key: null, of: null, data: null, error: null, loading: false };

/** Asks whenever `key` changes (null: nothing to ask). A question that is overtaken by the next is called off, unless patient. */
export function useAnswer<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { wait_ms = 0, patient = false, every_s = 0, lasting = false }: Asking = {},
): Answer<T> {
  const [kept, keep] = useState<Kept<T>>(NOTHING);
  const [round, setRound] = useState(0);
  const latest = useRef({ key, ask });
  latest.current = { key, ask };
  const running = useRef<AbortController | null>(null);
  const overdue = useRef(false);
  const known = fresh.value;
  const again = useCallback(() => setRound((number) => number + 1), []);

  const begin = (): void => {
    const stop = new AbortController();
    running.current = stop;
    const timer = setTimeout(() => {
      const asked = latest.current;
      const answered = asking();
      stop.signal.addEventListener("abort", answered, { once: true });
      const done = (data: T | null, error: AnswerError | null): void => {
        if (stop.signal.aborted) return;
        stop.signal.removeEventListener("abort", answered);
        answered();
        heard(error);
        running.current = null;
        const more = overdue.current;
        overdue.current = false;
        keep((before) => ({
          key: asked.key,
          of: data === null ? before.of : asked.key,
          data: data ?? (lasting || before.of === asked.key ? before.data : null),
          error,
          loading: more,
        }));
        if (more) begin();
      };
      asked.ask(stop.signal).then(
        (data) => done(data, null),
        (error: unknown) => done(null, AnswerError.of(error)),
      );
    }, wait_ms);
    stop.signal.addEventListener("abort", () => clearTimeout(timer));
  };

  useEffect(() => {
    if (patient && running.current && key !== null && away.peek() === null) {
      overdue.current = true;
      return;
    }
    running.current?.abort();
    running.current = null;
    overdue.current = false;
    if (key === null) return keep(NOTHING);
    keep((before) => ({ ...before, loading: true }));
    begin();
  }, [key, round, known]);
  useEffect(() => {
    if (!every_s) return;
    const timer = setInterval(() => !document.hidden && !running.current && again(), every_s * 1000);
    return () => clearInterval(timer);
  }, [every_s]);
  useEffect(() => () => running.current?.abort(), []);

  const own = lasting || kept.key === key;
  const { data, error } = own ? kept : NOTHING;
  // By its key, not by what an effect noted: effects run after the picture is drawn, which is the old one until then.
  const loading = key !== null && (kept.loading || kept.key !== key);
  const stale = data !== null && kept.of !== key;
  return { data, error, stale, problem: loading || (data && error && silent(error)) ? null : error, loading, again };
}

/** A document of the server; null as path: no request yet. */
export function useDocument<P extends DocumentPath>(
  path: P | null,
  params: Params,
  asking: Asking = {},
): Answer<Documents[P]> {
  const key = path === null ? null : question(path, params);
  return useAnswer(key, (signal) => source().json(path!, params, signal), asking);
}

/** What a picture is drawn from; null as params: no request yet. */
export function useColumns<P extends ColumnPath>(
  path: P,
  params: Params | null,
  asking: Asking = {},
): Answer<Columns<ColumnHeaders[P]>> {
  const key = params && question(path, params);
  return useAnswer(key, (signal) => source().columns(path, params!, signal), { lasting: true, ...asking });
}
