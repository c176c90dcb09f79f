/** Next to the filters: what the axis shows, where that lies in the recording, and its legend. */

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Icon } from "../chrome/icons";
import { clock, day, duration, moment, utcWords } from "../format";
import { connection, extent, following, info, view, zoneOffset } from "../state";
import { occurring } from "../strip/cells";
import { strip } from "../strip/load";
import { length } from "./axis";
import { follow, wholeRecording } from "./moves";
import { Overview } from "./overview";
import { Legend, ViewMenu } from "./view-menu";

/** Whether the axis waits for an answer. */
export const axisLoading = signal(false);

export function AxisTools() {
  const known = info.value;
  const shown = view.value;
  const offset = zoneOffset.value;
  const cells = strip.value;
  const sameDay = day(shown.from, offset) === day(shown.to, offset);
  const occurs = useMemo(() => (cells ? occurring(cells, shown) : new Set<string>()), [cells, shown]);
  return (
    <div class="toolbar">
      {known?.live && <LiveButton />}
      <span class="range" title={length(shown) > 0 ? utcWords(shown.from, shown.to, offset) : ""}>
        {length(shown) > 0 && (
          <>
            {sameDay ? clock(shown.from, offset) : moment(shown.from, offset)} –{" "}
            {sameDay ? clock(shown.to, offset) : moment(shown.to, offset)}
            <span class="faint"> · {duration(length(shown))}</span>
          </>
        )}
      </span>
      <button
        type="button"
        class="icon-button"
        onClick={wholeRecording}
        aria-label="Whole recording"
        title="Whole recording (0)"
        disabled={length(shown) >= length(extent.value) && !known?.live}
      >
        <Icon name="whole" />
      </button>
      <span class={`spinner${axisLoading.value ? " on" : ""}`} aria-hidden="true" />
      <Overview />
      <Legend occurs={occurs} />
      <ViewMenu />
    </div>
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
