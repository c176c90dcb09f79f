import { describe, expect, it } from "vitest";
import { format, kept, type Place, parse, START } from "./place";

const FULL: Place = {
  page: "node",
  lost: "",
  rec: "founding-case",
  boot: "9d75386b",
  node: "ip-10-1-39-7",
  view: { from: 1700000000.5, to: 1700000060 },
  selection: { from: 1700000001.25, to: 1700000002 },
  compare: { from: 1700000030, to: 1700000031 },
  filters: {
    cpu: ["3", "5-7"],
    pid: ["1"],
    tid: [],
    comm: ["a b"],
    unit: ["x.service", "y.service"],
    container: [],
    pod: ["ml/train-*"],
    image: [],
    mode: "kernel",
    match: "mem_cgroup.*|rstat",
    python: "false",
  },
  look: "sandwich",
  inverted: true,
  icicle: false,
  search: { text: "a&b=c", mode: "filter" },
  zoom: ["main", "std::map<a;b>", "100%3B"],
  group: "process",
  tracks: "thread",
  fn: "mem_cgroup_css_rstat_flush",
  transforms: "f.do_exit",
  colour: "module",
  by: "core",
  rows: 99,
  incidentId: "",
};

describe("place", () => {
  it("is the same after a round through the address", () => {
    expect(parse(format(FULL))).toEqual(FULL);
    expect(parse(format(START))).toEqual(START);
  });

  it("takes no nonsense", () => {
    const read = parse("page=root&from=9&to=3&sel=a..b&cmp=5..4&view=pie&mode=both&python=maybe&cpu=");
    expect(read).toEqual({ ...START, page: "node", lost: "root" });
  });

  it("knows the page of a link that does not name it", () => {
    expect(parse("id=inc-1").page).toBe("incident");
    expect(parse("sel=1..2").page).toBe("node");
  });

  it("keeps the objects that say the same", () => {
    const next = kept(FULL, parse(format({ ...FULL, look: "top" })));
    expect(next.look).toBe("top");
    expect(next.filters).toBe(FULL.filters);
    expect(next.selection).toBe(FULL.selection);
  });
});
