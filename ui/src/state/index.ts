export * from "./answer";
export * from "./clock";
export * from "./load";
export * from "./state";
export * from "./theme";
