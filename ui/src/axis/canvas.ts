/** What the canvases of the axis share. */

import { colourOf, dark } from "../state";

/** A context in CSS pixels on a canvas in the screen's pixels; cleared. */
export function sharp(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

/** Not measured is hatched, never blank: blank means idle. */
export function hatching(context: CanvasRenderingContext2D): CanvasPattern {
  if (hatched?.dark === dark.peek()) return hatched.pattern;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const on = tile.getContext("2d")!;
  on.fillStyle = colourOf("--soft");
  on.fillRect(0, 0, 8, 8);
  on.strokeStyle = colourOf("--mode-none");
  on.lineWidth = 1.5;
  on.beginPath();
  for (const at of [-8, 0, 8]) {
    on.moveTo(at - 1, 9);
    on.lineTo(at + 9, -1);
  }
  on.stroke();
  hatched = { dark: dark.peek(), pattern: context.createPattern(tile, "repeat")! };
  return hatched.pattern;
}

let hatched: { dark: boolean; pattern: CanvasPattern } | null = null;
