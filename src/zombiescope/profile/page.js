// The page of `zombiescope heatmap -o FILE.html` and `flamegraph -o FILE.html`: a heat map on which a range of time is
// selected, and the flame graph of that range. No library, no network.
//
// data.cell[i], data.cpu[i], data.node[i] describe sample i, in the order of time. `cell` (column * rows + row) and
// `parent` are stored as differences. Node 0 is the root; parents stand before their children, so adding up from the
// last node to the first gives every total.
//
// A file of many samples holds every data.thinned-th of them, and beside them data.maps, both heat maps counted exactly
// (columns of maps.per seconds, each cell as the difference to the one before it in time), and data.whole, how many of
// all samples end in each node.
"use strict";

const $ = (id) => document.getElementById(id);
const FRAME = 18, LEFT = 44, FOOT = 18, TINY = 0.4;
const count = (number) => Math.round(number).toLocaleString("en-US");
const percent = (ratio) => (100 * ratio).toFixed(ratio < 0.1 ? 2 : 1) + " %";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let data, heat, drawn = [];
const state = { from: null, to: null, core: null, by: "subsecond", invert: false, zoom: [], search: "", base: null };

async function unpack() {
  const bytes = Uint8Array.from(atob($("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const found = JSON.parse(await new Response(stream).text());
  undoDifferences(found.cell);
  undoDifferences(found.parent);
  found.parent.unshift(-1);
  found.function.unshift(-1);
  found.skid = new Set(found.skid);
  if (found.maps) {
    found.cores = found.maps.cores;
    undoDifferences(found.maps.subsecond, found.rows);
    undoDifferences(found.maps.core, found.cores.length);
  }
  return found;
}

function undoDifferences(numbers, apart = 1) {
  for (let i = apart; i < numbers.length; i++) numbers[i] += numbers[i - apart];
}

// --- heat map ------------------------------------------------------------------------------------------------------

function isByCore() { return state.by === "core"; }
function rowCount() { return isByCore() ? data.cores.length : data.rows; }

// `per` seconds share a column where there are more seconds than pixels.
function countCells(per) {
  const rows = rowCount(), columns = Math.ceil(data.columns / per);
  const values = new Uint32Array(columns * rows);
  if (data.maps) addMap(values, rows, per / data.maps.per);
  else addSamples(values, rows, per);
  let most = 0;
  for (const value of values) most = Math.max(most, value);
  return { values, rows, columns, most, per };
}

function addSamples(values, rows, per) {
  const rowOf = new Map(data.cores.map((cpu, row) => [cpu, row]));
  for (let i = 0; i < data.cell.length; i++) {
    const column = Math.floor(data.cell[i] / data.rows / per);
    const row = isByCore() ? rowOf.get(data.cpu[i]) : data.cell[i] % data.rows;
    if (row !== undefined) values[column * rows + row]++;
  }
}

function addMap(values, rows, together) {
  const map = isByCore() ? data.maps.core : data.maps.subsecond;
  for (let i = 0; i < map.length; i++) values[Math.floor(Math.floor(i / rows) / together) * rows + (i % rows)] += map[i];
}

function layHeat() {
  const room = Math.max(100, $("heat").parentElement.clientWidth - LEFT), least = data.maps ? data.maps.per : 1;
  heat = countCells(least * Math.max(1, Math.ceil(data.columns / least / room)));
  heat.w = Math.min(24, room / Math.max(1, heat.columns));
  heat.h = Math.max(4, Math.min(isByCore() ? 18 : 6, 420 / Math.max(1, heat.rows)));
}

function lineOf(row) { return isByCore() ? row : heat.rows - 1 - row; }

function drawHeat() {
  const wide = $("heat").parentElement.clientWidth, tall = heat.rows * heat.h;
  const paint = sized($("heat"), wide, tall + FOOT);
  paint.fillStyle = css("--empty");
  paint.fillRect(LEFT, 0, heat.columns * heat.w, tall);
  paint.fillStyle = css("--blind");
  const second = heat.w / heat.per;
  for (const [from, to] of data.blind) paint.fillRect(LEFT + (from - data.start) * second, 0, (to - from) * second, tall);
  drawCells(paint);
  drawSelection(paint, tall);
  drawAxes(paint, tall, wide);
}

function drawCells(paint) {
  const gap = heat.w > 5 ? 1 : 0, edge = (column) => (gap ? column * heat.w : Math.round(column * heat.w));
  heat.values.forEach((value, cell) => {
    if (!value) return;
    paint.fillStyle = data.heat[Math.min(data.heat.length - 1, Math.floor((value * data.heat.length) / (heat.most + 1)))];
    const column = Math.floor(cell / heat.rows), line = lineOf(cell % heat.rows);
    const x = edge(column), w = edge(column + 1) - x - gap;
    paint.fillRect(LEFT + x, line * heat.h, w, heat.h - (gap && heat.h > 4 ? 1 : 0));
  });
}

// A range begins and ends inside a second, so on the sub-second map it is a staircase: cells outside of it are dimmed.
function drawSelection(paint, tall) {
  if (state.from === null) return;
  paint.fillStyle = css("--ground");
  paint.globalAlpha = 0.72;
  const step = isWhole() ? heat.per : 1 / data.rows;
  for (let column = 0; column < heat.columns; column++) {
    for (let row = 0; row < heat.rows; row++) {
      const at = timeOf({ column, row });
      const core = isByCore() && state.core !== null && data.cores[row] !== state.core;
      if (core || at + step <= state.from + 1e-9 || at >= state.to - 1e-9) {
        paint.fillRect(LEFT + column * heat.w, lineOf(row) * heat.h, heat.w, heat.h);
      }
    }
  }
  paint.globalAlpha = 1;
  paint.strokeStyle = css("--pick");
  paint.lineWidth = 2;
  const first = Math.floor(state.from / heat.per), last = Math.ceil(state.to / heat.per - 1e-9);
  paint.strokeRect(LEFT + first * heat.w, 1, Math.max(2, (last - first) * heat.w), tall - 2);
}

function drawAxes(paint, tall, wide) {
  paint.fillStyle = css("--faint");
  paint.font = "10px ui-monospace, monospace";
  paint.textAlign = "left";
  const every = Math.max(1, Math.ceil(80 / heat.w));
  for (let column = 0; column < heat.columns; column += every) {
    const x = LEFT + column * heat.w;
    if (x + 50 <= wide) paint.fillText(clock(column * heat.per), x, tall + 13);
  }
  paint.textAlign = "right";
  if (isByCore()) {
    const each = Math.max(1, Math.ceil(11 / heat.h));
    data.cores.forEach((cpu, row) => row % each || paint.fillText(cpu, LEFT - 6, row * heat.h + Math.min(heat.h, 11)));
  } else {
    for (const part of [0, 0.5, 1]) paint.fillText(part + " s", LEFT - 6, Math.max(9, tall * (1 - part)));
  }
}

function clock(seconds, digits = 0) {
  const at = new Date((data.start + seconds + data.zone_s) * 1000 + 1e-3).toISOString();
  return at.slice(11, digits ? 20 + digits : 19);
}

function cellAt(event) {
  const box = $("heat").getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - LEFT) / heat.w), line = Math.floor((event.clientY - box.top) / heat.h);
  if (column < 0 || column >= heat.columns || line < 0 || line >= heat.rows) return null;
  return { column, row: lineOf(line) };
}

// --- selection -----------------------------------------------------------------------------------------------------

// Whether a column is only taken as a whole: a row is then a core, or parts of several seconds.
function isWhole() { return isByCore() || heat.per > 1; }
function timeOf(cell) { return cell.column * heat.per + (isWhole() ? 0 : cell.row / data.rows); }

// A click takes the whole second, or on the core map that second of that core; a drag takes from cell to cell.
function select(start, end) {
  const moved = start.column !== end.column || start.row !== end.row;
  state.core = isByCore() && start.row === end.row ? data.cores[start.row] : null;
  if (!moved || isWhole()) {
    state.from = Math.min(start.column, end.column) * heat.per;
    state.to = Math.min(data.columns, (Math.max(start.column, end.column) + 1) * heat.per);
  } else {
    const [low, high] = [timeOf(start), timeOf(end)].sort((a, b) => a - b);
    state.from = low;
    state.to = high + 1 / data.rows;
  }
}

function selectAll() { state.from = state.to = state.core = null; }

function step(direction) {
  if (state.from === null) return;
  const length = state.to - state.from, last = Math.max(0, data.columns - length);
  state.from = Math.min(last, Math.max(0, state.from + direction * length));
  state.to = state.from + length;
}

function leafCounts() {
  const all = state.from === null, eps = 1e-6;
  if (all && state.core === null && data.whole) return { counts: Float64Array.from(data.whole), total: data.total };
  const counts = new Float64Array(data.parent.length);
  let total = 0;
  for (let i = 0; i < data.cell.length; i++) {
    const at = data.cell[i] / data.rows;
    if (!all && (at < state.from - eps || at >= state.to - eps)) continue;
    if (state.core !== null && data.cpu[i] !== state.core) continue;
    counts[data.node[i]] += data.thinned;
    total += data.thinned;
  }
  return { counts, total };
}

// --- flame graph ---------------------------------------------------------------------------------------------------

// A tree is {function, value, own, base, children: Map}; it is built from leaf counts of both sides.
function grow(counts, base) {
  const root = node(-1);
  const scale = base && base.total ? (counts.total || base.total) / base.total : 0;
  for (let leaf = 0; leaf < data.parent.length; leaf++) {
    const here = counts.counts[leaf], before = base ? base.counts[leaf] * scale : 0;
    if (!here && !before) continue;
    let at = root;
    at.value += here;
    at.base += before;
    for (const fn of path(leaf)) {
      let child = at.children.get(fn);
      if (!child) at.children.set(fn, (child = node(fn)));
      at = child;
      at.value += here;
      at.base += before;
    }
    at.own += here;
  }
  return root;
}

function node(fn) { return { fn, value: 0, own: 0, base: 0, children: new Map() }; }

function path(leaf) {
  const functions = [];
  for (let at = leaf; at > 0; at = data.parent[at]) functions.push(data.function[at]);
  if (!state.invert) return functions.reverse();
  // Leaves that only look hot are charged to their callers.
  let first = 0;
  while (first < functions.length - 1 && data.skid.has(functions[first])) first++;
  return functions.slice(first);
}

function widthOf(node) { return state.base ? (node.value + node.base) / 2 : node.value; }
function nameOf(node) { return node.fn < 0 ? "all" : data.names[node.fn]; }

function zoomedRoot(root) {
  const trail = [root];
  for (const fn of state.zoom) {
    const child = trail[trail.length - 1].children.get(fn);
    if (!child) break;
    trail.push(child);
  }
  return trail;
}

// Rectangles of what is wide enough to be seen; `lost` counts what is not.
function layFlame(trail, wide) {
  const rectangles = trail.slice(0, -1).map((node, depth) => ({ node, x: 0, w: wide, depth, above: true }));
  const top = trail[trail.length - 1], scale = widthOf(top) ? wide / widthOf(top) : 0;
  let lost = 0, waiting = [{ node: top, x: 0, w: widthOf(top) * scale, depth: trail.length - 1, up: trail.slice(1).map((n) => n.fn) }];
  while (waiting.length) {
    const place = waiting.pop();
    rectangles.push(place);
    let x = place.x;
    const children = [...place.node.children.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    for (const child of children) {
      const w = widthOf(child) * scale;
      if (w >= TINY) waiting.push({ node: child, x, w, depth: place.depth + 1, up: [...place.up, child.fn] });
      else lost++;
      x += w;
    }
  }
  return { rectangles, lost };
}

function drawFlame() {
  const counts = leafCounts(), root = grow(counts, state.base), trail = zoomedRoot(root);
  const wide = $("flame").parentElement.clientWidth, laid = layFlame(trail, wide);
  drawn = laid.rectangles;
  const deepest = drawn.reduce((most, place) => Math.max(most, place.depth), 0);
  const paint = sized($("flame"), wide, (deepest + 1) * FRAME);
  const pattern = searchPattern();
  paint.font = "11px ui-monospace, monospace";
  for (const place of drawn) drawFrame(paint, place, pattern);
  tell(counts, root, trail, laid.lost, pattern);
}

function drawFrame(paint, place, pattern) {
  const y = place.depth * FRAME, name = nameOf(place.node);
  paint.globalAlpha = place.above ? 0.45 : 1;
  paint.fillStyle = pattern && place.node.fn >= 0 && pattern.test(name) ? "#e23ee2" : colourOf(place.node);
  paint.fillRect(place.x, y, Math.max(place.w - (place.w > 3 ? 1 : 0), 0.4), FRAME - 1);
  const room = Math.floor((place.w - 6) / 6.7);
  if (room > 2) {
    paint.fillStyle = "#101114";
    paint.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, place.x + 3, y + 12.5);
  }
  paint.globalAlpha = 1;
}

function colourOf(node) {
  if (!state.base) return node.fn < 0 ? "#c8c4bc" : data.colour[node.fn];
  const change = node.value - node.base, strength = Math.min(1, Math.abs(change) / (2 * widthOf(node) || 1));
  if (strength < 0.005) return "#f2f2f2";
  return `hsl(${change > 0 ? 8 : 212} 85% ${93 - 35 * strength}%)`;
}

function searchPattern() {
  $("search").classList.remove("wrong");
  if (!state.search) return null;
  try {
    return new RegExp(state.search);
  } catch {
    $("search").classList.add("wrong");
    return null;
  }
}

// Samples with a match anywhere on the stack: what is below a match is not counted twice.
function matchedSamples(node, pattern) {
  if (node.fn >= 0 && pattern.test(data.names[node.fn])) return node.value;
  let sum = 0;
  for (const child of node.children.values()) sum += matchedSamples(child, pattern);
  return sum;
}

// --- words ---------------------------------------------------------------------------------------------------------

function tell(counts, root, trail, lost, pattern) {
  const about = data.thinned > 1 && state.from !== null ? "about " : "";
  $("says").textContent = `${about}${count(counts.total)} of ${count(data.total)} samples` +
    (data.thinned > 1 ? `; the file holds one of every ${data.thinned} that were recorded` : "");
  $("selected").textContent = state.from === null ? "" :
    `${clock(state.from, 2)} – ${clock(state.to, 2)}` + (state.core === null ? "" : `, core ${state.core}`);
  $("matched").textContent = pattern ? `${percent(root.value ? matchedSamples(root, pattern) / root.value : 0)} matched` : "";
  const top = trail[trail.length - 1];
  $("zoomed").textContent = trail.length > 1 ? `${nameOf(top)}: ${percent(root.value ? top.value / root.value : 0)} of the selection` : "";
  const notes = [];
  if (lost) notes.push(`${count(lost)} branches are too narrow to be drawn; zoom in to see them.`);
  const [branches, samples, ratio] = data.pruned;
  if (branches) {
    const least = (100 * ratio).toPrecision(2) + " %";
    notes.push(`${count(branches)} branches below ${least} of the window are not in the file; ` +
      `${percent(data.total ? samples / data.total : 0)} of its samples are in them, and end at their callers here.`);
  }
  if (state.base) notes.push("Red grew, blue shrank or vanished; a frame is as wide as the mean of both, made equally long.");
  if (!counts.total) notes.push("No sample is in this selection.");
  if (data.blind.length) notes.push("Grey on the heat map was not recorded.");
  $("notes").textContent = notes.join(" ");
  $("by").textContent = isByCore() ? "by part of the second" : "by core";
  $("invert").setAttribute("aria-pressed", state.invert);
  $("compare").textContent = state.base ? "stop comparing" : "compare with this";
  document.body.dataset.total = counts.total;
}

function tip(event, text) {
  $("tip").hidden = !text;
  if (!text) return;
  $("tip").textContent = text;
  const box = $("tip").getBoundingClientRect();
  $("tip").style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8)) + "px";
  $("tip").style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 18) + "px";
}

