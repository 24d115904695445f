#include "core/export/html_text.h"

#include "core/trace/python_text.h"

namespace retrograd {

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
