export * from "./answer";
export * from "./recording";
export * from "./state";
export * from "./theme";
