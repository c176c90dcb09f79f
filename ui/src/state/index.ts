export * from "./state";
export * from "./theme";
export * from "./clock";