function frameWords(place) {
  const { node } = place, root = drawn[0].node, part = (value, of) => percent(of ? value / of : 0);
  const module = node.fn < 0 ? "" : data.modules[data.module[node.fn]];
  let text = nameOf(node) + (module ? `\n${module}, ${data.kind[node.fn]}` : "");
  text += `\n${count(node.value)} samples, ${part(node.value, root.value)}`;
  const top = drawn.find((other) => !other.above).node;
  if (top !== root) text += `, ${part(node.value, top.value)} of ${nameOf(top)}`;
  if (node.own) text += `\nself ${count(node.own)}, ${part(node.own, root.value)}`;
  if (state.base) text += `\nbefore ${part(node.base, root.base)}` + (node.value ? "" : ", vanished");
  return text;
}

// --- hands ---------------------------------------------------------------------------------------------------------

function sized(canvas, wide, tall) {
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(wide * dense);
  canvas.height = Math.round(tall * dense);
  canvas.style.width = wide + "px";
  canvas.style.height = tall + "px";
  const paint = canvas.getContext("2d");
  paint.scale(dense, dense);
  return paint;
}

function redraw() {
  layHeat();
  drawHeat();
  drawFlame();
  writeHash();
}

function frameAt(event) {
  const box = $("flame").getBoundingClientRect(), x = event.clientX - box.left, depth = Math.floor((event.clientY - box.top) / FRAME);
  return drawn.find((place) => place.depth === depth && x >= place.x && x < place.x + place.w);
}

