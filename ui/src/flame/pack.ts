// A tree as the server sends it, for a page that is saved: FlameTree.from(decode(packedTree(tree))) is the same tree.

import { encode } from "../api/columns";
import { type FlameTree, NO_MODULE } from "./tree";

export function packedTree(tree: FlameTree): ArrayBuffer {
  const { functions } = tree;
  const names = new Numbers(),
    modules = new Numbers(),
    kinds = new Numbers();
  const used = functions.name.map((name, fn) => ({
    name: names.of(name),
    module: functions.module[fn] === null ? NO_MODULE : modules.of(functions.module[fn]!),
    kind: kinds.of(functions.kind[fn]!),
  }));
  const scalars = {
    schema: "zombiescope.flamegraph/1",
    total: tree.total,
    base_total: tree.base ? tree.baseTotal : null,
    scale: tree.base ? tree.scale : null,
    pruned: tree.pruned,
    names: names.all,
    modules: modules.all,
    kinds: kinds.all,
    total_recording_samples: tree.recordingSamples,
  };
  return encode(scalars, {
    name: Uint32Array.from(tree.fn, (fn) => used[fn]!.name),
    module: Uint32Array.from(tree.fn, (fn) => used[fn]!.module),
    kind: Uint8Array.from(tree.fn, (fn) => used[fn]!.kind),
    parent: tree.parent,
    depth: tree.depth,
    value: tree.value,
    self: tree.self,
    ...(tree.base && tree.baseSelf ? { base: tree.base, base_self: tree.baseSelf } : {}),
  });
}

class Numbers {
  readonly all: string[] = [];
  private known = new Map<string, number>();

  of(text: string): number {
    let number = this.known.get(text);
    if (number === undefined) {
      this.known.set(text, (number = this.all.length));
      this.all.push(text);
    }
    return number;
  }
}
