/** A layer above the page. The browser's own dialog keeps the focus inside and gives it back. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog({
  label,
  class: kind,
  close,
  children,
}: {
  label: string;
  class: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    <dialog
      ref={box}
      class={kind}
      aria-label={label}
      onClose={close}
      onClick={(event) => event.target === box.current && close()}
    >
      {children}
    </dialog>
  );
}
