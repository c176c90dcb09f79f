// Keys that move inside a picture, for the help: they need its focus. All others are the page's commands and
// mean the same wherever the focus is.

export const FLAME_KEYS: readonly (readonly [string, string])[] = [
  ["← → ↑ ↓", "move between frames"],
  ["Enter", "zoom to the frame"],
  ["Backspace", "zoom out by one frame"],
  ["Menu or Shift+F10", "menu of the frame"],
];

export const HEAT_KEYS: readonly (readonly [string, string])[] = [
  ["← → ↑ ↓", "move between cells"],
  ["Shift+arrows", "select from cell to cell"],
  ["Enter", "select this second"],
  ["Space", "start a selection, end it"],
  ["Ctrl+Enter", "compare with this second; with Space, from cell to cell"],
  ["PageUp PageDown Home End", "jump"],
];
