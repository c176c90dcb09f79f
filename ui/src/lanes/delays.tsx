/** Who waited for a core: a row for each of the cores most waited for, a bar for each long wait. */

import type { DelayLane, LongWait } from "../api/types";
import { cut, toX } from "../axis/axis";
import { plotWidth } from "../axis/moves";
import { hideTip, showTip, tipAt } from "../chrome/tip";
import { clock } from "../format";
import { view, zoneOffset } from "../state";
import { byCore, type CoreWaits, waitWords } from "./core-waits";
import { areLoaded, lanes } from "./load";
import { Row, type TipRow } from "./row";

const LEAST_PX = 2;

export function DelayRows() {
  const found = lanes.value?.delays;
  const cores = found ? byCore(found) : [];
  if (!found || !cores.length)
    return (
      <Row label="Delays" class="chart-row delay-row flat" height={14} blind={/^schedule/}>
        <span class="lane-note">
          {!areLoaded()
            ? "not loaded"
            : found?.too_many
              ? "zoom in to see who waited for a core"
              : found?.known.length
                ? "no long wait in view"
                : "no snapshot of the schedule in view"}
        </span>
      </Row>
    );
  return (
    <>
      {cores.map((core) => (
        <Row
          key={core.cpu}
          label={`Delays on core ${core.cpu}`}
          class="chart-row delay-row"
          height={16}
          blind={/^schedule/}
        >
          <Bars core={core} known={found.known.filter((one) => one.cpu === core.cpu)} />
        </Row>
      ))}
    </>
  );
}

function Bars({ core, known }: { core: CoreWaits; known: DelayLane["known"] }) {
  const width = plotWidth.value;
  const shown = view.value;
  const place = (span: { from: number; to: number }) => {
    const inside = cut(span, shown);
    if (!inside) return null;
    const left = toX(shown, width, inside.from);
    const wide = Math.max(LEAST_PX, toX(shown, width, inside.to) - left);
    return { transform: `translateX(${left}px)`, width: `${wide}px` };
  };
  return (
    <div class="delay-bars" role="group" aria-label={`Waits for core ${core.cpu}`}>
      {known.map((span) => {
        const style = place(span);
        return style && <div key={`known ${span.from}`} class="delay-known" style={style} aria-hidden="true" />;
      })}
      {core.waits.map((one) => {
        const style = place(one);
        const tip = <WaitTip wait={one} />;
        return (
          style && (
            <div
              key={`${one.from} ${one.victim}`}
              class="delay-bar"
              style={style}
              role="img"
              aria-label={waitWords(one)}
              onPointerMove={(pointer) => showTip(pointer.clientX, pointer.clientY, tip)}
              onPointerLeave={hideTip}
              onFocus={(focus) => tipAt(focus.currentTarget, tip)}
              onBlur={hideTip}
            />
          )
        );
      })}
    </div>
  );
}

function WaitTip({ wait }: { wait: LongWait }) {
  const offset = zoneOffset.value;
  return (
    <div class="tip-wide">
      <strong>{waitWords(wait)}</strong>
      <div class="faint">
        {clock(wait.from, offset)} – {clock(wait.to, offset)} · measured
      </div>
    </div>
  );
}

export function delayTips(at: number): TipRow[] {
  const found = lanes.value?.delays;
  const here = (found?.waits ?? []).filter((one) => one.from <= at && at < one.to);
  return here
    .slice(0, 3)
    .map((one) => [`${one.victim} waits for core ${one.cpu}`, "var(--bad)", one.by ?? "not known"] as const);
}
