#include "core/page/html.h"

namespace retrograd {

std::string_view pageStyle() {
  return R"css(
:root { color-scheme: light dark; --page: #f5f6f8; --panel: #ffffff; --text: #1c2128; --faint: #5d6773; --line: #dde2e8; --link: #0b5cad; --soft: #eef1f5;
  --pass: #1a7f4b; --pass-soft: #e3f4ea; --fail: #b3261e; --fail-soft: #fdeceb; --open: #8a5a00; --open-soft: #fdf3dc; --none: #44505c; --none-soft: #e9edf1;
  --forward: #4a8fd8; --forward-2: #7fb2e8; --backward: #d98f2b; --backward-2: #ecb567; --clip: #8e6cc9; --optimizer: #3f9f7f; --modules: #b9c3ce; --modules-2: #d5dce3;
  --chosen: #dbe9fb; --origin: #fdeecb; --hit: #fff6c2; --focus: #1f6feb; --u0: #0072b2; --u1: #56b4e9; --u2: #009e73; --u3: #b9c0c9; --u4: #e69f00; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --panel: #1d2126; --text: #e1e6ec; --faint: #9aa5b1; --line: #323942; --link: #7ab4ff; --soft: #262b32;
  --pass: #5fd08f; --pass-soft: #17301f; --fail: #ff8a80; --fail-soft: #3b1d1b; --open: #f0c463; --open-soft: #362b12; --none: #b3bec9; --none-soft: #262c33;
  --forward: #5a9cf0; --forward-2: #3d72b5; --backward: #e0a04a; --backward-2: #a8742d; --clip: #a98be0; --optimizer: #55b893; --modules: #56616d; --modules-2: #414a54;
  --chosen: #213a5c; --origin: #463815; --hit: #4a431a; --focus: #7ab4ff; --u0: #2f86d0; --u1: #8fd0f8; --u2: #2bb88a; --u3: #6b737d; --u4: #e0a030; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 12px; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
code, .listing, .place { font-family: ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Consolas, monospace; font-size: 12.5px; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.faint, .count { color: var(--faint); font-weight: 400; }
.count { font-size: .8em; margin-left: .35em; }
.skip { position: absolute; left: -100em; }
.skip:focus { left: 12px; top: 8px; background: var(--panel); padding: 4px 10px; z-index: 2; }
.verdict { display: flex; gap: 20px; align-items: flex-start; padding: 22px max(24px, calc(50vw - 760px)); border-bottom: 1px solid var(--line); border-top: 5px solid; }
.verdict.pass { background: var(--pass-soft); border-top-color: var(--pass); }
.verdict.fail { background: var(--fail-soft); border-top-color: var(--fail); }
.verdict.open { background: var(--open-soft); border-top-color: var(--open); }
.verdict.none { background: var(--none-soft); border-top-color: var(--none); }
.word { margin: 0; font-size: 22px; font-weight: 650; white-space: nowrap; display: flex; align-items: center; gap: 10px; line-height: 1.3; }
.sign { display: inline-flex; width: 30px; height: 30px; border-radius: 50%; align-items: center; justify-content: center; font-size: 17px; color: var(--panel); }
.pass .word { color: var(--pass); } .pass .sign { background: var(--pass); }
.fail .word { color: var(--fail); } .fail .sign { background: var(--fail); }
.open .word { color: var(--open); } .open .sign { background: var(--open); }
.none .word { color: var(--none); } .none .sign { background: var(--none); }
.subject { min-width: 0; flex: 1; }
h1 { margin: 0; font-size: 20px; font-weight: 600; line-height: 1.5; overflow-wrap: anywhere; }
.reason { margin: 2px 0 0; max-width: 80ch; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 26px; margin: 12px 0 0; font-size: 13px; }
.facts div { display: flex; gap: 7px; min-width: 0; }
.facts dt { color: var(--faint); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
main { max-width: 1568px; margin: 0 auto; padding: 4px 24px 24px; }
section { margin-top: 26px; }
h2 { font-size: 16px; font-weight: 620; margin: 0 0 10px; }
h3 { font-size: 14px; font-weight: 600; margin: 0; }
section > p.faint { margin: -6px 0 10px; font-size: 13px; max-width: 90ch; }
.cards { list-style: none; margin: 0; padding: 0; display: grid; gap: 14px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr)); align-items: start; }
.card { background: var(--panel); border: 1px solid var(--line); border-left: 4px solid var(--line); border-radius: 8px; padding: 14px 18px; min-width: 0; }
.card.fault { border-left-color: var(--fail); } .card.suspicion { border-left-color: var(--open); } .card.note { border-left-color: var(--none); }
.card p { margin: 7px 0 0; overflow-wrap: anywhere; }
.card .tag { margin: 0 0 4px; font-size: 12px; font-weight: 600; }
.card .tag span { color: var(--faint); font-weight: 400; }
.card.fault .tag { color: var(--fail); } .card.suspicion .tag { color: var(--open); } .card.note .tag { color: var(--none); }
.card h3 { font-size: 15px; line-height: 1.45; overflow-wrap: anywhere; }
.line { background: var(--soft); border-radius: 5px; padding: 5px 9px; }
.place { color: var(--faint); margin-right: .6em; }
.remedy b { margin-right: .4em; }
.behind { font-size: 13px; color: var(--faint); }
.card details { margin-top: 9px; }
summary { cursor: pointer; font-size: 13px; color: var(--faint); }
.show { font-size: 13px; }
.notes { margin: 14px 0 0; padding-left: 20px; font-size: 13px; color: var(--faint); overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 420px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
section > .scroll { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
section > .scroll table { width: 100%; }
section > .scroll thead th { position: sticky; top: 0; background: var(--panel); box-shadow: 0 1px 0 var(--line); }
th, td { padding: 5px 12px; text-align: right; white-space: nowrap; font-weight: 400; }
th:first-child, .numbers td:nth-child(-n+3), .numbers th:nth-child(-n+3) { text-align: left; }
thead th { color: var(--faint); font-size: 12px; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
.numbers th, .numbers td { padding: 3px 9px 3px 0; font-size: 12.5px; }
tr.bad > * { color: var(--fail); font-weight: 600; }
.timeline { display: grid; grid-template-columns: max-content 1fr; gap: 6px 14px; align-items: center; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px; }
.lane-name { font-size: 13px; text-align: right; }
svg { display: block; width: 100%; overflow: visible; }
.lane { height: 18px; } .memory { height: 92px; }
.stretch { fill: var(--forward); rx: 1px; } .stretch.even { fill: var(--forward-2); }
.backward .stretch, .recompute .stretch, .hook .stretch { fill: var(--backward); } .backward .stretch.even { fill: var(--backward-2); }
.clip .stretch { fill: var(--clip); } .optimizer .stretch { fill: var(--optimizer); } .other .stretch { fill: var(--none); }
.modules .stretch { fill: var(--modules); } .modules .stretch.even { fill: var(--modules-2); }
.lane a:hover .stretch, .lane a:focus .stretch { stroke: var(--focus); stroke-width: 2; }
.mark.fault { fill: var(--fail); } .mark.suspicion { fill: var(--open); } .mark.note { fill: var(--none); }
.use0 { fill: var(--u0); } .use1 { fill: var(--u1); } .use2 { fill: var(--u2); } .use3 { fill: var(--u3); } .use4 { fill: var(--u4); }
.legend { margin: 0; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 12px; color: var(--faint); }
.key::before { content: ""; display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; background: var(--u0); }
.key.use1::before { background: var(--u1); } .key.use2::before { background: var(--u2); } .key.use3::before { background: var(--u3); } .key.use4::before { background: var(--u4); }
.bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-bottom: 10px; font-size: 13px; }
.bar input { font: inherit; width: 26em; max-width: 60vw; padding: 5px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); color: var(--text); }
button { font: inherit; padding: 5px 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); color: var(--text); cursor: pointer; }
button:hover { background: var(--soft); }
.keys { margin-left: auto; }
kbd { font: inherit; border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; background: var(--panel); }
.panes { display: grid; grid-template-columns: 1fr 1fr; gap: 14px; }
.pane { min-width: 0; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.pane h3 { padding: 9px 14px; border-bottom: 1px solid var(--line); }
.listing { height: min(58vh, 620px); overflow: auto; line-height: 22px; }
.listing:focus-visible { outline-offset: -2px; }
.rows { position: relative; min-width: 100%; width: max-content; }
.row { position: absolute; left: 0; min-width: 100%; height: 22px; white-space: pre; padding: 0 14px; }
.row.op { cursor: pointer; padding-left: 30px; }
.row.op:hover { background: var(--soft); }
.row.section { font-weight: 650; background: var(--soft); }
.row.module { color: var(--link); }
.row.source { color: var(--faint); padding-left: 22px; }
.row .type { color: var(--faint); }
.row.hit { background: var(--hit); }
.row.related { background: var(--origin); }
.row.chosen { background: var(--chosen); box-shadow: inset 3px 0 0 var(--focus); }
.row.isbad > .call { color: var(--fail); }
.details { margin-top: 14px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 12px 18px 14px; min-height: 90px; overflow: auto; }
.details p { margin: 6px 0 0; overflow-wrap: anywhere; }
.details h3 code { font-size: 13px; font-weight: 600; white-space: pre-wrap; overflow-wrap: anywhere; }
.details dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 16px; margin: 8px 0 10px; font-size: 13px; }
.details dt { color: var(--faint); } .details dd { margin: 0; overflow-wrap: anywhere; }
.chip { display: inline-block; font-size: 11.5px; border: 1px solid var(--line); border-radius: 9px; padding: 0 7px; margin-left: 6px; color: var(--faint); }
footer { padding: 10px 24px 26px; text-align: center; color: var(--faint); font-size: 12px; }
@media (max-width: 860px) { .verdict { flex-direction: column; gap: 8px; } .panes { grid-template-columns: 1fr; } .listing { height: 44vh; } .keys { display: none; } main { padding: 4px 14px 20px; } }
@media print { .listing { height: auto; max-height: 400px; } .bar { display: none; } }
)css";
}

}  // namespace retrograd
