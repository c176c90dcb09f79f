// Keys that act on the frame at the cursor, wherever the focus is: the picture that was pointed at last listens here, and the
// page's list of commands asks it. So a key means one thing on the whole page, and appears once in its help.

export interface Remote {
  /** Whether the picture knew what to do with the key, as its menu writes it: "m", "C", "Escape". */
  key(key: string): boolean;
}

let frame: Remote | null = null;
let panel: Remote | null = null;

/** The picture that was pointed at. */
export function pointAt(one: Remote): void {
  frame = one;
}

/** What surrounds it: searching, undoing. The answer ends it. */
export function surround(one: Remote): () => void {
  panel = one;
  return () => {
    if (panel === one) panel = null;
  };
}

export function forget(one: Remote): void {
  if (frame === one) frame = null;
}

export function act(key: string): boolean {
  return (frame?.key(key) ?? false) || (panel?.key(key) ?? false);
}
