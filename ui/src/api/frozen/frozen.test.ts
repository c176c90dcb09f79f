import { describe, expect, it } from "vitest";
import { decode, encode } from "../columns";
import type { FlamechartHeader, FlamegraphHeader, HeatmapHeader, Lanes, StripHeader, TracksHeader } from "../types";
import { cutLanes, cutStrip, finest } from "./axis";
import { tracks, who } from "./owners";
import { flamechart, flamegraph, heatmap } from "./profile";
import { caveats, readTable } from "./table";

const START = 1000;

/** Two cores: kubelet in the kernel on core 0 (main > read > walk), java in user space on core 1 (main). */
function table(step = 1, more: Record<string, unknown> = {}, arrays: Parameters<typeof encode>[1] = {}) {
  const ticks = [0, 10, 500, 10, 490, 20]; // 1000.000 .010 .510 .520 1001.010 .030
  const header = {
    schema: "zombiescope.samples/1",
    start: START,
    step,
    tick_s: 0.001,
    total: 6 * step,
    hz: 99,
    held: [[1000, 1002]],
    blind: [],
    rows: 50,
    names: ["main", "read", "walk"],
    modules: ["", "[kernel]", "a.out"],
    kinds: ["kernel", "user"],
    skid: [],
    tasks: [
      ["kubelet", 7, 8, "kubelet.service", "abcdef", "main", "registry.local:5000/ops/agent:1.2", "ml/train-0", "u-1"],
      ["java", 9, 9, null, null],
    ],
    pruned: { branches: 0, samples: 0, below_ratio: 0 },
    ...more,
  };
  return readTable(
    decode(
      encode(header, {
        time: Uint16Array.from(ticks),
        cpu: Uint16Array.of(0, 1, 0, 1, 0, 65535),
        pair: Uint8Array.of(0, 1, 0, 1, 0, 1),
        pair_task: Uint32Array.of(0, 1),
        pair_node: Uint32Array.of(3, 1),
        fn_module: Uint32Array.of(2, 1, 1),
        fn_kind: Uint8Array.of(1, 0, 0),
        node_parent: Uint32Array.of(0, 1, 1),
        node_fn: Uint32Array.of(0, 1, 2),
        ...arrays,
      }),
    ),
  );
}

const names = ({ header, arrays }: ReturnType<typeof flamegraph<FlamegraphHeader>>) =>
  Array.from(arrays.name!, (name, node) => `${header.names[name]} ${arrays.value![node]}`);

