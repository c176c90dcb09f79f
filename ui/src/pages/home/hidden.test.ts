import { expect, it } from "vitest";
import { hiddenWords } from "./hidden";

const hidden = { average_busy: 0.318, average_kernel: 0.11, core: 39, core_kernel: 1, seconds: 6, at: 0 };

it("says what a dashboard shows only where it shows calm", () => {
  expect(hiddenWords(hidden)).toBe("For 6 s a dashboard of averages shows 32% busy and nothing wrong.");
  const busy = hiddenWords({ ...hidden, average_busy: 1, average_kernel: 0.4, core: 1, core_kernel: 0.8 });
  expect(busy).toBe(
    "For 6 s all cores were 100% busy on average; core 1 spent 2 times as long in the kernel as the average core.",
  );
  expect(busy).not.toContain("nothing wrong");
});
