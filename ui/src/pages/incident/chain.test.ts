import { describe, expect, it } from "vitest";
import founding from "../../../dev/founding-case.json";
import type { Diagnosis, Fixes, FixStep, Incident } from "../../api/types";
import { format, leading, START } from "../../state/place";
import { confidence, parts, proof } from "./actors";
import { guiltySpan, lostCore, quietSpan, stations } from "./chain";
import { beforeAfter, details, fixCommand, planText, steps, whoDid, withStates } from "./plan";

const incident = (founding as unknown as Diagnosis).incidents[0] as Incident;
const cause = incident.causes[0]!;
const bounds = { from: 1743472945, to: 1743476542 };
const path = stations(incident, cause, bounds);
const station = (kind: string) => path.find((each) => each.kind === kind)!;
const address = (kind: string) => decodeURIComponent(format({ ...START, ...leading(station(kind).place!) }));

describe("the path of the founding case", () => {
  it("goes from the symptom to the fix", () => {
    expect(path.map((each) => [each.kind, each.headline])).toEqual([
      ["symptom", "network card stopped sending"],
      ["core", "core 39"],
      ["hog", "kubelet"],
      ["kernel", "mem_cgroup_nr_lru_pages"],
      ["measurement", "68,440 zombies"],
      ["leak", "327 restarts/hour"],
      ["culprit", "ecs.service"],
      ["fix", "stop ecs.service, then release the zombies"],
    ]);
  });

  it("says what a kernel path means, not only its names", () => {
    expect(station("kernel").fact).toBe("memory.numa_stat is read");
  });

  it("leads from each link to what proves it", () => {
    expect(address("symptom")).toBe("page=node&from=1743476506&to=1743476542&sel=1743476531.61..1743476533.61");
    expect(address("core")).toBe("page=node&from=1743476506&to=1743476542&sel=1743476526..1743476532&cpu=39");
    expect(address("hog")).toBe("page=node&from=1743476506&to=1743476542&sel=1743476526..1743476532&comm=kubelet");
    expect(address("kernel")).toBe(
      "page=node&from=1743476506&to=1743476542&sel=1743476526..1743476532&comm=kubelet&mode=kernel&q=^mem_cgroup_nr_lru_pages$",
    );
    expect(address("measurement")).toMatch(/^page=cgroups&/);
    expect(address("leak")).toBe("page=node&from=1743472945&to=1743476542&sel=1743476526..1743476532");
  });

  it("proves the culprit by the number that names it", () => {
    expect(station("culprit").place).toEqual(station("leak").place);
    expect(station("fix").place).toBeNull();
  });

  it("forgets what the reader had filtered before", () => {
    const had = {
      ...START,
      filters: { ...START.filters, tid: ["7"], match: "x" },
      search: { text: "y", mode: "filter" as const },
    };
    const there = { ...had, ...leading(station("core").place!) };
    expect(there.filters.tid).toEqual([]);
    expect([there.filters.match, there.search.text]).toEqual(["", ""]);
  });
});

describe("a leak of containers", () => {
  const link = (step: string, fact: string, value: string | number | null, value_unit: string | null) => ({
    ...cause.chain[0]!,
    step,
    fact,
    value,
    value_unit,
    source: "containers",
  });
  const chain = [
    link("leak", "671 of the cgroups under /docker/* are dying", 671, "cgroups"),
    link("container", "718 containers of image registry.local/ecs-agent:1.2", 718, "containers"),
    link("requested by", "agent-loop (agent-loop.service): /bin/sh agent-loop", null, null),
    link("not seen", "stack samples: perf is not allowed", null, null),
  ];
  const found = stations(incident, { ...cause, chain }, bounds);

  it("says in which containers and who asked for them, each at its own station", () => {
    const shown = found.map((each) => `${each.label}: ${each.headline}`);
    expect(shown).toContain("In which containers: 718 containers");
    expect(shown).toContain("Requested by: agent-loop (agent-loop.service)");
  });

  it("does not count as measured what could not be seen", () => {
    expect(found.find((each) => each.label === "No data")?.kind).toBe("blind");
  });

  it("shows the GPUs' cost at its own station", () => {
    const lost = link("cost", "GPU 0 (train.py) fell from 9% to 2%: 8 GPU-seconds lost", 7.8, "GPU-seconds");
    const found = stations(incident, { ...cause, chain: [...cause.chain, lost] }, bounds);
    const station = found.find((each) => each.kind === "cost");
    expect(station).toMatchObject({ label: "What it cost", fact: lost.fact });
    expect(found[found.length - 1]?.kind).toBe("fix");
  });
});

