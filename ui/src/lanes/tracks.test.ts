import { beforeAll, expect, it, vi } from "vitest";
import { decode, encode } from "../api/columns";
import type { TracksHeader } from "../api/types";

// Tracks read the state, which reads the theme of a browser.
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("document", { documentElement: { dataset: {} }, getElementById: () => null });
vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });

let tracks: typeof import("./tracks");
let who: typeof import("../samples/who");
beforeAll(async () => {
  tracks = await import("./tracks");
  who = await import("../samples/who");
});

const group = { comm: "hog", pid: 7, tid: null, unit: null, container: null, pod: null, image: null };
const answer = (hz: number | null) =>
  decode<TracksHeader>(
    encode(
      {
        from: 0,
        to: 4,
        by: "process",
        columns: 2,
        column_s: 2,
        hz,
        others: 0,
        tracks: [{ name: "hog [7]", ...group, samples: 300 }],
      },
      { samples: Uint32Array.of(200, 100), kernel: Uint32Array.of(50, 0) },
    ),
  );

it("has CPUs where the rate is known, and never a scale below one", () => {
  const [track] = tracks.tracksOf(answer(50));
  expect([Array.from(track!.all), Array.from(track!.kernel), track!.top, track!.scale]).toEqual([
    [2, 1],
    [0.5, 0],
    2,
    "2.0",
  ]);
  expect(tracks.tracksOf(answer(200))[0]!.top).toBe(1);
  expect(tracks.tracksOf(answer(null))[0]!.scale).toBe("");
});

it("filters for what a row represents", () => {
  const row = { name: "hog [7]", ...group };
  expect(who.filterFor("process", row)).toEqual({ name: "pid", value: "7" });
  expect(who.filterFor("thread", row)).toBeNull();
  expect(who.filterFor("owner", { ...row, name: "a.service", unit: "a.service" })).toEqual({
    name: "unit",
    value: "a.service",
  });
  expect(who.filterFor("owner", { ...row, name: "ml/t/main", pod: "ml/t" })).toEqual({ name: "pod", value: "ml/t" });
  expect(who.filterFor("owner", { ...row, name: "hog" })).toEqual({ name: "comm", value: "hog" });
});
