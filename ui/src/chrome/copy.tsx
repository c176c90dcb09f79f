/** Buttons that copy, say so, and still say what to do where a page may not write to the clipboard. */

import { useRef, useState } from "preact/hooks";
import { capital } from "../format";
import { copy } from "./clipboard";
import { Icon } from "./icons";

type Done = "" | "Copied" | "Select it by hand";

function useCopy(text: string): [Done, () => void] {
  const [done, setDone] = useState<Done>("");
  const timer = useRef(0);
  const write = async (): Promise<void> => {
    setDone((await copy(text)) ? "Copied" : "Select it by hand");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setDone(""), 2000);
  };
  return [done, () => void write()];
}

export function Copy({ text, what = "Copy" }: { text: string; what?: string }) {
  const [done, write] = useCopy(text);
  return (
    <button type="button" class="pg-button" aria-live="polite" onClick={write}>
      {done || capital(what)}
    </button>
  );
}

/** A command with its button. */
export function Copyable({ text }: { text: string }) {
  const [done, write] = useCopy(text);
  return (
    <span class="copyable">
      <code>{text}</code>
      <button type="button" class="icon-button" onClick={write} aria-label={`Copy ${text}`} title={done || "Copy"}>
        <Icon name={done === "Copied" ? "check" : "copy"} />
      </button>
    </span>
  );
}
