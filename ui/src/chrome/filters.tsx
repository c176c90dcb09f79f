/** The one toolbar of the node page. Filters hold for all views: each that holds is a chip, and can be taken away. */

import { useState } from "preact/hooks";
import { AxisTools } from "../axis/toolbar";
import { filtered, filters, LISTS, type ListFilter, NO_FILTERS, navigate, setFilter } from "../state";
import { KINDS, type Kind, PYTHON, problemWith, typed, understood } from "./filter-words";
import { Icon } from "./icons";
import { useSuggestions } from "./suggestions";

const LABELS: Record<ListFilter, string> = {
  cpu: "core",
  pid: "process",
  tid: "thread",
  comm: "name",
  unit: "unit",
  container: "container",
  pod: "pod",
  image: "image",
};
const HINTS: Record<Kind, string> = {
  cpu: "core: 3, 0-7",
  pid: "process id",
  tid: "thread id",
  comm: "name of a process: kubelet, ray*",
  unit: "systemd unit: *.service",
  container: "container: name, image or start of its id",
  pod: "pod: name*, namespace/name or uid",
  image: "image: ecs-agent, trainer:2",
  match: "regular expression on frames",
};

export function NodeBar() {
  return (
    <section class="node-bar" aria-label="Filters, time and view">
      <FilterBar />
      <AxisTools />
    </section>
  );
}

function FilterBar() {
  const [kind, setKind] = useState<Kind>("comm");
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  const [typing, setTyping] = useState(false);
  // `unit:` before it says another kind than the one that is chosen.
  const meant = typed(text, kind);
  const offered = useSuggestions(meant.kind, typing);
  const now = filters.value;
  const add = (event: Event): void => {
    event.preventDefault();
    const said = understood(text, kind);
    if (!said.value) return;
    const problem = problemWith(said.kind, said.value);
    setWrong(problem);
    if (problem) return;
    setText("");
    if (said.kind === "match") return setFilter("match", said.value);
    if (!now[said.kind].includes(said.value)) setFilter(said.kind, [...now[said.kind], said.value]);
  };
  return (
    <form class="filter-bar" onSubmit={add} role="search" aria-label="Filters for all views">
      <Icon name="filter" />
      <select aria-label="Filter by" value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
        {KINDS.map((one) => (
          <option key={one} value={one}>
            {one === "match" ? "frame" : LABELS[one]}
          </option>
        ))}
      </select>
      <input
        id="filter-text"
        placeholder={HINTS[kind]}
        value={text}
        aria-label={HINTS[kind]}
        aria-invalid={wrong !== ""}
        spellcheck={false}
        autocomplete="off"
        list="filter-suggestions"
        onFocus={() => setTyping(true)}
        onBlur={() => setTyping(false)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setWrong("");
        }}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
      <datalist id="filter-suggestions">
        {offered.map(({ value, label }) => (
          <option key={value} value={meant.prefix + value}>
            {label}
          </option>
        ))}
      </datalist>
      {wrong && (
        <span class="wrong" role="alert">
          {wrong}
        </span>
      )}
      <div class="chips" role="list" aria-label="Active filters">
        {LISTS.flatMap((name) =>
          now[name].map((value) => (
            <Chip
              key={name + value}
              name={LABELS[name]}
              value={value}
              remove={() =>
                setFilter(
                  name,
                  now[name].filter((one) => one !== value),
                )
              }
            />
          )),
        )}
        {now.mode && <Chip name="only" value={`${now.mode} samples`} remove={() => setFilter("mode", "")} />}
        {now.python && <Chip name="Python" value={PYTHON[now.python].word} remove={() => setFilter("python", "")} />}
        {now.match && <Chip name="frame" value={`/${now.match}/`} remove={() => setFilter("match", "")} />}
      </div>
      {filtered.value && (
        <button
          type="button"
          class="button quiet"
          onClick={() => navigate({ filters: NO_FILTERS })}
          title="Remove all filters (⇧F)"
        >
          <Icon name="clear" /> Remove all
        </button>
      )}
    </form>
  );
}

function Chip({ name, value, remove }: { name: string; value: string; remove: () => void }) {
  return (
    <span class="chip filter" role="listitem">
      <span class="faint">{name}</span> {value}
      <button type="button" onClick={remove} aria-label={`Remove the filter ${name} ${value}`}>
        <Icon name="close" size={10} />
      </button>
    </span>
  );
}
