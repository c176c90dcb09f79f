import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AnswerError, type Source, useSource } from "../api/source";
import { asking, away, gone, heard, parts, watchServer } from "./server";

type Health = { live: boolean; parts: { name: string }[] };
let health: () => Promise<Health>;
const again = vi.fn();
const lost = new AnswerError(0, "the server does not answer");

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("document", { hidden: false, addEventListener: () => undefined });
  health = async () => ({ live: false, parts: [] });
  useSource({ frozen: false, json: () => health() } as unknown as Source);
  watchServer(again);
});

afterEach(async () => {
  health = async () => ({ live: false, parts: [] });
  await vi.advanceTimersByTimeAsync(20_000);
  again.mockClear();
  vi.useRealTimers();
});

test("a failed request shows at once that the server is away, and all are sent again when it is back", async () => {
  health = () => Promise.reject(lost);
  heard(lost);
  expect(away.value).not.toBeNull();
  await vi.advanceTimersByTimeAsync(9000);
  expect(again).not.toHaveBeenCalled();
  health = async () => ({ live: false, parts: [] });
  await vi.advanceTimersByTimeAsync(3000);
  expect(away.value).toBeNull();
  expect(again).toHaveBeenCalledTimes(1);
});

test("a server that accepts and never answers is away within two seconds of a question", async () => {
  await vi.advanceTimersByTimeAsync(100);
  health = () => new Promise(() => undefined);
  const answered = asking();
  await vi.advanceTimersByTimeAsync(1900);
  expect(away.value).not.toBeNull();
  // the requests are still on their way: repeating them would only make it slower
  answered();
  heard(null);
  expect(away.value).toBeNull();
  expect(again).not.toHaveBeenCalled();
});

test("a hard question to a server that is there is none of that", async () => {
  const answered = asking();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(away.value).toBeNull();
  answered();
});

test("a recording that was deleted is gone until it is back", async () => {
  const deleted = new AnswerError(410, "this recording was deleted or moved: /x");
  health = () => Promise.reject(deleted);
  await vi.advanceTimersByTimeAsync(16_000);
  expect(gone.value).toBe(deleted);
  health = async () => ({ live: false, parts: [] });
  await vi.advanceTimersByTimeAsync(16_000);
  expect(gone.value).toBeNull();
  expect(again).toHaveBeenCalledTimes(1);
});

test("parts are requested every three seconds while there are any", async () => {
  const asked = vi.fn(async () => ({ live: false, parts: [{ name: "recorder" }] }));
  health = asked;
  await vi.advanceTimersByTimeAsync(16_000);
  expect(parts.value).toHaveLength(1);
  const before = asked.mock.calls.length;
  await vi.advanceTimersByTimeAsync(9000);
  expect(asked.mock.calls.length - before).toBe(3);
});
