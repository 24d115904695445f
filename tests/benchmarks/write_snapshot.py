#!/usr/bin/env python3
"""Writes a snapshot of CUDA's allocator as torch.cuda.memory._dump_snapshot pickles it, of any size, for measurements:
write_snapshot.py FILE [--bytes 2G]. Like PyTorch's, each event has a list of its own of frames that are shared, and
each step allocates and lets go the same, with a little that is kept."""
import argparse
import random
import struct

STACKS, DEPTH, STEP = 3000, 45, 4000


class Writer:
    """The opcodes of pickle protocol 4 that such a file has, in frames of 64 KiB."""

    def __init__(self, file):
        self.file, self.frame, self.written, self.memos = file, [], 0, 0
        self.held = 0
        self.texts = {}
        self.file.write(b"\x80\x04")

    def put(self, data):
        self.frame.append(data)
        self.held += len(data)
        if self.held >= 65536:
            self.flush()

    def flush(self):
        data = b"".join(self.frame)
        self.file.write(b"\x95" + struct.pack("<Q", len(data)) + data)
        self.written += len(data) + 9
        self.frame, self.held = [], 0

    def memoize(self):
        self.memos += 1
        return b"\x94"

    def get(self, memo):
        return b"h" + bytes([memo]) if memo < 256 else b"j" + struct.pack("<I", memo)

    def text(self, text):
        if text in self.texts:
            return self.get(self.texts[text])
        self.texts[text] = self.memos
        return b"\x8c" + bytes([len(text)]) + text.encode() + self.memoize()

    def number(self, n):
        if 0 <= n < 256:
            return b"K" + bytes([n])
        if 0 <= n < 65536:
            return b"M" + struct.pack("<H", n)
        if -(1 << 31) <= n < 1 << 31:
            return b"J" + struct.pack("<i", n)
        width = (n.bit_length() + 8) // 8
        return b"\x8a" + bytes([width]) + n.to_bytes(width, "little", signed=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--bytes", default="2G")
    arguments = parser.parse_args()
    size = int(float(arguments.bytes[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[arguments.bytes[-1]])
    draw = random.Random(1)
    with open(arguments.file, "wb") as file:
        w = Writer(file)
        w.put(b"}" + w.memoize() + b"(" + w.text("device_traces") + b"]" + w.memoize() + b"]" + w.memoize() + b"(")
        frames = {}  # the memo of each frame that was written
        stacks = []
        for s in range(STACKS):
            outer = [("/job/train.py", "main", 30 + i) for i in range(5)]
            middle = [(f"/job/net{s % 7}.py", "forward", (s * 3 + i) % 400) for i in range(DEPTH - 15)]
            inner = [("/lib/python3/site-packages/torch/nn/modules/module.py", "_call_impl", 1700 + i) for i in range(9)]
            stacks.append(inner + middle + outer + [("/job/train.py", "<module>", s)])

        def stack(frame_list):
            out = [b"]", w.memoize(), b"("]
            for frame in frame_list:
                if frame in frames:
                    out.append(w.get(frames[frame]))
                    continue
                frames[frame] = w.memos
                out += [b"}", w.memoize(), b"(", w.text("name"), w.text(frame[1]), w.text("filename"), w.text(frame[0]),
                        w.text("line"), w.number(frame[2]), b"u"]
            out.append(b"e")
            return b"".join(out)

        written, time = 0, 1700000000000000
        base = 0x7f0000000000

        def event(action, address, size, frame_list):
            nonlocal time, written
            time += draw.randrange(1, 30)
            out = [b"}", w.memoize(), b"(", w.text("action"), w.text(action), w.text("addr"), w.number(address),
                   w.text("size"), w.number(size), w.text("stream"), w.number(0), w.text("time_us"), w.number(time),
                   w.text("compile_context"), w.text("N/A"), w.text("user_metadata"), w.text(""), w.text("frames"),
                   stack(frame_list), b"u"]
            w.put(b"".join(out))
            written += 1
            if written % 1000 == 0:
                w.put(b"e(")

        segment = 8 << 30
        event("segment_alloc", base, segment, stacks[0])
        sizes = [draw.randrange(1, 4096) * 512 for _ in range(STEP)]
        step = 0
        while w.written < size:
            places = [draw.randrange(STACKS) for _ in range(STEP)] if step == 0 else places
            address, at = base, []
            for i in range(STEP):
                at.append(address)
                event("alloc", address, sizes[i] - 7, stacks[places[i]])
                address += sizes[i]
            for i in reversed(range(STEP)):
                event("free_requested", at[i], sizes[i] - 7, stacks[places[i]][5:])
                event("free_completed", at[i], sizes[i] - 7, stacks[places[i]][5:])
            step += 1
        w.put(b"e" + b"a" + w.text("segments") + b"]" + w.memoize() + b"u.")
        w.flush()
        print(f"{written} events, {w.written} bytes")


if __name__ == "__main__":
    main()
