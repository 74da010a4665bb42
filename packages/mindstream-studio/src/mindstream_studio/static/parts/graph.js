/** A graph as SVG, with a layout by dagre (loaded for the first graph); each node is a button. */
import { html, signal, useEffect, useMemo, useRef } from "../html.js";

const dagre = signal(/** @type {typeof import("../vendor/dagre.js").default | null} */ (null));

/**
 * @typedef {{id: string, text: string, note?: string, state?: "now" | "ran" | "failed" | ""}} Node
 * @typedef {{from: string, to: string}} Edge
 * @typedef {{title: string, nodes: Node[], edges: Edge[], down?: boolean, slim?: boolean, onOpen?: (id: string) => void, words: string}} GraphProps
 */

const LINES = 3;
const [LINE, PAD] = [17, 12];
const [BROAD, SLIM] = [{ width: 208, letters: 26 }, { width: 148, letters: 18 }];

/** Break a text into at most three lines. @param {string} text @param {number} letters */
export function linesOf(text, letters = BROAD.letters) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.slice(0, 400).split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last !== undefined && last.length + word.length < letters) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  const kept = lines.slice(0, LINES).map((line) => (line.length > letters + 2 ? `${line.slice(0, letters)}…` : line));
  if (lines.length > LINES) kept[LINES - 1] = `${kept[LINES - 1]?.replace(/…$/, "")} …`;
  return kept;
}

/** Break the label above a box into lines. @param {string} note @param {number} letters */
function notesOf(note, letters) {
  /** @type {string[]} */
  const lines = [];
  for (const part of note.split(/(?<=[\s_.])/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.trimEnd().length <= letters) lines[lines.length - 1] = last + part;
    else lines.push(part);
  }
  return lines.slice(0, LINES).map((line) => (line.length > letters + 2 ? `${line.slice(0, letters)}…` : line));
}

/** @param {NonNullable<typeof dagre.value>} by @param {Node[]} nodes @param {Edge[]} edges @param {boolean} down @param {typeof BROAD} box */
function layOut(by, nodes, edges, down, { width, letters }) {
  const graph = new by.graphlib.Graph();
  graph.setGraph({ rankdir: down ? "TB" : "LR", nodesep: 18, ranksep: 44, marginx: 2, marginy: 2 });
  graph.setDefaultEdgeLabel(() => ({}));
  const drawn = nodes.map((node) => {
    const lines = linesOf(node.text, letters);
    const notes = node.note ? notesOf(node.note, letters) : [];
    const height = PAD * 2 + LINE * (lines.length + notes.length) - 3;
    graph.setNode(node.id, { width, height });
    return { node, notes, lines, height };
  });
  const known = new Set(nodes.map(({ id }) => id));
  for (const { from, to } of edges) if (known.has(from) && known.has(to)) graph.setEdge(from, to);
  by.layout(graph);
  const place = (/** @type {{node: Node}} */ { node }) => { const { x, y } = graph.node(node.id); return down ? y * 1e6 + x : x * 1e6 + y; };
  return { graph, drawn: drawn.sort((a, b) => place(a) - place(b)) };
}

/** @param {{x: number, y: number}[]} points */
const pathOf = (points) => `M${points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;

/** @param {{x: number, y: number}[]} points the last two define the direction of the arrowhead */
function tipOf(points) {
  const [a, b] = points.slice(-2);
  if (!a || !b) return "";
  const turn = Math.atan2(b.y - a.y, b.x - a.x);
  const at = (/** @type {number} */ by) => `${(b.x - 7 * Math.cos(turn + by)).toFixed(1)} ${(b.y - 7 * Math.sin(turn + by)).toFixed(1)}`;
  return `M${b.x.toFixed(1)} ${b.y.toFixed(1)}L${at(0.45)}L${at(-0.45)}z`;
}

/** @param {{drawn: {node: Node, notes: string[], lines: string[], height: number}, width: number, x: number, y: number, onOpen?: ((id: string) => void) | undefined}} props */
function Box({ drawn: { node, notes, lines, height }, width, x, y, onOpen }) {
  const role = onOpen ? { role: "button", tabindex: 0 } : {};
  /** @param {KeyboardEvent} event */
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onOpen?.(node.id); } };
  const texts = [...notes, ...lines];
  return html`
    <g ...${role} class=${node.state ?? ""} transform=${`translate(${x - width / 2} ${y - height / 2})`} onClick=${() => onOpen?.(node.id)} onKeyDown=${press}>
      <rect width=${width} height=${height} rx="6" />
      <text>${texts.map((text, at) => html`<tspan class=${at < notes.length ? "soft" : ""} x=${PAD} y=${PAD + 10 + LINE * at}>${text}${" "}</tspan>`)}</text>
    </g>`;
}

/** @param {GraphProps} props */
export function Graph({ title, nodes, edges, down = false, slim = false, onOpen, words }) {
  const place = useRef(/** @type {SVGSVGElement | null} */ (null));
  const box = slim ? SLIM : BROAD;
  const by = dagre.value;
  useEffect(() => { if (!by) import("../vendor/dagre.js").then((made) => { dagre.value = made.default; }); }, []);
  const laid = useMemo(() => by && layOut(by, nodes, edges, down, box), [by, JSON.stringify([nodes, edges, down, slim])]);
  /** Move the focus from node to node with the arrow keys. @param {KeyboardEvent} event */
  const walk = (event) => {
    const step = ["ArrowRight", "ArrowDown"].includes(event.key) ? 1 : ["ArrowLeft", "ArrowUp"].includes(event.key) ? -1 : 0;
    const all = /** @type {SVGGElement[]} */ ([...(place.current?.querySelectorAll("[role=button]") ?? [])]);
    const next = all[all.indexOf(/** @type {any} */ (document.activeElement)) + step];
    if (step && next) { event.preventDefault(); next.focus(); }
  };
  if (!laid) return null;
  const { graph, drawn } = laid;
  const { width = 1, height = 1 } = graph.graph();
  return html`
    <figure class="graph" aria-label=${title}>
      <svg ref=${place} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} onKeyDown=${walk} role="group" aria-label=${words}>
        ${graph.edges().map((/** @type {any} */ each) => {
          const { points } = graph.edge(each);
          return html`<path class="edge" d=${pathOf(points)} /><path class="tip" d=${tipOf(points)} />`;
        })}
        ${drawn.map((each) => { const { x, y } = graph.node(each.node.id); return html`<${Box} drawn=${each} width=${box.width} x=${x} y=${y} onOpen=${onOpen} />`; })}
      </svg>
      <figcaption>${words}</figcaption>
    </figure>`;
}
