/** Finding by a few letters: every word must begin somewhere in the name; whole beginnings come first. Pure. */

export function matching<T>(all: readonly T[], typed: string, name: (item: T) => string): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [...all];
  const scored = all.flatMap((item, order) => {
    const score = scoreOf(name(item).toLowerCase(), words);
    return score === null ? [] : [{ item, score, order }];
  });
  return scored.sort((a, b) => b.score - a.score || a.order - b.order).map(({ item }) => item);
}

function scoreOf(text: string, words: string[]): number | null {
  let score = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return null;
    const begins = new RegExp(`(^|[^a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`).test(text);
    score += begins ? 2 : 1;
  }
  return score;
}