function listenToHeat() {
  let start = null;
  const canvas = $("heat");
  canvas.addEventListener("mousedown", (event) => { start = cellAt(event); });
  canvas.addEventListener("mousemove", (event) => {
    const cell = cellAt(event);
    if (start && cell) { select(start, cell); drawHeat(); }
    if (!cell) return tip(event, "");
    const value = heat.values[cell.column * heat.rows + cell.row];
    const where = isByCore() ? `${clock(timeOf(cell))}, core ${data.cores[cell.row]}` : clock(timeOf(cell), 2);
    tip(event, `${where}\n${count(value)} samples`);
  });
  canvas.addEventListener("mouseleave", (event) => tip(event, ""));
  window.addEventListener("mouseup", (event) => {
    if (!start) return;
    select(start, cellAt(event) || start);
    start = null;
    redraw();
  });
}

function listenToFlame() {
  const canvas = $("flame");
  canvas.addEventListener("mousemove", (event) => { const place = frameAt(event); tip(event, place ? frameWords(place) : ""); });
  canvas.addEventListener("mouseleave", (event) => tip(event, ""));
  canvas.addEventListener("click", (event) => {
    const place = frameAt(event);
    if (!place) return;
    state.zoom = place.above ? state.zoom.slice(0, place.depth) : place.up;
    redraw();
  });
}

