#include "core/export/page_text.h"

#include "core/trace/python_text.h"

namespace retrograd {

std::string_view exploreHead() {
  return R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; --page: #fafbfc; --text: #1f2328; --faint: #57606a; --line: #c9d1da; --frame: #1f3c6409; --panel: #ffffff; --link: #0b5cad;
  --forward: #eaf2fc; --forward-line: #1f6fc4; --backward: #fdf3e3; --backward-line: #b06a00; --saved: #2a7ab8; --chosen: #1f5fbf; --lit: #d0342c; --hit: #fff0a8; }
@media (prefers-color-scheme: dark) { :root { --page: #191b1f; --text: #e2e6eb; --faint: #a3abb5; --line: #4a525c; --frame: #ffffff09; --panel: #23262b; --link: #7ab0ff;
  --forward: #1f3047; --forward-line: #5a9cf0; --backward: #3f2f1a; --backward-line: #f0a040; --saved: #4f9fe0; --chosen: #7ab0ff; --lit: #f3d250; --hit: #57500f; } }
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--page); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; padding: 8px 14px; background: var(--panel); border-bottom: 1px solid var(--line); }
h1 { font-size: 16px; margin: 0; }
input { width: 22em; }
input, button { font: inherit; padding: 3px 8px; }
main { flex: 1; min-height: 0; display: flex; }
#canvas { flex: 1; overflow: auto; position: relative; }
#canvas:focus-visible { outline: 2px solid var(--chosen); outline-offset: -2px; }
aside { width: 24em; overflow: auto; padding: 10px 14px; background: var(--panel); border-left: 1px solid var(--line); overflow-wrap: anywhere; }
aside h2 { font-size: 15px; margin: 0 0 6px; }
dt { color: var(--faint); margin-top: 8px; }
dd { margin: 0; }
code, text { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
code { font-size: 13px; white-space: pre-wrap; }
a { color: var(--link); }
.faint { color: var(--faint); }
svg { display: block; }
text { font-size: 12.5px; fill: var(--text); }
text.count { fill: var(--faint); font-size: 11.5px; }
.box { cursor: pointer; }
.box rect { fill: var(--forward); stroke: var(--forward-line); }
.box.backward rect { fill: var(--backward); stroke: var(--backward-line); }
.box.frame rect { fill: var(--frame); stroke: var(--line); }
.box.hit rect { fill: var(--hit); stroke-width: 2; }
.box.linked rect { stroke: var(--lit); stroke-width: 2; }
.box.chosen rect { stroke: var(--chosen); stroke-width: 3; }
.edge { fill: none; stroke: var(--faint); opacity: .55; }
.edge.kind1 { stroke: var(--saved); stroke-dasharray: 5 3; }
.edge.kind2, .edge.kind3 { stroke: var(--backward-line); }
.edge.lit { stroke: var(--lit); stroke-width: 2; opacity: 1; }
</style>
)html";
}

std::string_view exploreBody() {
  return R"html(</head>
<body>
<header>
<h1 id="title"></h1><span id="facts" class="faint"></span>
<label>Find <input id="find" type="search" placeholder="op, value, shape or module"></label><span id="found" class="faint" role="status"></span>
<button id="next" title="Enter">Next</button>
<button id="fold">Fold all</button><button id="open">Open all</button>
<button id="origin" title="G">Origin</button><button id="back" title="B">Back</button>
</header>
<main>
<div id="canvas" tabindex="0" role="application" aria-label="Graph: arrows move, Enter folds or opens, G goes to the origin, B back, / finds"></div>
<aside id="details" aria-live="polite"></aside>
</main>
<script>
)html";
}

std::string htmlText(std::string_view text) {
  std::string out;
  for (const char c : oneLine(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view htmlHead() {
  return R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; --text: #1d2328; --faint: #68727c; --page: #ffffff; --line: #dfe4e8; --target: #fff3bf; --link: #0b5cad;
        --saved: #8a5a00; --backward: #a8431f; --forward: #1f5fa8; --again: #6b3fa0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dde3e8; --faint: #96a1ab; --page: #16191c; --line: #333a41; --target: #4a4113; --link: #79b8ff;
          --saved: #e3b341; --backward: #ff9d76; --forward: #79b8ff; --again: #c8a2f5; } }
body { margin: 1rem 1.5rem; background: var(--page); color: var(--text); font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Consolas, monospace; }
h1, h2, nav, summary { font-family: system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; border-bottom: 1px solid var(--line); }
nav { position: sticky; top: 0; background: var(--page); padding: .4rem 0; border-bottom: 1px solid var(--line); }
nav a { margin-right: 1.2em; }
a { color: inherit; text-decoration: none; } a:hover, a:focus { text-decoration: underline; } nav a, .origin a { color: var(--link); }
details { border-left: 1px solid var(--line); margin-left: .2em; padding-left: .9em; }
summary { cursor: pointer; color: var(--faint); margin-left: -.7em; }
.op, .value { white-space: pre-wrap; overflow-wrap: anywhere; padding-left: 2em; text-indent: -2em; }
.op:target, .op:has(:target), .value:target, .value:has(:target) { background: var(--target); }
.body { margin-left: 2em; }
.type, .notes, .origin, .source { color: var(--faint); }
.made { font-weight: 600; }
.role { color: var(--backward); } .role.forward { color: var(--forward); }
.saved { color: var(--saved); border: 1px solid currentColor; border-radius: 3px; padding: 0 .3em; }
.again { color: var(--again); border: 1px solid currentColor; border-radius: 3px; padding: 0 .3em; }
.border { border-top: 2px dashed var(--line); color: var(--faint); margin: .5em 0; }
</style>
)";
}

std::string_view htmlTail() { return "</body>\n</html>\n"; }

}  // namespace retrograd
