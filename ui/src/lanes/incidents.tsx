/** Incidents as marked spans above the strip. */

import { titleOf } from "../api/incident";
import type { Incident } from "../api/types";
import { cut, toX } from "../axis/axis";
import { plotWidth } from "../axis/moves";
import { Icon } from "../chrome/icons";
import { hideTip, showTip, tipAt } from "../chrome/tip";
import { clock, duration, percent } from "../format";
import { incidents, incidentsTrouble, navigate, view, zoneOffset } from "../state";

export function IncidentSpans() {
  const width = plotWidth.value;
  const shown = view.value;
  const found = (incidents.value ?? []).flatMap((incident) => {
    const visible = cut({ from: incident.from, to: Math.max(incident.to, incident.from + 0.001) }, shown);
    return visible ? [{ incident, left: toX(shown, width, visible.from), right: toX(shown, width, visible.to) }] : [];
  });
  return (
    <div class="incident-spans" role="group" aria-label="Incidents">
      {found.map(({ incident, left, right }) => {
        const tip = <IncidentTip incident={incident} />;
        return (
          <button
            type="button"
            key={incident.id}
            class={`incident-span severity-${incident.severity}`}
            style={{
              transform: `translateX(${Math.round(left)}px)`,
              width: `${Math.max(14, Math.round(right - left))}px`,
            }}
            aria-label={`${incident.severity} incident at ${clock(incident.from, zoneOffset.value)}: ${titleOf(incident)}`}
            onClick={() => navigate({ page: "incident", incidentId: incident.id })}
            onPointerMove={(pointer) => showTip(pointer.clientX, pointer.clientY, tip)}
            onPointerLeave={hideTip}
            onFocus={(focus) => tipAt(focus.currentTarget, tip)}
            onBlur={hideTip}
          >
            <Icon name="incidents" size={11} />
            {right - left > 60 && <span>{titleOf(incident)}</span>}
          </button>
        );
      })}
      {incidents.value !== null && found.length === 0 && <span class="lane-note">no incident in view</span>}
      {incidents.value === null && (
        <span class="lane-note">
          {incidentsTrouble.value ? `not diagnosed: ${incidentsTrouble.value.what}` : "diagnosing …"}
        </span>
      )}
    </div>
  );
}

function IncidentTip({ incident }: { incident: Incident }) {
  const offset = zoneOffset.value;
  const cause = incident.causes[0];
  return (
    <div class="tip-wide">
      <strong>{titleOf(incident)}</strong>
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
