/** Above the axis: what is shown, and every move as a button. */

import { MODES } from "../api/modes";
import { Icon, type IconName } from "../chrome/icons";
import { GROUP_NAMES, GROUPS, type Grouping } from "../flame/look";
import { clock, day, duration, moment } from "../format";
import { connection, extent, following, info, navigate, tracks, view, zoneOffset } from "../state";
import { length } from "./axis";
import { follow, stepBy, wholeRecording, zoomBy } from "./moves";
import { Overview } from "./overview";
import { averageShown } from "./timeline";

export function Toolbar({ loading }: { loading: boolean }) {
  const known = info.value;
  const shown = view.value;
  const offset = zoneOffset.value;
  const sameDay = day(shown.from, offset) === day(shown.to, offset);
  return (
    <div class="toolbar">
      <div class="button-row" role="group" aria-label="Move along the axis">
        <Tool icon="left" label="Step left" keys="←" run={() => stepBy(-1)} />
        <Tool icon="right" label="Step right" keys="→" run={() => stepBy(1)} />
        <Tool icon="minus" label="Zoom out" keys="−" run={() => zoomBy(2)} />
        <Tool icon="plus" label="Zoom in" keys="+" run={() => zoomBy(0.5)} />
        <button
          type="button"
          class="button"
          onClick={wholeRecording}
          title="Whole recording (0)"
          disabled={length(shown) >= length(extent.value) && !known?.live}
        >
          <Icon name="whole" /> Whole recording
        </button>
      </div>
      {known?.live && <LiveButton />}
      <span class="range">
        {length(shown) > 0 && (
          <>
            {sameDay ? clock(shown.from, offset) : moment(shown.from, offset)} –{" "}
            {sameDay ? clock(shown.to, offset) : moment(shown.to, offset)}
            <span class="faint"> · {duration(length(shown))}</span>
          </>
        )}
      </span>
      <span class={`spinner${loading ? " on" : ""}`} aria-hidden="true" />
      <Overview />
      <TracksChoice />
      <Legend />
    </div>
  );
}

function Tool({ icon, label, keys, run }: { icon: IconName; label: string; keys: string; run: () => void }) {
  return (
    <button type="button" class="icon-button" onClick={run} aria-label={label} title={`${label} (${keys})`}>
      <Icon name={icon} />
    </button>
  );
}

function LiveButton() {
  const on = following.value;
  const denied = connection.value.state === "denied";
  const lost = connection.value.state === "lost" || denied;
  return (
    <button
      type="button"
      class={`button live${on ? " on" : ""}${lost ? " lost" : ""}`}
      aria-pressed={on}
      onClick={() => follow(!on)}
      title={on ? "Pause the live tail (L)" : "Follow the live tail (L)"}
    >
      <Icon name={on ? "pause" : "play"} size={12} />
      {denied ? "Signed out" : lost ? "Connection lost" : on ? "Live" : "Paused"}
    </button>
  );
}

function TracksChoice() {
  return (
    <select
      class="plain"
      aria-label="Tracks"
      title="A row for each of those that ran most (⇧T)"
      value={tracks.value}
      onChange={(event) => navigate({ tracks: event.currentTarget.value as Grouping })}
    >
      {GROUPS.map((each) => (
        <option key={each} value={each}>
          {each === "none" ? "No tracks" : `Tracks: ${GROUP_NAMES[each]}`}
        </option>
      ))}
    </select>
  );
}

function Legend() {
  return (
    <div class="legend" role="group" aria-label="Colours of the cores">
      {MODES.map((mode) => (
        <span key={mode}>
          <i class={`swatch mode-${mode}`} />
          {mode}
        </span>
      ))}
      <span>
        <i class="swatch hatched" />
        not measured
      </span>
      <label title="The node's average over all cores: solid busy, dotted kernel">
        <input
          type="checkbox"
          checked={averageShown.value}
          onChange={(event) => (averageShown.value = event.currentTarget.checked)}
        />
        average
      </label>
    </div>
  );
}
