/** One question of a view to the source: loading, answered, or failed; the last answer stays until the next is there. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerError } from "../api/source";
import { asAnswerError, fresh } from "./load";

export interface Answer<T> {
  data: T | null;
  error: AnswerError | null;
  loading: boolean;
  again(): void;
}

interface Asking {
  /** After the key has been still for so long: a wheel that turns asks once. */
  wait_ms?: number;
  /** Let a question be answered before the next is asked: what comes by itself must not overtake itself on a slow machine. */
  patient?: boolean;
}

/** Asks whenever `key` changes (null: nothing to ask). A question that is overtaken by the next is called off, unless patient. */
export function useAnswer<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { wait_ms = 0, patient = false }: Asking = {},
): Answer<T> {
  const [answer, setAnswer] = useState<{ data: T | null; error: AnswerError | null; loading: boolean }>({
    data: null,
    error: null,
    loading: key !== null,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  const running = useRef<AbortController | null>(null);
  const overdue = useRef(false);
  const known = fresh.value;

  const begin = (): void => {
    const stop = new AbortController();
    running.current = stop;
    const timer = setTimeout(() => {
      const done = (change: (before: { data: T | null }) => { data: T | null; error: AnswerError | null }): void => {
        if (stop.signal.aborted) return;
        running.current = null;
        const more = overdue.current;
        overdue.current = false;
        setAnswer((before) => ({ ...change(before), loading: more }));
        if (more) begin();
      };
      latest.current(stop.signal).then(
        (data) => done(() => ({ data, error: null })),
        (error: unknown) => done((before) => ({ data: before.data, error: asAnswerError(error) })),
      );
    }, wait_ms);
    stop.signal.addEventListener("abort", () => clearTimeout(timer));
  };

  useEffect(() => {
    if (patient && running.current && key !== null) {
      overdue.current = true;
      return;
    }
    running.current?.abort();
    running.current = null;
    overdue.current = false;
    if (key === null) return setAnswer({ data: null, error: null, loading: false });
    setAnswer((before) => ({ ...before, loading: true }));
    begin();
  }, [key, round, known]);
  useEffect(() => () => running.current?.abort(), []);
  return { ...answer, again: () => setRound(round + 1) };
}
