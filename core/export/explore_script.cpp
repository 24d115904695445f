#include "core/export/page_text.h"

namespace retrograd {

std::string_view exploreScript() {
  return R"html("use strict";
const KIND = {root: 0, module: 1, run: 2, operation: 3, op: 4};
const ROW = 24, GAP = 4, INDENT = 14, LEFT = 130, WIDTH = 330, BETWEEN = 150, MOST_EDGES = 1500;
const get = id => document.getElementById(id);
const canvas = get("canvas"), find = get("find");

// The tree: children by node, ops by node, edges by op.
const nodes = graph.nodes.map(([kind, parent, lane, forward, backward, title], id) => ({id, kind, parent, lane, counts: [forward, backward], title, children: [], op: null, into: [], from: []}));
for (const node of nodes) if (node.parent >= 0) nodes[node.parent].children.push(node.id);
for (const [node, id, call, shape, role, module, origin, source] of graph.ops)
  nodes[node].op = {id, call, shape, role: graph.texts[role], module: graph.texts[module], origin, source: graph.texts[source]};
for (const edge of graph.edges) { nodes[edge[0]].from.push(edge); nodes[edge[1]].into.push(edge); }
const opsBelow = nodes.map(node => node.kind === KIND.op ? 1 : 0);
for (let i = nodes.length - 1; i > 0; --i) opsBelow[nodes[i].parent] += opsBelow[i];

const open = new Set([0]);
let boxes = [], shown = [], height = 0, chosen = -1, hits = [], hitAt = -1, jumps = [];
let hitsBelow = new Int32Array(nodes.length);

const canOpen = node => node.children.length > 0 && !(node.kind === KIND.operation && opsBelow[node.id] === 1);
const lanesOf = node => node.kind === KIND.op ? [graph.ladder ? node.lane : 0] : [0, 1].filter(lane => node.counts[lane] > 0);

/// Places what is open: the forward goes down on the left, and each backward op is in the row of the forward op that it comes from.
function layOut() {
  boxes = [];
  shown = nodes.map(() => null);
  height = GAP;
  const place = (node, lane, y, depth, frame) => {
    const box = {node, lane, y, depth, frame, end: y + ROW};
    boxes.push(box);
    (shown[node] = shown[node] || [])[lane] = box;
    return box;
  };
  const visit = (id, depth) => {
    const node = nodes[id];
    if (node.kind === KIND.operation && opsBelow[id] === 1) return visit(node.children[0], depth);  // it is that op
    if (!open.has(id) || !canOpen(node)) {
      for (const lane of lanesOf(node)) place(id, lane, height, depth, false);
      height += ROW + GAP;
      return;
    }
    const frames = lanesOf(node).map(lane => place(id, lane, height, depth, true));
    height += ROW + GAP;
    if (node.kind === KIND.operation) {
      const rows = [height, height];
      const backward = node.children.filter(child => nodes[child].lane === 1).reverse();  // upwards, as the backward runs
      for (const child of [...node.children.filter(child => nodes[child].lane === 0), ...backward]) {
        const lane = graph.ladder ? nodes[child].lane : 0;
        place(child, lane, rows[lane], depth + 1, false);
        rows[lane] += ROW + GAP;
      }
      height = Math.max(...rows);
    } else {
      for (const child of node.children) visit(child, depth + 1);
    }
    height += GAP;
    for (const frame of frames) frame.end = height - GAP;
  };
  for (const child of nodes[0].children) visit(child, 0);
}

const left = box => box.lane === 0 ? LEFT + box.depth * INDENT : LEFT + WIDTH + BETWEEN;
const right = box => box.lane === 0 ? LEFT + WIDTH : LEFT + 2 * WIDTH + BETWEEN - box.depth * INDENT;

/// The box that shows an op: its own, or that of the closed group around it.
function boxOf(id) {
  const lane = graph.ladder ? nodes[id].lane : 0;
  for (let at = id; at > 0; at = nodes[at].parent) if (shown[at]) return shown[at][lane] || shown[at].find(box => box);
  return null;
}

/// Lines between the boxes in sight, merged; all of them, or those of the chosen box where there are too many.
function lifted() {
  const all = new Map();
  const add = (edge, lit) => {
    const a = boxOf(edge[0]), b = boxOf(edge[1]);
    if (!a || !b || a === b) return;
    const key = `${a.node}/${a.lane}/${b.node}/${b.lane}/${edge[2]}`;
    const known = all.get(key);
    if (known) { known.count += 1; known.lit ||= lit; return; }
    all.set(key, {a, b, kind: edge[2], count: 1, lit});
  };
  const isChosen = id => { for (let at = id; at > 0; at = nodes[at].parent) if (at === chosen) return true; return false; };
  if (boxes.length <= MOST_EDGES) for (const edge of graph.edges) add(edge, chosen > 0 && (isChosen(edge[0]) || isChosen(edge[1])));
  else if (chosen > 0) for (const edge of graph.edges) if (isChosen(edge[0]) || isChosen(edge[1])) add(edge, true);
  return [...all.values()];
}

function pathOf({a, b}) {
  const ya = a.y + ROW / 2, yb = b.y + ROW / 2;
  if (a.lane !== b.lane) {  // across: from the inner side of one lane to that of the other
    const [l, r] = a.lane === 0 ? [a, b] : [b, a];
    const x1 = right(l), x2 = left(r), bend = (x1 + x2) / 2;
    return `M${x1} ${l.y + ROW / 2}C${bend} ${l.y + ROW / 2} ${bend} ${r.y + ROW / 2} ${x2} ${r.y + ROW / 2}`;
  }
  if (Math.abs(a.y - b.y) <= ROW + 3 * GAP) {
    const x = (Math.max(left(a), left(b)) + Math.min(right(a), right(b))) / 2, down = b.y > a.y;
    return `M${x} ${down ? a.y + ROW : a.y}L${x} ${down ? b.y : b.y + ROW}`;
  }
  const out = Math.min(LEFT - 10, 14 + 5 * Math.sqrt(Math.abs(yb - ya)));  // around, on the outer side
  const [xa, xb, x] = a.lane === 0 ? [left(a), left(b), Math.min(left(a), left(b)) - out] : [right(a), right(b), Math.max(right(a), right(b)) + out];
  return `M${xa} ${ya}C${x} ${ya} ${x} ${yb} ${xb} ${yb}`;
}

const NS = "http://www.w3.org/2000/svg";
function make(parent, name, attributes, text) {
  const element = document.createElementNS(NS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

let svg = null, edges = [];
function rebuild() {
  layOut();
  draw();
}

/// What is in sight, and a screen above and below.
function draw() {
  edges = lifted();
  const width = LEFT * 2 + (graph.ladder ? 2 * WIDTH + BETWEEN : WIDTH);
  if (!svg) svg = make(canvas, "svg", {role: "tree", "aria-label": `Graph of the ${graph.trace}`});
  svg.setAttribute("width", width);
  svg.setAttribute("height", height + ROW);
  paint();
}

function paint() {
  const top = canvas.scrollTop - canvas.clientHeight, bottom = canvas.scrollTop + 2 * canvas.clientHeight;
  const seen = (a, b) => Math.max(a, b) >= top && Math.min(a, b) <= bottom;
  const linked = new Set();
  for (const edge of edges) if (edge.lit) { linked.add(edge.a); linked.add(edge.b); }
  svg.replaceChildren();
  const drawBox = box => {
    const node = nodes[box.node], x = left(box), wide = right(box) - x;
    const found = hitsBelow[box.node];
    const name = labelOf(box);
    const group = make(svg, "g", {class: ["box", box.lane ? "backward" : "", box.frame ? "frame" : "", found && !box.frame ? "hit" : "", linked.has(box) ? "linked" : "", box.node === chosen ? "chosen" : ""].join(" "),
      "data-node": box.node, role: "treeitem", "aria-label": name, "aria-selected": box.node === chosen, ...(canOpen(node) ? {"aria-expanded": box.frame} : {})});
    make(group, "rect", {x, y: box.y, width: wide, height: box.end - box.y, rx: 4});
    make(group, "text", {x: x + 8, y: box.y + 16}, (canOpen(node) ? (box.frame ? "\u25be " : "\u25b8 ") : "") + short(name, (wide - 90) / 7.6));
    const count = found && !node.op ? `${found} found` : node.op ? short(node.op.shape, 14) : `${node.counts[box.lane]} ops`;
    make(group, "text", {x: x + wide - 8, y: box.y + 16, "text-anchor": "end", class: "count"}, count);
  };
  for (const box of boxes) if (box.frame && seen(box.y, box.end)) drawBox(box);
  for (const edge of edges) if (seen(edge.a.y, edge.b.y)) make(svg, "path", {d: pathOf(edge), class: `edge kind${edge.kind}${edge.lit ? " lit" : ""}`});
  for (const box of boxes) if (!box.frame && seen(box.y, box.end)) drawBox(box);
}

const short = (text, most) => text.length <= most ? text : text.slice(0, Math.max(1, most - 1)) + "\u2026";
function labelOf(box) {
  const node = nodes[box.node];
  return node.op ? node.op.call : node.title + (box.lane === 1 && node.kind !== KIND.op && !node.title.endsWith("backward") ? " backward" : "");
}

function choose(id, scroll) {
  chosen = id;
  draw();
  describe();
  const box = id > 0 && (shown[id] ? shown[id].find(each => each) : boxOf(id));
  if (scroll && box && (box.y < canvas.scrollTop || box.y + ROW > canvas.scrollTop + canvas.clientHeight)) {
    canvas.scrollTop = box.y - canvas.clientHeight / 2;
    paint();
  }
}

/// Opens what is around a node, chooses it and scrolls there.
function reveal(id) {
  for (let at = nodes[id].parent; at > 0; at = nodes[at].parent) open.add(at);
  layOut();
  choose(id, true);
}

function jump(id) {
  if (id < 0) return;
  jumps.push(chosen);
  reveal(id);
}

function toggle(id) {
  if (!canOpen(nodes[id])) return;
  if (!open.delete(id)) open.add(id);
  layOut();
  choose(id, true);
}

/// The origin of a backward op; from a forward op the first backward op that comes from it.
function toOrigin() {
  const op = chosen > 0 ? nodes[chosen].op : null;
  if (!op) return;
  if (op.origin >= 0) return jump(op.origin);
  const derived = graph.ops.find(each => each[6] === chosen);
  if (derived) jump(derived[0]);
}

function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(word => word);
  hits = words.length === 0 ? [] : graph.ops.filter(([node]) => {
    const op = nodes[node].op;
    const text = `${op.call} ${op.shape} ${op.module} ${op.role} #${op.id}`.toLowerCase();
    return words.every(word => text.includes(word));
  }).map(each => each[0]);
  hitAt = -1;
  hitsBelow = new Int32Array(nodes.length);
  for (const hit of hits) for (let at = hit; at >= 0; at = nodes[at].parent) ++hitsBelow[at];
  get("found").textContent = words.length === 0 ? "" : `${hits.length} found`;
  draw();
}

function next(step) {
  if (hits.length === 0) return;
  hitAt = (hitAt + step + hits.length) % hits.length;
  get("found").textContent = `${hitAt + 1} of ${hits.length}`;
  reveal(hits[hitAt]);
}

function describe() {
  const panel = get("details");
  panel.replaceChildren();
  const add = (parent, name, text) => { const element = document.createElement(name); if (text !== undefined) element.textContent = text; parent.append(element); return element; };
  if (chosen <= 0) { add(panel, "p", "Choose a box: here is what it says. Enter or a double click opens a group.").className = "faint"; return; }
  const node = nodes[chosen];
  add(panel, "h2", node.title);
  const list = add(panel, "dl");
  const entry = (what, fill) => { add(list, "dt", what); fill(add(list, "dd")); };
  const link = (to, id) => { const a = add(to, "a", nodes[id].op ? nodes[id].op.call : nodes[id].title); a.href = "#node" + id; a.onclick = event => { event.preventDefault(); jump(id); }; add(to, "br"); };
  if (node.op) {
    entry("Call", to => add(to, "code", node.op.call));
    entry("Op", to => to.append(`#${node.op.id}, ${node.op.role}`));
    if (node.op.shape) entry("Makes", to => to.append(node.op.shape));
    if (node.op.origin >= 0) entry("Origin", to => link(to, node.op.origin));
    const derived = graph.ops.filter(each => each[6] === chosen);
    if (derived.length) entry("Backward ops", to => derived.forEach(each => link(to, each[0])));
    if (node.op.module) entry("Module", to => to.append(node.op.module));
    if (node.op.source) entry("Source", to => to.append(node.op.source));
    if (node.into.length) entry("Reads", to => node.into.forEach(edge => link(to, edge[0])));
    if (node.from.length) entry("Read by", to => node.from.forEach(edge => link(to, edge[1])));
  } else {
    entry("Ops", to => to.append(graph.ladder ? `${node.counts[0]} forward, ${node.counts[1]} backward` : `${opsBelow[chosen]}`));
    entry("Inside", to => node.children.slice(0, 100).forEach(child => link(to, child)));
  }
}

function move(step) {
  const at = boxes.findIndex(box => box.node === chosen), to = boxes[Math.min(boxes.length - 1, Math.max(0, at + step))];
  if (to) choose(to.node, true);
}
/// To the box of the other lane in this row.
function across(lane) {
  const box = boxes.find(each => each.node === chosen);
  const other = box && boxes.find(each => each.lane === lane && each.y <= box.y && each.end >= box.y + ROW && !each.frame);
  if (other) choose(other.node, true);
}

canvas.addEventListener("click", event => { const box = event.target.closest("[data-node]"); if (box) { canvas.focus({preventScroll: true}); choose(Number(box.dataset.node), false); } });
canvas.addEventListener("dblclick", event => { const box = event.target.closest("[data-node]"); if (box) toggle(Number(box.dataset.node)); });
canvas.addEventListener("scroll", () => requestAnimationFrame(paint));
window.addEventListener("resize", paint);
canvas.addEventListener("keydown", event => {
  const keys = {ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowLeft: () => across(0), ArrowRight: () => across(1), Enter: () => chosen > 0 && toggle(chosen),
    g: toOrigin, b: () => get("back").click(), "/": () => find.focus()};
  if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
find.addEventListener("input", search);
find.addEventListener("keydown", event => { if (event.key === "Enter") next(event.shiftKey ? -1 : 1); if (event.key === "Escape") canvas.focus(); });
get("next").onclick = () => next(1);
get("fold").onclick = () => { open.clear(); open.add(0); rebuild(); };
get("open").onclick = () => { for (const node of nodes) if (canOpen(node)) open.add(node.id); rebuild(); };
get("origin").onclick = toOrigin;
get("back").onclick = () => { const to = jumps.pop(); if (to > 0) reveal(to); };

get("title").textContent = graph.title;
get("facts").textContent = `${graph.trace}, ${graph.ops.length} ops`;
rebuild();
describe();
</script>
</body>
</html>
)html";
}

}  // namespace retrograd
