// A window of x that glides to where it shall be, so that the eye follows a zoom; at once for readers who want no motion.

import { useEffect, useRef, useState } from "preact/hooks";
import { between, type Extent } from "./layout";

const GLIDE_MS = 160;

/** What is seen now, and the two ways to change it. A new `start` (another picture) is shown at once. */
export function useGlide(start: Extent): {
  view: Extent;
  moving: boolean;
  glide: (to: Extent) => void;
  jump: (to: Extent) => void;
} {
  const [view, setView] = useState(start);
  const [moving, setMoving] = useState(false);
  const frame = useRef(0),
    shown = useRef(view);
  shown.current = view;
  const stop = (): void => {
    cancelAnimationFrame(frame.current);
    setMoving(false);
  };
  const jump = (to: Extent): void => {
    stop();
    setView(to);
  };
  const glide = (to: Extent): void => {
    stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return setView(to);
    const from = shown.current,
      began = performance.now();
    if (from.x0 === to.x0 && from.x1 === to.x1) return setView(to);
    const step = (now: number): void => {
      const part = Math.min(1, (now - began) / GLIDE_MS);
      setView(between(from, to, part));
      setMoving(part < 1);
      if (part < 1) frame.current = requestAnimationFrame(step);
    };
    frame.current = requestAnimationFrame(step);
  };
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return { view, moving, glide, jump };
}
