// Asking for a document and keeping it: loading, ready, refused. A document that is asked for again stays on the screen
// until the new one is there, so a live page does not flicker, and a broken connection leaves what was known until it is mended.

import { useCallback, useEffect, useState } from "preact/hooks";
import { type AnswerError, type Params, question, source } from "../../api/source";
import { asAnswerError, fresh } from "../../state/load";

export interface Asked<T> {
  data: T | null;
  error: AnswerError | null;
  loading: boolean;
  again: () => void;
}

interface Kept<T> {
  asked: string;
  data: T | null;
  error: AnswerError | null;
}

/** `every_s`: how often it is asked for again; 0 = once. null as path: nothing is asked yet. */
export function useDocument<T>(path: string | null, params: Params = {}, every_s = 0): Asked<T> {
  const asked = path === null ? "" : question(path, params);
  const [kept, keep] = useState<Kept<T>>({ asked: "", data: null, error: null });
  const [turn, setTurn] = useState(0);
  const known = fresh.value;
  const again = useCallback(() => setTurn((number) => number + 1), []);

  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const timer = every_s ? window.setInterval(() => !document.hidden && again(), every_s * 1000) : 0;
    source()
      .json<T>(path, params, stop.signal)
      .then(
        (data) => !stop.signal.aborted && keep({ asked, data, error: null }),
        (error: unknown) =>
          !stop.signal.aborted &&
          keep((before) => ({ asked, data: before.asked === asked ? before.data : null, error: asAnswerError(error) })),
      );
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [asked, turn, every_s, known]);

  const current = kept.asked === asked;
  return {
    data: current ? kept.data : null,
    error: current ? kept.error : null,
    loading: !current && path !== null,
    again,
  };
}
