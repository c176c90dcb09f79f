/** Type what you want: pages, views, times, filters, recordings, incidents, exports. */

import { useEffect, useRef, useState } from "preact/hooks";
import { hide } from "../lanes/arrange";
import { LANES } from "../lanes/list";
import { lanes } from "../lanes/load";
import { threadName } from "../lanes/python";
import { samplesIn, UNASKED } from "../samples/flames";
import { chosen, type ListFilter, NO_FILTERS, navigate, sampleParams, useDocument } from "../state";
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
  const all = [...COMMANDS.filter((one) => one.when?.() ?? true), ...passing(), ...useRan(text)];
  const rest = matching(all, text, (one) => `${one.group} ${one.title}`).slice(0, 60);
  const found: Command[] = time ? [time, ...rest.slice(0, 8)] : rest;
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
        placeholder="Command, time (12:03:22), process, thread, lane, incident, recording …"
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
            Nothing matches
          </li>
        )}
      </ul>
    </Dialog>
  );
}

const MOST = 200;

function filterOnNode(name: ListFilter, value: number): void {
  navigate({ page: "node", filters: { ...NO_FILTERS, [name]: [String(value)] } });
}

/** Who ran in the chosen time, threads whose Python stacks were read, and lanes: as commands that lead there. */
function useRan(text: string): Command[] {
  const many = samplesIn(chosen.value) > UNASKED;
  const asked = { ...sampleParams(chosen.value, NO_FILTERS), by: "thread", top: MOST };
  const answer = useDocument(many ? null : "who", asked, { wait_ms: 100 });
  const processes = new Map<number, string>();
  const threads = new Map<number, string>();
  for (const { pid, tid, comm } of answer.data?.who ?? []) {
    if (pid !== null && (pid === tid || !processes.has(pid))) processes.set(pid, comm ?? "?");
    if (tid !== null) threads.set(tid, `${comm ?? "?"} [${tid}]`);
  }
  for (const thread of lanes.value?.python ?? []) {
    threads.set(thread.tid, threadName(thread));
    if (thread.main || !processes.has(thread.pid)) processes.set(thread.pid, thread.program ?? thread.comm ?? "Python");
  }
  const number = /^\d{1,7}$/.test(text.trim()) ? Number(text) : null;
  const made = (what: string, name: ListFilter, value: number, words: string): Command => ({
    title: `Only ${what} ${words}`,
    group: "Who ran",
    run: () => filterOnNode(name, value),
  });
  return [
    ...[...processes].map(([pid, comm]) => made("process", "pid", pid, `${comm} [${pid}]`)),
    ...[...threads].map(([tid, words]) => made("thread", "tid", tid, words)),
    ...(number !== null && !processes.has(number) && !threads.has(number)
      ? [made("process", "pid", number, String(number)), made("thread", "tid", number, String(number))]
      : []),
    ...LANES.filter((lane) => lane.has()).map(({ id, title }) => ({
      title: `${title}: show this lane`,
      group: "Lanes",
      run: () => showLane(id),
    })),
  ];
}

function showLane(id: string): void {
  hide(id, false);
  navigate({ page: "node" });
  const row = id === "python" ? ".python-row" : id === "events" ? ".event-row" : `.lane-${id}`;
  setTimeout(() => document.querySelector(row)?.scrollIntoView({ block: "nearest" }), 50);
}
