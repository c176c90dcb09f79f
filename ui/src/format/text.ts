/** Fragments as the page shows them. Pure. */

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A fragment as a sentence. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  return !trimmed || /[.!?]$/.test(trimmed) ? capital(trimmed) : `${capital(trimmed)}.`;
}

/** As much of it as there is room for, in letters. */
export function short(text: string, room: number): string {
  return text.length <= room ? text : room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}
