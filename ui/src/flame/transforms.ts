// What a reader does to a tree to see through it: each transform is plain data (so that it can be a chip, stand in an
// address and be taken back), and applying it gives a new tree. Functions are meant by name and module, not by number,
// so a transform still holds when another range is selected.
//
// focus and drop change the total, because they choose samples; everything else keeps it.

import { Grower, like } from "./grow";
import type { FlameTree, FunctionTable } from "./tree";

export interface FunctionKey {
  readonly name: string;
  readonly module: string | null;
}

export type Transform =
  /** Only samples that pass through the function, from there on. */
  | { readonly kind: "focus"; readonly fn: FunctionKey }
  /** Only samples that were taken in the function itself. */
  | { readonly kind: "focus-self"; readonly fn: FunctionKey }
  /** Without samples that pass through the function. */
  | { readonly kind: "drop"; readonly fn: FunctionKey }
  /** The function disappears; its time and its callees become its caller's. */
  | { readonly kind: "merge"; readonly fn: FunctionKey }
  /** What the function calls becomes its own time. */
  | { readonly kind: "collapse"; readonly fn: FunctionKey }
  /** Neighbouring frames of a module become one frame; what has no module goes by its kind, as the kernel does. */
  | { readonly kind: "collapse-module"; readonly module: string }
  /** From the outermost to the innermost call of the function becomes one frame; without `fn`, a function that calls
   * itself directly becomes one frame, for all functions. */
  | { readonly kind: "collapse-recursion"; readonly fn?: FunctionKey };

const OUTSIDE = -1;

export function applyAll(tree: FlameTree, transforms: readonly Transform[]): FlameTree {
  return transforms.reduce(apply, tree);
}

export function apply(tree: FlameTree, transform: Transform): FlameTree {
  switch (transform.kind) {
    case "focus":
      return focus(tree, maskOf(tree.functions, transform.fn));
    case "focus-self":
      return focusSelf(tree, maskOf(tree.functions, transform.fn));
    case "drop":
      return drop(tree, maskOf(tree.functions, transform.fn));
    case "merge":
      return merge(tree, maskOf(tree.functions, transform.fn));
    case "collapse":
      return collapse(tree, maskOf(tree.functions, transform.fn));
    case "collapse-module":
      return collapseModule(tree, transform.module);
    case "collapse-recursion":
      return transform.fn ? collapseRecursion(tree, maskOf(tree.functions, transform.fn)) : collapseDirect(tree);
  }
}

export const keyOf = (tree: FlameTree, node: number): FunctionKey => ({
  name: tree.name(node),
  module: tree.module(node),
});

export function isSame(a: FunctionKey | null, b: FunctionKey | null): boolean {
  return a !== null && b !== null && a.name === b.name && a.module === b.module;
}

/** 1 for each function that is meant; a name without a module means it in every module. */
export function maskOf(functions: FunctionTable, key: FunctionKey): Uint8Array {
  const mask = new Uint8Array(functions.name.length);
  for (let number = 1; number < mask.length; number++) {
    if (functions.name[number] === key.name && (key.module === null || functions.module[number] === key.module))
      mask[number] = 1;
  }
  return mask;
}

type Place = (node: number, above: number, grower: Grower) => number;

/** Every node is given its place in the new tree, after its parent; what ends in a node ends there. */
export function regrow(
  tree: FlameTree,
  place: Place,
  root = 0,
  ends: (node: number) => boolean = () => true,
  functions = tree.functions,
): FlameTree {
  const grower = new Grower(functions),
    at = new Int32Array(tree.count);
  const lost = tree.lost(),
    baseLost = tree.baseLost();
  for (let node = 0; node < tree.count; node++) {
    const here = node ? place(node, at[tree.parent[node]!]!, grower) : root;
    at[node] = here;
    if (here >= 0 && ends(node)) {
      grower.add(here, tree.self[node]!, lost[node]!, tree.baseSelf?.[node] ?? 0, baseLost?.[node] ?? 0);
    }
  }
  return grower.finish(like(tree));
}

/** Below the outermost call of the function: a sample counts once, however often the function is on its stack. */
export function focus(tree: FlameTree, wanted: Uint8Array): FlameTree {
  return regrow(
    tree,
    (node, above, grower) => {
      if (above >= 0) return grower.child(above, tree.fn[node]!);
      return wanted[tree.fn[node]!] ? grower.child(0, tree.fn[node]!) : OUTSIDE;
    },
    OUTSIDE,
  );
}

function focusSelf(tree: FlameTree, wanted: Uint8Array): FlameTree {
  const grower = new Grower(tree.functions),
    at = new Int32Array(tree.count);
  for (let node = 1; node < tree.count; node++) {
    at[node] = grower.child(at[tree.parent[node]!]!, tree.fn[node]!);
    if (wanted[tree.fn[node]!]) grower.add(at[node]!, tree.self[node]!, 0, tree.baseSelf?.[node] ?? 0, 0);
  }
  return grower.finish(like(tree));
}

