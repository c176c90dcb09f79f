/** The node: the time axis, and below it what the samples of the chosen time say. */

import { useEffect } from "preact/hooks";
import { Timeline } from "../axis/timeline";
import { FrozenNote } from "../pages";
import { Flames } from "../samples/flames";
import { Heat } from "../samples/heat";
import { settle } from "../samples/span";
import { info } from "../state";

const FLAME_PX = 480;

export function NodePage() {
  useEffect(settle, []);
  return (
    <div class="node-page">
      <h1 class="hidden-text">{info.value?.node}: cores, events and samples over time</h1>
      <Timeline />
      <section class="samples" aria-label="Samples of the chosen time">
        <FrozenNote />
        <Heat />
        <Flames height={FLAME_PX} />
      </section>
    </div>
  );
}
