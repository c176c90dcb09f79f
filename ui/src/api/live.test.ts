import { expect, test } from "vitest";
import { parsed } from "./live";

test("a message is its kind and its data, and a comment is not a message", () => {
  expect(parsed('event: tick\ndata: {"at": 1}')).toEqual({ kind: "tick", data: '{"at": 1}' });
  expect(parsed("data: one\r\ndata:two")).toEqual({ kind: "message", data: "one\ntwo" });
  expect(parsed(": still here")).toBeNull();
  expect(parsed("event: tick")).toBeNull();
});