describe("flame graph of a frozen page", () => {
  it("folds everything, a range, a core, a task, the kernel and what matches", () => {
    const all = table();
    expect(names(flamegraph(all, {}))).toEqual(["all 6", "main 6", "read 3", "walk 3"]);
    expect(names(flamegraph(all, { from: 1000.5, to: 1001 }))).toEqual(["all 2", "main 2", "read 1", "walk 1"]);
    expect(names(flamegraph(all, { cpu: ["1"] }))).toEqual(["all 2", "main 2"]);
    expect(names(flamegraph(all, { cpu: ["0-1"] }))[0]).toBe("all 5");
    expect(names(flamegraph(all, { comm: ["kube*"] }))[0]).toBe("all 3");
    for (const container of ["abc", "main", "agent", "agent:1.2"])
      expect(names(flamegraph(all, { container: [container] }))[0]).toBe("all 3");
    for (const pod of ["train-*", "ml/train-0", "u-1"]) expect(names(flamegraph(all, { pod: [pod] }))[0]).toBe("all 3");
    for (const image of ["agent", "ops/agent:1.2", "registry.local:5000/ops/agent"])
      expect(names(flamegraph(all, { image: [image] }))[0]).toBe("all 3");
    for (const none of [{ pod: ["default/train-0"] }, { image: ["age"] }, { container: ["train-0"] }])
      expect(names(flamegraph(all, none))[0]).toBe("all 0");
    expect(names(flamegraph(all, { unit: ["kubelet"] }))[0]).toBe("all 0");
    expect(names(flamegraph(all, { mode: "user" }))).toEqual(["all 3", "main 3"]);
    expect(names(flamegraph(all, { match: "^wa" }))[0]).toBe("all 3");
    expect(names(flamegraph(all, { match: "(?i)^WA" }))[0]).toBe("all 3");
    expect(names(flamegraph(all, { match: "(" }))[0]).toBe("all 0");
  });

  it("folds only what has Python functions on it", () => {
    const all = table(1, { kinds: ["kernel", "user", "python"] }, { fn_kind: Uint8Array.of(1, 2, 0) });
    expect(names(flamegraph(all, { python: "true" }))).toEqual(["all 3", "main 3", "read 3", "walk 3"]);
    for (const python of ["", "false"]) expect(names(flamegraph(all, { python }))[0]).toBe("all 6");
    expect(names(flamegraph(table(), { python: "true" }))[0]).toBe("all 0");
  });

  it("shares no sample between ranges that meet, and loses none", () => {
    const cuts = [1000, 1000.01, 1000.0105, 1000.51, 1000.9, 1001.01, 1001.03, 1002];
    const totals = cuts
      .slice(1)
      .map((to, i) => flamegraph<FlamegraphHeader>(table(), { from: cuts[i], to }).header.total);
    expect(totals.reduce((sum, total) => sum + total, 0)).toBe(6);
  });

  it("starts from the innermost frame when it is inverted", () => {
    expect(names(flamegraph(table(), { invert: true }))).toEqual(["all 6", "main 3", "walk 3", "read 3", "main 3"]);
  });

  it("compares its own ranges, and the window that came with it", () => {
    const own = flamegraph<FlamegraphHeader>(table(), { from: 1000, to: 1001, against: "1001..1002" });
    expect([own.header.total, own.header.base_total]).toEqual([4, 2]);
    const given = table(1, { base_span: [500, 600] }, { base: Uint32Array.of(0, 10, 0, 0) });
    expect(flamegraph<FlamegraphHeader>(given, { against: "500..600" }).header.base_total).toBe(10);
    expect(() => flamegraph(given, { against: "500..600", cpu: "1" })).toThrow("frozen as a whole");
    expect(() => flamegraph(table(), { against: "1..2" })).toThrow("no sample of the other window");
  });

  it("knows the whole exactly where samples were thinned, and parts by their weight", () => {
    const thin = table(4, {}, { whole: Uint32Array.of(0, 11, 0, 14) });
    expect(flamegraph<FlamegraphHeader>(thin, { by: "program" }).header.total).toBe(25);
    expect(names(flamegraph(thin, {}))[0]).toBe("all 25");
    expect(names(flamegraph(thin, { cpu: "0" }))[0]).toBe("all 12");
  });
});

describe("other answers about samples", () => {
  it("counts a heat map by part of the second and by core, and paints", () => {
    const seconds = heatmap<HeatmapHeader>(table(), { rows: 2, paint: "walk" });
    expect([seconds.header.columns, seconds.header.total, seconds.header.max]).toEqual([2, 6, 2]);
    expect(Array.from(seconds.arrays.values!)).toEqual([2, 2, 2, 0]);
    expect(Array.from(seconds.arrays.painted!)).toEqual([1, 1, 1, 0]);
    const cores = heatmap<HeatmapHeader>(table(), { by: "core" });
    expect(cores.header.cores).toEqual([0, 1]);
    expect(Array.from(cores.arrays.values!)).toEqual([2, 2, 1, 0]);
  });

  it("cuts an exact map, and says what is not in the file", () => {
    const maps = { start: 1000, column_s: 1, columns: 2, rows: 2, cores: [0, 1] };
    const exact = table(
      4,
      { maps },
      { map_subsecond: Int32Array.of(5, 6, 1, -2), map_core: Int32Array.of(1, 1, 0, 0) },
    );
    expect(Array.from(heatmap(exact, { rows: 2 }).arrays.values!)).toEqual([5, 6, 6, 4]);
    expect(Array.from(heatmap(exact, { rows: 2, from: 1001, to: 1002 }).arrays.values!)).toEqual([6, 4]);
    const wide = heatmap<HeatmapHeader & { left_out: unknown }>(table(), { from: 900, to: 1010 }).header;
    expect(wide.blind).toEqual([]);
    expect(wide.left_out).toEqual([
      [900, 1000],
      [1002, 1010],
    ]);
  });

  it("draws a core in the order of time", () => {
    const { arrays } = flamechart(table(), { cpu: "0" });
    expect(Array.from(arrays.depth!)).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2]);
    expect(arrays.start![3]).toBeCloseTo(1000.51);
  });

  it("merges consecutive samples of a core while the frame stays", () => {
    const every = { time: Uint16Array.of(0, 10, 10, 10, 500, 10), cpu: Uint16Array.of(0, 0, 0, 0, 0, 0) };
    const { header, arrays } = flamechart<FlamechartHeader>(table(1, {}, every), { cpu: "0" });
    const bars = Array.from(arrays.name!, (name, bar) => [
      header.names[name],
      arrays.depth![bar],
      arrays.samples![bar],
    ]);
    expect(bars).toEqual([
      ["main", 0, 4],
      ["read", 1, 1],
      ["walk", 2, 1],
      ["read", 1, 1],
      ["walk", 2, 1],
      ["main", 0, 2],
      ["read", 1, 1],
      ["walk", 2, 1],
    ]);
    expect(flamechart(table(), { cpu: "7" }).arrays.name!.length).toBe(0);
  });
});

