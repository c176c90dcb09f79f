// The clock that pages speak: that of the recorded node.

import { computed } from "@preact/signals";
import { extent, info } from "../state";

export const zoneOffset = computed(() => info.value?.zone_offset_s ?? 0);

/** What was recorded, for links that must not lead outside of it; null until it is known. */
export const recorded = computed(() => (info.value ? extent.value : null));
