export * from "./answer";
export * from "./recording";
export * from "./server";
export * from "./state";
export * from "./theme";
