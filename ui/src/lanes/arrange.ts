/** Which lanes are drawn, and in which order. Kept in this browser, not in the address: a link must not change another's screen. */

import { signal } from "@preact/signals";

export interface Arrangement {
  /** Ids in the reader's order; lanes that are not named keep the place that the page gives them. */
  order: readonly string[];
  hidden: readonly string[];
}

const NOTHING: Arrangement = { order: [], hidden: [] };
const KEPT = "zombiescope.lanes";

/** All of `ids` in the reader's order. A new one is placed behind the lane that it follows in the page's own order. Pure. */
export function ordered(ids: readonly string[], order: readonly string[]): string[] {
  const out = order.filter((id) => ids.includes(id));
  if (!out.length) return [...ids];
  ids.forEach((id, n) => {
    if (out.includes(id)) return;
    const before = n > 0 ? out.indexOf(ids[n - 1]!) : -1;
    out.splice(before + 1, 0, id);
  });
  return out;
}

/** `id` moved by one place among those that are drawn. Pure. */
export function moved(shown: readonly string[], id: string, by: -1 | 1): string[] {
  const out = [...shown];
  const at = out.indexOf(id);
  const to = at + by;
  if (at < 0 || to < 0 || to >= out.length) return out;
  [out[at], out[to]] = [out[to]!, out[at]!];
  return out;
}

function stored(): Arrangement {
  try {
    const said = JSON.parse(localStorage.getItem(KEPT) ?? "null") as Partial<Arrangement> | null;
    const texts = (list: unknown): string[] =>
      Array.isArray(list) ? list.filter((one): one is string => typeof one === "string") : [];
    return { order: texts(said?.order), hidden: texts(said?.hidden) };
  } catch {
    return NOTHING;
  }
}

export const arrangement = signal<Arrangement>(stored());

export function arrange(change: Partial<Arrangement>): void {
  arrangement.value = { ...arrangement.value, ...change };
  try {
    localStorage.setItem(KEPT, JSON.stringify(arrangement.value));
  } catch {
    // not kept: it still holds for this visit
  }
}

export function hide(id: string, isHidden: boolean): void {
  const others = arrangement.value.hidden.filter((one) => one !== id);
  arrange({ hidden: isHidden ? [...others, id] : others });
}
