// Makes src/api/types.ts from docs/api.json, the server's own description: `npm run types`; with --check it only compares.
// openapi-typescript needs the compiler's JavaScript interface, which TypeScript 7 does not have.

import { readFileSync, writeFileSync } from "node:fs";

const from = new URL("../docs/api.json", import.meta.url);
const to = new URL("src/api/types.ts", import.meta.url);
const described = JSON.parse(readFileSync(from, "utf8"));
const PREFIX = "/api/v1/";
const SIMPLE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

/** A name that the browser has taken already. */
const nameOf = (name) => (name === "Error" ? "ErrorAnswer" : name);

function typeOf(schema) {
  if (schema.$ref) return nameOf(schema.$ref.split("/").at(-1));
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(" | ");
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
  if (schema.type === "array") return listOf(typeOf(schema.items));
  if (schema.type === "object")
    return schema.properties ? `{ ${membersOf(schema).join("; ")} }` : `Record<string, ${restOf(schema)}>`;
  if (schema.type) return [...new Set([schema.type].flat().map((name) => SIMPLE[name]))].join(" | ");
  return "unknown";
}

const listOf = (type) => (type.includes(" | ") ? `(${type})[]` : `${type}[]`);
const restOf = ({ additionalProperties: more }) => (typeof more === "object" ? typeOf(more) : "unknown");
const keyOf = (name) => (/^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name));

function membersOf(schema) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(
    ([name, inside]) => `${keyOf(name)}${required.has(name) ? "" : "?"}: ${typeOf(inside)}`,
  );
  return schema.additionalProperties ? [...members, `[more: string]: ${restOf(schema)}`] : members;
}

const bodyOf = (members) => `{\n${members.map((each) => `  ${each};\n`).join("")}}`;

function declared([name, schema]) {
  const comment = schema.description ? `/** ${schema.description.replace(/\s+/g, " ")} */\n` : "";
  const type = schema.properties ? bodyOf(membersOf(schema)) : `= ${typeOf(schema)};`;
  return `${comment}export ${schema.properties ? "interface" : "type"} ${nameOf(name)} ${type}`;
}

/** An answer of each path; a path with a parameter stands for all of its values. */
function table(name, comment, found) {
  const lines = Object.entries(found).map(([path, schema]) => {
    const key = path.includes("{") ? `[path: \`${path.replace(/\{\w+\}/g, "$" + "{string}")}\`]` : keyOf(path);
    return `${key}: ${typeOf(schema)}`;
  });
  return `/** ${comment} */\nexport interface ${name} ${bodyOf(lines)}`;
}

/** Of each path the part of its answer's schema that `pick` chooses. */
function answers(pick) {
  const found = {};
  for (const [path, { get }] of Object.entries(described.paths)) {
    const content = get?.responses["200"]?.content ?? {};
    const schema = Object.entries(content)
      .map(([media, { schema }]) => pick(media, schema))
      .find(Boolean);
    if (schema) found[path.slice(PREFIX.length)] = schema;
  }
  return found;
}

const used = Object.entries(described.components.schemas).filter(([name]) => name !== "Format");
const text = `${[
  "// Made from docs/api.json by `npm run types`: change src/zombiescope/web/shapes, not this file.",
  ...used.map(declared),
  table(
    "Documents",
    "What is answered as JSON.",
    answers((media, schema) => media === "application/json" && schema),
  ),
  table(
    "ColumnHeaders",
    "What precedes the arrays of an answer in columns.",
    answers((_, schema) => schema["x-header"]),
  ),
  table("LiveEvents", "What a running recorder sends.", answers((_, schema) => schema["x-events"]).live),
].join("\n\n")}\n`;

if (!process.argv.includes("--check")) writeFileSync(to, text);
else if (readFileSync(to, "utf8") !== text) {
  console.error("ui/src/api/types.ts is not the one of docs/api.json: npm run types");
  process.exit(1);
}
