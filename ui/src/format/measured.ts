import { percent } from "./number";
import { duration } from "./time";

/** A measured value with its unit; null where nothing was measured. */
export function measured(value: number | string | null | undefined, unit: string | null): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (unit === "ratio") return percent(value);
  if (unit === "s" || unit === "us") return duration(unit === "s" ? value : value / 1e6);
  const digits = value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) >= 100 ? 0 : 2 });
  return unit ? `${digits} ${unit}` : digits;
}
