/** What every view needs to know of the recording that is shown: fetched when it changes, kept fresh while it is live. */

import { batch, effect, signal } from "@preact/signals";
import { AnswerError, source } from "../api/source";
import type { Incident, IncidentNote, RecordingList, Tick, TimelineEvent } from "../api/types";
import { outdated } from "../lanes/incident-spans";
import { after, type Connection, refused } from "./connection";
import { heard, watchServer } from "./server";
import {
  catchUp,
  current,
  FOUNDING,
  following,
  hasFleet,
  info,
  linked,
  newest,
  opensAnywhere,
  rec,
  recordings,
  replace,
  tail,
} from "./state";

export const incidents = signal<Incident[] | null>(null);
export const incidentsTrouble = signal<AnswerError | null>(null);
/** Why the recording cannot be shown, if so. */
export const trouble = signal<AnswerError | null>(null);
/** The node that the link is of, where this server has no recording of it. */
export const foreign = signal("");
export const connection = signal<Connection>({ state: "none", why: "", since: 0 });
export const lastTick = signal<Tick | null>(null);
export const lastEvent = signal<TimelineEvent | null>(null);
export const noticed = signal<IncidentNote[] | null>(null);
/** Grows when what was fetched may be out of date: after a broken connection, or when asked to look again. */
export const fresh = signal(0);

const RETRY_MS = 2000;

/** Of a boot's id in a link: enough to tell machines of one name apart. */
const BOOT_DIGITS = 8;
/** Recordings of the node that the link names, but not of its boot. */
const looked = new Set<string>();
const hasBoot = (boots: readonly string[], wanted: string): boolean =>
  !wanted || !boots.length || boots.some((boot) => boot.startsWith(wanted));

/** The founding case is always offered, but the page does not open on it. */
const isFleetOnly = ({ fleet, recordings: all }: RecordingList): boolean =>
  !!fleet && all.every((one) => one.key === FOUNDING);

const MANY = 5_000_000;
const PICTURES_FIRST_MS = 2000;

export function refresh(): void {
  fresh.value++;
}

/** Keeps `info`, `incidents` and the live stream those of the recording in the address. */
export function watchRecording(): void {
  watchServer(refresh);
  effect(() => {
    const key = rec.value;
    fresh.value;
    const stop = new AbortController();
    noticed.value = null;
    void load(key, stop);
    return () => stop.abort();
  });
}

async function load(key: string, stop: AbortController): Promise<void> {
  const { signal: stopped } = stop;
  try {
    const wanted = source().json("info", { rec: key }, stopped).catch(AnswerError.of);
    const known = await source().json("recordings", {}, stopped);
    const found = await wanted;
    if (stopped.aborted) return;
    batch(() => {
      recordings.value = known.recordings;
      hasFleet.value = known.fleet ?? false;
    });
    if (isFleetOnly(known) && opensAnywhere()) replace({ page: "fleet" });
    const node = linked.value;
    const { boot } = current();
    const isAnother =
      found instanceof AnswerError ? found.status === 404 : found.node !== node || !hasBoot(found.boots, boot);
    foreign.value = "";
    if (node && isAnother) {
      looked.add(key);
      const at = current().selection ?? current().view;
      const same = known.recordings.filter((one) => one.node === node && !looked.has(one.key) && one.key !== key);
      const best = same.find((one) => at && one.from! < at.to && at.from < one.to!) ?? same[0];
      if (best) replace({ rec: best.key, node, boot });
      else {
        looked.clear();
        foreign.value = known.recordings.some((one) => one.node === node) ? `another boot of ${node}` : node;
      }
      return;
    }
    looked.clear();
    if (found instanceof AnswerError) throw found;
    batch(() => {
      if (!source().frozen) replace({ node: found.node, boot: (found.boots.at(-1) ?? "").slice(0, BOOT_DIGITS) });
      if (info.value?.node !== found.node || info.value?.from !== found.from) tail.value = newest.value = 0;
      const place = current();
      if (info.value === null && found.live && !place.view && !place.selection) following.value = true;
      if (!found.live) following.value = false;
      info.value = found;
      trouble.value = null;
    });
    if (found.live) listen(key, stopped);
    else connection.value = { state: "none", why: "", since: Date.now() };
    // Diagnosing much takes the server seconds, which the first pictures then lack.
    if ((found.samples ?? 0) > MANY) await new Promise((go) => setTimeout(go, PICTURES_FIRST_MS));
    if (!stopped.aborted) await diagnose(key, stopped);
  } catch (error) {
    if (stopped.aborted) return;
    trouble.value = AnswerError.of(error);
    heard(trouble.value);
    if (connection.value.state !== "none") connection.value = refused(connection.value, trouble.value, Date.now());
    if (trouble.value.status >= 502) setTimeout(() => stopped.aborted || refresh(), RETRY_MS);
  }
}

async function diagnose(key: string, stopped: AbortSignal, again = true): Promise<void> {
  try {
    const found = await source().json("incidents", { rec: key }, stopped);
    batch(() => {
      incidents.value = found.incidents;
      incidentsTrouble.value = null;
    });
    // Something may have come while this was on its way.
    if (again && noticed.value && outdated(found.incidents, noticed.value)) {
      setTimeout(() => stopped.aborted || void diagnose(key, stopped, false), RETRY_MS);
    }
  } catch (error) {
    if (!stopped.aborted) incidentsTrouble.value = AnswerError.of(error);
  }
}

function listen(key: string, stopped: AbortSignal): void {
  let broken = false;
  const end = source().live(
    { rec: key },
    {
      tick(tick) {
        batch(() => {
          newest.value = Math.max(newest.value, tick.at);
          if (following.value) catchUp();
          lastTick.value = tick;
        });
      },
      event: (event) => (lastEvent.value = event),
      incidents(notes) {
        noticed.value = notes;
        // Not before the first request is answered, unless it failed.
        const known = incidents.value;
        if (known ? outdated(known, notes) : incidentsTrouble.value !== null) void diagnose(key, stopped);
      },
      recorder(running) {
        if (running) return refresh();
        batch(() => {
          if (info.value) info.value = { ...info.value, live: false, to: Math.max(info.value.to, tail.value) };
          following.value = false;
          connection.value = { state: "none", why: "", since: Date.now() };
        });
      },
      state(state, why = "") {
        if (stopped.aborted) return;
        connection.value = after(connection.value, state, why, Date.now());
        if (state === "lost") {
          broken = true;
          void ended(key, stopped);
        }
        if (state === "open" && broken) refresh();
      },
    },
  );
  stopped.addEventListener("abort", end);
}

/** A stream that ends because the recorder stopped is not a broken connection. */
async function ended(key: string, stopped: AbortSignal): Promise<void> {
  try {
    const found = await source().json("info", { rec: key }, stopped);
    if (!found.live && !stopped.aborted) refresh();
  } catch (error) {
    // A server that is away is tried again.
    if (!stopped.aborted) connection.value = refused(connection.value, AnswerError.of(error), Date.now());
  }
}
