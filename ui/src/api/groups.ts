import type { TrackNote } from "./types";

/** Whose samples are counted together, and what all of its tasks have in common. */
export type Group = Omit<TrackNote, "samples">;
