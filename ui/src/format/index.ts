/** Every number, time and fragment that a person reads is written here, so that it reads the same on every page. */

export * from "./function-name";
export * from "./measured";
export * from "./number";
export * from "./text";
export * from "./time";
