/** What an incident is called: by its cause, else by what was seen of it. */

import type { Incident } from "./types";

export function titleOf(incident: Incident): string {
  return incident.causes[0]?.summary ?? incident.symptoms[0]?.text ?? `incident ${incident.id}`;
}
