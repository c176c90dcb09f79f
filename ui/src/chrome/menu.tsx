/** A button that opens a small panel below it; Escape, or a hand elsewhere, closes it. */

import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icons";

interface MenuSays {
  label: string;
  title?: string;
  icon?: IconName;
  class?: string;
  children: ComponentChildren;
}

export function Menu({ label, title, icon, class: name = "", children }: MenuSays) {
  return (
    <details
      class="popover"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !event.currentTarget.open) return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
        event.stopPropagation();
        event.preventDefault();
      }}
    >
      <summary class="button" title={title ?? label}>
        {icon && <Icon name={icon} />} {label} <span aria-hidden="true">▾</span>
      </summary>
      <div class={`popover-body menu ${name}`}>{children}</div>
    </details>
  );
}

/** A heading and its controls. */
export function MenuPart({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="menu-part" role="group" aria-label={title}>
      <h3>{title}</h3>
      <div>{children}</div>
    </section>
  );
}

/** Arrow keys go from one to the next of a group that is a single stop of Tab. Put on its element as onKeyDown. */
export function roving(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const all = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab], [role=radio]")];
  const here = all.indexOf(event.target as HTMLElement);
  if (by === undefined || here < 0) return;
  const next = all[(here + by + all.length) % all.length]!;
  next.focus();
  next.click();
  event.preventDefault();
  event.stopPropagation();
}
