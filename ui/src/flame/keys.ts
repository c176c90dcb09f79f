// Keys of the flame graph, for whoever shows help.

export const FLAME_KEYS: readonly (readonly [string, string])[] = [
  ["← → ↑ ↓", "move between frames"],
  ["Enter", "zoom to the frame"],
  ["Backspace", "zoom out by one frame"],
  ["0 or Esc", "reset zoom"],
  ["W S A D, + −", "closer, further, left, right"],
  ["/ or Ctrl+F", "search"],
  ["n, Shift+N", "next, previous match"],
  ["f, Shift+F", "focus on the function, on its own samples"],
  ["x", "drop samples with the function"],
  ["m, Shift+M", "merge the function into its callers, collapse its module"],
  ["e", "collapse what the function calls"],
  ["r, Shift+R", "collapse all direct recursion, of this function"],
  ["b", "sandwich: callers and callees"],
  ["c, Shift+C", "copy name, copy stack"],
  ["z", "undo the last transform"],
  ["i, o", "invert, flip"],
  ["k", "colour by kind or module"],
  ["Menu or Shift+F10", "menu of the frame"],
];

export const HEAT_KEYS: readonly (readonly [string, string])[] = [
  ["← → ↑ ↓", "move between cells"],
  ["Shift+arrows", "select from cell to cell"],
  ["Enter", "select this second"],
  ["Space", "start a selection, end it"],
  ["Ctrl+Enter", "compare with this second; with Space, from cell to cell"],
  [", .", "previous, next range"],
  ["Esc", "clear the selection"],
  ["PageUp PageDown Home End", "jump"],
];