const ACTIONS = {
  by: () => { state.by = isByCore() ? "subsecond" : "core"; state.core = null; },
  all: selectAll,
  earlier: () => step(-1),
  later: () => step(1),
  reset: () => { state.zoom = []; },
  invert: () => { state.invert = !state.invert; state.zoom = []; },
  compare: () => { state.base = state.base ? null : leafCounts(); },
};
const KEYS = { c: "by", Escape: "all", ArrowLeft: "earlier", ArrowRight: "later", r: "reset", i: "invert", d: "compare" };

function listen() {
  for (const [id, act] of Object.entries(ACTIONS)) $(id).addEventListener("click", () => { act(); redraw(); });
  $("search").addEventListener("input", () => { state.search = $("search").value; redraw(); });
  window.addEventListener("resize", redraw);
  window.addEventListener("hashchange", () => { readHash(); redraw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("keydown", (event) => {
    if (event.target === $("search") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); $("search").focus(); }
    if (KEYS[event.key]) { ACTIONS[KEYS[event.key]](); redraw(); }
  });
  listenToHeat();
  listenToFlame();
}

// What is looked at stands in the address, so that a link to the file shows the same moment.
function writeHash() {
  const words = new URLSearchParams();
  if (state.from !== null) { words.set("from", +state.from.toFixed(4)); words.set("to", +state.to.toFixed(4)); }
  if (state.core !== null) words.set("core", state.core);
  if (state.by !== data.by) words.set("by", state.by);
  if (state.invert !== data.invert) words.set("invert", state.invert);
  if (state.search) words.set("search", state.search);
  if (state.zoom.length) words.set("zoom", state.zoom.join("."));
  history.replaceState(null, "", "#" + words);
}

function readHash() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (words.has(name) && isFinite(words.get(name)) ? Number(words.get(name)) : null);
  state.from = number("from");
  state.to = state.from === null ? null : number("to") ?? state.from + 1;
  state.core = number("core");
  state.by = words.get("by") === "core" ? "core" : words.get("by") === "subsecond" ? "subsecond" : data.by;
  state.invert = words.has("invert") ? words.get("invert") === "true" : data.invert;
  state.search = words.get("search") || "";
  state.zoom = (words.get("zoom") || "").split(".").filter(Boolean).map(Number);
  $("search").value = state.search;
}

function givenBase() {
  if (!data.base) return null;
  const counts = new Float64Array(data.parent.length);
  let total = 0;
  for (const [leaf, samples] of data.base) { counts[leaf] += samples; total += samples; }
  return { counts, total };
}

unpack().then((found) => {
  data = found;
  state.base = givenBase();
  readHash();
  listen();
  redraw();
  document.body.dataset.ready = "yes";
}, (error) => { $("says").textContent = "this page could not be read: " + error.message; });
