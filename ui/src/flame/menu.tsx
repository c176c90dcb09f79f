// The menu of a frame: everything that can be done with it, with the key that does it. By mouse or by keys alone.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
  readonly label: string;
  readonly key?: string;
  readonly act: () => void;
  /** A line above it. */
  readonly apart?: boolean;
}

export function Menu({
  x,
  y,
  title,
  items,
  onClose,
}: {
  x: number;
  y: number;
  title: string;
  items: readonly MenuItem[];
  onClose: () => void;
}) {
  const box = useRef<HTMLDivElement>(null),
    before = useRef<Element | null>(null);
  useLayoutEffect(() => {
    before.current = document.activeElement;
    const { width, height } = box.current!.getBoundingClientRect(),
      { style } = box.current!;
    style.left = `${Math.max(6, Math.min(x, innerWidth - width - 8))}px`;
    style.top = `${Math.max(6, Math.min(y, innerHeight - height - 8))}px`;
    box.current!.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [x, y]);
  useEffect(() => {
    const outside = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) onClose();
    };
    document.addEventListener("pointerdown", outside, true);
    return () => document.removeEventListener("pointerdown", outside, true);
  }, [onClose]);
  const close = (): void => {
    onClose();
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = [...box.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const go = (to: number): void => all[(to + all.length) % all.length]?.focus();
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(-1);
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="zs-menu" role="menu" aria-label={title} ref={box} onKeyDown={onKeyDown}>
      <div class="zs-menu-title">{title}</div>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={item.apart ? "zs-apart" : ""}
          onClick={() => {
            close();
            item.act();
          }}
        >
          <span>{item.label}</span>
          {item.key && <kbd>{item.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
