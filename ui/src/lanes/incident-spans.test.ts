import { describe, expect, it } from "vitest";
import type { Incident, IncidentNote } from "../api/types";
import { incidentSpans, outdated, visible } from "./incident-spans";

const note = (id: string, more: Partial<IncidentNote> = {}): IncidentNote => ({
  id,
  from: 100,
  to: 110,
  state: "closed",
  severity: "warning",
  summary: `${id} was noted`,
  ...more,
});

const incident = (id: string, more: Partial<Incident> = {}): Incident =>
  ({ ...note(id), causes: [{ summary: `${id} was diagnosed` }], symptoms: [], ...more }) as unknown as Incident;

describe("what the incident lane draws", () => {
  it("draws what was fetched", () => {
    const [one] = incidentSpans([incident("a")], null, 500);
    expect(one).toMatchObject({ from: 100, to: 110, title: "a was diagnosed" });
  });

  it("draws what only the stream knows, before it is fetched", () => {
    const spans = incidentSpans([incident("a")], [note("a"), note("b")], 500);
    expect(spans.map(({ id, title }) => [id, title])).toEqual([
      ["a", "a was diagnosed"],
      ["b", "b was noted"],
    ]);
    expect(incidentSpans(null, [note("b")], 500)).toHaveLength(1);
  });

  it("draws an open one until now, although the last diagnosis pass was minutes ago", () => {
    const [one] = incidentSpans([incident("a", { state: "open" })], null, 900);
    expect(one?.to).toBe(900);
    expect(visible(incidentSpans([incident("a", { state: "open" })], null, 900), { from: 600, to: 900 })).toHaveLength(
      1,
    );
    expect(visible(incidentSpans([incident("a")], null, 900), { from: 600, to: 900 })).toHaveLength(0);
  });

  it("believes the stream that it is over", () => {
    const [one] = incidentSpans([incident("a", { state: "open" })], [note("a", { to: 130 })], 900);
    expect(one).toMatchObject({ state: "closed", to: 130 });
  });
});

describe("when it is fetched again", () => {
  it("is not while both say the same", () => {
    expect(outdated([incident("a"), incident("old")], [note("a")])).toBe(false);
  });

  it.each([
    ["a new one", note("b")],
    ["one that is open", note("a", { to: 120 })],
    ["one that is worse", note("a", { severity: "critical" })],
    ["one that opened again", note("a", { state: "open" })],
  ])("is for %s", (_, changed) => {
    expect(outdated([incident("a")], [changed])).toBe(true);
  });
});
