/** A family of containers in words, and the filters that show its stacks. Pure. */

import type { ContainerFamily } from "../../api/types";
import type { Filters } from "../../state";

type Named = Pick<ContainerFamily, "kind" | "name" | "namespace" | "image" | "requester">;

export function familyName(family: Named): string {
  return family.namespace ? `${family.namespace}/${family.name}` : family.name;
}

/** Who ran the client, and in which unit. */
export function askedBy(family: Named): string {
  const { comm, unit } = family.requester;
  return comm && unit ? `${comm} (${unit})` : (comm ?? unit ?? "");
}

/** A controller adds a suffix to the name of a pod; a loop gives another name each time. */
export function familyFilters(family: Named): Partial<Filters> {
  if (family.kind === "pod") {
    const owner = family.name.split("/")[0]!;
    return { pod: [family.namespace ? `${family.namespace}/${owner}*` : `${owner}*`] };
  }
  if (family.kind === "image" && family.image) return { image: [family.image] };
  return { container: [family.name] };
}
