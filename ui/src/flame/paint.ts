// Drawing of bars. A row of a flame graph is one line of pixels repeated, so each level is written once into an array and
// copied down; the browser is only asked to draw the image and the text. The cost is that of the pixels, not of the
// frames: frames narrower than a pixel are merged into a grey that says that something is there.

import { functionName } from "../format";
import { mixed } from "./colours";
import { type Bars, type Extent, firstAfter } from "./layout";

export const ROW = 18;
const FONT =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", "DejaVu Sans Mono", "Liberation Mono", Menlo, monospace';
const FONT_SIZE = 11;
const LEAST_TEXT = 22,
  MOVING_TEXT = 80;
const TEXT_PAD = 4;

/** Colours of everything that is not a frame, packed for the canvas. */
export interface Look {
  readonly ground: number;
  readonly narrow: number;
  readonly match: number;
  readonly ink: string;
  /** On frames that step back. */
  readonly faintInk: string;
  readonly matchInk: string;
}

export interface Scene {
  readonly bars: Bars;
  /** Of each bar. */
  readonly colours: Uint32Array;
  /** Of each function; null while nothing is searched. */
  readonly matches: Uint8Array | null;
  /** Whether what does not match steps back; not where only matching stacks are shown. */
  readonly fades: boolean;
  readonly view: Extent;
  /** Levels before this one are ancestors of what is zoomed to. */
  readonly dimmed: number;
  /** The first level that is drawn. */
  readonly firstLevel: number;
  /** How many levels are drawn from there. */
  readonly levels: number;
  /** Whether the first level is at the bottom. */
  readonly flip: boolean;
  readonly label: (bar: number) => string;
}

export interface Stage {
  /** In pixels of the page. */
  readonly width: number;
  readonly height: number;
  /** What is scrolled out at the top. */
  readonly top: number;
  readonly density: number;
  /** While the picture moves only names of wide frames are written: others are not read, and text costs most. */
  readonly moving?: boolean;
}

interface Text {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly faint: boolean;
  readonly matched: boolean;
}

/** The row of a level, counted from the top, and back: flipping is its own reverse. */
export function rowOf(scene: Pick<Scene, "firstLevel" | "levels" | "flip">, level: number): number {
  const at = level - scene.firstLevel;
  return scene.flip ? scene.levels - 1 - at : at;
}

export function levelAt(scene: Pick<Scene, "firstLevel" | "levels" | "flip">, y: number): number {
  const row = Math.floor(y / ROW);
  return scene.firstLevel + (scene.flip ? scene.levels - 1 - row : row);
}

export class BarPainter {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private line = new Uint32Array(0);
  private character = new Map<number, number>();
  private faded: { from: Uint32Array; ground: number; colours: Uint32Array } | null = null;
  private labels = new LabelCache();

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Draws everything that is seen; the answer is how many frames and texts that were. */
  draw(scene: Scene, look: Look, stage: Stage): { frames: number; texts: number } {
    const context = this.canvas.getContext("2d", { alpha: false });
    const wide = Math.round(stage.width * stage.density),
      tall = Math.round(stage.height * stage.density);
    if (!context || wide < 1 || tall < 1) return { frames: 0, texts: 0 };
    const image = this.sized(context, wide, tall);
    const texts: Text[] = [];
    let frames = 0;
    const first = Math.max(0, Math.floor(stage.top / ROW)),
      end = Math.min(scene.levels, Math.ceil((stage.top + stage.height) / ROW));
    for (let row = first; row < end; row++) {
      const level = levelAt(scene, row * ROW);
      const y = Math.round((row * ROW - stage.top) * stage.density),
        y1 = Math.round(((row + 1) * ROW - stage.top) * stage.density);
      frames += this.drawLevel(scene, look, level, wide, y, texts, stage);
      const gap = Math.max(1, Math.round(stage.density));
      this.repeat(wide, tall, y, y1 - gap);
      this.clear(look.ground, wide, tall, y1 - gap, y1);
    }
    this.clear(look.ground, wide, tall, Math.round((end * ROW - stage.top) * stage.density), tall);
    context.putImageData(image, 0, 0);
    this.write(context, texts, look, stage.density);
    return { frames, texts: texts.length };
  }

  private sized(context: CanvasRenderingContext2D, wide: number, tall: number): ImageData {
    if (
      this.image?.width === wide &&
      this.image.height === tall &&
      this.canvas.width === wide &&
      this.canvas.height === tall
    )
      return this.image;
    this.canvas.width = wide;
    this.canvas.height = tall;
    this.image = context.createImageData(wide, tall);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(wide);
    return this.image;
  }

