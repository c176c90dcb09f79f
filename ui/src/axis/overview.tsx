/** Where the view lies in the whole recording; the thumb can be dragged. Shown when there is more than is seen. */

import { useRef } from "preact/hooks";
import { extent, incidents, selection, view } from "../state";
import { length, within } from "./axis";
import { look } from "./moves";

export function Overview() {
  const bar = useRef<HTMLDivElement>(null);
  const all = extent.value;
  const shown = view.value;
  if (!(length(all) > 0) || length(shown) >= length(all) * 0.999) return <div class="overview hidden" />;
  const share = (at: number): string => `${((at - all.from) / length(all)) * 100}%`;
  const drag = (event: PointerEvent): void => {
    const box = bar.current!.getBoundingClientRect();
    const at = all.from + ((event.clientX - box.left) / box.width) * length(all);
    look(within({ from: at - length(shown) / 2, to: at + length(shown) / 2 }, all));
  };
  return (
    <div
      class="overview"
      ref={bar}
      title="Where this is in the whole recording; drag to move"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        drag(event);
      }}
      onPointerMove={(event) => event.buttons && drag(event)}
    >
      {(incidents.value ?? []).map((one) => (
        <i
          key={one.id}
          class={`severity-${one.severity}`}
          style={{ left: share(one.from), width: `max(3px, ${((one.to - one.from) / length(all)) * 100}%)` }}
        />
      ))}
      {selection.value && (
        <i
          class="overview-chosen"
          style={{
            left: share(selection.value.from),
            width: `max(2px, ${(length(selection.value) / length(all)) * 100}%)`,
          }}
        />
      )}
      <b style={{ left: share(shown.from), width: `max(8px, ${(length(shown) / length(all)) * 100}%)` }} />
    </div>
  );
}
