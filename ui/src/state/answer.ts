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

/**
 * Asks whenever `key` changes (null: nothing to ask), after it has been still for `wait_ms`: a wheel that turns asks once.
 * A question that is overtaken by the next is called off.
 */
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, wait_ms = 0): Answer<T> {
  const [answer, setAnswer] = useState<{ data: T | null; error: AnswerError | null; loading: boolean }>(
    { data: null, error: null, loading: key !== null });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  const known = fresh.value;
  useEffect(() => {
    if (key === null) {
      setAnswer({ data: null, error: null, loading: false });
      return undefined;
    }
    const stop = new AbortController();
    setAnswer((before) => ({ ...before, loading: true }));
    const timer = setTimeout(() => {
      latest.current(stop.signal).then(
        (data) => stop.signal.aborted || setAnswer({ data, error: null, loading: false }),
        (error: unknown) => stop.signal.aborted || setAnswer((before) => ({ ...before, error: asAnswerError(error), loading: false })),
      );
    }, wait_ms);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, round, known]);
  return { ...answer, again: () => setRound(round + 1) };
}
