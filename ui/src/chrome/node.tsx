/** The node: the time axis, and below it what the samples of the chosen time say. */

import { Timeline } from "../axis/timeline";

export function NodePage() {
  return (
    <div class="node-page">
      <Timeline />
    </div>
  );
}
