// The flame graph of one tree: zoom, cursor, tooltip, menu and keys. What is done to the tree (transforms, search as a
// filter, inversion) is requested from the caller.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Asked, actionsOf } from "./actions";
import { BarCanvas } from "./bar-canvas";
import { type ColourBy, nodeColours, type Theme } from "./colours";
import { Crumbs } from "./crumbs";
import { barsOf, type Extent, extentOf, narrowIn, revealing } from "./layout";
import { Menu } from "./menu";
import { useGlide } from "./motion";
import { forget, pointAt, type Remote } from "./remote";
import { cycle } from "./search";
import { FactsTip } from "./tip";
import { arranged, topOf } from "./top";
import type { FlameTree } from "./tree";
import { sameNode, sideways, widestChild } from "./walking";
import { factsOf, narrowNote, prunedNote, spoken, summary } from "./words";

export interface FlameProps extends Asked {
  readonly tree: FlameTree;
  readonly theme: Theme;
  readonly colour: ColourBy;
  /** 1 for each function that a search found (search.ts matchesOf); null while nothing is searched. */
  readonly matches?: Uint8Array | null;
  /** Whether what does not match steps back; default yes. */
  readonly fades?: boolean;
  /** Functions to mark as matches are, while nothing is searched: what is chosen in the table. */
  readonly marked?: Uint8Array | null;
  /** Whether the root is at the bottom, as in a flame; else it hangs from the top. */
  readonly flip?: boolean;
  readonly maxHeight?: number;
  /** Levels before this one are not drawn (sandwich). */
  readonly firstLevel?: number;
  /** Changes to make the cursor go to the next (+1) or previous (-1) match: count up, sign says the direction. */
  readonly step?: { readonly count: number; readonly direction: 1 | -1 };
  /** Names from the root to what is zoomed to. Given, the host keeps it. */
  readonly zoom?: readonly string[];
  readonly onZoom?: (path: readonly string[]) => void;
  readonly onSay?: (text: string) => void;
  /** Where the matches are gone through: "3 of 17". */
  readonly onMatch?: (at: number, of: number) => void;
  readonly withCrumbs?: boolean;
  readonly withNotes?: boolean;
}

