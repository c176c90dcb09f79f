// What a page that was frozen into a file must say of itself: which samples it holds, and which not.

import { useEffect, useState } from "preact/hooks";
import { FrozenSource } from "../../api/frozen";
import { source } from "../../api/source";
import { clock } from "../../format";
import { recorded, zoneOffset } from "../../state";

export function FrozenNote() {
  const [said, say] = useState<string | null>(null);
  const window = recorded.value;
  useEffect(() => {
    const from = source();
    if (from instanceof FrozenSource && window)
      void from.caveats(window, (at) => clock(at, zoneOffset.value)).then(say);
  }, [window]);
  return said ? (
    <p class="pg-note pg-frozen" role="note">
      {said}
    </p>
  ) : null;
}
