/** The way from a picture of hours to the second that matters. */

import { source } from "../api/source";
import { rec, view } from "../state";
import { stripOf, worstIn } from "../strip/cells";
import { strip } from "../strip/load";
import { select } from "./moves";

/** Selects the worst second in view. A column of the strip may be a minute wide; then it is looked into first. */
export async function selectWorst(): Promise<void> {
  const cells = strip.value;
  const found = cells && worstIn(cells, view.value);
  if (!found) return;
  const column = { from: found.at, to: found.at + cells.column_s };
  if (cells.column_s <= 1.5) return select(column);
  const columns = Math.ceil(cells.column_s);
  const inside = stripOf(await source().columns("strip", { rec: rec.value, ...column, columns }));
  const second = worstIn(inside, column);
  select(second ? { from: second.at, to: second.at + inside.column_s } : column);
}
