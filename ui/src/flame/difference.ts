// What a comparison found, in a sentence: how much more or less of the node was used, and by which functions.

import { percent } from "../format";
import type { TopRow } from "./top";
import type { FlameTree } from "./tree";
import { amount } from "./words";

/** Changes below this part of the busier side are noise of sampling. */
export const NOISE = 0.02;
const SAID = 3;

export function differenceWords(rows: readonly TopRow[], tree: FlameTree): string {
  if (!tree.rates) return "";
  const { here, there } = tree.rates;
  const [a, b] = [tree.total * here, tree.baseTotal * there];
  const most = Math.max(a, b);
  const all = `A: ${amount(a, tree)}, B: ${amount(b, tree)} in all`;
  const found = rows
    .filter(({ selfDelta }) => most > 0 && Math.abs((selfDelta ?? 0) * here) >= NOISE * most)
    .sort((one, other) => Math.abs(other.selfDelta!) - Math.abs(one.selfDelta!))
    .slice(0, SAID)
    .map(({ name, selfDelta }) => {
      const rate = selfDelta! * here;
      return `${amount(Math.abs(rate), tree)} ${rate > 0 ? "more" : "less"} in ${name}`;
    });
  if (found.length) return `${all}. A has ${found.join(", ")}.`;
  return `${all}. No function differs by ${percent(NOISE, 1)} or more.`;
}
