#!/usr/bin/env python3
"""The page of `export --to explore` in a real browser, Debian's headless Chromium: explore_test.py PROGRAM. Skipped where no Chromium is installed."""
import html
import json
import re
import shutil
import subprocess
import sys
import unittest

import support

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
GPT12 = support.TOP.parent / "shared" / "cases" / "large" / "gpt12" / "model.pt2"
SAMPLE = support.TOP / "resources" / "samples" / "tiny_gpt.pt2"

# Runs in the page after its own script: events as a person's hands make them, and what is then to be seen, as JSON in the document.
DRIVER = """
<script>
{
const seen = {};
const say = (name, value) => { seen[name] = value; };
const drawn = () => [...document.querySelectorAll("[data-node]")];
const box = id => drawn().find(each => Number(each.dataset.node) === id);
const mouse = (kind, target) => target.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const type = text => { find.value = text; find.dispatchEvent(new Event("input")); };
try {
  say("closed", drawn().length);
  say("titles", graph.nodes.map(each => each[5]));
  const group = drawn().find(each => each.getAttribute("aria-expanded") === "false");
  mouse("dblclick", group.querySelector("rect"));
  say("opened", drawn().length);
  say("expanded", box(Number(group.dataset.node)).getAttribute("aria-expanded"));
  mouse("dblclick", box(Number(group.dataset.node)).querySelector("rect"));
  say("closedAgain", drawn().length);

  type("aten.mm gradient");
  say("found", get("found").textContent);
  say("hits", hits.length);
  say("marked", document.querySelectorAll(".box.hit").length);
  key(find, "Enter");
  say("atHit", nodes[chosen].op ? nodes[chosen].op.call : "");
  say("hitShown", !!box(chosen));
  type("no such thing anywhere");
  say("notFound", get("found").textContent);
  type("");

  const backward = graph.ops.find(each => each[6] >= 0 && nodes[each[0]].lane === 1);
  reveal(backward[0]);
  canvas.focus();
  key(canvas, "g");
  say("origin", chosen === backward[6]);
  say("originShown", !!box(chosen));
  key(canvas, "b");
  say("back", chosen === backward[0]);
  say("details", get("details").textContent);
  const row = drawn().filter(each => Number(each.dataset.node) === backward[0])[0].querySelector("rect").getAttribute("x");
  reveal(backward[6]);
  say("leftOf", Number(box(backward[6]).querySelector("rect").getAttribute("x")) < Number(row));

  mouse("click", get("open"));
  say("allOpen", graph.ops.every(each => boxOf(each[0]) && boxOf(each[0]).node === each[0]));
  say("drawn", drawn().length);
  mouse("click", get("fold"));
  say("folded", drawn().length);
  canvas.focus();
  key(canvas, "ArrowDown");
  say("lines", document.querySelectorAll("path.edge").length);
  say("loads", performance.getEntriesByType("resource").length);
} catch (error) { say("error", String(error.stack || error)); }
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.append(out);
}
</script>
"""


class Explore(support.Case):
    def export(self, model, *options):
        page = self.path / "graph.html"
        self.good("export", model, "--to", "explore", "-o", page, *options)
        return page

    def drive(self, page):
        driven = self.path / "driven.html"
        driven.write_text(page.read_text(encoding="utf-8").replace("</body>", DRIVER + "</body>"), encoding="utf-8")
        result = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800", f"--user-data-dir={self.path / 'profile'}",
                                 "--dump-dom", driven.as_uri()], capture_output=True, text=True, timeout=240)
        found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.S)
        self.assertTrue(found, result.stderr[-2000:])
        seen = json.loads(html.unescape(found.group(1)))
        self.assertNotIn("error", seen)
        return seen

    # Holds J's fourth point: fold, search and jump work in a real browser, on gpt12 where it is there.
    @unittest.skipUnless(BROWSER, "no chromium is installed (scripts/packages-tests.txt)")
    def test_fold_search_and_jump_work_in_a_browser(self):
        model = GPT12 if GPT12.exists() else SAMPLE
        seen = self.drive(self.export(model))
        self.assertGreater(seen["opened"], seen["closed"])
        self.assertEqual(seen["expanded"], "true")
        self.assertEqual(seen["closedAgain"], seen["closed"])
        if model == GPT12:
            self.assertTrue(any(re.search(r"\d … \d+, \d+ times", title) for title in seen["titles"]), sorted(set(seen["titles"])))
        self.assertGreater(seen["hits"], 0)
        self.assertEqual(seen["found"], f"{seen['hits']} found")
        self.assertGreater(seen["marked"], 0)
        self.assertIn("mm", seen["atHit"])
        self.assertTrue(seen["hitShown"])
        self.assertEqual(seen["notFound"], "0 found")
        self.assertTrue(seen["origin"] and seen["originShown"] and seen["back"] and seen["leftOf"])
        self.assertIn("Origin", seen["details"])
        self.assertTrue(seen["allOpen"])
        self.assertGreater(seen["drawn"], 10)
        self.assertEqual(seen["folded"], seen["closed"])
        self.assertEqual(seen["loads"], 0, "the page loads something from elsewhere")

    def test_one_trace_of_any_kind(self):
        for kind in ("computation", "forward", "backward", "joint"):
            page = self.export(SAMPLE, "--show", kind).read_text(encoding="utf-8")
            self.assertIn(f'trace: "{kind}"', page)
            self.assertEqual(page.count("<script>"), 1)
            self.assertNotIn("http", re.sub(r'"http://www\.w3\.org/2000/svg"|http-equiv', "", page))
        error = self.bad("export", SAMPLE, "--to", "explore", "--show", "all", "-o", self.path / "all.html").stderr
        self.assertIn("--show", error)
        self.assertFalse((self.path / "all.html").exists())

    def test_names_of_a_file_end_no_script(self):
        page = self.path / "hostile.html"
        text = self.path / "x.txt"
        text.write_text((support.DATA / "planted" / "log_of_zero.txt").read_text())
        (self.path / "<img onerror=1>.txt").write_bytes(text.read_bytes())
        self.good("export", self.path / "<img onerror=1>.txt", "--to", "explore", "-o", page)
        self.assertNotIn("<img", page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
