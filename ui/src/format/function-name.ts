/** Names of functions in as many letters as there are, so that two functions never look alike; the rules, and why they
 * are so, stand in src/zombiescope/query/short_names.py, whose list of names both are tested against. Pure. */

const TAGGED_FROM = 24;
const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const OPERATOR = /operator(?:->\*|<=>|<<=|>>=|->|<<|>>|<=|>=|<|>)/g;
const INNERMOST = /<([^<>]+)>/g;
const LESS = "\u0001";
const MORE = "\u0002";
const LEFT_OUT = "\u0003";
const encoder = new TextEncoder();

/** The name in at most so many letters. */
export function functionName(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room < 2) return "…".slice(0, Math.max(room, 0));
  if (!isNested(name) || room < TAGGED_FROM) return `${name.slice(0, room - 1)}…`;
  return `${fromTheInside(name, room - 5)}~${tag(name)}`;
}

function isNested(name: string): boolean {
  return /::|</.test(name) && !name.startsWith("<") && !name.includes(" as ") && !name.includes("impl ");
}

function fromTheInside(name: string, room: number): string {
  let text = name
    .replaceAll("->", `-${MORE}`)
    .replace(OPERATOR, (found) => found.replaceAll("<", LESS).replaceAll(">", MORE));
  while (text.length > room) {
    const inner = longest(text);
    if (!inner) break;
    text = text.slice(0, inner.index) + LEFT_OUT + text.slice(inner.index + inner[0].length);
  }
  return cut(text.replaceAll(LEFT_OUT, "<…>"), room).replaceAll(LESS, "<").replaceAll(MORE, ">");
}

/** Of the innermost arguments those that take most room; of equal ones the last. */
function longest(text: string): RegExpExecArray | null {
  let best: RegExpExecArray | null = null;
  for (const found of text.matchAll(INNERMOST)) if (!best || found[0].length >= best[0].length) best = found;
  return best;
}

/** Without what precedes the function's own name, or without the beginning of that. */
function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  const own = Math.min(text.length - Math.max(text.lastIndexOf("::"), 0), room - 2);
  const head = room - 1 - own;
  return head > 0 ? `${text.slice(0, head)}…${text.slice(text.length - own)}` : `…${text.slice(-(room - 1))}`;
}

/** Four letters: FNV-1a of the whole name. */
function tag(name: string): string {
  let value = 0x811c9dc5;
  for (const byte of encoder.encode(name)) value = Math.imul(value ^ byte, 0x01000193);
  value = (value ^ (value >>> 15)) >>> 0;
  return [15, 10, 5, 0].map((shift) => LETTERS[(value >>> shift) & 31]).join("");
}
