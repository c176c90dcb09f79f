// What a recording says about its live diagnosis: silence while that had failed does not mean health.

import { useState } from "preact/hooks";
import type { Diagnosis } from "../../api/types";
import { Go } from "../../chrome/link";
import { clock, count } from "../../format";
import { info, rec, useDocument, zoneOffset } from "../../state";

export function Outage({ of }: { of: Diagnosis }) {
  const failed = of.live_diagnosis;
  const [asked, ask] = useState(false);
  const window = failed && { from: failed.from - 60, to: failed.to + 60 };
  const found = useDocument(asked && window ? "incidents" : null, { rec: rec.value, ...window });
  if (!failed) return null;
  const times = failed.failures === 1 ? "once" : `${count(failed.failures)} times`;
  return (
    <p class="pg-note pg-outage" role="note">
      <strong>The live diagnosis failed {times} while this was recorded</strong> ({clock(failed.from, zoneOffset.value)}{" "}
      – {clock(failed.to, zoneOffset.value)}: {failed.why}); incidents may have gone unreported.{" "}
      {!info.value?.live ? (
        "The incidents shown here were diagnosed now, from the recording."
      ) : found.data ? (
        <>
          Diagnosed now: {found.data.incidents.length || "no"} incidents.{" "}
          {found.data.incidents.map(({ id }) => (
            <Go key={id} place={{ page: "incident", incidentId: id }}>
              {id}{" "}
            </Go>
          ))}
        </>
      ) : (
        <button type="button" class="button" disabled={asked && !found.error} onClick={() => ask(true)}>
          {asked && !found.error ? "Diagnosing …" : "Diagnose this time now"}
        </button>
      )}
    </p>
  );
}
