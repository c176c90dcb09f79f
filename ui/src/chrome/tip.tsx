/** The one tooltip. It follows the pointer, stays on the screen, and never takes a click. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Tip {
  x: number;
  y: number;
  content: ComponentChildren;
}

const tip = signal<Tip | null>(null);

export function showTip(x: number, y: number, content: ComponentChildren): void {
  tip.value = { x, y, content };
}

export function hideTip(): void {
  tip.value = null;
}

/** Next to the element itself, for keyboard users. */
export function tipAt(element: Element, content: ComponentChildren): void {
  const box = element.getBoundingClientRect();
  showTip(box.left + box.width / 2, box.bottom, content);
}

const APART = 14;

export function TipLayer() {
  const box = useRef<HTMLDivElement>(null);
  const shown = tip.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !shown) return;
    const { width, height } = element.getBoundingClientRect();
    const left = shown.x + APART + width > innerWidth - 8 ? Math.max(8, shown.x - APART - width) : shown.x + APART;
    const top = shown.y + APART + height > innerHeight - 8 ? Math.max(8, shown.y - APART - height) : shown.y + APART;
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }, [shown]);
  return shown ? (
    <div class="tip" ref={box} role="tooltip">
      {shown.content}
    </div>
  ) : null;
}
