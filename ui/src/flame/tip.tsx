// What appears next to the pointer. It never leaves the window and never catches the pointer.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Facts } from "./words";

export function Tip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { width, height } = box.current!.getBoundingClientRect(),
      { style } = box.current!;
    style.left = `${Math.max(6, Math.min(x + 14, innerWidth - width - 10))}px`;
    style.top = `${y + 20 + height > innerHeight ? Math.max(6, y - height - 12) : y + 20}px`;
  });
  return (
    <div class="zs-tip" role="tooltip" ref={box}>
      {children}
    </div>
  );
}

export function FactsTip({ facts, hint }: { facts: Facts; hint?: string }) {
  return (
    <>
      <div class="zs-tip-name">{facts.name}</div>
      {facts.place && <div class="zs-tip-place">{facts.place}</div>}
      <dl>
        {facts.lines.map(([label, text]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {hint && <div class="zs-tip-hint">{hint}</div>}
    </>
  );
}