  // Into this.line; texts are collected.
  private drawLevel(
    scene: Scene,
    look: Look,
    level: number,
    wide: number,
    y: number,
    texts: Text[],
    stage: Stage,
  ): number {
    const { bars, view, matches } = scene,
      { line } = this,
      { density } = stage;
    const scale = wide / (view.x1 - view.x0),
      end = bars.levels[level + 1]!;
    const isAbove = level < scene.dimmed;
    const steps = matches !== null && scene.fades;
    const colours = isAbove || steps ? this.fadedOf(scene.colours, look.ground) : scene.colours;
    const gap = Math.max(1, Math.round(density)),
      leastText = (stage.moving ? MOVING_TEXT : LEAST_TEXT) * density;
    let frames = 0;
    line.fill(look.ground);
    for (let bar = firstAfter(bars, level, view.x0); bar < end && bars.left[bar]! < view.x1; bar++) {
      const x = Math.max(0, Math.round((bars.left[bar]! - view.x0) * scale));
      const x1 = Math.min(wide, Math.round((bars.right[bar]! - view.x0) * scale));
      if (x1 <= x) {
        if (x >= wide) continue;
        // A match is never lost among its neighbours, however narrow it is.
        if (matches !== null && !isAbove && matches[bars.fn[bar]!] === 1) line[x] = look.match;
        else if (line[x] === look.ground) line[x] = look.narrow;
        continue;
      }
      frames++;
      const matched = matches !== null && matches[bars.fn[bar]!] === 1 && !isAbove;
      const colour = matched ? look.match : colours[bar]!;
      line.fill(colour, x, x1 - x > 3 * gap ? x1 - gap : x1);
      if (x1 - x >= leastText) {
        const text = this.labels.fit(
          scene.label(bar),
          Math.floor((x1 - x - 2 * TEXT_PAD * density) / this.widthOf(density)),
        );
        if (text) texts.push({ text, x: x + TEXT_PAD * density, y, faint: isAbove || (steps && !matched), matched });
      }
    }
    return frames;
  }

  private repeat(wide: number, tall: number, y: number, y1: number): void {
    for (let at = Math.max(0, y); at < Math.min(tall, y1); at++) this.pixels.set(this.line, at * wide);
  }

  private clear(ground: number, wide: number, tall: number, y: number, y1: number): void {
    this.pixels.fill(ground, Math.max(0, y) * wide, Math.max(0, Math.min(tall, y1)) * wide);
  }

  private write(context: CanvasRenderingContext2D, texts: readonly Text[], look: Look, density: number): void {
    context.font = `${FONT_SIZE * density}px ${FONT}`;
    context.textBaseline = "middle";
    const middle = (ROW / 2 - 0.5) * density;
    // Setting a style costs more than writing: all texts of one style follow each other.
    for (const [style, alpha, chosen] of [
      [look.ink, 1, (text: Text) => !text.faint && !text.matched],
      [look.faintInk, 0.75, (text: Text) => text.faint],
      [look.matchInk, 1, (text: Text) => text.matched],
    ] as const) {
      context.fillStyle = style;
      context.globalAlpha = alpha;
      for (const text of texts) if (chosen(text)) context.fillText(text.text, text.x, text.y + middle);
    }
    context.globalAlpha = 1;
  }

  private widthOf(density: number): number {
    let wide = this.character.get(density);
    if (wide === undefined) {
      const context = this.canvas.getContext("2d", { alpha: false })!;
      context.font = `${FONT_SIZE * density}px ${FONT}`;
      wide = context.measureText("mmmmmmmmmm").width / 10;
      this.character.set(density, wide);
    }
    return wide;
  }

  private fadedOf(colours: Uint32Array, ground: number): Uint32Array {
    if (this.faded?.from !== colours || this.faded.ground !== ground) {
      const known = new Map<number, number>();
      const fade = (colour: number): number => {
        let made = known.get(colour);
        if (made === undefined) known.set(colour, (made = mixed(colour, ground, 0.52)));
        return made;
      };
      this.faded = { from: colours, ground, colours: colours.map(fade) };
    }
    return this.faded.colours;
  }
}

/** Names cut to a width: every drawing needs the same few thousand. */
export class LabelCache {
  private cut = new Map<string, string[]>();
  private size = 0;

  fit(name: string, room: number): string {
    if (room >= name.length) return name;
    if (room < 3) return "";
    let known = this.cut.get(name);
    if (!known) {
      if (this.size > 50_000) {
        this.cut.clear();
        this.size = 0;
      }
      this.cut.set(name, (known = []));
    }
    const found = known[room];
    if (found !== undefined) return found;
    this.size++;
    return (known[room] = functionName(name, room));
  }
}
