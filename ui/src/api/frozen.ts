/**
 * Answers that were frozen into the page: <script type="application/json" id="frozen"> holds a map from the question
 * ("path?sorted-params", see `question`) to base64 of the gzipped answer.
 */

import { type Columns, type ColumnsHeader, decode } from "./columns";
import { AnswerError, type LiveHandlers, type Params, type Source, question } from "./source";

export interface Frozen {
  answers: Record<string, string>;
}

export class FrozenSource implements Source {
  readonly frozen = true;

  constructor(private readonly kept: Frozen) {}

  static embedded(): FrozenSource | null {
    const element = globalThis.document?.getElementById("frozen");
    return element?.textContent ? new FrozenSource(JSON.parse(element.textContent) as Frozen) : null;
  }

  async json<T>(path: string, params: Params = {}): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(path, params))) as T;
  }

  async columns<H = ColumnsHeader>(path: string, params: Params = {}): Promise<Columns<H>> {
    return decode<H>(await this.bytes(path, params));
  }

  live(_params: Params, handlers: LiveHandlers): () => void {
    handlers.state?.("ended");
    return () => undefined;
  }

  href(): null {
    return null;
  }

  private async bytes(path: string, params: Params): Promise<ArrayBuffer> {
    const answer = this.kept.answers[question(path, params)] ?? this.kept.answers[path];
    if (answer === undefined)
      throw new AnswerError(404, "this was not frozen into the page", "open the recording itself: zombiescope serve DIR");
    return thaw(answer);
  }
}

export async function thaw(base64: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