export function Flame(props: FlameProps) {
  const { tree, theme, flip = false, firstLevel = 0 } = props;
  const bars = useMemo(() => barsOf(tree), [tree]);
  const colours = useMemo(() => nodeColours(tree, props.colour, theme), [tree, props.colour, theme]);
  const whole: Extent = { x0: 0, x1: Math.max(1e-9, tree.width[0] ?? 0) };
  const [ownZoom, setOwnZoom] = useState<readonly string[]>([]);
  const zoomPath = props.zoom ?? ownZoom;
  const zoom = useMemo(() => tree.follow(zoomPath), [tree, zoomPath]);
  const [pointed, setPointed] = useState<{ tree: FlameTree; node: number } | null>(null);
  const cursor = useMemo(
    () => (pointed && pointed.tree !== tree ? sameNode(pointed.tree, pointed.node, tree) : (pointed?.node ?? null)),
    [pointed, tree],
  );
  const setCursor = (node: number | null): void => setPointed(node === null ? null : { tree, node });
  const [menu, setMenu] = useState<{ node: number; x: number; y: number } | null>(null);
  const [said, setSaid] = useState("");
  const [pixels, setPixels] = useState(1000);
  const target = zoom > 0 ? extentOf(bars, zoom) : whole;
  const { view, moving, glide, jump } = useGlide(target);
  const lastTree = useRef(tree);

  // Another tree is shown at once where the old one was zoomed; in the same tree the eye is led.
  const isNew = lastTree.current !== tree;
  useEffect(() => {
    if (lastTree.current !== tree) jump(target);
    else glide(target);
    lastTree.current = tree;
  }, [tree, zoom]);
  const shown = isNew ? target : view;

  const { narrow, deepest } = useMemo(
    () => narrowIn(bars, target, (target.x1 - target.x0) / pixels, Math.max(firstLevel, tree.depth[zoom]!)),
    [bars, zoom, pixels, firstLevel],
  );
  const marks = props.matches ?? props.marked ?? null;
  const hottest = useMemo(() => arranged(topOf(tree), { by: "self", descending: true }).slice(0, 5), [tree]);
  const order = useMemo(() => (props.matches ? cycle(tree, props.matches) : []), [tree, props.matches]);

  const say = (text: string): void => {
    setSaid(text);
    props.onSay?.(text);
  };
  const zoomTo = (node: number): void => {
    const path = tree
      .path(node)
      .slice(1)
      .map((each) => tree.name(each));
    if (props.onZoom) props.onZoom(path);
    if (!props.zoom) setOwnZoom(path);
    if (node === zoom) glide(node > 0 ? extentOf(bars, node) : whole);
  };
  const point = (node: number): void => {
    setCursor(node);
    say(spoken(tree, node, zoom));
    const reveal = revealing(tree, bars, node, view, pixels, 4);
    if (reveal !== null) zoomTo(reveal);
  };

  const at = useRef(-1);
  useEffect(() => {
    if (!props.step?.count || !order.length) return;
    at.current = (at.current + props.step.direction + order.length) % order.length;
    const node = order[at.current]!;
    setCursor(node);
    say(`Match ${at.current + 1} of ${order.length}: ${spoken(tree, node, zoom)}`);
    const reveal = revealing(tree, bars, node, view, pixels, 40);
    if (reveal !== null) zoomTo(reveal);
  }, [props.step?.count]);
  useEffect(() => {
    at.current = -1;
    props.onMatch?.(0, order.length);
  }, [order]);
  useEffect(() => {
    if (at.current >= 0) props.onMatch?.(at.current + 1, order.length);
  }, [props.step?.count]);

  const act = actionsOf(tree, props, zoomTo, say);
  // Keys for the frame at the cursor come from the page's list of commands, wherever the focus is.
  const key = useRef<(key: string) => boolean>(() => false);
  key.current = (pressed) => {
    if (pressed !== "Escape") return cursor !== null && act.byKey(pressed, cursor);
    if (zoom === 0 && cursor === null && view.x1 - view.x0 >= whole.x1 * 0.999) return false;
    setCursor(null);
    zoomTo(0);
    return true;
  };
  const remote = useMemo<Remote>(() => ({ key: (pressed) => key.current(pressed) }), []);
  useEffect(() => {
    if (cursor !== null || zoom > 0) pointAt(remote);
  }, [cursor, zoom]);
  useEffect(() => () => forget(remote), []);
  const label = useCallback(
    (node: number): string => {
      const name = tree.label(node);
      if (!tree.isDifference || !node) return name;
      const change = tree.delta(node),
        part = Math.abs(change) / (2 * tree.width[node]!);
      if (part < 0.005) return name;
      return `${!tree.value[node] ? "✕" : change > 0 ? "▲" : "▼"} ${name}`;
    },
    [tree],
  );

  const onKey = (event: KeyboardEvent): void => {
    if (event.altKey || (event.ctrlKey && event.key !== "Enter") || event.metaKey) return;
    const here = cursor ?? zoom;
    const outwards = flip ? "ArrowDown" : "ArrowUp",
      inwards = flip ? "ArrowUp" : "ArrowDown";
    const moved = ((): boolean => {
      switch (event.key) {
        case outwards:
          if (tree.depth[here]! > firstLevel) point(tree.parent[here]!);
          return true;
        case inwards:
          point(cursor === null ? here : widestChild(tree, here));
          return true;
        case "ArrowLeft":
        case "ArrowRight": {
          const side = sideways(tree, bars, here, event.key === "ArrowLeft" ? -1 : 1);
          if (side >= 0) point(side);
          return true;
        }
        case "Enter":
          zoomTo(here);
          return true;
        case "Backspace":
          if (zoom > 0) zoomTo(tree.parent[zoom]!);
          return true;
        case "ContextMenu":
        case "F10":
          if (event.key === "F10" && !event.shiftKey) return false;
          openMenu(here, event.currentTarget as HTMLElement);
          return true;
        default:
          return false;
      }
    })();
    if (!moved) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const openMenu = (node: number, box: HTMLElement): void => {
    const { left, top, width } = box.getBoundingClientRect();
    const x = ((bars.left[node]! - view.x0) / (view.x1 - view.x0)) * width;
    setMenu({ node, x: left + Math.min(width - 40, Math.max(10, x)), y: top + 40 });
  };

  const notes = [narrowNote(narrow), prunedNote(tree)].filter(Boolean);
  const levels = Math.max(1, deepest - firstLevel + 1);
  return (
    <div class="zs-flame">
      {(props.withCrumbs ?? true) && <Crumbs tree={tree} zoom={zoom} onZoom={zoomTo} />}
      <BarCanvas
        bars={bars}
        colours={colours}
        matches={marks}
        fades={props.fades ?? true}
        view={shown}
        whole={whole}
        theme={theme}
        moving={moving}
        dimmed={zoom > 0 ? tree.depth[zoom]! : 0}
        firstLevel={firstLevel}
        levels={levels}
        flip={flip}
        cursor={cursor}
        maxHeight={props.maxHeight ?? 560}
        label={label}
        levelOf={(node) => tree.depth[node]!}
        roleName="flame graph"
        description={summary(tree, hottest)}
        tip={(node) => <FactsTip facts={factsOf(tree, node, zoom)} />}
        onPick={(node) => {
          if (node === null) return setCursor(null);
          setCursor(node);
          say(spoken(tree, node, zoom));
          zoomTo(node);
        }}
        onMenu={(node, x, y) => {
          setCursor(node);
          setMenu({ node, x, y });
        }}
        onView={jump}
        onKey={onKey}
        onWidth={(width) => setPixels(Math.max(1, width))}
      />
      {(props.withNotes ?? true) && notes.length > 0 && <p class="zs-notes">{notes.join(" ")}</p>}
      <p class="hidden-text" aria-live="polite">
        {said}
      </p>
      {menu && (
        <Menu
          x={menu.x}
          y={menu.y}
          title={tree.name(menu.node)}
          items={act.items(menu.node)}
          onClose={() => setMenu(null)}
        />
      )}
    </div>
  );
}
