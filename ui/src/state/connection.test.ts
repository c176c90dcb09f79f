import { expect, test } from "vitest";
import { AnswerError } from "../api/source";
import { after, type Connection, refused } from "./connection";

const open: Connection = { state: "open", why: "", since: 1 };
const token = new AnswerError(401, "this server asks for a token");

test("a server that started again with another token is not a lost connection", () => {
  const lost = after(open, "lost", "the connection broke", 2);
  expect(lost).toEqual({ state: "lost", why: "the connection broke", since: 2 });
  expect(refused(lost, token, 3)).toEqual({ state: "denied", why: "this server asks for a token", since: 3 });
});

test("a server that is away stays a lost connection", () => {
  const lost = after(open, "lost", "the connection broke", 2);
  expect(refused(lost, new AnswerError(0, "the server does not answer"), 3)).toBe(lost);
});

test("tries that fail again do not hide that one has to sign in, and one that works does", () => {
  const denied = refused(open, token, 3);
  expect(after(denied, "lost", "the connection broke", 4)).toBe(denied);
  expect(after(denied, "open", "", 5).state).toBe("open");
});

test("how long ago it was heard is counted from the first time", () => {
  const lost = after(open, "lost", "the connection broke", 2);
  expect(after(lost, "lost", "the connection broke", 9).since).toBe(2);
});
