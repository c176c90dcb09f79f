/** What the selection holds, in words: for the eye that has chosen, and for the ear that cannot see the canvas. */

import { MODES } from "../api/modes";
import type { Span } from "../api/types";
import { Icon } from "../chrome/icons";
import { Menu, MenuPart } from "../chrome/menu";
import { clock, duration, percent, utcWords } from "../format";
import { chosen, compare, filters, selection, setFilter, view, zoneOffset } from "../state";
import { averageIn, type Shares, worstIn } from "../strip/cells";
import { strip } from "../strip/load";
import { length, precision } from "./axis";
import { compareWith, compareWithAfter, compareWithBefore, plotWidth, select, swap, zoomToSelection } from "./moves";

export function SelectionBar() {
  const span = selection.value;
  const other = compare.value;
  const held = inWords(chosen.value);
  const worst = held?.worst ?? null;
  const only = worst ? String(worst.cpu) : "";
  return (
    <div class="selection-bar">
      <div class="selection-text" id="chosen-in-words" role="status" aria-live="polite" aria-atomic="true">
        {span ? (
          <>
            <span class="chip select" title={utcWords(span.from, span.to, zoneOffset.value)}>
              {other ? <b>A</b> : null}
              {spoken(span)}
            </span>
            {other && (
              <span class="chip compare" title={utcWords(other.from, other.to, zoneOffset.value)}>
                <b>B</b>
                {spoken(other)}
              </span>
            )}
          </>
        ) : (
          <span class="chip quiet">all in view</span>
        )}
        {held && (
          <span>
            {worst && (
              <>
                worst core <strong>{worst.cpu}</strong> at {clock(worst.at, zoneOffset.value)}:{" "}
                <strong>{percent(worst.shares.kernel)} kernel</strong>
                {mainMode(worst.shares)}
              </>
            )}
            {held.average && (
              <span class="average-text">
                {" "}
                · average {percent(held.average.busy)} busy, {percent(held.average.kernel)} kernel
              </span>
            )}
          </span>
        )}
      </div>
      <div class="button-row">
        {worst && !filters.value.cpu.includes(only) && (
          <button
            type="button"
            class="button"
            onClick={() => setFilter("cpu", [only])}
            title="Show samples of this core only"
          >
            <Icon name="filter" /> Only core {only}
          </button>
        )}
        {span && (
          <button type="button" class="button" onClick={zoomToSelection} title="Zoom to the selection (Z)">
            <Icon name="search" /> Zoom
          </button>
        )}
        {span && !other && (
          <Menu label="Compare" title="Compare the selection with another time">
            <MenuPart title="Compare the selection with">
              <button type="button" class="button" onClick={compareWithBefore}>
                The same length before <kbd>b</kbd>
              </button>
              <button type="button" class="button" onClick={compareWithAfter}>
                The same length after
              </button>
            </MenuPart>
            <p class="faint">Any other time: hold Shift and drag over the axis.</p>
          </Menu>
        )}
        {other && (
          <button type="button" class="button" onClick={swap} title="Swap A and B (X)">
            <Icon name="swap" /> Swap
          </button>
        )}
        {other && (
          <button type="button" class="button" onClick={() => compareWith(null)}>
            End comparison
          </button>
        )}
        {span && (
          <button type="button" class="button" onClick={() => select(null)} title="Clear the selection (Esc)">
            <Icon name="close" /> Clear
          </button>
        )}
        {!span && (
          <span class="faint hint">
            drag: select · Ctrl + wheel: zoom · <kbd>?</kbd> more
          </span>
        )}
      </div>
    </div>
  );
}

function inWords(span: Span) {
  const cells = strip.value;
  if (!cells || !(length(span) > 0)) return null;
  return { worst: worstIn(cells, span), average: averageIn(cells, span) };
}

function spoken(span: Span): string {
  const offset = zoneOffset.value;
  const decimals = precision(length(span) < 5 ? span : view.value, plotWidth.value) && length(span) < 60 ? 1 : 0;
  return `${clock(span.from, offset, decimals)} – ${clock(span.to, offset, decimals)} (${duration(length(span))})`;
}

function mainMode(shares: Shares): string {
  const most = MODES.filter((mode) => mode !== "iowait").reduce((best, mode) =>
    shares[mode] > shares[best] ? mode : best,
  );
  return shares[most] >= 0.05 ? ` (${most} ${percent(shares[most])})` : "";
}
