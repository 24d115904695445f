#!/usr/bin/env python3
"""What `retrograd memory` (the program is the first argument) says of snapshots of PyTorch's allocator; its JSON against docs/memory.schema.json."""
import json
import lzma
import pickle
import sys
import unittest

import jsonschema

import support
from support import TOP, Case

HISTORIES = TOP / "tests" / "data" / "memory"


class Memory(Case):
    def report(self, *arguments):
        value = json.loads(self.good("memory", *arguments, "--format", "json").stdout)
        jsonschema.validate(value, json.loads((TOP / "docs" / "memory.schema.json").read_text()))
        return value

    def write(self, snapshot, name="memory.pickle", protocol=None):
        (self.path / name).write_bytes(pickle.dumps(snapshot, protocol))
        return self.path / name

    def test_M7_bytes_sum_to_the_peak(self):
        for path in sorted(HISTORIES.iterdir()):
            for by in "line", "module", "category":
                report = self.report(path, "--by", by)
                self.assertEqual(sum(c["bytes"] for c in report["categories"]), report["peak_bytes"])
                self.assertEqual(sum(g["bytes"] for g in report["groups"]), report["peak_bytes"])
                self.assertEqual(next(c["bytes"] for c in report["categories"] if c["name"] == "workspace"), 2 * 33554432)

    def test_M7_a_moment_is_an_event_or_a_failed_request(self):
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

    def test_M1_what_is_not_a_snapshot_is_refused(self):
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
