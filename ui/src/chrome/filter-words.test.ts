import { expect, it } from "vitest";
import { problemWith, pythonChoices, understood } from "./filter-words";

it("takes what is chosen, unless the text says otherwise", () => {
  expect(understood(" kubelet ", "comm")).toEqual({ kind: "comm", value: "kubelet" });
  expect(understood("core: 3", "comm")).toEqual({ kind: "cpu", value: "3" });
  expect(understood("pod=web-*", "comm")).toEqual({ kind: "pod", value: "web-*" });
  expect(understood("/mem_cgroup.*/", "unit")).toEqual({ kind: "match", value: "mem_cgroup.*" });
  expect(understood("a::b", "match")).toEqual({ kind: "match", value: "a::b" });
});

it("says what is wrong before the server must", () => {
  expect(problemWith("cpu", "0-7,9")).toBe("");
  expect(problemWith("cpu", "x")).not.toBe("");
  expect(problemWith("pid", "12a")).not.toBe("");
  expect(problemWith("match", "(")).toContain("not a regular expression");
  expect(problemWith("unit", "*.service")).toBe("");
});

it("offers Python where there is some, and what the page can show", () => {
  expect(pythonChoices("", false, false)).toEqual([]);
  expect(pythonChoices("", true, false)).toEqual(["", "true", "false"]);
  expect(pythonChoices("", true, true)).toEqual(["", "true"]);
  expect(pythonChoices("false", false, true)).toContain("false");
  expect(pythonChoices("true", false, false)).toContain("");
});