it("reads task and node apart as well as by pairs", () => {
  const apart = readTable(
    decode(
      encode(
        {
          schema: "zombiescope.samples/1",
          start: START,
          step: 1,
          tick_s: 0.001,
          total: 3,
          hz: 99,
          held: [[1000, 1002]],
          blind: [],
          names: ["main", "walk"],
          modules: [""],
          kinds: ["user"],
          skid: [],
          tasks: [
            ["a", 1, 1, null, null],
            ["b", 2, 2, null, null],
          ],
          pruned: { branches: 0, samples: 0, below_ratio: 0 },
        },
        {
          time: Uint8Array.of(0, 1, 1),
          cpu: Uint8Array.of(0, 255, 0),
          task: Uint8Array.of(1, 0, 1),
          node: Uint8Array.of(2, 1, 2),
          fn_module: Uint32Array.of(0, 0),
          fn_kind: Uint8Array.of(0, 0),
          node_parent: Uint32Array.of(0, 1),
          node_fn: Uint32Array.of(0, 1),
        },
      ),
    ),
  );
  expect(names(flamegraph(apart, { comm: "b" }))).toEqual(["all 2", "main 2", "walk 2"]);
  expect(names(flamegraph(apart, { cpu: "0" }))[0]).toBe("all 2");
});

it("says what was left out of the file, and nothing where nothing was", () => {
  const clock = (at: number) => `t${at}`;
  expect(caveats(table(), { from: 1000, to: 1002 }, clock)).toBeNull();
  expect(caveats(table(8), { from: 1000, to: 1002 }, clock)).toContain("one of every 8 samples");
  expect(caveats(table(), { from: 0, to: 2000 }, clock)).toBe(
    "Samples of t1000 – t1002 are in the file; elsewhere the heat map is hatched.",
  );
});

