// A canvas of bars that can be pointed at, panned and scrolled. It knows rectangles, not trees: the flame graph and the
// chart say what a bar means. What moves with the pointer (outlines, tooltip) are elements over the canvas, so that moving
// the pointer draws nothing again.

import type { ComponentChildren, CSSProperties } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { FRAME_INK, packed, parsed, type Theme } from "./colours";
import { type Extent, hit, panned, zoomed } from "./layout";
import { BarPainter, type Look, levelAt, ROW, rowOf, type Scene } from "./paint";
import { Tip } from "./tip";

export interface BarCanvasProps extends Scene {
  readonly whole: Extent;
  readonly theme: Theme;
  /** The bar that keys act on. */
  readonly cursor: number | null;
  readonly maxHeight: number;
  /** Whether the view is under way to another one. */
  readonly moving: boolean;
  /** Description of the picture for screen readers. */
  readonly label: (bar: number) => string;
  readonly description: string;
  readonly roleName: string;
  readonly levelOf: (bar: number) => number;
  readonly tip: (bar: number) => ComponentChildren;
  readonly onPick: (bar: number | null, event: MouseEvent) => void;
  readonly onMenu: (bar: number, x: number, y: number) => void;
  readonly onView: (view: Extent) => void;
  readonly onKey: (event: KeyboardEvent) => void;
  readonly onWidth?: (width: number) => void;
  readonly axis?: ComponentChildren;
}

const DRAGGED_PX = 4;

