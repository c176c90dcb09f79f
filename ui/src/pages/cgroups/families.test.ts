import { expect, it } from "vitest";
import { askedBy, familyFilters, familyName } from "./families";

const unknown = { comm: null, pid: null, unit: null, command: null, container: null, how: null };

it("filters a family by what its containers have in common", () => {
  const pod = {
    kind: "pod",
    name: "agent/main",
    namespace: "kube-system",
    image: "agent:3",
    requester: unknown,
  } as const;
  expect(familyFilters(pod)).toEqual({ pod: ["kube-system/agent*"] });
  expect(familyName(pod)).toBe("kube-system/agent/main");
  const loop = { ...pod, kind: "image", name: "ecs-agent:1.2", namespace: null, image: "ecs-agent:1.2" } as const;
  expect(familyFilters(loop)).toEqual({ image: ["ecs-agent:1.2"] });
  expect(familyFilters({ ...loop, kind: "name", name: "web" })).toEqual({ container: ["web"] });
});

it("names who asked for it, as far as that is known", () => {
  const family = { kind: "name", name: "web", namespace: null, image: null, requester: unknown } as const;
  expect(askedBy(family)).toBe("");
  expect(askedBy({ ...family, requester: { ...unknown, comm: "agent-loop" } })).toBe("agent-loop");
  expect(askedBy({ ...family, requester: { ...unknown, comm: "agent-loop", unit: "ecs.service" } })).toBe(
    "agent-loop (ecs.service)",
  );
});
