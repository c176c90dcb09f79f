/** Hands the view on: as a link, or as one file. The result is shown next to the button. */

import { signal } from "@preact/signals";
import { chosen, current, page, sampleParams, shareLink } from "../state";
import { format, START } from "../state/place";
import { copy } from "./clipboard";
import { saving } from "./download";
import { Menu } from "./menu";

/** What was just done, for the eye and the ear; empty after a moment. */
export const toast = signal("");
let timer = 0;

function say(words: string): void {
  toast.value = words;
  clearTimeout(timer);
  timer = window.setTimeout(() => (toast.value = ""), 4000);
}

export async function copyLink(): Promise<void> {
  const link = shareLink();
  if (!(await copy(link))) return say("This browser does not let a page copy: copy the address");
  const local = /^(127\.|localhost|\[::1\])/.test(location.hostname);
  say(local ? "Link copied. It opens on this machine, while this server runs" : "Link copied");
}

/** The page with what is chosen, in one file that needs no server; null where there is none to make it. */
function savingFile(): (() => void) | null {
  const { look, inverted, group, search } = current();
  const opens = format({ ...START, page: page.value === "node" ? "node" : "home", look, inverted, group, search });
  return saving("page", { ...sampleParams(chosen.value), opens });
}

export function Share() {
  const save = savingFile();
  return (
    <Menu label="Share" title="A link to this view, or this view as one file" class="narrow">
      <button type="button" onClick={() => void copyLink()}>
        Copy link <kbd>y</kbd>
      </button>
      {save && (
        <button
          type="button"
          onClick={() => {
            save();
            say("Saving this view as one file …");
          }}
        >
          Save as one file
        </button>
      )}
    </Menu>
  );
}

export function Toast() {
  return (
    <p class={`toast${toast.value ? "" : " hidden-text"}`} role="status" aria-live="polite">
      {toast.value}
    </p>
  );
}
