import { expect, it } from "vitest";
import { sentence, short } from "./text";

it("makes sentences", () => {
  expect([sentence("it is so"), sentence("Why?"), sentence("")]).toEqual(["It is so.", "Why?", ""]);
});

it("cuts to the room there is", () => {
  expect([short("function", 8), short("function", 5), short("function", 1)]).toEqual(["function", "func…", ""]);
});
