export * from "./answer";
export * from "./load";
export * from "./state";
export * from "./theme";
