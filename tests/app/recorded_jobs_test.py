#!/usr/bin/env python3
"""`retrograd memory` (the program is the first argument) on histories of jobs of all kinds, of an allocator in Python that knows the truth about them."""
import copy
import json
import lzma
import pickle
import sys
import unittest

import allocator
import support
from allocator import Allocator, frame, replay, run_recording, snapshot, train
from support import TOP, Case


class RecordedJobs(Case):
    def write(self, content, protocol=None):
        path = self.path / "memory.pickle"
        path.write_bytes(pickle.dumps(content, protocol))
        return path

    def report(self, content, *options, protocol=None):
        report = json.loads(self.good("memory", self.write(content, protocol), "--format", "json", "--model", *options).stdout)
        self.assertEqual(sum(c["bytes"] for c in report["categories"]), report["at"]["bytes"])
        self.assertEqual(sum(g["bytes"] for g in report["groups"]), report["at"]["bytes"])
        return report, {c["name"]: c["bytes"] for c in report["categories"]}

    def trained(self, **options):
        device = Allocator(**options)
        self.assertTrue(train(device, steps=6))
        return device

    def test_peaks_are_those_of_the_allocator(self):
        for options in {}, {"expandable": True}:
            device = self.trained(**options)
            report, categories = self.report(snapshot(device))
            self.assertEqual(report["peak_bytes"], device.peak)
            self.assertEqual(categories["parameter"], 4 << 20)
            self.assertEqual(categories["optimizer"], 8 << 20)
            self.assertEqual(report["findings"], [])
            # The model follows segments that grow, too.
            self.assertEqual(report["model"]["peak_bytes"], device.peak)
            self.assertEqual(report["model"]["at_their_address"], report["model"]["allocations"])
            self.assertEqual(report["model"]["reserved_peak_bytes"], device.reserved())

    def test_several_streams_and_devices(self):
        device = Allocator()
        self.assertTrue(train(device, stream=0) and train(device, stream=7))
        report, _ = self.report(snapshot(device))
        self.assertEqual(report["peak_bytes"], device.peak)
        self.assertEqual(report["model"]["at_their_address"], report["model"]["allocations"])
        first, second = Allocator(0), Allocator(1)
        self.assertTrue(train(first) and train(second, layers=7))
        both = snapshot(first, second)
        self.assertEqual(self.report(both)[0]["peak_bytes"], first.peak)
        self.assertEqual(self.report(both, "--device", "1")[0]["peak_bytes"], second.peak)

    def test_a_history_that_was_cut_says_what_it_knows(self):
        device = self.trained()
        report, categories = self.report(snapshot(device, entries=60))
        self.assertEqual(report["peak_bytes"], device.peak)
        self.assertEqual(categories["parameter"], 4 << 20)  # by the stacks of blocks that are older
        self.assertEqual(categories["optimizer"], 8 << 20)
        self.assertEqual([f for f in report["findings"] if f["kind"] == "fragmentation"], [])
        self.assertEqual(report["model"]["at_their_address"], report["model"]["allocations"])  # the model begins with it, too

    def test_a_history_that_was_cut_anywhere_has_the_allocators_bytes(self):
        for options in {}, {"expandable": True}:
            device = Allocator(**options)
            self.assertTrue(train(device, layers=3, steps=3) and train(device, layers=2, steps=2, width=700_000, stream=7))
            for cut in range(1, len(device.events), 9):
                report, _ = self.report(snapshot(device, entries=len(device.events) - cut))
                self.assertEqual(report["peak_bytes"], max(device.held[cut - 1:]), cut)
                self.assertEqual(report["end_bytes"], device.bytes)
                self.assertEqual(report["model"]["peak_bytes"], report["peak_bytes"])

    def test_less_is_recorded(self):
        device = self.trained()
        whole, categories = self.report(snapshot(device))
        state = snapshot(device)
        state["device_traces"] = [[]]
        report, held = self.report(state)
        self.assertEqual((report["peak_bytes"], report["at"]["event"]), (device.bytes, None))
        self.assertEqual(held, {"optimizer": 8 << 20, "parameter": 4 << 20})
        # context="state": blocks have stacks, events have none.
        without = snapshot(device)
        without["device_traces"] = [[{**e, "frames": []} for e in device.events]]
        report, held = self.report(without)
        self.assertEqual((report["peak_bytes"], held), (device.peak, {"unknown": device.peak}))
        # context="alloc": what is let go has no stack. What is made meanwhile says that the backward came between.
        without["device_traces"] = [[{**e, "frames": [] if e["action"].startswith("free") else e["frames"]} for e in device.events]]
        self.assertEqual(self.report(without)[1]["activation"], categories["activation"])
        # PyTorch before 2.1: no settings, no addresses of blocks, no times; protocol 2.
        old = snapshot(device, settings=False, addresses=False)
        old["device_traces"] = [[{k: v for k, v in e.items() if k != "time_us"} for e in device.events]]
        report, held = self.report(old, protocol=2)
        self.assertEqual((report["peak_bytes"], held), (device.peak, categories))
        # cudaMallocAsync: the driver's pool has no segments.
        apart = snapshot(device)
        apart["segments"] = []
        self.assertEqual(self.report(apart)[0]["peak_bytes"], device.peak)

    def test_generated_code_has_the_line_that_called_it(self):
        for file in "torchinductor_me/ab/cabc.py", "cache/ab/c2mnbdvqrtlog3lniapotcncigoakii6xvyxd23ec3yhzmpkamij.py":  # wherever its cache is
            device = Allocator()
            inductor = [frame(f"/job/{file}", 210, "call"), frame("/lib/python3/site-packages/torch/_inductor/output_code.py", 400, "__call__")]
            device.alloc(3 << 20, [*inductor, frame("/job/net.py", 12, "forward"), allocator.TRAIN])
            report, _ = self.report(snapshot(device))
            self.assertEqual(report["groups"][0]["name"], "net.py:12 in forward")

    def test_a_recording_is_joined_as_aligned(self):
        folder, device = TOP / "resources" / "samples" / "recorded", Allocator()
        run_recording(device, [json.loads(line) for line in (folder / "ops.jsonl").read_text().splitlines()])
        content = snapshot(device)
        border = next(i for i, e in enumerate(device.events) if e["action"] == "alloc" and e["frames"] == allocator.BACKWARD) - 1
        report, _ = self.report(content, "--trace", folder, "--at", str(border), "--rows", "100")
        joined, held = report["joined"], {h["name"]: h["bytes"] for h in report["held_for"]}
        self.assertEqual(joined["exact_bytes"], 0)  # order, sizes and lines agree: no frame names an op
        self.assertEqual(joined["aligned_bytes"] + joined["unknown_bytes"], report["at"]["bytes"])
        self.assertEqual(held["parameter"], 4 * 512)
        saved = [b for b in report["blocks"] if b["held_for"].startswith("saved for")]
        self.assertEqual({b["made_by"] for b in saved} & {"aten.tanh", "aten._log_softmax"}, {"aten.tanh", "aten._log_softmax"})
        for block in saved:
            self.assertEqual(block["level"], "aligned")
            self.assertIn("train_recorded.py:", block["line"])
        unknown = [b for b in report["blocks"] if b["level"] == "unknown"]
        self.assertEqual({b["line"] for b in unknown}, {"train.py:40 in main"})  # inputs, which no op made

    def test_a_leak_runs_out_of_memory(self):
        device, kept = Allocator(limit=80 << 20), []
        self.assertFalse(train(device, steps=60, keep=kept))
        report, _ = self.report(snapshot(device), "--at", "oom")
        self.assertEqual(report["at"]["bytes"], device.bytes)
        kinds = {f["kind"]: f for f in report["findings"]}
        self.assertEqual(kinds["leak"]["line"], "train.py:44 in main")
        self.assertIn("did not fit", kinds["fragmentation"]["text"])
        self.assertIn(f"a request failed at event {len(device.events) - 1}; --at oom", self.good("memory", self.write(snapshot(device))).stdout)
        cut, _ = self.report(snapshot(device, entries=80), "--at", "oom")  # what is older is known from the end
        self.assertEqual([f["text"] for f in cut["findings"] if f["kind"] == "fragmentation"], [kinds["fragmentation"]["text"]])

    def test_fragments_are_named_with_their_neighbours(self):
        device, load = Allocator(limit=64 << 20), [frame("/job/data.py", 7, "load"), allocator.TRAIN]
        pieces = [device.alloc(5 << 20, load) for _ in range(12)]
        for address in pieces[1::2]:
            device.free(address, load)
        self.assertIsNone(device.alloc(12 << 20, [frame("/job/data.py", 30, "load"), allocator.TRAIN]))
        report, _ = self.report(snapshot(device), "--at", "oom")
        text = report["findings"][0]["text"]
        self.assertIn("12 MiB asked for at data.py:30 in load did not fit: 30 MiB are held, 30 MiB are reserved and free in 6 pieces, the device had 4.0 MiB free", text)
        self.assertIn("between 5.0 MiB of data.py:7 in load and 5.0 MiB of data.py:7 in load", text)
        cut, _ = self.report(snapshot(device, entries=5), "--at", "oom")
        self.assertIn("30 MiB are reserved and free in 6 pieces", cut["findings"][0]["text"])
        # One that grows has no borders between its parts.
        device = Allocator(limit=70 << 20, expandable=True)
        pieces = [device.alloc(5 << 20, load) for _ in range(12)]
        for address in pieces[2:6]:
            device.free(address, load)
        self.assertIsNone(device.alloc(40 << 20, load))
        report, _ = self.report(snapshot(device), "--at", "oom")
        self.assertIn("20 MiB are reserved and free in 1 piece,", report["findings"][0]["text"])

    def test_a_limit_of_the_process_is_not_the_devices(self):
        device, load = Allocator(limit=64 << 20), [frame("/job/data.py", 7, "load"), allocator.TRAIN]
        device.alloc(60 << 20, load)
        self.assertIsNone(device.alloc(8 << 20, load))
        text = self.report(snapshot(device), "--at", "oom")[0]["findings"][0]["text"]
        self.assertIn("the device had 4.0 MiB free", text)
        self.assertNotIn("a limit of the process", text)
        device.events[-1]["device_free"] = 100 << 30  # as cudaMemGetInfo says under set_per_process_memory_fraction
        text = self.report(snapshot(device), "--at", "oom")[0]["findings"][0]["text"]
        self.assertIn("the device had 100 GiB free where a new segment takes 20 MiB: a limit of the process", text)

    def test_the_last_request_that_failed_is_the_one(self):
        device, load = Allocator(limit=64 << 20), [frame("/job/data.py", 7, "load"), allocator.TRAIN]
        self.assertIsNone(device.alloc(90 << 20, load))  # the job tries less
        self.assertIsNotNone(device.alloc(40 << 20, load))
        self.assertIsNone(device.alloc(41 << 20, load))
        report, _ = self.report(snapshot(device), "--at", "oom")
        self.assertEqual(report["at"], {"event": len(device.events) - 1, "bytes": 40 << 20, "requested_bytes": 40 << 20})

    def test_a_request_may_not_have_what_is_of_another_stream_or_graph(self):
        device, load = Allocator(limit=64 << 20), [frame("/job/data.py", 7, "load"), allocator.TRAIN]
        other = device.alloc(30 << 20, load, stream=7)
        device.alloc(21 << 20, load)
        device.free(other, load)
        device.alloc(2 << 20, load, stream=7)
        self.assertIsNone(device.alloc(24 << 20, load))
        stream = snapshot(device)
        graph = copy.deepcopy(stream)  # the same, of one stream with the pool of a CUDA graph
        for segment in graph["segments"]:
            segment["segment_pool_id"] = (0, 1) if segment["stream"] == 7 else (0, 0)
            segment["stream"] = 0
        for event in graph["device_traces"][0]:
            event["stream"] = 0
        for content, whose in (stream, "other streams"), (graph, "CUDA graphs and other pools"):
            text = self.report(content, "--at", "oom")[0]["findings"][0]["text"]
            self.assertIn("28 MiB are reserved and free in 1 piece", text)
            self.assertIn(f"28 MiB of that for {whose}", text)
            self.assertNotIn("the largest free piece", text)

    def test_a_small_request_may_not_have_what_is_of_large_ones(self):
        history = pickle.loads(lzma.decompress((TOP / "tests" / "data" / "memory" / "plain.pickle.xz").read_bytes()))
        device = Allocator(limit=60_000_000)
        self.assertFalse(replay(device, history["device_traces"][0]))
        report, categories = self.report(snapshot(device), "--at", "oom")
        self.assertGreater(categories["activation"], 2 << 20)  # although an exception lets it go, and no backward
        self.assertNotIn("temporary", categories)
        text = next(f for f in report["findings"] if f["kind"] == "fragmentation")["text"]
        self.assertIn("18 MiB of that for requests above 1 MiB, the device had 1.2 MiB free where a new segment takes 2.0 MiB; the largest free piece has 384 KiB, between", text)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