describe("the time axis of a frozen page", () => {
  const strip = (from: number, columns: number, column_s: number) =>
    decode<StripHeader>(
      encode(
        { schema: "zombiescope.strip/1", from, to: from + columns * column_s, column_s, columns, cpus: [0, 1] },
        {
          user: Uint8Array.from({ length: columns * 2 }, (_, i) => i),
          average_busy: Float32Array.from({ length: columns }, (_, i) => i),
        },
      ),
    );

  it("takes the finest strip that has the span", () => {
    const strips = [strip(0, 10, 60), strip(120, 60, 1)];
    expect(finest(strips, { from: 130, to: 140 })?.header.column_s).toBe(1);
    expect(finest(strips, { from: 100, to: 140 })?.header.column_s).toBe(60);
    expect(finest(strips, { from: 500, to: 900 })?.header.column_s).toBe(60);
    expect(finest([], { from: 0, to: 1 })).toBeNull();
  });

  it("cuts columns of all cores", () => {
    const cut = cutStrip<StripHeader>(strip(100, 10, 1), { from: 102.5, to: 105 });
    expect([cut.header.from, cut.header.to, cut.header.columns]).toEqual([102, 105, 3]);
    expect(Array.from(cut.arrays.user!)).toEqual([4, 5, 6, 7, 8, 9]);
    expect(Array.from(cut.arrays.average_busy!)).toEqual([2, 3, 4]);
  });

  it("cuts lanes", () => {
    const event = (at: number) => ({ at, kind: "mark", source: "x", severity: "info" as const, text: "", fields: {} });
    const lanes: Lanes = {
      schema: "zombiescope.lanes/1",
      node: "n",
      from: 0,
      to: 9,
      events: [event(1), event(5)],
      events_left_off: 0,
      charts: [{ name: "disk", unit: "bytes/s", at: [1, 5, 8], lines: [{ name: "read", values: [1, null, 3] }] }],
      python_left_out: 0,
      delays: { waits: [], known: [], too_many: false },
      python: [
        {
          pid: 7,
          tid: 7,
          comm: "trainer",
          program: "train.py",
          rank: 0,
          main: true,
          gpu: true,
          from: [1, 5],
          to: [2, 5],
          what: ["a x.py:1", "b x.py:2"],
          waits: [true, false],
        },
      ],
      gaps: [{ from: 0, to: 2, source: "x", why: "" }],
      zombies: { at: [1, 5], total: [1, 2], live: [1, 1], dying: [0, 1] },
      pressure: { at: [], cpu: [], memory: [], io: [] },
      gpus: { at: [1, 5], count: 2, mean: [90, 10], lowest: [80, 2], lowest_gpu: [0, 1], power_w: [1200, null] },
    };
    const cut = cutLanes(lanes, { from: 4, to: 6 });
    expect(cut.charts[0]).toMatchObject({ at: [5], lines: [{ values: [null] }] });
    expect([cut.gpus.count, cut.gpus.mean, cut.gpus.lowest_gpu]).toEqual([2, [10], [1]]);
    expect([cut.events.length, cut.gaps.length, cut.zombies.dying]).toEqual([1, 0, [1]]);
    expect(cut.python.map((lane) => [lane.from, lane.what, lane.waits])).toEqual([[[5], ["b x.py:2"], [false]]]);
  });
});

describe("whose the frozen samples are", () => {
  it("has a root for each process, also when it is inverted and compared", () => {
    expect(names(flamegraph(table(), { by: "process" }))).toEqual([
      "all 6",
      "java [9] 3",
      "kubelet [7] 3",
      "main 3",
      "main 3",
      "read 3",
      "walk 3",
    ]);
    const turned = flamegraph<FlamegraphHeader>(table(), { by: "process", invert: 1 });
    expect(names(turned)).toEqual(["all 6", "java [9] 3", "kubelet [7] 3", "main 3", "walk 3", "read 3", "main 3"]);
    const both = flamegraph<FlamegraphHeader>(table(), { by: "unit", from: 1000, to: 1001, against: "1001..1002" });
    expect([both.header.total, both.header.base_total]).toEqual([4, 2]);
  });

  it("counts who ran as the server does", () => {
    const found = who(table(), { by: "owner" });
    expect(found.who.map(({ name, samples, kernel_ratio }) => [name, samples, kernel_ratio])).toEqual([
      ["kubelet.service", 3, 1],
      ["java", 3, 0],
    ]);
    expect(found.who[0]).toMatchObject({
      comm: "kubelet",
      pod: "ml/train-0",
      image: "registry.local:5000/ops/agent:1.2",
    });
    expect(found.who[0]!.cpus).toBeCloseTo(3 / (99 * 2));
    expect(who(table(), { by: "owner", top: 1 }).others).toEqual({ groups: 1, samples: 3 });
    for (const by of ["pod", "container", "image", "thread", "comm", "unit"] as const)
      expect(who(table(), { by }).who.reduce((sum, row) => sum + row.samples, 0)).toBe(6);
  });

  it("draws tracks of those that ran most", () => {
    const { header, arrays } = tracks<TracksHeader>(table(), { by: "comm", columns: 2 });
    expect(header.tracks.map((track) => track.name)).toEqual(["kubelet", "java"]);
    expect([Array.from(arrays.samples!), Array.from(arrays.kernel!)]).toEqual([
      [2, 1, 2, 1],
      [2, 1, 0, 0],
    ]);
  });
});
