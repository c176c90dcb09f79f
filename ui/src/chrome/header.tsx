/** Where one is, which recording it is of, and whether it is alive. */

import { useEffect, useState } from "preact/hooks";
import { source } from "../api/source";
import type { RecordingEntry } from "../api/types";
import { clock, duration, moment } from "../format";
import {
  connection,
  hasFleet,
  incidents,
  info,
  lost,
  type Page,
  page,
  rec,
  recordings,
  setTheme,
  type Theme,
  theme,
  zoneOffset,
} from "../state";
import { helpOpen, openRecording, paletteOpen } from "./commands";
import { Icon, type IconName } from "./icons";
import { Link } from "./link";
import { Share } from "./share";
import { NoPermission } from "./states";

const PLACES: { to: Page; name: string; icon: IconName; also?: Page }[] = [
  { to: "home", name: "Home", icon: "home" },
  { to: "node", name: "Node", icon: "node" },
  { to: "incidents", name: "Incidents", icon: "incidents", also: "incident" },
  { to: "cgroups", name: "Cgroups", icon: "cgroups" },
  { to: "audit", name: "Audit", icon: "audit" },
  { to: "fleet", name: "Fleet", icon: "fleet" },
];

export function Header() {
  return (
    <header class="header">
      <Link class="brand" to={{ page: "home" }} label="zombiescope, home" skipped>
        <Logo />
        <span>zombiescope</span>
      </Link>
      <nav aria-label="Pages">
        {PLACES.filter(({ to }) => to !== "fleet" || hasFleet.value).map(({ to, name, icon, also }) => {
          const here = !lost.value && (page.value === to || page.value === also);
          return (
            <Link key={to} to={{ page: to }} current={here}>
              <Icon name={icon} />
              {name}
              {to === "incidents" && <Count />}
            </Link>
          );
        })}
      </nav>
      <span class="stretch" />
      <MissingNote />
      <Connection />
      <Chooser />
      <Share />
      <button
        type="button"
        class="icon-button"
        aria-label="All commands"
        title="All commands (Ctrl K)"
        onClick={() => (paletteOpen.value = true)}
      >
        <Icon name="palette" />
      </button>
      <ThemeSwitch />
      <button
        type="button"
        class="icon-button"
        aria-label="Keys and mouse"
        title="Keys and mouse (?)"
        onClick={() => (helpOpen.value = true)}
      >
        <Icon name="help" />
      </button>
    </header>
  );
}

function Count() {
  const found = incidents.value;
  if (!found?.length) return null;
  const bad = found.some((one) => one.severity === "critical");
  return (
    <span class={`count ${bad ? "severity-critical" : "severity-warning"}`}>
      {found.length}
      <span class="hidden-text"> incidents</span>
    </span>
  );
}

/** The value of a picker entry that is not a recording of the list. */
const OPEN = "-";

function Chooser() {
  const all = recordings.value;
  const known = info.value;
  if (source().frozen || all.length === 0) return known ? <span class="node-name">{known.node}</span> : null;
  const chosen = rec.value || all[0]!.key;
  // A node of a fleet is in no list: the picker names what is open all the same.
  const isListed = all.some((one) => one.key === chosen && (!known || one.node === known.node || one.node === null));
  const here = isListed ? chosen : OPEN;
  return (
    <label class="chooser">
      <span class="hidden-text">Recording</span>
      <select
        value={here}
        title={all.find((one) => one.key === here)?.note ?? "Choose a recording"}
        onChange={(event) => openRecording(event.currentTarget.value)}
      >
        {!isListed && <option value={OPEN}>{known?.node ?? chosen.replace(/^fleet:/, "")}</option>}
        {all.map((one) => (
          <option key={one.key} value={one.key} title={one.note ?? ""}>
            {named(one, all)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Recordings of one node differ in where they lie and when they were made. */
function named(one: RecordingEntry, all: readonly RecordingEntry[]): string {
  const { title, node, place, from, gone } = one;
  const words = [title === node || !node ? title : `${title} · ${node}`];
  if (all.some((other) => other !== one && other.title === title))
    words.push(
      place?.replace(/\/+$/, "").replace(/^.*\//, "") ?? "",
      from ? moment(from, zoneOffset.value).slice(0, -3) : "",
    );
  if (gone) words.push("deleted or moved");
  return words.filter(Boolean).join(" · ");
}

/** The live stream in words; a lost one counts how long ago it was heard. */
function Connection() {
  const { state, why, since } = connection.value;
  const [, again] = useState(0);
  useEffect(() => {
    if (state !== "lost") return undefined;
    const timer = setInterval(() => again((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [state]);
  const known = info.value;
  if (source().frozen)
    return (
      <span class="connection frozen" title="This page was frozen into one file; it shows one window">
        frozen
      </span>
    );
  if (state === "none" || state === "ended")
    return known ? (
      <span class="connection ended" title={`The recording ended at ${clock(known.to, zoneOffset.value)}`}>
        recording ended {clock(known.to, zoneOffset.value).slice(0, 5)}
      </span>
    ) : null;
  if (state === "open")
    return (
      <span class="connection open" role="status">
        <i />
        recording
      </span>
    );
  if (state === "connecting")
    return (
      <span class="connection connecting" role="status">
        <i />
        connecting
      </span>
    );
  if (state === "denied")
    return (
      <span class="connection lost" role="alert" title={why}>
        <i />
        sign in again: open the address that zombiescope up prints
      </span>
    );
  return (
    <span class="connection lost" role="alert" title={`${why}; reconnecting`}>
      <i />
      connection lost {duration(Math.max(1, Math.round((Date.now() - since) / 1000)))} ago
    </span>
  );
}

function MissingNote() {
  const missing = info.value?.missing ?? [];
  if (!missing.length) return null;
  return (
    <details class="popover">
      <summary class="chip denied" title="What could not be recorded, and how to grant it">
        <Icon name="lock" size={12} />
        {missing.length} {missing.length === 1 ? "source" : "sources"} missing
      </summary>
      <div class="popover-body">
        <NoPermission missing={missing} small />
      </div>
    </details>
  );
}

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function ThemeSwitch() {
  const now = theme.value;
  const words = now === "system" ? "same as the system" : now;
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={`Colours: ${words}; switch to ${NEXT[now]}`}
      title={`Colours: ${words} (T)`}
      onClick={() => setTheme(NEXT[now])}
    >
      <Icon name={now} />
    </button>
  );
}

function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      {[2.5, 7, 16].map((y) => (
        <rect key={y} x="1" y={y - 1} width="18" height="2.4" rx="1" fill="var(--mode-user)" />
      ))}
      <rect x="1" y="10.5" width="18" height="2.4" rx="1" fill="var(--mode-user)" />
      <rect x="8" y="10.5" width="10" height="2.4" rx="1" fill="var(--mode-system)" />
    </svg>
  );
}
