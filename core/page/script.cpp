#include "core/page/html.h"

namespace retrograd {

std::string_view pageScript() {
  return R"js(
"use strict";
const ROW = 22, MARGIN = 12;
const data = JSON.parse(document.getElementById("data").textContent);
const get = id => document.getElementById(id);
const texts = data.texts;
const ops = new Map();   // by id
const derived = new Map();  // by id of a forward op: the ops that come from it
const makers = new Map(), readers = new Map();  // by number of a value

const values = data.values.map(([name, type, kind, gradient, saved, ...numbers]) =>
  ({name, type: texts[type], kind: texts[kind], gradient, saved: saved === 1, numbers: numbers.length ? numbers : null, bad: numbers.length > 0 && (numbers[5] > 0 || numbers[6] > 0)}));

const sides = data.sides.map((list, side) => {
  const rows = [], all = [];
  let section = "", module = "", source = "";
  for (const [id, call, sectionText, moduleText, line, role, origin, reads, makes] of list) {
    const op = {id, side, call, module: texts[moduleText], line: texts[line], role: texts[role], origin, reads, makes, row: 0};
    if (texts[sectionText] !== section) { section = texts[sectionText]; if (section) rows.push({kind: "section", text: section}); }
    if (op.module !== module) { module = op.module; if (module) rows.push({kind: "module", text: module}); }
    if (op.line !== source) { source = op.line; if (source) rows.push({kind: "source", text: "# " + shortLine(source)}); }
    op.row = rows.length;
    op.place = all.length;
    op.type = makes.map(value => values[value].type).join("  ");
    op.bad = makes.some(value => values[value].bad);
    rows.push({kind: "op", op});
    all.push(op);
    ops.set(id, op);
    if (origin >= 0) { if (!derived.has(origin)) derived.set(origin, []); derived.get(origin).push(id); }
    for (const value of makes) if (!makers.has(value)) makers.set(value, id);
    for (const value of reads) { if (!readers.has(value)) readers.set(value, []); readers.get(value).push(id); }
  }
  const box = get(side === 0 ? "left" : "right");
  return {side, rows, ops: all, box, inner: box.firstElementChild, current: null};
});

/// A line of Python without the folder of its file.
function shortLine(text) {
  const colon = text.indexOf(":");
  return text.slice(text.lastIndexOf("/", colon < 0 ? text.length : colon) + 1);
}

let chosen = null, related = new Set(), hits = [], hitSet = new Set(), hitAt = -1, jumps = [];

function element(parent, name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

/// The rows in sight.
function paint(pane) {
  const {box, inner, rows} = pane;
  inner.style.height = rows.length * ROW + "px";
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + MARGIN);
  inner.replaceChildren();
  for (let i = first; i < last; ++i) {
    const {kind, text, op} = rows[i];
    const row = element(inner, "div", "row " + kind);
    row.style.top = i * ROW + "px";
    if (!op) { row.textContent = text; row.setAttribute("role", "presentation"); continue; }
    row.id = "row" + op.id;
    row.dataset.op = op.id;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", op === chosen);
    row.setAttribute("aria-setsize", pane.ops.length);
    row.setAttribute("aria-posinset", op.place + 1);
    for (const [name, is] of [["chosen", op === chosen], ["related", related.has(op.id)], ["hit", hitSet.has(op.id)], ["isbad", op.bad]]) if (is) row.classList.add(name);
    element(row, "span", "call", op.call.replace("torch.ops.", ""));
    if (op.type) element(row, "span", "type", "  # " + op.type + (op.bad ? ", not finite" : ""));
  }
  if (pane.current) box.setAttribute("aria-activedescendant", "row" + pane.current.id);
}

/// Brings an op to the middle of its pane, with its line of Python above it, if it is not in sight.
function bring(op) {
  const pane = sides[op.side], top = op.row * ROW;
  pane.current = op;
  if (top < pane.box.scrollTop + 3 * ROW || top + ROW > pane.box.scrollTop + pane.box.clientHeight - ROW) pane.box.scrollTop = top - pane.box.clientHeight / 2;
}

/// Chooses an op; the other listing shows its origin, or what comes from it.
function choose(id, focus) {
  const op = ops.get(id);
  if (!op) return false;
  chosen = op;
  related = new Set(op.origin >= 0 ? [op.origin] : derived.get(id) || []);
  bring(op);
  const other = [...related].map(each => ops.get(each)).find(each => each && each.side !== op.side);
  if (other) bring(other);
  sides.forEach(paint);
  describe(op);
  if (focus) sides[op.side].box.focus({preventScroll: true});
  return true;
}

function jump(id, focus = true) {
  const from = chosen;
  if (!choose(id, focus)) return;
  if (from && from.id !== id) jumps.push(from.id);
  try { history.replaceState(null, "", "#op" + id); } catch (error) { /* a page within a page has no address */ }
}

function toOrigin() {
  if (!chosen) return;
  const to = chosen.origin >= 0 ? chosen.origin : (derived.get(chosen.id) || [])[0];
  if (to !== undefined) jump(to);
}

function back() {
  const to = jumps.pop();
  if (to !== undefined) choose(to, true);
}

const WORDS = ["Norm", "Mean", "Deviation", "Min", "Max", "NaN", "Inf"];

function describe(op) {
  const panel = get("details");
  panel.replaceChildren();
  element(element(panel, "h3"), "code", "", op.call);
  const list = element(panel, "dl");
  const entry = (what, fill) => { element(list, "dt", "", what); fill(element(list, "dd")); };
  const link = (parent, id) => {
    const to = ops.get(id);
    if (!to) return;
    const a = element(parent, "a", "", to.call);
    a.href = "#op" + id;
    element(parent, "br");
  };
  if (op.line) entry("Line", to => element(to, "code", "", op.line));
  const from = op.origin >= 0 ? ops.get(op.origin) : null;
  if (from) {
    entry("Origin", to => link(to, from.id));
    if (from.line && from.line !== op.line) entry("Line of the origin", to => { element(to, "code", "originline", from.line); });
  }
  const backward = derived.get(op.id) || [];
  if (backward.length) entry("Backward ops", to => { backward.slice(0, 12).forEach(id => link(to, id)); if (backward.length > 12) element(to, "span", "faint", `and ${backward.length - 12} more`); });
  if (op.module) entry("Module", to => to.append(op.module));
  entry("Op", to => to.append(`#${op.id}, ${op.role}`));
  const rows = [];
  for (const value of op.reads) rows.push([value, "reads"]);
  for (const value of op.makes) rows.push([value, "makes"]);
  for (const value of [...op.reads, ...op.makes]) if (values[value].gradient >= 0) rows.push([values[value].gradient, `gradient of ${values[value].name}`]);
  if (!rows.length) return;
  const table = element(element(panel, "div", "scroll"), "table", "numbers");
  const measured = rows.some(([value]) => values[value].numbers);
  const head = element(element(table, "thead"), "tr");
  for (const word of ["Value", "", "Type", ...(measured ? WORDS : [])]) element(head, "th", "", word).scope = "col";
  const body = element(table, "tbody");
  for (const [number, what] of rows) {
    const value = values[number], row = element(body, "tr", value.bad ? "bad" : "");
    const name = element(row, "th");
    name.scope = "row";
    const made = makers.get(number);
    if (made !== undefined && made !== op.id) { const a = element(element(name, "code"), "a", "", value.name); a.href = "#op" + made; }
    else element(name, "code", "", value.name);
    if (value.saved) element(name, "span", "chip", "saved");
    element(row, "td", "", what);
    element(row, "td", "", value.type);
    if (measured) for (let i = 0; i < WORDS.length; ++i) element(row, "td", "", value.numbers ? String(value.numbers[i]) : "");
  }
}

function search() {
  const words = get("find").value.toLowerCase().split(/\s+/).filter(word => word);
  hits = [];
  if (words.length) for (const pane of sides) for (const op of pane.ops) {
    const text = `${op.call} ${op.type} ${op.module} ${op.line} ${op.role} #${op.id}`.toLowerCase();
    if (words.every(word => text.includes(word))) hits.push(op.id);
  }
  hitSet = new Set(hits);
  hitAt = -1;
  get("found").textContent = words.length ? `${hits.length} found` : "";
  sides.forEach(paint);
}

function next(step) {
  if (!hits.length) return;
  hitAt = (hitAt + step + hits.length) % hits.length;
  get("found").textContent = `${hitAt + 1} of ${hits.length}`;
  jump(hits[hitAt], false);
}

/// Arrows move over ops, not over headings and lines.
function move(pane, to) {
  const op = pane.ops[Math.max(0, Math.min(pane.ops.length - 1, to))];
  if (op) choose(op.id, true);
}

for (const pane of sides) {
  pane.box.addEventListener("scroll", () => requestAnimationFrame(() => paint(pane)));
  pane.box.addEventListener("click", event => { const row = event.target.closest("[data-op]"); if (row) jump(Number(row.dataset.op)); });
  pane.box.addEventListener("keydown", event => {
    const at = pane.current ? pane.current.place : -1, page = Math.floor(pane.box.clientHeight / ROW) - 2;
    const keys = {ArrowDown: () => move(pane, at + 1), ArrowUp: () => move(pane, at - 1), PageDown: () => move(pane, at + page), PageUp: () => move(pane, at - page),
      Home: () => move(pane, 0), End: () => move(pane, pane.ops.length - 1), ArrowLeft: () => sides[0].box.focus(), ArrowRight: () => sides[1].box.focus(),
      Enter: () => { if (pane.current) choose(pane.current.id, true); }, g: toOrigin, b: back, "/": () => get("find").focus()};
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
document.addEventListener("click", event => {
  const link = event.target.closest('a[href^="#op"]');
  if (!link) return;
  const id = Number(String(link.getAttribute("href")).slice(3));
  if (!ops.has(id)) return;
  event.preventDefault();
  jump(id);
  if (!link.closest("#details")) get("listings").scrollIntoView({block: "start"});
});
window.addEventListener("resize", () => sides.forEach(paint));
get("find").addEventListener("input", search);
get("find").addEventListener("keydown", event => { if (event.key === "Enter") next(event.shiftKey ? -1 : 1); if (event.key === "Escape") sides[0].box.focus(); });
get("next").addEventListener("click", () => next(1));
get("origin").addEventListener("click", toOrigin);
get("back").addEventListener("click", back);

sides.forEach(paint);
const asked = /^#op(\d+)$/.exec(location.hash), first = document.querySelector(".card .show");
if (asked) { if (choose(Number(asked[1]), false)) get("listings").scrollIntoView({block: "start"}); }
else if (first) { chosen = null; choose(Number(first.getAttribute("href").slice(3)), false); }
)js";
}

}  // namespace retrograd
