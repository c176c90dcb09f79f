/**
 * Whether the server answers, whether the recording is still there, and whether the parts of its recorder work. Every
 * answer to any question counts as a sign of life; while none comes, one cheap question is repeated.
 */

import { batch, effect, signal } from "@preact/signals";
import { AnswerError, silent, source } from "../api/source";
import type { PartHealth } from "../api/types";
import { info, rec } from "./state";

/** Since when the server does not answer, in Unix seconds; null while it does. */
export const away = signal<number | null>(null);
export const parts = signal<PartHealth[]>([]);
/** The recording was deleted or moved. */
export const gone = signal<AnswerError | null>(null);

const OFTEN_MS = 3000;
const SELDOM_MS = 15_000;
/** A question that takes longer may be a hard one: a second request checks whether the server is there ... */
const SUSPICIOUS_MS = 400;
/** ... and this is what a server that is there may take for that. */
const PATIENCE_MS = 1400;

let back = (): void => undefined;
let failed = false;
let waiting = 0;
let looking = false;
let timer = 0;

const UNHEARD = new AnswerError(0, "the server does not answer");

/** To be called with what became of any question; null: it was answered. */
export function heard(error: AnswerError | null): void {
  if (error?.status === 410) gone.value = error;
  if (error && silent(error)) {
    failed ||= error !== UNHEARD;
    if (away.value === null) {
      away.value = Date.now() / 1000;
      later();
    }
  } else if (away.value !== null) {
    away.value = null;
    // A server that was only slow still answers; failed requests must be sent again.
    if (failed) back();
    failed = false;
  }
}

/** A question is on its way until the answer is called. */
export function asking(): () => void {
  waiting++;
  const suspicious = setTimeout(() => void look(), SUSPICIOUS_MS);
  return () => {
    waiting--;
    clearTimeout(suspicious);
  };
}

async function look(): Promise<void> {
  if (looking || source().frozen) return;
  looking = true;
  const key = rec.peek();
  const stop = new AbortController();
  let limit = 0;
  const late = new Promise<never>((_, fail) => {
    limit = window.setTimeout(() => fail(UNHEARD), PATIENCE_MS);
  });
  try {
    const found = await Promise.race([source().json("health", { rec: key }, stop.signal), late]);
    heard(null);
    if (key === rec.peek()) {
      parts.value = found.parts;
      if (gone.value || (info.value && found.live !== info.value.live)) back();
      gone.value = null;
    }
  } catch (error) {
    heard(AnswerError.of(error));
  }
  stop.abort();
  clearTimeout(limit);
  looking = false;
  if (key === rec.peek()) later();
  else void look();
}

function later(): void {
  clearTimeout(timer);
  const often = away.value !== null || waiting > 0 || parts.value.length > 0 || info.value?.live;
  timer = window.setTimeout(() => (document.hidden ? later() : void look()), often ? OFTEN_MS : SELDOM_MS);
}

/** `again` asks everything that may be out of date. */
export function watchServer(again: () => void): void {
  if (source().frozen) return;
  back = again;
  document.addEventListener("visibilitychange", () => document.hidden || void look());
  effect(() => {
    rec.value;
    batch(() => {
      parts.value = [];
      gone.value = null;
    });
    void look();
  });
}
