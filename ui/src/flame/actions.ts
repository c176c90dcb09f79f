// What can be done with a frame: one list for its menu and for its keys.

import { copy } from "../chrome/clipboard";
import type { MenuItem } from "./menu";
import { exactly } from "./search";
import { type FunctionKey, keyOf, ownerOf, type Transform } from "./transforms";
import { type FlameTree, OWNER } from "./tree";
import { stackText } from "./words";

/** What the host of a flame graph supports; the rest is not offered. */
export interface Asked {
  readonly onTransform?: (transform: Transform) => void;
  readonly onFunction?: (fn: FunctionKey) => void;
  readonly onSearch?: (text: string) => void;
}

export interface Actions {
  items: (node: number) => MenuItem[];
  byKey: (key: string, node: number) => boolean;
}

export function actionsOf(
  tree: FlameTree,
  asked: Asked,
  zoomTo: (node: number) => void,
  say: (text: string) => void,
): Actions {
  const transform = (made: Transform): void => asked.onTransform?.(made);
  const copied = (text: string, what: string): void => {
    void copy(text).then((done) => say(done ? `${what} copied` : `${what} could not be copied`));
  };
  const items = (node: number): MenuItem[] => {
    const fn = keyOf(tree, node),
      owner = ownerOf(tree.functions, tree.fn[node]!);
    const found: MenuItem[] = [{ label: "Zoom here", key: "Enter", act: () => zoomTo(node) }];
    // A frame that names the owner of the stacks is not a function: it can be zoomed to, searched and copied.
    const isFunction = node > 0 && tree.kind(node) !== OWNER;
    if (isFunction && asked.onFunction)
      found.push({ label: "Callers and callees (sandwich)", key: "S", act: () => asked.onFunction!(fn) });
    if (node > 0 && asked.onSearch)
      found.push({ label: "Search for this name", act: () => asked.onSearch!(exactly(fn.name)) });
    if (isFunction && asked.onTransform) {
      found.push(
        { label: "Focus on this function", key: "j", apart: true, act: () => transform({ kind: "focus", fn }) },
        { label: "Focus on its own samples", key: "J", act: () => transform({ kind: "focus-self", fn }) },
        { label: "Drop samples with it", key: "q", act: () => transform({ kind: "drop", fn }) },
        { label: "Merge it into its callers", key: "m", act: () => transform({ kind: "merge", fn }) },
        { label: "Collapse what it calls", key: "E", act: () => transform({ kind: "collapse", fn }) },
        { label: "Collapse its recursion", key: "R", act: () => transform({ kind: "collapse-recursion", fn }) },
      );
      found.push({
        label: `Collapse ${owner}`,
        key: "M",
        act: () => transform({ kind: "collapse-module", module: owner }),
      });
    }
    found.push(
      { label: "Copy name", key: "c", apart: true, act: () => copied(fn.name, "Name") },
      { label: "Copy stack", key: "C", act: () => copied(stackText(tree, node), "Stack") },
    );
    return found;
  };
  const byKey = (key: string, node: number): boolean => {
    const item = items(node).find((each) => each.key === key);
    item?.act();
    return item !== undefined;
  };
  return { items, byKey };
}
