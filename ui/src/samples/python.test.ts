import { beforeAll, expect, test, vi } from "vitest";
import type { PythonThread } from "../api/types";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("document", { documentElement: { dataset: {} }, getElementById: () => null });
vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });

let python: typeof import("./python");
let lane: typeof import("../lanes/python");
beforeAll(async () => {
  python = await import("./python");
  lane = await import("../lanes/python");
});

const frame = (name: string, line: number) => ({ function: name, file: "/job/jx.py", line });
const thread = (pid: number, tid: number, looks: number, own: [string, number, number][] = []): PythonThread => ({
  pid,
  tid,
  comm: "python3",
  looks,
  waiting_ratio: 0.5,
  spans: [],
  spans_left_off: 0,
  stacks: own.map(([name, line, ratio]) => ({
    ...frame("lib", 1),
    looks: 1,
    ratio,
    own: frame(name, line),
    frames: [frame("<module>", 20), frame(name, line)],
  })),
});

test("main threads stand first, whatever their feeders do", () => {
  const threads = [thread(1859, 1877, 500), thread(1859, 1859, 3), thread(7, 7, 9)];
  expect(python.mainFirst(threads).map((each) => each.tid)).toEqual([7, 1859, 1877]);
});

test("stacks that end in the same line of own code are one line", () => {
  const lines = python.linesOf(
    thread(1, 1, 10, [
      ["step", 40, 0.3],
      ["load", 77, 0.4],
      ["step", 40, 0.3],
    ]),
  );
  expect(lines.map(({ place, ratio }) => [place, ratio])).toEqual([
    ["step jx.py:40", 0.6],
    ["load jx.py:77", 0.4],
  ]);
});

test("a thread is named by its program and rank", () => {
  const about = { program: "jx.py", comm: "python3", rank: 3, main: true, tid: 1859 };
  expect(lane.threadName(about)).toBe("jx.py rank 3 1859");
  expect(lane.threadName({ ...about, rank: null })).toBe("jx.py main 1859");
  expect(lane.threadName({ ...about, main: false, comm: "feeder", tid: 1877 })).toBe("jx.py rank 3 feeder 1877");
  expect(lane.threadName({ ...about, program: null, rank: null, main: false })).toBe("python3 thread 1859");
});