describe("an incident without a cause", () => {
  const bare: Incident = {
    ...incident,
    causes: [],
    symptoms: incident.symptoms.filter((each) => each.kind === "core_saturated"),
  };

  it("is still a path, of its symptoms", () => {
    expect(stations(bare, null).map((each) => [each.kind, each.headline])).toEqual([["symptom", "a core was lost"]]);
  });

  it("has no path at all without a symptom", () => {
    expect(stations({ ...bare, symptoms: [] }, null)).toEqual([]);
  });
});

describe("spans", () => {
  it("is guilty while a task held the core, not when the card came back", () => {
    expect(guiltySpan(incident)).toEqual({ from: 1743476526, to: 1743476532 });
  });

  it("is quiet before it, or after it, or never", () => {
    expect(quietSpan(incident, bounds)).toEqual({ from: 1743476520, to: 1743476526 });
    expect(quietSpan(incident, { from: incident.from, to: bounds.to })).toEqual({
      from: incident.to,
      to: incident.to + 6,
    });
    expect(quietSpan(incident, { from: incident.from, to: incident.to })).toBeNull();
  });

  it("names the core that was lost, not one that a hog also used", () => {
    expect(lostCore(incident)?.cpu).toBe(39);
  });
});

describe("who is who", () => {
  it("tells hog, culprit and victims apart", () => {
    const [hog, culprit, waited] = parts(incident, cause);
    expect(hog!.names).toEqual(["kubelet"]);
    expect(hog!.facts).toContain("6.28 cores busy");
    expect(culprit!.names).toEqual(["ecs.service"]);
    expect(waited!.names).toEqual(["eth0, queue 5", "everything else on core 39"]);
    expect(waited!.facts).toContain("not served for 6.6 s");
  });

  it("asks a symptom whom it hurt, whatever its kind", () => {
    const [lost] = incident.symptoms;
    const kinds: Incident["symptoms"] = [
      { ...lost!, kind: "new", role: "victim", core_rank: 4, title: "tasks waited", victim: "tasks on core 39" },
      { ...lost!, kind: "new", role: "hog", core_rank: null, title: "a hog", victim: null },
    ];
    const waited = parts({ ...incident, symptoms: kinds }, null)[2]!;
    expect([waited.names, waited.facts]).toEqual([["tasks on core 39"], ["tasks waited for 6 s"]]);
    const hogs = { ...incident, symptoms: kinds.slice(1) };
    expect(parts(hogs, null)[2]).toMatchObject({ names: [], none: "none" });
  });

  it("says what a confidence and a proof stand for", () => {
    expect(confidence(cause)).toContain("all fit");
    expect(confidence({ ...cause, confidence: 0.4 })).toContain("no number confirms it");
    expect(confidence({ ...cause, confidence: 0.5, strength: 0.9 })).toContain("all fit");
    expect(proof(cause).name).toBe("reproduced on a real kernel");
  });
});

describe("the plan", () => {
  it("can be pasted: words are comments", () => {
    expect(steps(cause.fix).map((step) => step.kind)).toEqual([
      "change",
      "look",
      "advice",
      "advice",
      "advice",
      "advice",
    ]);
    expect(steps(cause.fix)[1]).toMatchObject({ command: "zombiescope cgroups", does: "do they still grow?" });
    const lines = planText(incident, 0).trimEnd().split("\n");
    expect(lines[0]).toBe("# ip-10-1-39-7, incident 457ef009e0, 2025-04-01 03:02:06 UTC");
    expect(lines.filter((line) => !line.startsWith("#"))).toEqual([
      "systemctl disable --now ecs.service",
      "zombiescope cgroups   # do they still grow?",
    ]);
  });
});

describe("a step that changes the node", () => {
  const change = steps(cause.fix)[0]!;
  const withPlan = (plan: (typeof change)[], summary = "stop it") =>
    planText({ ...incident, causes: [{ ...cause, fix: { ...cause.fix, plan, summary } }] } as Incident, 0);

  it("says what it touches and risks, its undo and how it is verified, and these are not commands", () => {
    expect(details(change).map((each) => each.name)).toEqual(["touches", "risk", "undo", "verify"]);
    expect(details({ ...change, kind: "look" })).toEqual([]);
    const lines = withPlan([change]).trimEnd().split("\n");
    expect(lines.filter((line) => !line.startsWith("#"))).toEqual([change.command]);
    expect(lines).toContain("#   undo: systemctl enable --now ecs.service");
  });

  it("runs nothing that hides in a name", () => {
    const text = withPlan(
      [
        { ...change, command: "cat x\ntouch pwned", does: "a\u2028b", touches: ["y\nrm -rf z"] },
        { ...change, command: "true", does: "x\nreboot", risk: "y\nreboot", touches: ["z\nreboot"] },
      ],
      "s\nreboot",
    );
    const run = text.split("\n").filter((line) => line && !line.startsWith("#"));
    expect(run).toEqual(["true"]);
  });
});