export function BarCanvas(props: BarCanvasProps) {
  const { view, whole, levels, cursor, flip } = props;
  const scroller = useRef<HTMLDivElement>(null),
    canvas = useRef<HTMLCanvasElement>(null),
    painter = useRef<BarPainter | null>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const [over, setOver] = useState<{ bar: number; x: number; y: number } | null>(null);
  const drag = useRef<{ x: number; view: Extent; moved: boolean } | null>(null);
  const tall = Math.max(1, levels) * ROW,
    height = Math.min(tall, props.maxHeight);
  const look = useLook(scroller, props.theme, width);

  useLayoutEffect(() => {
    const box = scroller.current!;
    const measure = (): void => {
      setWidth(box.clientWidth);
      props.onWidth?.(box.clientWidth);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  // The root stays in sight when a flame grows or shrinks upwards.
  useLayoutEffect(() => {
    if (flip) scroller.current!.scrollTop = tall;
    setTop(scroller.current!.scrollTop);
  }, [flip, tall, height]);

  useLayoutEffect(() => {
    if (!canvas.current || !look || width < 1) return;
    painter.current ??= new BarPainter(canvas.current);
    const started = performance.now();
    const drawn = painter.current.draw(props, look, {
      width,
      height,
      top,
      density: window.devicePixelRatio || 1,
      moving: props.moving,
    });
    canvas.current.dataset.frames = String(drawn.frames);
    canvas.current.dataset.ms = (performance.now() - started).toFixed(2);
  }, [
    props.bars,
    props.colours,
    props.matches,
    props.fades,
    view,
    props.dimmed,
    props.firstLevel,
    levels,
    flip,
    look,
    width,
    height,
    top,
    props.label,
    props.moving,
  ]);

  useEffect(() => {
    if (cursor === null) return;
    const box = scroller.current!,
      y = rowOf(props, props.levelOf(cursor)) * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW > box.scrollTop + height) box.scrollTop = y + ROW - height;
  }, [cursor, height]);

  useEffect(() => {
    const box = scroller.current!;
    // Not passive: a zoom with the wheel must not scroll the page as well.
    const wheel = (event: WheelEvent): void => {
      const zooms = event.ctrlKey || event.metaKey || event.altKey;
      const side = event.shiftKey ? event.deltaY : event.deltaX;
      if (!zooms && Math.abs(side) < Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      const { view, whole, onView } = latest.current,
        span = view.x1 - view.x0;
      if (zooms)
        onView(zoomed(view, whole, view.x0 + (offsetX(event) / box.clientWidth) * span, 1.0025 ** event.deltaY));
      else onView(panned(view, whole, (side / box.clientWidth) * span));
    };
    const offsetX = (event: MouseEvent): number => event.clientX - box.getBoundingClientRect().left;
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  }, []);
  const latest = useRef(props);
  latest.current = props;

  const barAt = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    const x = view.x0 + ((event.clientX - box.left) / Math.max(1, width)) * (view.x1 - view.x0);
    return hit(props.bars, levelAt(props, event.clientY - box.top + top), x);
  };

  const onPointerMove = (event: PointerEvent): void => {
    const from = drag.current;
    if (from && event.buttons & 1) {
      const moved = event.clientX - from.x;
      if (from.moved || Math.abs(moved) > DRAGGED_PX) {
        from.moved = true;
        setOver(null);
        props.onView(panned(from.view, whole, (-moved / width) * (from.view.x1 - from.view.x0)));
      }
      return;
    }
    const bar = barAt(event);
    setOver(bar < 0 ? null : { bar, x: event.clientX, y: event.clientY });
  };

  const onClick = (event: MouseEvent): void => {
    const dragged = drag.current?.moved;
    drag.current = null;
    if (dragged) return;
    const bar = barAt(event);
    props.onPick(bar < 0 ? null : bar, event);
  };

  const onContextMenu = (event: MouseEvent): void => {
    const bar = barAt(event);
    if (bar < 0) return;
    event.preventDefault();
    setOver(null);
    props.onMenu(bar, event.clientX, event.clientY);
  };

  return (
    <div class="zs-bars">
      {props.axis}
      <div
        class="zs-bars-scroll"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-roledescription={props.roleName}
        aria-label={props.description}
        style={{ height: `${height}px` }}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={props.onKey}
      >
        <div class="zs-bars-room" style={{ height: `${tall}px` }}>
          <canvas
            ref={canvas}
            aria-hidden="true"
            style={{ width: `${width}px`, height: `${height}px` }}
            onPointerDown={(event) => {
              if (event.button === 0) drag.current = { x: event.clientX, view, moved: false };
            }}
            onPointerMove={onPointerMove}
            onPointerLeave={() => setOver(null)}
            onClick={onClick}
            onContextMenu={onContextMenu}
          />
          {cursor !== null && <div class="zs-bar-cursor" style={outline(props, cursor, width)} />}
          {over && over.bar < props.bars.fn.length && (
            <div class="zs-bar-over" style={outline(props, over.bar, width)} />
          )}
        </div>
      </div>
      {over && over.bar < props.bars.fn.length && (
        <Tip x={over.x} y={over.y}>
          {props.tip(over.bar)}
        </Tip>
      )}
    </div>
  );
}

function outline(scene: BarCanvasProps, bar: number, width: number): CSSProperties {
  const { view, bars } = scene,
    scale = width / (view.x1 - view.x0);
  const x = Math.max(0, (bars.left[bar]! - view.x0) * scale),
    x1 = Math.min(width, (bars.right[bar]! - view.x0) * scale);
  if (x1 < 0 || x > width) return { display: "none" };
  return {
    left: `${x}px`,
    top: `${rowOf(scene, scene.levelOf(bar)) * ROW}px`,
    width: `${Math.max(2, x1 - x)}px`,
    height: `${ROW - 1}px`,
  };
}

function useLook(element: { current: HTMLElement | null }, theme: Theme, width: number): Look | null {
  return useMemo(() => {
    if (!element.current) return null;
    const style = getComputedStyle(element.current);
    const colour = (name: string, otherwise: string): string => style.getPropertyValue(name).trim() || otherwise;
    return {
      ground: packed(parsed(colour("--ground", theme === "dark" ? "#121418" : "#ffffff"))),
      narrow: packed(parsed(colour("--line-strong", "#b5bac2"))),
      match: packed(parsed(colour("--paint", "#9c1fb8"))),
      ink: FRAME_INK,
      faintInk: theme === "dark" ? "#f2f4f7" : "#14171b",
      matchInk: theme === "dark" ? "#14171b" : "#ffffff",
    };
  }, [theme, width > 0]);
}
