/** A node that exists nowhere, for trying the page without a server: VITE_FAKE=192 npm run dev. Never part of a build. */

import { type Columns, decode, encode } from "../src/api/columns";
import { MODES } from "../src/api/modes";
import {
  AnswerError,
  type ColumnPath,
  type DocumentPath,
  type LiveHandlers,
  type Params,
  type Source,
  useSource,
} from "../src/api/source";
import type { ColumnHeaders, Documents } from "../src/api/types";

const CPUS = Number(import.meta.env.VITE_FAKE) || 192;
const TO = Math.floor(Date.now() / 1000);
const FROM = TO - 3600;
const BAD = FROM + 2500;

const noise = (seed: number): number => {
  let x = Math.imul(Math.floor(seed * 16) ^ 0x9e3779b9, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
};

function strip(params: Params): ArrayBuffer {
  const [from, to, columns] = [Number(params.from), Number(params.to), Number(params.columns)];
  const column_s = (to - from) / columns;
  const modes = Object.fromEntries(MODES.map((mode) => [mode, new Uint8Array(columns * CPUS)]));
  const busy = new Float32Array(columns);
  const kernel = new Float32Array(columns);
  for (let column = 0; column < columns; column++) {
    const at = from + (column + 0.5) * column_s;
    const gap = at > FROM + 1200 && at < FROM + 1260;
    for (let row = 0; row < CPUS; row++) {
      const cell = column * CPUS + row;
      if (gap) {
        for (const mode of MODES) modes[mode]![cell] = 255;
        continue;
      }
      const wave = noise(Math.floor(at / 7) * 7907 + row * 1299709) ** 3;
      modes.user![cell] = wave * 160;
      modes.system![cell] = noise(Math.floor(at) * 7919 + row * 104729) ** 6 * 90;
      modes.softirq![cell] = row % 16 === 3 ? 40 * noise(at * 3 + row) : 0;
      modes.iowait![cell] = row % 31 === 7 ? 120 * noise(at + 5) : 0;
      if (row === 37 % CPUS && at > BAD && at < BAD + 90) {
        modes.user![cell] = 4;
        modes.system![cell] = 248;
      }
      if (row === 90 % CPUS && at > BAD + 300 && at < BAD + 330) modes.softirq![cell] = 230;
      if (row > CPUS - 9 && at > FROM + 600 && at < FROM + 700) modes.steal![cell] = 120;
      busy[column]! += (modes.user![cell]! + modes.system![cell]! + modes.softirq![cell]!) / 254 / CPUS;
      kernel[column]! += (modes.system![cell]! + modes.softirq![cell]!) / 254 / CPUS;
    }
    if (gap) busy[column] = kernel[column] = NaN;
  }
  return encode(
    { schema: "zombiescope.strip/1", from, to, column_s, columns, cpus: Array.from({ length: CPUS }, (_, n) => n) },
    { ...modes, average_busy: busy, average_kernel: kernel },
  );
}

const event = (at: number, kind: string, severity: string, text: string) => ({
  at,
  kind,
  source: "kernel",
  severity,
  text,
  fields: {},
});

function answer(path: string, params: Params): unknown {
  switch (path) {
    case "recordings":
      return {
        recordings: [
          { key: "here", title: "here", node: "gpu-node-17", from: FROM, to: TO, live: true, note: null },
          {
            key: "founding-case",
            title: "The founding case",
            node: "ip-10-0-3-41",
            from: 1,
            to: 2,
            live: false,
            note: "a replay",
          },
        ],
      };
    case "info":
      return {
        node: "gpu-node-17",
        kernel: "6.8.0-1021-aws",
        machine: "x86_64",
        os: "Ubuntu 22.04",
        timezone: "Europe/Berlin",
        cpus: CPUS,
        labels: {},
        samples: 1_234_567,
        bytes: 123_456_789,
        tables: {},
        gaps: [],
        from: FROM,
        to: TO,
        live: params.rec !== "founding-case",
        zone_offset_s: 3600,
        hz: 99,
        interval_s: 1,
        version: "0.1.0",
        missing: [
          {
            source: "kernel log",
            why: "/dev/kmsg: permission denied",
            grant: "sudo setcap cap_syslog+ep $(command -v zombiescope)",
          },
        ],
      };
    case "lanes": {
      const at = Array.from({ length: 240 }, (_, n) => FROM + n * 15);
      const dying = at.map((time, n) => Math.round(20_000 + n * 90 + (time > BAD ? 5000 : 0)));
      return {
        events: [
          event(BAD + 20, "nic_tx_timeout", "critical", "ena 0000:00:05.0 eth0: Tx queue 3 was stuck for 5120 ms"),
          event(BAD + 22, "nic_reset", "critical", "ena 0000:00:05.0 eth0: resetting the device"),
          event(BAD + 60, "ray_node_dead", "critical", "raylet missed 5 heartbeats"),
          event(FROM + 300, "unit_restart", "warning", "nvidia-dcgm-exporter.service restarted (17th time)"),
          event(FROM + 302, "cgroup_churn", "info", "64 cgroups removed in system.slice"),
          event(FROM + 900, "mark", "info", "epoch 12 starts"),
          event(FROM + 1800, "kernel_log", "info", "TCP: request_sock_TCP: Possible SYN flooding"),
          event(FROM + 2100, "oom_kill", "critical", "python3 was killed, 31 GB"),
          event(FROM + 3000, "soft_lockup", "critical", "CPU#90 stuck for 22s"),
          event(FROM + 3200, "pod_evicted", "warning", "default/train-3"),
        ],
        events_left_off: 0,
        zombies: { at, total: dying.map((n) => n + 900), live: at.map(() => 900), dying },
        pressure: {
          at,
          cpu: at.map((time, n) => 0.03 * noise(n) + (time > BAD && time < BAD + 90 ? 0.22 : 0)),
          memory: at.map((_, n) => 0.01 * noise(n + 3)),
          io: at.map((_, n) => 0.06 * noise(n + 9) ** 4),
        },
        gaps: [{ from: FROM + 1200, to: FROM + 1260, source: "everything", why: "the recorder was stopped" }],
      };
    }
    case "incidents":
      return {
        node: "gpu-node-17",
        window: { from: FROM, to: TO },
        incidents: [
          {
            id: "i-1",
            from: BAD,
            to: BAD + 90,
            state: "closed",
            severity: "critical",
            symptoms: [],
            causes: [
              {
                pattern: "zombie-memcg",
                proof: "kernel",
                confidence: 0.93,
                summary: "kubelet walks 28,000 zombie memory cgroups on core 37",
                hog: {},
                culprit: null,
                frames: [],
                chain: [],
                fix: { summary: "", steps: [] },
              },
            ],
            ruled_out: [],
          },
        ],
      };
  }
  throw new AnswerError(404, `the fake node has no ${path}`);
}

class Fake implements Source {
  readonly frozen = false;
  async json<P extends DocumentPath>(path: P, params: Params = {}): Promise<Documents[P]> {
    return answer(path, params) as Documents[P];
  }
  async columns<P extends ColumnPath>(path: P, params: Params = {}): Promise<Columns<ColumnHeaders[P]>> {
    if (path === "strip") return decode<ColumnHeaders[P]>(strip(params));
    throw new AnswerError(404, `the fake node has no ${path}`);
  }
  live(_: Params, handlers: LiveHandlers): () => void {
    let n = 0;
    handlers.state?.("open");
    const timer = setInterval(() => {
      const ratios = (by: (row: number) => number): number[] => Array.from({ length: CPUS }, (_unused, row) => by(row));
      const idle = ratios(() => 0);
      handlers.tick?.({
        at: TO + 1 + n++,
        interval_s: 1,
        cpus: idle.map((_unused, row) => row),
        user: ratios(() => Math.random() ** 2),
        system: ratios(() => Math.random() ** 5),
        irq: idle,
        softirq: idle,
        steal: idle,
        iowait: idle,
        average_busy: 0.4,
        average_kernel: 0.1,
        dying: 45_000,
        total: 46_000,
        hz_samples: 99 * CPUS,
      });
    }, 1000);
    return () => clearInterval(timer);
  }
  readonly download = null;
}

useSource(new Fake());
