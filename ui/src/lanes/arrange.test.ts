import { expect, test, vi } from "vitest";

vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });
const { moved, ordered } = await import("./arrange");

test("lanes stand in the page's order until the reader moves one", () => {
  expect(ordered(["gpu", "python", "events"], [])).toEqual(["gpu", "python", "events"]);
  expect(ordered(["gpu", "python", "events"], ["events", "gpu", "python"])).toEqual(["events", "gpu", "python"]);
});

test("a lane that is new since the order was kept is placed behind the one that it follows", () => {
  expect(ordered(["gpu", "python", "delays", "events"], ["events", "gpu", "python"])).toEqual([
    "events",
    "gpu",
    "python",
    "delays",
  ]);
  expect(ordered(["gpu", "python"], ["python"])).toEqual(["gpu", "python"]);
});

test("a lane that this recording does not have takes no place", () => {
  expect(ordered(["events"], ["gpu", "events"])).toEqual(["events"]);
});

test("a lane moves by one place, and stays at the ends", () => {
  expect(moved(["a", "b", "c"], "c", -1)).toEqual(["a", "c", "b"]);
  expect(moved(["a", "b", "c"], "a", -1)).toEqual(["a", "b", "c"]);
  expect(moved(["a", "b", "c"], "c", 1)).toEqual(["a", "b", "c"]);
});
