import { expect, test } from "vitest";
import listed from "../../../tests/fixtures/short-names.json";
import { functionName } from "./function-name";

interface Case {
  readonly name: string;
  readonly room: number;
  readonly shown: string;
}

const cases: Case[] = listed;

test("names are shortened as the command line does it", () => {
  expect(cases.length).toBeGreaterThan(50);
  for (const { name, room, shown } of cases)
    expect([name, room, functionName(name, room)]).toEqual([name, room, shown]);
});

test("two functions never look alike", () => {
  const at45 = new Set(cases.filter((one) => one.room === 45).map((one) => functionName(one.name, 45)));
  expect(at45.size).toBe(new Set(cases.filter((one) => one.room === 45).map((one) => one.name)).size);
});
