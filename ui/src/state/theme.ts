/** Light, dark, or as the system says. Kept in this browser, not in the address: a link must not change another's screen. */

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEPT = "zombiescope.theme";
const known = new Map<string, string>();
const asked = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>(stored());
/** What is on the screen; canvases redraw when it changes. */
export const dark = signal(asked.matches);

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEPT);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // a frozen page opened as a file may have no storage
  }
}

const settle = (): void => {
  dark.value = theme.value === "system" ? asked.matches : theme.value === "dark";
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
  known.clear();
};

asked.addEventListener("change", settle);
effect(settle);

export function setTheme(next: Theme): void {
  theme.value = next;
  try {
    localStorage.setItem(KEPT, next);
  } catch {
    // not kept: the switch still works for this visit
  }
}

/** A colour of the sheet, for canvases. Asked once for each theme: a frame has no time to compute styles. */
export function colourOf(variable: string): string {
  let colour = known.get(variable);
  if (colour === undefined) {
    colour = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    if (colour) known.set(variable, colour);
  }
  return colour;
}
