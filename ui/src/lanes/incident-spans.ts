/**
 * Which incidents the lane draws, and from when to when. Whole documents are fetched, and that takes a moment on a loaded
 * node; the live stream has a line of each at once, and is ahead of them. One that is open lasts until now.
 */

import { titleOf } from "../api/incident";
import type { Incident, IncidentNote, Span } from "../api/types";
import { cut } from "../axis/axis";

export interface IncidentSpan extends Span {
  id: string;
  severity: Incident["severity"];
  state: Incident["state"];
  title: string;
  /** Not fetched yet: null. */
  incident: Incident | null;
}

type Known = Incident[] | null;
type Noted = IncidentNote[] | null;

export function incidentSpans(known: Known, noted: Noted, newest: number): IncidentSpan[] {
  const notes = new Map((noted ?? []).map((note) => [note.id, note]));
  const fetched = (known ?? []).map((incident) => span(incident, notes.get(incident.id), newest));
  const ids = new Set(fetched.map((one) => one.id));
  return [
    ...fetched,
    ...[...notes.values()].filter((note) => !ids.has(note.id)).map((note) => span(null, note, newest)),
  ];
}

/** Those that the view shows, cut to it. */
export function visible(spans: IncidentSpan[], view: Span): IncidentSpan[] {
  return spans.flatMap((one) => {
    const inside = cut({ from: one.from, to: Math.max(one.to, one.from + 0.001) }, view);
    return inside ? [{ ...one, ...inside }] : [];
  });
}

/** Whether the stream knows of something that what was fetched does not say. */
export function outdated(known: Incident[], noted: IncidentNote[]): boolean {
  const written = new Set(known.map(line));
  return noted.some((note) => !written.has(line(note)));
}

const line = (one: Incident | IncidentNote): string => [one.id, one.state, one.severity, one.from, one.to].join(" ");

function span(incident: Incident | null, note: IncidentNote | undefined, newest: number): IncidentSpan {
  const latest = (note ?? incident) as Incident | IncidentNote;
  const { id, severity, state, from } = latest;
  const to = state === "open" ? Math.max(latest.to, newest) : latest.to;
  const title = incident ? titleOf(incident) : (note?.summary ?? `incident ${id}`);
  return { id, severity, state, from, to, title, incident };
}
