#!/usr/bin/env python3
"""The page of `retrograd report` in a real browser, Debian's headless Chromium: report_test.py PROGRAM. Without a Chromium the tests of the browser are skipped."""
import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
import time
import unittest

import support

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CASES = support.TOP.parent / "shared" / "cases"
SAMPLES = support.TOP / "resources" / "samples"

# Runs in the page after its own script: events as a person's hands make them, and what is then to be seen, as JSON in the document.
DRIVER = """
{
const seen = {errors: []};
window.addEventListener("error", event => seen.errors.push(event.message));
document.addEventListener("securitypolicyviolation", event => seen.errors.push("policy: " + event.violatedDirective));
const say = (name, value) => { seen[name] = value; };
const mouse = target => target.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const inSight = op => {
  const pane = sides[op.side], top = op.row * ROW;
  const row = document.getElementById("row" + op.id);
  return !!row && top >= pane.box.scrollTop && top + ROW <= pane.box.scrollTop + pane.box.clientHeight;
};
try {
  say("findings", document.querySelectorAll(".card").length);
  say("lines", [...document.querySelectorAll(".card .line")].map(each => each.textContent));
  const shown = document.querySelector(".card .show"), hasListings = typeof sides !== "undefined";
  if (shown) {
    mouse(shown);
    say("findingInSight", chosen && inSight(chosen));
    say("findingLine", chosen ? chosen.line : "");
    const above = chosen ? sides[chosen.side].rows.slice(0, chosen.row).reverse().find(row => row.kind === "source") : null;
    say("findingLineAbove", above ? above.text : "");
  }
  const backward = hasListings && sides[1].ops.filter(op => op.origin >= 0 && ops.has(op.origin) && ops.get(op.origin).side === 0).pop();
  if (backward) {
    bring(backward);
    paint(sides[1]);
    mouse(document.getElementById("row" + backward.id));
    const origin = ops.get(backward.origin);
    say("originInSight", inSight(origin));
    say("originMarked", document.getElementById("row" + origin.id).classList.contains("related"));
    say("originLine", [origin.line, get("details").textContent.includes(origin.line)]);
    say("originLinked", [...get("details").querySelectorAll("a")].some(a => a.getAttribute("href") === "#op" + origin.id));
    key(sides[1].box, "g");
    say("wentToOrigin", chosen === origin && document.activeElement === sides[0].box);
    key(sides[0].box, "b");
    say("back", chosen === backward);
    key(sides[1].box, "ArrowUp");
    say("arrow", chosen === sides[1].ops[Math.max(0, backward.place - 1)]);
    say("active", sides[1].box.getAttribute("aria-activedescendant") === "row" + chosen.id && document.getElementById("row" + chosen.id).getAttribute("aria-selected"));
  }
  if (hasListings && sides[0].ops.length) {
    const find = get("find");
    find.value = "#" + sides[0].ops[0].id;
    find.dispatchEvent(new Event("input"));
    say("found", hits.length);
    key(find, "Enter");
    say("atHit", hits.includes(chosen.id));
    find.value = "no such thing anywhere";
    find.dispatchEvent(new Event("input"));
    say("notFound", get("found").textContent);
  }
  const stretch = document.querySelector(".timeline a");
  if (stretch) { mouse(stretch.querySelector("rect")); say("timeline", "#op" + chosen.id === stretch.getAttribute("href")); }
  // What a screen reader needs: a name for everything that is reached by keyboard.
  const name = element => element.getAttribute("aria-label") || element.textContent.trim() || (element.getAttribute("aria-labelledby") && document.getElementById(element.getAttribute("aria-labelledby")).textContent)
    || (element.id && document.querySelector(`label[for="${element.id}"]`) || {}).textContent;
  say("nameless", [...document.querySelectorAll("a, button, input, [tabindex], section")].filter(each => !name(each)).map(each => each.outerHTML.slice(0, 200)));
  say("roles", ["listbox", "option"].map(role => document.querySelectorAll(`[role="${role}"]`).length));
  say("loads", performance.getEntriesByType("resource").length);
} catch (error) { seen.errors.push(String(error.stack || error)); }
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.append(out);
}
"""


