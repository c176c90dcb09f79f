/** Incidents as marked spans above the strip. */

import { toX } from "../axis/axis";
import { plotWidth } from "../axis/moves";
import { Icon } from "../chrome/icons";
import { hideTip, showTip, tipAt } from "../chrome/tip";
import { clock, duration, percent } from "../format";
import { incidents, incidentsTrouble, navigate, newest, noticed, tail, view, zoneOffset } from "../state";
import { type IncidentSpan, incidentSpans, visible } from "./incident-spans";

export function IncidentSpans() {
  const width = plotWidth.value;
  const shown = view.value;
  const all = incidentSpans(incidents.value, noticed.value, Math.max(newest.value, tail.value));
  const found = visible(all, shown).map((incident) => ({
    incident,
    left: toX(shown, width, incident.from),
    right: toX(shown, width, incident.to),
  }));
  return (
    <div class="incident-spans" role="group" aria-label="Incidents">
      {found.map(({ incident, left, right }) => {
        const tip = <IncidentTip incident={all.find((one) => one.id === incident.id) ?? incident} />;
        return (
          <button
            type="button"
            key={incident.id}
            class={`incident-span severity-${incident.severity}`}
            style={{
              transform: `translateX(${Math.round(left)}px)`,
              width: `${Math.max(14, Math.round(right - left))}px`,
            }}
            aria-label={`${incident.severity} incident at ${clock(incident.from, zoneOffset.value)}: ${incident.title}`}
            onClick={() => navigate({ page: "incident", incidentId: incident.id })}
            onPointerMove={(pointer) => showTip(pointer.clientX, pointer.clientY, tip)}
            onPointerLeave={hideTip}
            onFocus={(focus) => tipAt(focus.currentTarget, tip)}
            onBlur={hideTip}
          >
            <Icon name="incidents" size={11} />
            {right - left > 60 && <span>{incident.title}</span>}
          </button>
        );
      })}
      {incidents.value !== null && found.length === 0 && <span class="lane-note">no incident in view</span>}
      {incidents.value === null && found.length === 0 && (
        <span class="lane-note">
          {incidentsTrouble.value ? `not diagnosed: ${incidentsTrouble.value.what}` : "diagnosing …"}
        </span>
      )}
    </div>
  );
}

function IncidentTip({ incident }: { incident: IncidentSpan }) {
  const offset = zoneOffset.value;
  const cause = incident.incident?.causes[0];
  return (
    <div class="tip-wide">
      <strong>{incident.title}</strong>
      <div class="faint">
        {incident.severity}, {incident.state} · {clock(incident.from, offset)} – {clock(incident.to, offset)} (
        {duration(incident.to - incident.from)})
      </div>
      {cause && (
        <div>
          {cause.pattern} · {percent(cause.confidence)} sure
        </div>
      )}
      <div class="faint">click: show the whole chain</div>
    </div>
  );
}
