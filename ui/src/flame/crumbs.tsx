// Where the reader is: the frames from the root to what is zoomed to, and how much of everything that is.

import { count, functionName, share } from "../format";
import type { FlameTree } from "./tree";

const FIRST = 1,
  LAST = 4;

export function Crumbs({ tree, zoom, onZoom }: { tree: FlameTree; zoom: number; onZoom: (node: number) => void }) {
  const path = tree.path(zoom),
    hidden = path.length > FIRST + LAST + 1 ? path.slice(FIRST, -LAST) : [];
  const crumb = (node: number) => (
    <li key={node}>
      {node === zoom ? (
        <span aria-current="location" class="zs-crumb-here">
          {functionName(tree.label(node), 60)}
        </span>
      ) : (
        <button type="button" onClick={() => onZoom(node)} title={tree.name(node)}>
          {functionName(tree.label(node), 28)}
        </button>
      )}
    </li>
  );
  return (
    <nav class="zs-crumbs" aria-label="zoom">
      <ol>
        {path.slice(0, hidden.length ? FIRST : path.length).map(crumb)}
        {hidden.length > 0 && (
          <li>
            <button
              type="button"
              onClick={() => onZoom(hidden[hidden.length - 1]!)}
              title={hidden.map((node) => tree.name(node)).join("\n")}
            >
              {hidden.length} more
            </button>
          </li>
        )}
        {hidden.length > 0 && path.slice(-LAST).map(crumb)}
      </ol>
      <span class="zs-crumb-facts">
        {count(tree.value[zoom]!)} samples
        {zoom > 0 && (
          <>
            {" "}
            · <b>{share(tree.value[zoom]!, tree.total)}</b> of all
          </>
        )}
        {zoom > 1 && tree.parent[zoom]! > 0 && (
          <>
            {" "}
            · {share(tree.value[zoom]!, tree.value[tree.parent[zoom]!]!)} of{" "}
            {functionName(tree.name(tree.parent[zoom]!), 28)}
          </>
        )}
        {tree.isDifference && <> · before {count(tree.base![zoom]!)}</>}
      </span>
      {zoom > 0 && (
        <button type="button" class="zs-reset" onClick={() => onZoom(0)}>
          Reset zoom <kbd>Esc</kbd>
        </button>
      )}
    </nav>
  );
}
