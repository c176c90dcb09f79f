/** A bar between two panes: dragged, or moved with the arrow keys; a double click or Enter shares the room out as fits. */

import { useRef } from "preact/hooks";

const STEP_PX = 16;

export function Splitter(props: {
  label: string;
  /** Of the pane above it, in pixels. */
  value: number;
  onChange: (pixels: number | null) => void;
}) {
  const drag = useRef<{ y: number; value: number } | null>(null);
  return (
    <div
      class="splitter"
      role="separator"
      aria-orientation="horizontal"
      aria-label={props.label}
      aria-valuenow={props.value}
      aria-valuemin={0}
      tabIndex={0}
      title={`${props.label}: drag, or double-click to let it fit`}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        drag.current = { y: event.clientY, value: props.value };
      }}
      onPointerMove={(event) => {
        if (drag.current) props.onChange(Math.max(1, drag.current.value + event.clientY - drag.current.y));
      }}
      onPointerUp={() => (drag.current = null)}
      onPointerCancel={() => (drag.current = null)}
      onDblClick={() => props.onChange(null)}
      onKeyDown={(event) => {
        const step = { ArrowUp: -STEP_PX, ArrowDown: STEP_PX }[event.key];
        if (step !== undefined) props.onChange(Math.max(1, props.value + step));
        else if (event.key === "Enter") props.onChange(null);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}
