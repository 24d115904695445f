#!/usr/bin/env python3
"""What SECURITY.md promises of the built `retrograd` (first argument): a file cannot take the machine, and nothing listens unasked."""
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import time
import unittest
import zipfile
import zlib

import support
from support import DATA, MODELS, TOP, Case, start

sys.path.append(str(TOP / "tests" / "faults"))
import mutants

MLP = MODELS / "mlp" / "model.pt2"
GIB = 1 << 30


class Memory(Case):
    """Never over 1 GB for a file below 10 MB."""

    def refused(self, path, text=None):
        self.assertLess(path.stat().st_size, 10_000_000)
        begin = time.monotonic()
        code, errors, peak = self.peak("trace", path, "--show", "computation")
        self.assertEqual(code, 2, errors)
        self.assertIn(path.name, errors)
        if text:
            self.assertIn(text, errors)
        self.assertLess(peak, GIB)
        self.assertLess(time.monotonic() - begin, 60)
        return errors

    def archive(self, content, compressed):
        """mlp with another graph."""
        path = self.path / "bomb.pt2"
        with zipfile.ZipFile(MLP) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED, compresslevel=6) as new:
            for entry in old.infolist():
                with new.open(entry.filename, "w", force_zip64=True) as out:
                    if not entry.filename.endswith("models/model.json"):
                        out.write(old.read(entry))
                        continue
                    for piece in content:
                        out.write(piece)
        return path

    # Refused by what the directory says, before anything is inflated.
    def test_a_record_that_inflates_out_of_proportion(self):
        errors = self.refused(self.archive((b" " * (1 << 20) for _ in range(600)), True), "its compressed records would take 600 MiB, out of proportion")
        self.assertIn("MiB at most", errors)

    def test_four_gigabytes_in_four_megabytes(self):
        records = mutants.read_zip(MLP.read_bytes())
        graph = next(record for record in records if record.name.endswith(b"models/model.json"))
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        piece = packer.compress(b" " * (1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)  # may be repeated
        graph.method, graph.packed, graph.size = 8, piece * 255 + packer.flush(), 255 << 24
        path = self.path / "bomb.pt2"
        path.write_bytes(mutants.write_zip(records))
        begin = time.monotonic()
        self.refused(path, f"its compressed records would take {255 << 4} MiB, out of proportion")
        self.assertLess(time.monotonic() - begin, 20)

    def test_json_of_many_small_values(self):
        for piece in (b"[1,", b"[],", b"{},", b'"",', b"1,", b'{"as_int":1},'):
            for compressed in (False, True):
                with self.subTest(piece=piece, compressed=compressed):
                    count = (9 if not compressed else 200) * (1 << 20) // len(piece)
                    self.refused(self.archive([b"["] + [piece * 4096] * (count // 4096) + [b"0]"], compressed))

    def test_arguments_of_many_numbers(self):
        with zipfile.ZipFile(MLP) as old:
            graph = old.read(next(n for n in old.namelist() if n.endswith("models/model.json"))).decode()
        self.assertIn('"as_ints":', re.sub(r"\s", "", graph) + '"as_ints":')
        place = graph.index('"inputs"', graph.index('"nodes"'))
        bracket = graph.index("[", place) + 1
        extra = '{"name": "more", "kind": 1, "arg": {"as_ints": [' + "1," * 4_400_000 + "1]}},"
        self.refused(self.archive([(graph[:bracket] + extra + graph[bracket:]).encode()], False))

    def test_other_kinds_of_files(self):
        text = (DATA / "texts" / "linear.txt").read_text()
        head = text[:text.index("return")] if "return" in text else text
        path = self.path / "list.txt"
        path.write_text(head + "x = [" + "1," * 4_500_000 + "1]\n")
        self.refused(path, "out of proportion")
        header = b"{" + b",".join(b'"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(150_000)) + b"}"
        path = self.path / "x.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        code, errors, peak = self.peak("check", MLP, "--reference", path)
        self.assertIn(code, (0, 1, 2), errors)  # 150,000 inputs that the model does not have
        self.assertLess(peak, GIB)

    def test_opening_has_a_budget(self):
        """Values that opening draws, and ops that it runs, are stopped before they take the memory."""
        text = DATA / "texts" / "linear.txt"
        self.assertIn("--opening-memory", self.refusedToRun(text, "--opening-memory", "64"))
        self.good("trace", text, "--opening-memory", "100M")
        huge = self.path / "huge.txt"
        content = text.read_text()
        shape = re.search(r"f32\[(\d+), (\d+)\]", content)
        self.assertTrue(shape)
        huge.write_text(content.replace(shape.group(0), "f32[1000000, 1000000]"))
        code, errors, peak = self.peak("run", huge)
        self.assertIn(code, (1, 2), errors)
        self.assertTrue(errors)
        self.assertLess(peak, GIB)

    def test_so_has_deriving_that_depends_on_data(self):
        control = DATA / "torchscript" / "control.pt"
        self.assertIn("--opening-memory", self.bad("trace", control, "--shape", "x=2x3", "--opening-memory", "16", code=1).stderr)
        self.good("trace", control, "--shape", "x=2x3")

    def test_opening_takes_a_quarter_of_the_free_memory_unless_asked(self):
        """Drawn values, and ops that run because the derivative depends on data, want more than half of it."""
        elements = self.freeMemory() * 6 // 10 // 4
        drawn = f'def computation(x):\n    # x: "f32[{elements}]"\n    y = aten.sum(x)\n    return y\n'
        derived = (
            'def computation(x):\n    # x: "f32[1000]"\n'
            f"    a = aten.repeat(x, [{elements // 1000}])\n    b = aten.gt.Scalar(a, 0)\n    c = aten.masked_select(a, b)\n    y = aten.sum(c)\n    return y\n"
        )
        for name, text in {"drawn": drawn, "derived": derived}.items():
            with self.subTest(name):
                path = self.path / f"{name}.txt"
                path.write_text(text)
                # Without the budget they end at this limit, with another message, and not with all of the machine's memory.
                code, errors, peak = self.peak("trace", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 * GIB, 2 * GIB)))
                self.assertEqual(code, 2, errors)
                self.assertIn("allow more with --opening-memory", errors)
                self.assertLess(peak, GIB)

    def freeMemory(self):
        """Bytes, of the machine or of its control group."""
        free = int(re.search(r"MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
        try:
            limit, used = (pathlib.Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
            return free if limit == "max" else min(free, max(0, int(limit) - int(used)))
        except OSError:
            return free

    def refusedToRun(self, *arguments):
        return self.bad("trace", *arguments).stderr


class TorchScript(Case):
    """Opening one runs its code, which has to end."""

    def looping(self, body):
        """control.pt with another body of its loop, and a condition that stays true."""
        records = mutants.read_zip((DATA / "torchscript" / "control.pt").read_bytes())
        code = next(record for record in records if record.name == b"control/code/__torch__.py")
        text = code.content.decode()
        begin, end = text.index("      layers = "), text.index("    return ")
        code.put((text[:begin] + body + text[end:]).encode())
        path = self.path / "endless.pt"
        path.write_bytes(mutants.write_zip(records))
        return path

    def test_a_loop_without_end_is_ended(self):
        steps = self.looping("      done0 = torch.add(done, 1)\n      _0, done = torch.ge(done0, 0), done0\n")
        self.assertIn("more than 100000000 steps were run; does this loop end?", self.bad("trace", steps, "--shape", "x=2x3", code=1).stderr)
        ops = self.looping("      x1 = torch.tanh(x0)\n      _0, x0 = torch.ge(done, 0), x1\n")
        self.assertIn("does this loop end?", self.bad("trace", ops, "--shape", "x=2x3", code=1).stderr)


class Network(Case):
    def listening(self, processes):
        """Addresses that these processes listen on, in the kernel's form."""
        sockets = set()
        for process in processes:
            try:
                for fd in os.listdir(f"/proc/{process}/fd"):
                    sockets.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process}/fd/{fd}")))
            except OSError:
                pass
        found = set()
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in open(f"/proc/net/{table}").read().splitlines()[1:]:
                words = line.split()
                isServer = words[3] == "0A" or (table.startswith("udp") and words[2].endswith(":0000"))
                if isServer and words[9] in sockets:
                    found.add(words[1].split(":")[0])
        return found

    def family(self, process):
        try:
            children = open(f"/proc/{process}/task/{process}/children").read().split()
        except OSError:
            children = []
        return [process] + [p for child in children for p in self.family(int(child))]

    # The store of a run on this machine is for this machine.
    def test_nothing_listens_beyond_the_loopback(self):
        process = start("pipeline", "launch", "--ranks", 2, "--", "pipeline", "run", MLP, "--stages", 2, "--microbatches", 64, "--check", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        seen = set()
        while process.poll() is None:
            seen |= self.listening(self.family(process.pid))
            time.sleep(0.01)
        out, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("compared with", out)
        loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
        self.assertTrue(seen & loopback, "no rank was seen to listen: the test saw nothing")
        self.assertEqual(seen - loopback, set())

    def test_other_commands_do_not_listen_at_all(self):
        process = start("debug", MLP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        process.stdin.write("continue\n")
        process.stdin.flush()
        self.assertTrue(process.stdout.readline())
        self.assertEqual(self.listening(self.family(process.pid)), set())
        process.communicate("quit\n", timeout=60)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
