/**
 * Answers that were frozen into the page, so that one file is the whole of it and needs no server and no network.
 *
 * <script type="application/json" id="frozen"> holds {answers, samples}: a map from a question to base64 of the gzipped
 * answer, and likewise the table of samples. Documents are given as they are. What the reader can ask in endless ways is
 * made here: parts of the time axis are cut out of the strips (`strip`, `strip 1`, ...; the finest is taken) and of the
 * lanes, and everything about samples is folded from the table.
 */

import { type Columns, decode } from "./columns";
import { cutLanes, cutStrip, finest } from "./frozen/axis";
import { tracks, who } from "./frozen/owners";
import { flamechart, flamegraph, heatmap } from "./frozen/profile";
import { caveats, type FrozenTable, rangeOf, readTable } from "./frozen/table";
import {
  AnswerError,
  type ColumnPath,
  type DocumentPath,
  type LiveHandlers,
  type Params,
  question,
  type Source,
} from "./source";
import type { ColumnHeaders, Documents, Lanes, Span, StripHeader } from "./types";

export interface Frozen {
  answers: Record<string, string>;
  samples: string | null;
  /** The report as Markdown, where the file is one. */
  markdown: string | null;
}

const FOLDED: Record<string, (table: FrozenTable, params: Params) => unknown> = {
  flamegraph,
  heatmap,
  flamechart,
  tracks,
};

export class FrozenSource implements Source {
  readonly frozen = true;
  private table: Promise<FrozenTable> | null = null;
  private strips: Promise<Columns<StripHeader>[]> | null = null;

  constructor(private readonly kept: Frozen) {}

  get markdown(): string | null {
    return this.kept.markdown ?? null;
  }

  static embedded(): FrozenSource | null {
    const element = globalThis.document?.getElementById("frozen");
    return element?.textContent ? new FrozenSource(JSON.parse(element.textContent) as Frozen) : null;
  }

  /** What was left out of the file. */
  async caveats(window: Span, clock: (at: number) => string): Promise<string | null> {
    return this.kept.samples ? caveats(await this.samples(), window, clock) : "No samples are in this file.";
  }

  /** Whether samples of this time were frozen with the page; where not, their absence says nothing. */
  async holds(span: Span): Promise<boolean> {
    if (!this.kept.samples) return false;
    return (await this.samples()).held.some(({ from, to }) => from < span.to && span.from < to);
  }

  async json<P extends DocumentPath>(path: P, params: Params = {}): Promise<Documents[P]> {
    const incident = /^incidents\/([^/]+)$/.exec(path)?.[1];
    if (incident && !(path in this.kept.answers))
      return (await this.incident(decodeURIComponent(incident))) as Documents[P];
    if (path === "who" && this.kept.samples) return who(await this.samples(), params) as Documents[P];
    const found = await this.document(path, params);
    const range = rangeOf(params);
    return (path === "lanes" && range ? cutLanes(found as Lanes, range) : found) as Documents[P];
  }

  async columns<P extends ColumnPath>(path: P, params: Params = {}): Promise<Columns<ColumnHeaders[P]>> {
    if (path === "strip") return this.strip<ColumnHeaders[P]>(params);
    const fold = FOLDED[path];
    if (fold && this.kept.samples) return fold(await this.samples(), params) as Columns<ColumnHeaders[P]>;
    return decode<ColumnHeaders[P]>(await this.bytes(path, params));
  }

  live(_params: Params, handlers: LiveHandlers): () => void {
    handlers.state?.("ended");
    return () => undefined;
  }

  readonly download = null;

  private async document(path: string, params: Params): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(path, params)));
  }

  private async incident(id: string): Promise<unknown> {
    const found = (await this.document("incidents", {})) as { node: string; incidents: { id: string }[] };
    const one = found.incidents.find((each) => each.id === id);
    if (!one) throw new AnswerError(404, `incident ${id} is not in this file`);
    return { node: found.node, ...one };
  }

  private async strip<H>(params: Params): Promise<Columns<H>> {
    const names = Object.keys(this.kept.answers).filter((name) => /^strip( \d+)?$/.test(name));
    this.strips ??= Promise.all(names.map(async (name) => decode<StripHeader>(await thaw(this.kept.answers[name]!))));
    const strips = await this.strips;
    const span = rangeOf(params) ?? strips[0]?.header;
    const found = span && finest(strips, span);
    if (!found || !span) throw absent();
    return cutStrip<H>(found, span);
  }

  private samples(): Promise<FrozenTable> {
    const { samples } = this.kept;
    if (!samples) return Promise.reject(absent());
    this.table ??= thaw(samples).then((bytes) => readTable(decode(bytes)));
    return this.table;
  }

  private async bytes(path: string, params: Params): Promise<ArrayBuffer> {
    const answer = this.kept.answers[question(path, params)] ?? this.kept.answers[path];
    if (answer === undefined) throw absent();
    return thaw(answer);
  }
}

function absent(): AnswerError {
  return new AnswerError(404, "this was not frozen into the page", "open the recording itself: zombiescope serve DIR");
}

export async function thaw(base64: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
