#!/usr/bin/env python3
"""What `retrograd memory` (the program is the first argument) says of snapshots of PyTorch's allocator; its JSON against docs/memory.schema.json."""
import json
import lzma
import pickle
import sys
import unittest

import support
from allocator import Allocator, replay, snapshot
from support import TOP, Case

HISTORIES = TOP / "tests" / "data" / "memory"


class Memory(Case):
    def report(self, *arguments):
        return self.fits("memory", "memory", *arguments)

    def write(self, snapshot, name="memory.pickle", protocol=None):
        (self.path / name).write_bytes(pickle.dumps(snapshot, protocol))
        return self.path / name

    def test_bytes_sum_to_the_peak(self):
        for path in sorted(HISTORIES.glob("*.xz")):
            for by in "line", "module", "category":
                report = self.report(path, "--by", by)
                self.assertEqual(sum(c["bytes"] for c in report["categories"]), report["peak_bytes"])
                self.assertEqual(sum(g["bytes"] for g in report["groups"]), report["peak_bytes"])
                self.assertEqual(next(c["bytes"] for c in report["categories"] if c["name"] == "workspace"), 2 * 33554432)

    def test_a_moment_is_an_event_or_a_failed_request(self):
        path = HISTORIES / "plain.pickle.xz"
        last = self.report(path, "--at", "1928")
        self.assertEqual(last["at"]["bytes"], last["end_bytes"])
        self.assertIn("has 1929 events", self.bad("memory", path, "--at", "1929").stderr)
        self.assertIn("has no request that failed", self.bad("memory", path, "--at", "oom").stderr)
        self.assertIn("neither peak, oom nor", self.bad("memory", path, "--at", "x").stderr)
        self.assertIn("has 1 device(s)", self.bad("memory", path, "--device", "3").stderr)
        snapshot = pickle.loads(lzma.decompress(path.read_bytes()))
        snapshot["device_traces"][0].insert(900, {"action": "oom", "device_free": 5, "size": 1 << 40, "stream": 0, "frames": []})
        self.assertEqual(self.report(self.write(snapshot), "--at", "oom")["at"]["event"], 900)

    def test_the_debugger_shows_what_was_held_at_the_present_op(self):
        path, model = HISTORIES / "plain.pickle.xz", HISTORIES / "plain.txt"
        words = [word for command in (f"memory {path}", "run-to border", f"memory {path}", "run-to end", f"memory {path}") for word in ("-c", command)]
        answers = [json.loads(line) for line in self.good("debug", model, "--format", "json", *words).stdout.splitlines()]
        before, border, end = answers[0], answers[2], answers[4]
        for answer in before, border, end:
            self.assertEqual(answer["exact_bytes"] + answer["aligned_bytes"] + answer["unknown_bytes"], answer["bytes"])
            self.assertEqual(sum(h["bytes"] for h in answer["held_for"]), answer["bytes"])
            self.assertEqual(answer["bytes"], self.report(path, "--at", str(answer["event"]))["at"]["bytes"])
        self.assertEqual(before["after"], None)
        self.assertFalse([h for h in before["held_for"] if h["name"].startswith("saved for")])
        # Between forward and backward all that was saved is there, as the session itself has it.
        saved = sum(h["bytes"] for h in border["held_for"] if h["name"].startswith("saved for"))
        self.assertLess(abs(saved - border["predicted_bytes"]), border["predicted_bytes"] / 100)
        self.assertFalse([h for h in end["held_for"] if h["name"].startswith("saved for")])
        self.assertIn("cannot", self.bad("debug", model, "-c", "memory nowhere.pickle").stderr)

    def test_another_program_does_not_agree_by_chance(self):
        path, other = HISTORIES / "plain.pickle.xz", TOP / "resources" / "samples" / "recorded"
        joined = self.report(path, "--trace", other)["joined"]
        self.assertEqual((joined["exact_bytes"], joined["aligned_bytes"]), (0, 0))
        self.assertIn("is the history of this program?", self.good("memory", path, "--trace", other).stdout)
        self.assertNotIn("is the history of this program?", self.good("memory", path, "--trace", HISTORIES / "plain.txt").stdout)

    def test_each_block_of_the_peak_has_its_op_and_its_reader(self):
        for history, least in ("plain", 0.9), ("checkpoint", 0.9):
            report = self.report(HISTORIES / f"{history}.pickle.xz", "--trace", HISTORIES / "plain.txt", "--rows", "1000")
            joined = report["joined"]
            self.assertEqual(joined["exact_bytes"] + joined["aligned_bytes"] + joined["unknown_bytes"], report["peak_bytes"])
            self.assertEqual(sum(h["bytes"] for h in report["held_for"]), report["peak_bytes"])
            self.assertEqual(sum(b["bytes"] for b in report["blocks"]), report["peak_bytes"])
            self.assertGreaterEqual(joined["aligned_bytes"], least * (report["peak_bytes"] - 2 * 33554432), history)
            self.assertEqual(joined["steps"], 3)

    def test_a_saved_tensor_is_held_for_an_op_of_a_module(self):
        report = self.report(HISTORIES / "plain.pickle.xz", "--trace", HISTORIES / "plain.txt", "--rows", "1000")
        held = {h["name"]: h["bytes"] for h in report["held_for"]}
        for layer in range(3):
            self.assertEqual(held[f"saved for aten.gelu_backward of blocks.{layer}"], 2097152)
            self.assertEqual(held[f"saved for aten._scaled_dot_product_efficient_attention_backward of blocks.{layer}"], 1572864 + 16384)
        self.assertEqual(held["parameter"], 2642432)
        self.assertEqual(held["optimizer"], 2 * 2642432)
        block = next(b for b in report["blocks"] if b["held_for"] == "saved for aten.gelu_backward of blocks.1")
        self.assertEqual((block["made_by"], block["line"], block["last_reader"]), ("aten.addmm of blocks.1.up", "train.py:15 in forward", "aten.gelu_backward"))
        self.assertEqual((block["made"], block["freed"], block["could_be_freed"]), (792, 981, 982))  # freed right after its reader

    def test_a_model_of_other_sizes_does_not_align(self):
        other = (HISTORIES / "plain.txt").read_text().replace("train.py", "other.py")
        (self.path / "other.txt").write_text(other)
        report = self.report(HISTORIES / "plain.pickle.xz", "--trace", self.path / "other.txt", "--rows", "1000")
        self.assertFalse([h for h in report["held_for"] if h["name"].startswith("saved")])  # sizes agree, lines do not

    def test_findings_name_the_line_that_leaks(self):
        report = self.report(HISTORIES / "leak.pickle.xz")
        leak = next(f for f in report["findings"] if f["kind"] == "leak")
        self.assertEqual(leak["line"], "train.py:34 in main")
        self.assertIn("leak: 7.5 MiB made in 3 steps at train.py:34", self.good("memory", HISTORIES / "leak.pickle.xz").stdout)
        self.assertNotIn("leak", [f["kind"] for f in self.report(HISTORIES / "plain.pickle.xz")["findings"]])

    def test_two_snapshots_show_which_layers_keep_less(self):
        pair = self.fits("memory-pair", "memory", HISTORIES / "plain.pickle.xz", HISTORIES / "checkpoint.pickle.xz", "--trace", HISTORIES / "plain.txt")
        layers = {layer["name"]: layer["difference_bytes"] for layer in pair["layers"]}
        self.assertEqual({name for name, difference in layers.items() if difference}, {"blocks.0", "blocks.1", "blocks.2"})
        for side, peak in ("a", 105560576), ("b", 90430976):
            self.assertEqual(pair[side]["peak_bytes"], peak)
            for table in "categories", "groups", "held_for":
                self.assertEqual(sum(row[side + "_bytes"] for row in pair[table]), peak, table)
        self.assertEqual([step["b"]["forward_bytes"] for step in pair["steps"]], [40941056, 80828928, 80828928])  # as the job measured
        self.assertIn("less (-15129600 bytes)", self.good("memory", HISTORIES / "plain.pickle.xz", HISTORIES / "checkpoint.pickle.xz").stdout)

    def test_recomputing_saves_what_checkpointing_saved(self):
        report = self.report(HISTORIES / "plain.pickle.xz", "--trace", HISTORIES / "plain.txt", "--what-if", "recompute:blocks", "--choices", "3")
        self.assertEqual(report["model"]["peak_bytes"], report["peak_bytes"])
        saved = 105560576 - 90430976
        self.assertAlmostEqual(report["what_if"][0]["freed_bytes"], saved, delta=saved / 10)
        freed = [choice["freed_bytes"] for choice in report["what_if"][1:]]
        self.assertEqual(len(freed), 3)
        self.assertEqual(freed, sorted(freed, reverse=True))
        for bad, message in ("shrink:blocks", "is not recompute:MODULE"), ("recompute:nothing", "modules that have some: blocks, e, n"):
            result = self.bad("memory", HISTORIES / "plain.pickle.xz", "--trace", HISTORIES / "plain.txt", "--what-if", bad)
            self.assertIn(message, result.stderr)
        self.assertIn("need --trace", self.bad("memory", HISTORIES / "plain.pickle.xz", "--choices", "3").stderr)

    def test_choices_where_memory_ran_out_in_a_forward(self):
        history = pickle.loads(lzma.decompress((HISTORIES / "plain.pickle.xz").read_bytes()))
        device = Allocator(limit=70_000_000)
        self.assertFalse(replay(device, history["device_traces"][0]))
        self.assertNotIn("backward", {f["name"] for e in device.events for f in e["frames"]})  # there was none yet
        report = self.report(self.write(snapshot(device)), "--trace", HISTORIES / "plain.txt", "--choices", "3")
        freed = {choice["change"]: choice["freed_bytes"] for choice in report["what_if"]}
        self.assertEqual(set(freed), {"recompute", "offload", "bfloat16"})
        # As checkpointing keeps of each of three blocks: its input alone. The last block's are still read by the forward.
        self.assertGreater(freed["recompute"], 2 * 7897088)
        # A history that was cut begins with what the allocator had, also under a change.
        whole = pickle.loads(lzma.decompress((HISTORIES / "plain.pickle.xz").read_bytes()))
        whole["device_traces"][0] = whole["device_traces"][0][757:]
        cut = self.report(self.write(whole), "--trace", HISTORIES / "plain.txt", "--what-if", "recompute:blocks")
        self.assertEqual(cut["model"]["peak_bytes"], 105560576)
        self.assertAlmostEqual(cut["what_if"][0]["freed_bytes"], 105560576 - 90430976, delta=(105560576 - 90430976) / 10)

    def test_the_model_has_the_peaks_of_all_histories(self):
        for path in sorted(HISTORIES.glob("*.xz")):
            report = self.report(path, "--model")
            self.assertEqual(report["model"]["peak_bytes"], report["peak_bytes"], path)
            self.assertEqual(report["model"]["at_their_address"], report["model"]["allocations"], path)

    def test_what_is_not_a_snapshot_is_refused(self):
        self.assertIn("is not a snapshot of CUDA's allocator", self.bad("memory", self.write([1, 2])).stderr)
        whole = (HISTORIES / "leak.pickle.xz").read_bytes()
        (self.path / "half.pickle.xz").write_bytes(whole[:4000])
        self.assertIn("damaged or cut off", self.bad("memory", self.path / "half.pickle.xz").stderr)
        (self.path / "half.pickle").write_bytes(lzma.decompress(whole)[:50000])
        self.assertIn("pickle: cut off", self.bad("memory", self.path / "half.pickle").stderr)
        self.assertIn("opcode", self.bad("memory", self.write(print)).stderr)
        self.assertIn("refuses to create a", self.bad("memory", self.write(print, "old.pickle", protocol=2)).stderr)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