def allowed(script):
    """The driver's word in the page's policy: the policy itself stays in force."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


class Report(support.Case):
    def page(self, path, *options, code=None):
        """The page of a file, how long it took, and the verdict as JSON."""
        page = self.path / "report.html"
        begin = time.monotonic()
        result = support.run("report", path, "-o", page, "--format", "json", *options)
        seconds = time.monotonic() - begin
        self.assertTrue(page.exists(), result.stderr)
        answer = json.loads(result.stdout)
        expected = {"pass": 0, "no verdict": 0, "fail": 1, "not possible": 2}[answer["verdict"]]
        self.assertEqual(result.returncode, expected if code is None else code, result.stderr)
        self.assertEqual(answer["bytes"], page.stat().st_size)
        return page, seconds, answer

    def drive(self, page):
        driven = self.path / "driven.html"
        text = page.read_text(encoding="utf-8").replace("script-src ", f"script-src {allowed(DRIVER)} ", 1)
        driven.write_text(text.replace("</body>", f"<script>{DRIVER}</script></body>"), encoding="utf-8")
        result = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", f"--user-data-dir={self.path / 'profile'}",
                                 "--enable-logging=stderr", "--dump-dom", driven.as_uri()], capture_output=True, text=True, timeout=240)
        found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.S)
        self.assertTrue(found, result.stderr[-2000:])
        self.assertNotIn("CONSOLE", result.stderr)
        seen = json.loads(html.unescape(found.group(1)))
        self.assertEqual(seen["errors"], [])
        self.assertEqual(seen["loads"], 0, "the page loads something from elsewhere")
        self.assertEqual(seen["nameless"], [])
        return seen

    def works(self, path, *options):
        """The page of a file in the browser: what holds for all of them."""
        page, seconds, answer = self.page(path, *options)
        self.assertLess(page.stat().st_size, 5 << 20)
        seen = self.drive(page)
        if "originInSight" in seen:
            for each in ("originInSight", "originMarked", "originLinked", "wentToOrigin", "back", "arrow", "active"):
                self.assertTrue(seen[each], each)
            self.assertTrue(seen["originLine"][1], seen["originLine"])
        if "findingInSight" in seen:
            self.assertTrue(seen["findingInSight"])
        if "found" in seen:
            self.assertGreater(seen["found"], 0)
            self.assertTrue(seen["atHit"])
            self.assertEqual(seen["notFound"], "0 found")
        print(f"  {path.relative_to(support.TOP.parent)}: {answer['verdict']}, {len(answer['report']['claims']) if answer['report'] else '-'} claims, "
              f"{page.stat().st_size / 1024:.0f} KiB, {seconds:.1f} s", file=sys.stderr)
        return seen, answer

    @unittest.skipUnless(BROWSER, "no chromium is installed (scripts/packages-tests.txt)")
    def test_a_recorded_step_with_a_fault(self):
        seen, answer = self.works(SAMPLES / "swish", "--strict")
        self.assertEqual(answer["verdict"], "fail")
        self.assertIn("train_swish.py", " ".join(seen["lines"]))
        self.assertIn("train_swish.py", seen["findingLineAbove"])
        self.assertTrue(seen["timeline"])
        page = (self.path / "report.html").read_text(encoding="utf-8")
        for lane in ("forward", "backward", "optimizer"):
            self.assertIn(f'class="lane {lane}"', page)
        self.assertIn("Updates", page)

    @unittest.skipUnless(BROWSER, "no chromium is installed (scripts/packages-tests.txt)")
    def test_models_steps_jobs_and_snapshots(self):
        cases = {"mlp.pt2": "pass", "tiny_gpt.pt2": "pass", "twins.pt2": "fail", "recorded": None, "lost_precision/trace": "fail", "graph_break/trace": "pass"}
        for name, verdict in cases.items():
            with self.subTest(name=name):
                answer = self.works(SAMPLES / name)[1]
                if verdict:
                    self.assertEqual(answer["verdict"], verdict)
        for name in ("leak", "oom"):
            with self.subTest(name=name):
                seen, answer = self.works(support.DATA / "memory" / f"{name}.pickle.xz")
                self.assertEqual(answer["verdict"], "no verdict")
                self.assertGreater(seen["findings"], 0)

    @unittest.skipUnless(BROWSER, "no chromium is installed (scripts/packages-tests.txt)")
    @unittest.skipUnless((CASES / "large" / "gpt96").exists(), "no shared cases")
    def test_the_page_of_96_layers_is_small(self):
        self.works(CASES / "large" / "gpt96" / "model.pt2", "--no-run")

    def test_without_a_run_there_is_no_verdict_and_the_listings_are_there(self):
        page, _, answer = self.page(SAMPLES / "mlp.pt2", "--no-run")
        self.assertEqual(answer["verdict"], "no verdict")
        self.assertIn("aten.mm", page.read_text(encoding="utf-8"))

    def test_names_of_a_file_are_no_markup(self):
        path = self.path / "<img onerror=1>.txt"
        path.write_bytes((support.DATA / "planted" / "log_of_zero.txt").read_bytes())
        page, _, answer = self.page(path)
        self.assertEqual(answer["verdict"], "fail")
        self.assertNotIn("<img", page.read_text(encoding="utf-8"))

    def test_a_file_that_cannot_be_read_makes_no_page(self):
        broken = self.path / "broken.pt2"
        broken.write_bytes(b"PK\x03\x04 nothing")
        self.bad("report", broken, "-o", self.path / "r.html")
        self.bad("report", self.path / "none.pt2", "-o", self.path / "r.html")
        self.assertFalse((self.path / "r.html").exists())


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
