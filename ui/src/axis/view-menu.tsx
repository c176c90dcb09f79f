/** Everything about the look of the node page that is not needed all the time, with the keys next to it. */

import { MODES } from "../api/modes";
import { source } from "../api/source";
import { PYTHON, pythonChoices } from "../chrome/filter-words";
import { Icon, type IconName } from "../chrome/icons";
import { Menu, MenuPart, roving } from "../chrome/menu";
import { choosePane, panes } from "../chrome/panes";
import { GROUP_NAMES, GROUPS, type Grouping } from "../flame/look";
import { arrange, arrangement, hide, moved } from "../lanes/arrange";
import { offered } from "../lanes/list";
import { lanes } from "../lanes/load";
import { filters, info, navigate, setFilter, tracks } from "../state";
import { stepBy, zoomBy } from "./moves";
import { averageShown } from "./timeline";

const FULL_HEAT_PX = 80;

export function ViewMenu() {
  return (
    <Menu label="View" title="Samples, tracks, lanes, heat map" class="view-menu">
      <MenuPart title="Move">
        <Tool icon="left" label="Step left" keys="←" run={() => stepBy(-1)} />
        <Tool icon="right" label="Step right" keys="→" run={() => stepBy(1)} />
        <Tool icon="minus" label="Zoom out" keys="−" run={() => zoomBy(2)} />
        <Tool icon="plus" label="Zoom in" keys="+" run={() => zoomBy(0.5)} />
      </MenuPart>
      <MenuPart title="Samples">
        <ModeChoice />
        <PythonChoice />
      </MenuPart>
      <MenuPart title="Tracks">
        <TracksChoice />
      </MenuPart>
      <MenuPart title="Show">
        <label>
          <input
            type="checkbox"
            checked={averageShown.value}
            onChange={(event) => (averageShown.value = event.currentTarget.checked)}
          />{" "}
          Average over the cores
        </label>
        <label>
          <input
            type="checkbox"
            checked={panes.value.heat !== null}
            onChange={(event) => choosePane("heat", event.currentTarget.checked ? FULL_HEAT_PX : null)}
          />{" "}
          Heat map in full
        </label>
      </MenuPart>
      <LanesChoice />
    </Menu>
  );
}

function Tool({ icon, label, keys, run }: { icon: IconName; label: string; keys: string; run: () => void }) {
  return (
    <button type="button" class="icon-button" onClick={run} aria-label={label} title={`${label} (${keys})`}>
      <Icon name={icon} />
    </button>
  );
}

function ModeChoice() {
  const now = filters.value.mode;
  return (
    <div class="segmented" role="radiogroup" aria-label="Kernel or user" onKeyDown={roving}>
      {(["", "kernel", "user"] as const).map((mode) => (
        <button
          key={mode}
          type="button"
          role="radio"
          aria-checked={now === mode}
          tabIndex={now === mode ? 0 : -1}
          onClick={() => setFilter("mode", mode)}
        >
          {mode || "all"}
        </button>
      ))}
    </div>
  );
}

function PythonChoice() {
  const now = filters.value.python;
  // A recording that grows may have its first Python stack after it was opened: then the lanes know.
  const recorded = !!info.value?.tables.python || !!lanes.value?.python.length;
  const choices = pythonChoices(now, recorded, source().frozen);
  if (!choices.length) return null;
  return (
    <div class="segmented" role="radiogroup" aria-label="Python functions" onKeyDown={roving}>
      {choices.map((one) => (
        <button
          key={one}
          type="button"
          role="radio"
          aria-checked={now === one}
          tabIndex={now === one ? 0 : -1}
          title={PYTHON[one].shows}
          onClick={() => setFilter("python", one)}
        >
          {PYTHON[one].word}
        </button>
      ))}
    </div>
  );
}

function TracksChoice() {
  return (
    <select
      class="plain"
      aria-label="Tracks"
      title="One row per top CPU consumer (⇧T)"
      value={tracks.value}
      onChange={(event) => navigate({ tracks: event.currentTarget.value as Grouping })}
    >
      {GROUPS.map((each) => (
        <option key={each} value={each}>
          {each === "none" ? "No tracks" : `One row per ${GROUP_NAMES[each]}`}
        </option>
      ))}
    </select>
  );
}

function LanesChoice() {
  const all = offered();
  const ids = all.map((lane) => lane.id);
  const { hidden } = arrangement.value;
  return (
    <MenuPart title="Lanes">
      <ul class="lane-list">
        {all.map(({ id, title }, n) => (
          <li key={id}>
            <label>
              <input
                type="checkbox"
                checked={!hidden.includes(id)}
                onChange={(event) => hide(id, !event.currentTarget.checked)}
              />{" "}
              {title}
            </label>
            <button
              type="button"
              class="icon-button"
              aria-label={`Move ${title} up`}
              disabled={n === 0}
              onClick={() => arrange({ order: moved(ids, id, -1) })}
            >
              ↑
            </button>
            <button
              type="button"
              class="icon-button"
              aria-label={`Move ${title} down`}
              disabled={n === all.length - 1}
              onClick={() => arrange({ order: moved(ids, id, 1) })}
            >
              ↓
            </button>
          </li>
        ))}
      </ul>
      {(hidden.length > 0 || arrangement.value.order.length > 0) && (
        <button type="button" class="button quiet" onClick={() => arrange({ order: [], hidden: [] })}>
          As it was
        </button>
      )}
    </MenuPart>
  );
}

/** Only what occurs in view: a legend of what is not there explains nothing. */
export function Legend({ occurs }: { occurs: ReadonlySet<string> }) {
  return (
    <div class="legend" role="group" aria-label="Colours of the cores">
      {MODES.filter((mode) => occurs.has(mode)).map((mode) => (
        <span key={mode}>
          <i class={`swatch mode-${mode}`} />
          {mode}
        </span>
      ))}
      {occurs.has("none") && (
        <span>
          <i class="swatch hatched" />
          not measured
        </span>
      )}
    </div>
  );
}
