import { expect, it } from "vitest";
import { AnswerError } from "./source";

it("reads how to fix it, also from a server of the version before", () => {
  const said = (error: object) => AnswerError.answered(404, { error: { what: "gone", ...error } }).fix;
  expect(said({ fix: "look there", mend: "look here" })).toBe("look there");
  expect(said({ mend: "look here" })).toBe("look here");
  expect(said({ fix: null, mend: null })).toBeNull();
  expect(said({})).toBeNull();
});
