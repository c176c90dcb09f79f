/** What happened, as buttons on the axis: an icon each, or a number where they would lie on each other. */

import { rank, worse } from "../api/severity";
import type { TimelineEvent } from "../api/types";
import { clusters, toX } from "../axis/axis";
import { plotWidth, select } from "../axis/moves";
import { Icon } from "../chrome/icons";
import { hideTip, showTip, tipAt } from "../chrome/tip";
import { clock, count, duration } from "../format";
import { view, zoneOffset } from "../state";
import { iconOf, kindWords, leader } from "./kinds";
import { areLoaded, lanes } from "./load";

const APART_PX = 20;
const SAID = 6;

export function Events() {
  const width = plotWidth.value;
  const shown = view.value;
  const events = (lanes.value?.events ?? []).filter((one) => one.at >= shown.from && one.at <= shown.to);
  const found = clusters(events, (one) => toX(shown, width, one.at), APART_PX);
  return (
    <div class="events" role="group" aria-label="Events">
      {found.map(({ x, items }) => (
        <EventButton key={`${items[0]!.at} ${items[0]!.text}`} x={x} items={items} />
      ))}
      {!!lanes.value?.events_left_off && (
        <span class="lane-note left-off">
          {count(lanes.value.events_left_off)} minor or earlier events are not shown: zoom in
        </span>
      )}
      {lanes.value !== null && found.length === 0 && (
        <span class="lane-note">{areLoaded() ? "no events in view" : "not loaded"}</span>
      )}
    </div>
  );
}

function EventButton({ x, items }: { x: number; items: TimelineEvent[] }) {
  const first = leader(items);
  const severity = items.reduce((worst, one) => worse(worst, one.severity), first.severity);
  const label =
    items.length === 1
      ? `${kindWords(first.kind)} at ${said(first.at)}: ${first.text}`
      : `${items.length} events, worst: ${kindWords(first.kind)} at ${said(first.at)}: ${first.text}`;
  const tip = <EventsTip items={items} />;
  const around = (): void => {
    const from = items[0]!.at;
    const to = items[items.length - 1]!.at;
    select({ from: from - 2, to: to + 2 });
  };
  return (
    <button
      type="button"
      class={`event severity-${severity}`}
      style={{ transform: `translateX(${Math.round(x - 9)}px)` }}
      aria-label={label}
      onClick={around}
      onPointerMove={(pointer) => showTip(pointer.clientX, pointer.clientY, tip)}
      onPointerLeave={hideTip}
      onFocus={(focus) => tipAt(focus.currentTarget, tip)}
      onBlur={hideTip}
    >
      <Icon name={iconOf(first)} size={13} />
      {items.length > 1 && <span class="event-count">{items.length > 99 ? "99+" : items.length}</span>}
    </button>
  );
}

function EventsTip({ items }: { items: TimelineEvent[] }) {
  const worst = [...items].sort((a, b) => rank(a.severity) - rank(b.severity)).slice(0, SAID);
  return (
    <div class="tip-events">
      {worst.map((one) => (
        <div class={`tip-event severity-${one.severity}`} key={`${one.at}${one.text}`}>
          <Icon name={iconOf(one)} size={13} />
          <span class="tip-time">{said(one.at)}</span>
          <span>
            <strong>{kindWords(one.kind)}</strong> {one.text}
          </span>
        </div>
      ))}
      {items.length > SAID && (
        <div class="faint">
          and {items.length - SAID} more within {duration(items[items.length - 1]!.at - items[0]!.at)}
        </div>
      )}
      <div class="faint">click: select the seconds around it</div>
    </div>
  );
}

const said = (at: number): string => clock(at, zoneOffset.value, 1);
