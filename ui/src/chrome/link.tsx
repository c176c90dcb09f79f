/** A link to a place: an address that can be copied and opened in a new tab, and otherwise a step inside the page. */

import type { ComponentChildren } from "preact";
import { leading, linkTo, navigate, type Place, type Target } from "../state";

interface Shown {
  class?: string;
  title?: string;
  label?: string;
  current?: boolean;
  /** Another link next to it leads to the same place: one stop of Tab is enough. */
  skipped?: boolean;
  children: ComponentChildren;
}

/** To what differs from here. */
export function Link({ to, ...shown }: Shown & { to: Partial<Place> }) {
  const follow = (event: MouseEvent): void => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
    document.getElementById("main")?.scrollTo(0, 0);
  };
  return (
    <a
      href={linkTo(to)}
      class={shown.class}
      title={shown.title}
      aria-label={shown.label}
      aria-current={shown.current ? "page" : undefined}
      tabIndex={shown.skipped ? -1 : undefined}
      onClick={follow}
    >
      {shown.children}
    </a>
  );
}

/** To what proves a statement: nothing of what the reader had chosen before stays. */
export function Go({ place, ...shown }: Shown & { place: Target }) {
  return <Link to={leading(place)} {...shown} />;
}
