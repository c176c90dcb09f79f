// One function in the middle: who calls it above, what it calls below. Both halves have as many samples as the function,
// each counted once at its outermost call.

import { useMemo } from "preact/hooks";
import { count, share } from "../format";
import { Flame, type FlameProps } from "./flame";
import { callees, callers } from "./invert";
import { topOf, totalsOf } from "./top";
import type { FunctionKey } from "./transforms";
import type { FlameTree } from "./tree";

export interface SandwichProps
  extends Pick<FlameProps, "theme" | "colour" | "matches" | "onFunction" | "onTransform" | "onSearch"> {
  /** Not inverted. */
  readonly tree: FlameTree;
  readonly fn: FunctionKey | null;
  readonly height?: number;
}

export function Sandwich(props: SandwichProps) {
  const { tree, fn, height = 480 } = props;
  const halves = useMemo(() => {
    if (!fn) return null;
    return { above: callers(tree, fn), below: callees(tree, fn), ...totalsOf(topOf(tree), fn) };
  }, [tree, fn?.name, fn?.module]);
  if (!fn || !halves)
    return (
      <p class="zs-empty">
        Choose a function: in the table, or with <kbd>⇧S</kbd> on a frame.
      </p>
    );
  if (!halves.total && !halves.below.baseTotal) {
    return (
      <p class="zs-empty">
        <code>{fn.name}</code> has no samples here. Another range or fewer filters may have some.
      </p>
    );
  }
  const { theme, colour, matches, onFunction, onTransform, onSearch } = props;
  const given: Partial<FlameProps> = { matches: matches ?? null };
  if (onFunction) Object.assign(given, { onFunction });
  if (onTransform) Object.assign(given, { onTransform });
  if (onSearch) Object.assign(given, { onSearch });
  const isLeaf = halves.below.depths <= 2,
    isEntry = halves.above.depths <= 2;
  return (
    <div class="zs-sandwich">
      <h3>
        <span class="mono">{fn.name}</span>
        <span class="zs-crumb-facts">
          <b>{share(halves.total, tree.total)}</b> of all samples · {count(halves.total)} total · {count(halves.self)}{" "}
          self
        </span>
      </h3>
      <div class="zs-half-label">callers {isEntry && <span class="faint">none: stacks start here</span>}</div>
      <Flame
        {...given}
        tree={halves.above}
        theme={theme}
        colour={colour}
        flip
        firstLevel={2}
        maxHeight={height / 2}
        withCrumbs={false}
        withNotes={false}
      />
      <div class="zs-half-label">
        the function and its callees {isLeaf && <span class="faint">it calls nothing that was sampled</span>}
      </div>
      <Flame
        {...given}
        tree={halves.below}
        theme={theme}
        colour={colour}
        firstLevel={1}
        maxHeight={height / 2}
        withCrumbs={false}
      />
    </div>
  );
}
