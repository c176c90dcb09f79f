/** Type what you want: pages, views, times, filters, recordings, incidents, exports. */

import { useEffect, useRef, useState } from "preact/hooks";
import { COMMANDS, type Command, paletteOpen, passing, typedTime } from "./commands";
import { Dialog } from "./dialog";
import { shown } from "./keys";
import { matching } from "./match";

export function Palette() {
  return paletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const time = typedTime(text);
  const all = [...COMMANDS.filter((one) => one.when?.() ?? true), ...passing()];
  const found: Command[] = time ? [time] : matching(all, text, (one) => `${one.group} ${one.title}`).slice(0, 60);
  const close = (): void => void (paletteOpen.value = false);
  const run = (command: Command | undefined): void => {
    close();
    // After the dialog has given the focus back, so that a command may take it.
    if (command) setTimeout(() => command.run());
  };
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [at]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((found.length + at + (event.key === "ArrowDown" ? 1 : -1)) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  };
  return (
    <Dialog label="All commands" class="palette" close={close}>
      <input
        autofocus
        class="palette-input"
        placeholder="Type a command, a time (12:03:22), a recording, an incident …"
        value={text}
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette-list" role="listbox" ref={list}>
        {found.map((one, n) => (
          <li
            key={one.group + one.title}
            id={`palette-${n}`}
            role="option"
            aria-selected={n === at}
            onPointerMove={() => n !== at && setAt(n)}
            onClick={() => run(one)}
          >
            <span class="faint">{one.group}</span>
            <span>{one.title}</span>
            {one.keys && (
              <span class="keys">
                {shown(one.keys[0]!).map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </span>
            )}
          </li>
        ))}
        {found.length === 0 && (
          <li class="faint" aria-disabled="true">
            No command matches
          </li>
        )}
      </ul>
    </Dialog>
  );
}
