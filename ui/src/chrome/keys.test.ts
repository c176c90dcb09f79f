import { beforeAll, describe, expect, it, vi } from "vitest";

// The list of commands reads the state, which reads the theme of a browser.
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("document", { documentElement: { dataset: {} }, getElementById: () => null });

let keys: typeof import("./keys");
let commands: typeof import("./commands");
beforeAll(async () => {
  keys = await import("./keys");
  commands = await import("./commands");
});

const press = (key: string, more: Partial<KeyboardEvent> = {}): string =>
  keys.written({ key, ...more } as KeyboardEvent);

describe("keys", () => {
  it("are written as the list writes them", () => {
    expect(press("ArrowLeft")).toBe("arrowleft");
    expect(press("k", { ctrlKey: true })).toBe("ctrl+k");
    expect(press("?", { shiftKey: true })).toBe("?");
    expect(press("F", { shiftKey: true })).toBe("shift+f");
    expect(press("ArrowLeft", { shiftKey: true })).toBe("shift+arrowleft");
  });

  it("each mean one thing", () => {
    const all = commands.COMMANDS.flatMap((one) => (one.keys ?? []).map((key) => key.toLowerCase()));
    expect(all.filter((key, n) => all.indexOf(key) !== n)).toEqual([]);
  });

  it("find their command, also after a first key", () => {
    expect(keys.commandFor("i", "g")!.title).toBe("Incidents");
    expect(keys.commandFor("?", "")!.title).toBe("Keys");
    expect(keys.commandFor("%", "")).toBeUndefined();
  });

  it("are shown as they stand on the keyboard", () => {
    expect(keys.shown("ctrl+k")).toEqual(["Ctrl", "k"]);
    expect(keys.shown("g h")).toEqual(["g", "h"]);
    expect(keys.shown("+")).toEqual(["+"]);
    expect(keys.shown("ArrowLeft")).toEqual(["←"]);
  });
});
