import { expect, it } from "vitest";
import { AnswerError } from "./source";

it("reads how to fix it", () => {
  const said = (error: object) => AnswerError.answered(404, { error: { what: "gone", ...error } }).fix;
  expect(said({ fix: "look there" })).toBe("look there");
  expect(said({ fix: null })).toBeNull();
  expect(said({})).toBeNull();
});
