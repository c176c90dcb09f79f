// The controls above a flame graph, and the chips of what was done to it.

import type { ComponentChildren } from "preact";
import { Menu, roving } from "../chrome/menu";
import type { ColourBy } from "./colours";
import { type FlameLook, type FlameView, GROUP_NAMES, GROUPS, type Grouping, VIEW_NAMES } from "./look";
import { SearchBox, type SearchBoxProps } from "./search-box";
import { says, type Transform } from "./transforms";

export interface ToolbarProps extends Omit<SearchBoxProps, "search" | "onSearch"> {
  readonly look: FlameLook;
  readonly views: readonly FlameView[];
  readonly onLook: (change: Partial<FlameLook>) => void;
  readonly onInvert: () => void;
  readonly onRecursion: () => void;
  /** null where nothing is compared. */
  readonly onSwap: (() => void) | null;
  readonly onSvg: () => void;
  readonly onHtml: (() => void) | null;
  readonly tools: ComponentChildren;
}

export function Toolbar(props: ToolbarProps) {
  const { look, onLook, onSwap, onHtml, place, error, matched, total, onStep, focused } = props;
  const isGraph = look.view === "flame" || look.view === "top";
  const collapsed = look.transforms.some((each) => each.kind === "collapse-recursion" && !each.fn);
  return (
    <div class="zs-bar">
      <span class="zs-group zs-tabs" role="tablist" aria-label="View" onKeyDown={roving}>
        {props.views.map((view) => (
          <button
            key={view}
            type="button"
            role="tab"
            aria-selected={look.view === view}
            tabIndex={look.view === view ? 0 : -1}
            title={`key ${VIEW_NAMES[view][1]}`}
            onClick={() => onLook({ view })}
          >
            {VIEW_NAMES[view][0]}
          </button>
        ))}
      </span>
      <SearchBox
        search={look.search}
        error={error}
        matched={matched}
        total={total}
        place={isGraph ? place : { at: 0, of: 0 }}
        onSearch={(search) => onLook({ search })}
        onStep={onStep}
        focused={focused ?? 0}
      />
      <select
        value={look.group}
        aria-label="Group by"
        title="The root level: whose the stacks are (p)"
        onChange={(event) => onLook({ group: event.currentTarget.value as Grouping, zoom: [] })}
      >
        {GROUPS.map((each) => (
          <option key={each} value={each}>
            {each === "none" ? "Not grouped" : `By ${GROUP_NAMES[each]}`}
          </option>
        ))}
      </select>
      {onSwap && (
        <button type="button" onClick={onSwap} title="Swap the two sides (x)">
          ⇄ Swap
        </button>
      )}
      <Menu label="Graph" title="Shape and colours of the graph" class="narrow">
        <button
          type="button"
          aria-pressed={look.inverted}
          title="Start where the time was spent (i)"
          onClick={props.onInvert}
          disabled={!isGraph}
        >
          Inverted <kbd>i</kbd>
        </button>
        <button
          type="button"
          aria-pressed={!look.icicle}
          title="Root at the bottom (o)"
          onClick={() => onLook({ icicle: !look.icicle })}
          disabled={!isGraph}
        >
          Root at the bottom <kbd>o</kbd>
        </button>
        <button
          type="button"
          aria-pressed={collapsed}
          title="A function that calls itself becomes one frame (r)"
          onClick={props.onRecursion}
        >
          Collapse recursion <kbd>r</kbd>
        </button>
        {!onSwap && (
          <select
            value={look.colour}
            aria-label="Colour"
            title="What colours mean (k)"
            onChange={(event) => onLook({ colour: event.currentTarget.value as ColourBy })}
          >
            <option value="kind">Colour: kind</option>
            <option value="module">Colour: module</option>
          </select>
        )}
      </Menu>
      <details class="popover">
        <summary class="button" title="As a picture, as this page in one file, or in the format of another tool">
          Save
        </summary>
        <div class="popover-body narrow" role="menu">
          <button type="button" role="menuitem" onClick={props.onSvg} title="Save what is shown as a picture">
            SVG
          </button>
          {onHtml && (
            <button type="button" role="menuitem" onClick={onHtml} title="Save this page as one file">
              HTML
            </button>
          )}
          {props.tools}
        </div>
      </details>
    </div>
  );
}

export function Chips({
  transforms,
  onRemove,
  onClear,
}: {
  transforms: readonly Transform[];
  onRemove: (at: number) => void;
  onClear: () => void;
}) {
  if (!transforms.length) return null;
  return (
    <ul class="zs-chips" aria-label="Transforms">
      {transforms.map((each, at) => (
        <li key={says(each)}>
          {says(each)}
          <button type="button" aria-label={`remove: ${says(each)}`} onClick={() => onRemove(at)}>
            ×
          </button>
        </li>
      ))}
      {transforms.length > 1 && (
        <li class="zs-plain">
          <button type="button" onClick={onClear}>
            Remove all
          </button>
        </li>
      )}
    </ul>
  );
}
