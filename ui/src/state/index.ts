export * from "./state";
export * from "./theme";
export * from "./clock";
export * from "./load";
export * from "./answer";