describe("an incident of an older recorder", () => {
  const symptoms = incident.symptoms.map(({ title, role, table, core_rank, victim, ...kept }) => kept);
  const chain = cause.chain.map(({ counter, path: functions, means, ...kept }) => kept);
  const { plan, ...lines } = cause.fix;
  const olderCause = { ...cause, chain, fix: lines };
  const older = { ...incident, symptoms, causes: [olderCause] } as Incident;

  it("is the same path, with sentences where it has no headings", () => {
    const there = stations(older, olderCause, bounds);
    expect(there.map((each) => each.kind)).toEqual(path.map((each) => each.kind));
    expect(there[0]!.headline).toBe(there[0]!.fact);
    expect(there[0]!.headline).toContain("TX q 5 is paused");
    expect(there[1]!.headline).toBe("core 39");
    expect(there.find((each) => each.kind === "kernel")!.fact).toBe(
      "__vfs_read > seq_read > memcg_numa_stat_show > mem_cgroup_nr_lru_pages: memory.numa_stat is read",
    );
  });

  it("names the cards that waited, and does not claim that none did", () => {
    const waited = parts(older, olderCause)[2]!;
    expect([waited.names, waited.facts]).toEqual([["eth0, queue 5"], ["not served for 6.6 s"]]);
    const cards = symptoms.filter((each) => "interface" in each || "driver" in each);
    const without = { ...older, symptoms: symptoms.filter((each) => !cards.includes(each)) } as Incident;
    expect(parts(without, olderCause)[2]).toMatchObject({ names: [], none: "not named" });
  });

  it("has a plan of lines; commands are marked, or none is", () => {
    const run = (one: Incident) =>
      planText(one, 0)
        .split("\n")
        .filter((line) => !line.startsWith("#"));
    expect(run(older)).toEqual(run(incident));
    const { commands, ...oldest } = lines;
    expect(steps(oldest).some((step) => step.command !== null)).toBe(false);
  });

  it("has steps without types, which are shown as what they are", () => {
    const plan = [
      { kind: "command", text: "sysctl -w a=1", comment: "", touches: "a", undo: "sysctl -w a=0", check: "sysctl a" },
      { kind: "command", text: "ls", comment: "look" },
      { kind: "advice", text: "ask", comment: "" },
    ] as unknown as FixStep[];
    expect(steps({ ...lines, plan }).map((step) => [step.kind, step.command, step.does])).toEqual([
      ["change", "sysctl -w a=1", "sysctl -w a=1"],
      ["look", "ls", "look"],
      ["advice", null, "ask"],
    ]);
  });
});

describe("the command that makes the plan on the node", () => {
  it("names the incident, and is not given for an id that a shell would read as more than one word", () => {
    expect(fixCommand({ id: "35e5448d73" })).toBe("zombiescope fix --incident 35e5448d73");
    expect(fixCommand({ id: "a; rm -rf /" })).toBeNull();
    expect(fixCommand({ id: "--yes" })).toBeNull();
  });
});

describe("what was done", () => {
  it("is shown at the step that it is of", () => {
    const done = { id: "unit.disable:ecs.service", state: "applied" as const, why: "", at: 1 };
    const shown = withStates(steps(cause.fix), { steps: [done] } as unknown as Fixes);
    expect(shown.map((step) => step.state).slice(0, 2)).toEqual(["applied", "planned"]);
    expect(withStates(steps(cause.fix), null).every((step) => step.state === "planned")).toBe(true);
  });

  it("names the person behind sudo, and only what is another value afterwards", () => {
    expect(whoDid({ who: { uid: 0, sudo: "anna", login: 1000 } })).toBe("anna");
    expect(whoDid({ who: { uid: 0, sudo: null, login: 1000 } })).toBe("uid 1000");
    expect(whoDid({ who: { uid: 0, sudo: null, login: null } })).toBe("root");
    const before = { is_running: true, file_state: "enabled", restarts: 3 };
    expect(beforeAfter({ before, after: { ...before, is_running: false, file_state: "disabled" } })).toBe(
      "is running: true → false; file state: enabled → disabled",
    );
    expect(beforeAfter({ before: null, after: null })).toBe("");
  });
});