function drop(tree: FlameTree, unwanted: Uint8Array): FlameTree {
  return regrow(tree, (node, above, grower) =>
    above < 0 || unwanted[tree.fn[node]!] ? OUTSIDE : grower.child(above, tree.fn[node]!),
  );
}

function merge(tree: FlameTree, gone: Uint8Array): FlameTree {
  return regrow(tree, (node, above, grower) => (gone[tree.fn[node]!] ? above : grower.child(above, tree.fn[node]!)));
}

function collapse(tree: FlameTree, closed: Uint8Array): FlameTree {
  return regrow(tree, (node, above, grower) =>
    closed[grower.functionOf(above)] ? above : grower.child(above, tree.fn[node]!),
  );
}

function collapseModule(tree: FlameTree, module: string): FlameTree {
  const { functions } = tree,
    owner = functions.name.map((_, fn) => ownerOf(functions, fn)),
    first = owner.indexOf(module);
  if (first < 1) return tree;
  const together = functions.name.length;
  const widened: FunctionTable = {
    name: [...functions.name, module],
    module: [...functions.module, functions.module[first]!],
    kind: [...functions.kind, functions.kind[first]!],
  };
  return regrow(
    tree,
    (node, above, grower) => {
      if (owner[tree.fn[node]!] !== module) return grower.child(above, tree.fn[node]!);
      return grower.functionOf(above) === together ? above : grower.child(above, together);
    },
    0,
    undefined,
    widened,
  );
}

/** The module of a function, or its kind if it has none. */
export function ownerOf(functions: FunctionTable, fn: number): string {
  return functions.module[fn] ?? functions.kind[fn]!;
}

function collapseDirect(tree: FlameTree): FlameTree {
  return regrow(tree, (node, above, grower) =>
    grower.functionOf(above) === tree.fn[node] && above > 0 ? above : grower.child(above, tree.fn[node]!),
  );
}

function collapseRecursion(tree: FlameTree, wanted: Uint8Array): FlameTree {
  const outermost = new Int32Array(tree.count).fill(-1);
  return regrow(tree, (node, above, grower) => {
    const known = outermost[tree.parent[node]!]!;
    outermost[node] = known;
    if (!wanted[tree.fn[node]!]) return grower.child(above, tree.fn[node]!);
    if (known >= 0) return known;
    outermost[node] = grower.child(above, tree.fn[node]!);
    return outermost[node]!;
  });
}

/** Both sides exchanged: what was the base is what is looked at. */
export function swapped(tree: FlameTree): FlameTree {
  if (!tree.base || !tree.baseSelf) return tree;
  const grower = new Grower(tree.functions),
    at = new Int32Array(tree.count);
  const lost = tree.lost(),
    baseLost = tree.baseLost()!;
  for (let node = 0; node < tree.count; node++) {
    at[node] = node ? grower.child(at[tree.parent[node]!]!, tree.fn[node]!) : 0;
    grower.add(at[node]!, tree.baseSelf[node]!, baseLost[node]!, tree.self[node]!, lost[node]!);
  }
  return grower.finish({ ...like(tree), scale: tree.scale ? 1 / tree.scale : 0 });
}

/** The label of the chip. */
export function says(transform: Transform): string {
  switch (transform.kind) {
    case "focus":
      return `only through ${transform.fn.name}`;
    case "focus-self":
      return `only in ${transform.fn.name} itself`;
    case "drop":
      return `without ${transform.fn.name}`;
    case "merge":
      return `${transform.fn.name} merged into its callers`;
    case "collapse":
      return `${transform.fn.name} collapsed`;
    case "collapse-module":
      return `${transform.module} collapsed`;
    case "collapse-recursion":
      return transform.fn ? `recursion of ${transform.fn.name} collapsed` : "recursion collapsed";
  }
}

const LETTERS: Record<Transform["kind"], string> = {
  focus: "f",
  "focus-self": "s",
  drop: "d",
  merge: "m",
  collapse: "c",
  "collapse-module": "M",
  "collapse-recursion": "r",
};
const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind as Transform["kind"]]));

/** Transforms as one text for an address: `f:name@module~r:`; names are escaped. */
export function written(transforms: readonly Transform[]): string {
  const quoted = (text: string): string => encodeURIComponent(text).replace(/~/g, "%7E");
  return transforms
    .map((each) => {
      const letter = LETTERS[each.kind];
      if (each.kind === "collapse-module") return `${letter}:${quoted(each.module)}`;
      if (!each.fn) return `${letter}:`;
      return `${letter}:${quoted(each.fn.name)}${each.fn.module === null ? "" : `@${quoted(each.fn.module)}`}`;
    })
    .join("~");
}

/** The reverse of `written`; what is not understood is left out. */
export function read(text: string): Transform[] {
  const found: Transform[] = [];
  for (const word of text.split("~")) {
    const kind = KINDS.get(word[0] ?? "");
    if (!kind || word[1] !== ":") continue;
    const [name = "", module] = word.slice(2).split("@").map(unquoted);
    if (kind === "collapse-module") found.push({ kind, module: name });
    else if (name) found.push({ kind, fn: { name, module: module ?? null } });
    else if (kind === "collapse-recursion") found.push({ kind });
  }
  return found;
}

function unquoted(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
