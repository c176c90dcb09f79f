/**
 * The compact answers of the server, `application/vnd.zombiescope.columns`:
 *
 *     "ZSC1"   u32 little-endian: bytes of the header
 *     header   JSON, padded with spaces so that the data starts at a multiple of 8
 *     arrays   one after another in the order of header.arrays, each starting at a multiple of 8
 *
 * Arrays are views into the answer's buffer: nothing is copied.
 */

import type { ColumnArray } from "./types";

export type TypedArray = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

export interface ColumnsHeader {
  schema: string;
  arrays: ColumnArray[];
  [scalar: string]: unknown;
}

export interface Columns<H = ColumnsHeader> {
  header: H;
  arrays: Record<string, TypedArray>;
}

export const MEDIA_TYPE = "application/vnd.zombiescope.columns";

const MAKERS = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

const PREFIX = 8;
const padded = (bytes: number): number => (bytes + 7) & ~7;

/** Throws an Error that says what is wrong with the bytes. */
export function decode<H = ColumnsHeader>(buffer: ArrayBuffer): Columns<H> {
  if (buffer.byteLength < PREFIX) throw new Error(`a columns answer of ${buffer.byteLength} bytes is cut off`);
  const start = new Uint8Array(buffer, 0, 4);
  if (String.fromCharCode(...start) !== "ZSC1") throw new Error("not a columns answer: it does not begin with ZSC1");
  const headerBytes = new DataView(buffer).getUint32(4, true);
  if (PREFIX + headerBytes > buffer.byteLength) throw new Error("a columns answer is cut off in its header");
  const text = new TextDecoder().decode(new Uint8Array(buffer, PREFIX, headerBytes));
  const header = JSON.parse(text) as ColumnsHeader;
  const arrays: Record<string, TypedArray> = {};
  let at = padded(PREFIX + headerBytes);
  for (const { name, type, length } of header.arrays) {
    const Maker = MAKERS[type];
    if (!Maker) throw new Error(`a columns answer has an array of the unknown type ${String(type)}`);
    const bytes = length * Maker.BYTES_PER_ELEMENT;
    if (at + bytes > buffer.byteLength) throw new Error(`a columns answer is cut off in ${name}`);
    arrays[name] = new Maker(buffer, at, length);
    at = padded(at + bytes);
  }
  return { header: header as unknown as Columns<H>["header"], arrays };
}

/** The other way, for fixtures and for answers that the page folds by itself. */
export function encode(scalars: Record<string, unknown>, arrays: Record<string, TypedArray>): ArrayBuffer {
  const header = {
    ...scalars,
    arrays: Object.entries(arrays).map(([name, array]) => ({ name, type: typeOf(array), length: array.length })),
  };
  let text = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = padded(PREFIX + text.length) - PREFIX;
  const spaced = new Uint8Array(headerBytes).fill(0x20);
  spaced.set(text);
  text = spaced;
  const bytes = Object.values(arrays).reduce((sum, array) => sum + padded(array.byteLength), PREFIX + headerBytes);
  const out = new Uint8Array(bytes);
  out.set([0x5a, 0x53, 0x43, 0x31]);
  new DataView(out.buffer).setUint32(4, headerBytes, true);
  out.set(text, PREFIX);
  let at = PREFIX + headerBytes;
  for (const array of Object.values(arrays)) {
    out.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    at += padded(array.byteLength);
  }
  return out.buffer;
}

function typeOf(array: TypedArray): ColumnArray["type"] {
  for (const [type, Maker] of Object.entries(MAKERS)) if (array instanceof Maker) return type as ColumnArray["type"];
  throw new Error("an array of an unknown type");
}
