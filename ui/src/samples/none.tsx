/** Shown instead of samples, when there are none. */

import type { Span } from "../api/types";
import { lanes } from "../lanes/load";
import { extent, filters, info, NO_FILTERS, navigate, zoneOffset } from "../state";
import { busyThroughout } from "../strip/cells";
import { strip } from "../strip/load";
import { emptiness } from "./emptiness";

export function NoSamples({ span }: { span: Span }) {
  const cells = strip.value;
  const { kind, words } = emptiness({
    span,
    node: info.value?.node ?? "",
    recorded: extent.value,
    gaps: [...(info.value?.gaps ?? []), ...(lanes.value?.gaps ?? [])],
    filters: filters.value,
    // For an import without counters the strip is made of the samples and adds no measurement.
    busy: cells && info.value?.tables.cores ? busyThroughout(cells, span) : null,
    zone: zoneOffset.value,
  });
  return (
    <>
      {words}
      {kind === "filtered" && (
        <>
          {" "}
          <button type="button" onClick={() => navigate({ filters: NO_FILTERS })}>
            Remove the filters
          </button>
        </>
      )}
    </>
  );
}
