/** All keys, and what the mouse does. */

import { FLAME_KEYS, HEAT_KEYS } from "../flame";
import { COMMANDS, helpOpen } from "./commands";
import { Dialog } from "./dialog";
import { shown } from "./keys";

const MOUSE: [string, string][] = [
  ["drag over the axis or the heat map", "select a range, for every view"],
  ["shift or ctrl + drag", "compare the selection with this range"],
  ["drag an edge of the selection", "adjust it"],
  ["click on the axis", "select one column of time"],
  ["double-click", "zoom to the selection"],
  ["ctrl + wheel, or pinch", "zoom where the pointer is"],
  ["wheel", "scroll the lanes"],
  ["shift + wheel, or sideways", "move along"],
  ["click a frame", "zoom the flame graph to it"],
];

function Words({ title, rows }: { title: string; rows: readonly (readonly [string, string])[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl class="mouse">
        {rows.map(([hand, does]) => (
          <div key={hand}>
            <dt>{hand}</dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help() {
  if (!helpOpen.value) return null;
  const groups = [...new Set(COMMANDS.map((one) => one.group))];
  const close = (): void => void (helpOpen.value = false);
  return (
    <Dialog label="Keys and mouse" class="help" close={close}>
      <header>
        <h2>Keys and mouse</h2>
        <button type="button" class="button" onClick={close}>
          Close <kbd>Esc</kbd>
        </button>
      </header>
      <div class="help-columns">
        {groups.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {COMMANDS.filter((one) => one.group === group && one.keys).map((one) => (
                <div key={one.title}>
                  <dt>
                    {one.keys!.slice(0, 3).map((keys, n) => (
                      <span key={keys}>
                        {n > 0 && <i> or </i>}
                        {shown(keys).map((key) => (
                          <kbd key={key}>{key}</kbd>
                        ))}
                      </span>
                    ))}
                  </dt>
                  <dd>{one.title}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <Words title="Mouse" rows={MOUSE} />
        <Words title="While the flame graph has the focus" rows={FLAME_KEYS} />
        <Words title="While the heat map has the focus" rows={HEAT_KEYS} />
      </div>
    </Dialog>
  );
}
