// The search: a regular expression that highlights or filters, how much it matched, and the way through its matches.

import { useEffect, useRef, useState } from "preact/hooks";
import { share } from "../format";
import type { Search } from "./search";

export interface SearchBoxProps {
  readonly search: Search;
  readonly error: string | null;
  readonly matched: number;
  readonly total: number;
  readonly place: { readonly at: number; readonly of: number };
  readonly onSearch: (search: Search) => void;
  readonly onStep: (direction: 1 | -1) => void;
  /** Counts up when the field shall have the focus. */
  readonly focused?: number;
}

const REST_MS = 120;

export function SearchBox({ search, error, matched, total, place, onSearch, onStep, focused }: SearchBoxProps) {
  const [text, setText] = useState(search.text);
  const field = useRef<HTMLInputElement>(null),
    waiting = useRef(0);
  useEffect(() => setText(search.text), [search.text]);
  useEffect(() => {
    if (focused) {
      field.current?.focus();
      field.current?.select();
    }
  }, [focused]);
  const type = (typed: string): void => {
    setText(typed);
    clearTimeout(waiting.current);
    waiting.current = window.setTimeout(() => onSearch({ ...search, text: typed }), REST_MS);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      clearTimeout(waiting.current);
      if (text !== search.text) onSearch({ ...search, text });
      else onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      if (text) {
        setText("");
        onSearch({ ...search, text: "" });
      } else field.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const mode = (name: Search["mode"], title: string) => (
    <button
      type="button"
      aria-pressed={search.mode === name}
      title={title}
      onClick={() => onSearch({ text, mode: name })}
    >
      {name === "highlight" ? "Highlight" : "Filter"}
    </button>
  );
  return (
    <div class="zs-search" role="search">
      <input
        ref={field}
        type="search"
        value={text}
        placeholder="Search functions: regular expression"
        aria-label="Search functions by regular expression"
        aria-invalid={error !== null}
        class={error ? "zs-wrong" : ""}
        title={error ?? ""}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <span class="zs-group" role="group" aria-label="What the search does">
        {mode("highlight", "Paint matching frames")}
        {mode("filter", "Show only stacks with a match")}
      </span>
      {search.text !== "" && (
        <span class="zs-matched" aria-live="polite">
          {error ? (
            "not a regular expression"
          ) : (
            <>
              <b>{share(matched, total)}</b> matched
              {place.of > 0 && (
                <span class="faint">
                  {" "}
                  · {place.at ? `${place.at} of ` : ""}
                  {place.of}
                </span>
              )}
            </>
          )}
        </span>
      )}
      {search.text !== "" && place.of > 0 && (
        <span class="zs-group">
          <button type="button" aria-label="previous match" title="Shift+Enter" onClick={() => onStep(-1)}>
            ↑
          </button>
          <button type="button" aria-label="next match" title="Enter" onClick={() => onStep(1)}>
            ↓
          </button>
        </span>
      )}
    </div>
  );
}
