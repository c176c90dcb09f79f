/** The keyboard. A view that has the focus comes first: what it handles it marks with preventDefault. */

import { COMMANDS, type Command, helpOpen, paletteOpen } from "./commands";

/** "ctrl+k", "shift+arrowleft", "?" : shift is named only where it does not change the letter. */
export function written(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  const ctrl = event.ctrlKey || event.metaKey ? "ctrl+" : "";
  if (key.length === 1 && event.shiftKey && key !== key.toLowerCase()) return `${ctrl}shift+${key.toLowerCase()}`;
  return ctrl + (event.shiftKey && key.length > 1 ? "shift+" : "") + (ctrl ? key.toLowerCase() : key);
}

export function commandFor(keys: string, first: string): Command | undefined {
  const both = first ? `${first} ${keys}` : keys;
  return COMMANDS.find(
    (one) => one.keys?.some((key) => key.toLowerCase() === both.toLowerCase()) && (one.when?.() ?? true),
  );
}

const CHORD_MS = 900;

export function listenToKeys(): () => void {
  let first = "";
  let timer = 0;
  const heard = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.altKey || helpOpen.value || paletteOpen.value) return;
    const keys = written(event);
    if (writing(event.target) && !keys.startsWith("ctrl+")) return;
    const found = commandFor(keys, first);
    clearTimeout(timer);
    const was = first;
    first = "";
    if (found) {
      event.preventDefault();
      found.run();
    } else if (!was && keys === "g") {
      first = "g";
      timer = window.setTimeout(() => (first = ""), CHORD_MS);
    }
  };
  window.addEventListener("keydown", heard);
  return () => window.removeEventListener("keydown", heard);
}

function writing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
}

const SIGNS: Record<string, string> = {
  arrowleft: "←",
  arrowright: "→",
  arrowup: "↑",
  arrowdown: "↓",
  escape: "Esc",
  "-": "−",
};

export function shown(keys: string): string[] {
  return keys
    .split(/[ +](?=.)/)
    .map((key) => SIGNS[key.toLowerCase()] ?? (key === "ctrl" ? "Ctrl" : key === "shift" ? "⇧" : key));
}
