"""PyTorch's caching allocator in Python, as far as its history shows: what tests make snapshots of, with the truth about them. Rounding to 512 bytes, pools of small and
large requests by stream, the smallest free block that fits, cutting, joining, segments of 2 and 20 MiB, expandable segments, a limit of the device."""

SMALL, UNIT, SMALL_SEGMENT, LARGE_SEGMENT = 1 << 20, 512, 2 << 20, 20 << 20


class Allocator:
    def __init__(self, device=0, limit=None, expandable=False):
        self.device, self.limit, self.expandable = device, limit, expandable
        self.events, self.blocks, self.segments = [], [], []  # blocks: dicts in the order of addresses, by segment
        self.next, self.time, self.bytes, self.peak = 0x7f0000000000 + (device << 40), 1000, 0, 0
        self.held = []  # bytes after each event

    def event(self, action, address, size, stream, frames):
        self.time += 10
        where = "device_free" if action == "oom" else "addr"
        self.events.append({"action": action, where: address, "size": size, "stream": stream, "time_us": self.time, "frames": frames})
        self.held.append(self.bytes)

    def reserved(self):
        return sum(s["size"] for s in self.segments)

    def grow(self, size, stream, small, frames):
        """A free block of this size from the driver; None where the device has no room."""
        whole = SMALL_SEGMENT if small else LARGE_SEGMENT if size < LARGE_SEGMENT // 2 else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT
        if self.expandable:  # a free block at the end of the segment takes part
            part = SMALL_SEGMENT if small else LARGE_SEGMENT
            own = [b for b in self.blocks if b["stream"] == stream and b["small"] == small]
            lacks = size - (own[-1]["size"] if own and own[-1]["free"] else 0)
            whole = -(-lacks // part) * part
        if self.limit and self.reserved() + whole > self.limit:
            return None
        if self.expandable:
            segment = next((s for s in self.segments if s["stream"] == stream and s["small"] == small), None)
            if segment is None:
                segment = {"address": self.next, "size": 0, "stream": stream, "small": small}
                self.next += 1 << 36
                self.segments.append(segment)
            address = segment["address"] + segment["size"]
            segment["size"] += whole
            self.event("segment_map", address, whole, stream, frames)
        else:
            address = self.next
            self.next += whole + (1 << 21)
            self.segments.append({"address": address, "size": whole, "stream": stream, "small": small})
            self.event("segment_alloc", address, whole, stream, frames)
        block = {"address": address, "size": whole, "free": True, "stream": stream, "small": small}
        self.blocks.append(block)
        self.blocks.sort(key=lambda b: b["address"])
        return self.join(block)

    def give_back(self, frames):
        """Segments that are free as a whole, as PyTorch does before it says that memory ran out. False where there are none."""
        whole = [s for s in self.segments if not self.expandable and any(b["free"] and b["address"] == s["address"] and b["size"] == s["size"] for b in self.blocks)]
        for segment in whole:
            self.segments.remove(segment)
            self.blocks = [b for b in self.blocks if b["address"] != segment["address"]]
            self.event("segment_free", segment["address"], segment["size"], segment["stream"], frames)
        return bool(whole)

    def segment_of(self, block):
        return next(s for s in self.segments if s["address"] <= block["address"] < s["address"] + s["size"])

    def join(self, block):
        at = self.blocks.index(block)
        for other in (self.blocks[at + 1:at + 2] + self.blocks[max(at - 1, 0):at]):
            if other["free"] and self.segment_of(other) is self.segment_of(block) and other is not block:
                first, second = sorted((block, other), key=lambda b: b["address"])
                if first["address"] + first["size"] != second["address"]:
                    continue
                first["size"] += second["size"]
                self.blocks.remove(second)
                block = first
        return block

    def alloc(self, requested, frames, stream=0):
        """The address, or None where memory runs out."""
        size = max(-(-requested // UNIT) * UNIT, UNIT)
        small = size <= SMALL
        fits = [b for b in self.blocks if b["free"] and b["stream"] == stream and b["small"] == small and b["size"] >= size]
        block = min(fits, key=lambda b: (b["size"], b["address"])) if fits else self.grow(size, stream, small, frames)
        if block is None and self.give_back(frames):
            block = self.grow(size, stream, small, frames)
        if block is None:
            self.event("oom", (self.limit or 0) - self.reserved(), requested, stream, frames)
            return None
        rest = block["size"] - size
        if rest >= UNIT and (small or self.expandable or rest > SMALL):
            self.blocks.insert(self.blocks.index(block) + 1, {**block, "address": block["address"] + size, "size": rest})
            block["size"] = size
        block.update(free=False, requested=requested, frames=frames)
        self.event("alloc", block["address"], requested, stream, frames)
        self.bytes += block["size"]
        self.held[-1] = self.bytes
        self.peak = max(self.peak, self.bytes)
        return block["address"]

    def free(self, address, frames):
        block = next(b for b in self.blocks if b["address"] == address and not b["free"])
        for action in "free_requested", "free_completed":
            self.event(action, address, block["requested"], block["stream"], frames)
        self.bytes -= block["size"]
        self.held[-1] = self.bytes
        block["free"] = True
        self.join(block)

    def segments_as_pytorch_says(self, addresses=True):
        for segment in self.segments:
            blocks = []
            for b in self.blocks:
                if not segment["address"] <= b["address"] < segment["address"] + segment["size"]:
                    continue
                block = {"size": b["size"], "requested_size": 0 if b["free"] else b["requested"],
                         "state": "inactive" if b["free"] else "active_allocated", "frames": [] if b["free"] else b["frames"]}
                blocks.append({"address": b["address"], **block} if addresses else block)
            yield {"device": self.device, "address": segment["address"], "total_size": segment["size"], "stream": segment["stream"],
                   "segment_type": "small" if segment["small"] else "large", "is_expandable": self.expandable, "blocks": blocks}


def snapshot(*allocators, entries=None, settings=True, addresses=True):
    """What torch.cuda.memory._snapshot() gives; `entries` as max_entries."""
    found = {"segments": [s for a in allocators for s in a.segments_as_pytorch_says(addresses)],
             "device_traces": [a.events[-entries:] if entries else a.events for a in allocators]}
    if settings:
        found["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                       "expandable_segments": any(a.expandable for a in allocators), "roundup_power2_divisions": {}}
    return found


def replay(allocator, events):
    """Asks for what a recorded job asked for. Where memory runs out, the exception lets go what the forward made and the job let go later. False then."""
    held, last, goes = {}, {}, set()
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            last[event["addr"]] = number
        elif event["action"] == "free_completed":
            goes.add(last.pop(event["addr"]))
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            address = allocator.alloc(event["size"], event["frames"], event["stream"])
            if address is None:
                for address, was, frames in list(held.values()):
                    if was in goes and any(f["name"] == "forward" for f in frames):
                        allocator.free(address, event["frames"][-1:])
                return False
            held[event["addr"]] = (address, number, event["frames"])
        elif event["action"] == "free_completed":
            allocator.free(held.pop(event["addr"])[0], event["frames"])
    return True


def frame(file, line, function):
    return {"filename": file, "line": line, "name": function}


TRAIN = frame("/job/train.py", 40, "main")


def forward(layer, line=12):
    return [frame("/lib/python3/site-packages/torch/nn/modules/linear.py", 134, "forward"), frame("/job/net.py", line, "forward"), TRAIN]


BACKWARD = [frame("/lib/python3/site-packages/torch/autograd/__init__.py", 347, "backward"), TRAIN]
OPTIMIZER = [frame("/lib/python3/site-packages/torch/optim/adamw.py", 80, "step"), TRAIN]


def train(allocator, steps=3, layers=4, width=3 << 20, keep=None, stream=0):
    """A training loop: parameters, saved tensors, gradients, an optimizer's states. `keep`: a list that a tensor of each step goes to. False where memory ran out."""
    setup = [frame("/lib/python3/site-packages/torch/nn/modules/module.py", 900, "_apply"), TRAIN]
    for _ in range(layers):
        allocator.alloc(width // 3, setup, stream)
    states = []
    for step in range(steps):
        saved = []
        for layer in range(layers):
            address = allocator.alloc(width + step % 2 * 700, forward(layer, 12 + layer), stream)
            if address is None:
                return False
            saved.append(address)
        if keep is not None:
            keep.append(allocator.alloc(width // 2, [frame("/job/train.py", 44, "main")], stream))
        gradients = []
        for address in reversed(saved):
            gradients.append(allocator.alloc(width // 3, BACKWARD, stream))
            if gradients[-1] is None:
                return False
            allocator.free(address, BACKWARD)
        if not states:
            states = [allocator.alloc(width // 3, OPTIMIZER, stream) for _ in range(2 * layers)]
        zero = [frame("/lib/python3/site-packages/torch/optim/optimizer.py", 950, "zero_grad"), TRAIN]
        for gradient in gradients:
            allocator.free(gradient, zero)
    return True


def run_recording(allocator, records):
    """Asks for what the step of a recording (the lines of its ops.jsonl) would ask of a GPU: a storage where an op makes it, or where it is first seen, until it goes."""
    frames, stacks, made, addresses, goes, phase = {}, {}, {}, {}, {}, "forward"
    roles = {r["storage"]: r["role"] for r in records if r["k"] == "name"}
    setup = [frame("/lib/python3/site-packages/torch/nn/modules/module.py", 900, "_apply"), TRAIN]
    for record in records:
        if record["k"] == "free":
            goes.setdefault(record["at"], []).append(record["id"])
    for record in records:
        kind = record["k"]
        if kind == "mode":
            phase = record["phase"]
        elif kind == "frame":
            frames[record["id"]] = frame("/job/" + record["file"], record["line"], record["function"])
        elif kind == "stack":
            stacks[record["id"]] = [frames[number] for number in reversed(record["frames"])]
        elif kind == "storage" and "data" in record:
            own = {"parameter": setup, "buffer": setup, "optimizer": OPTIMIZER}
            addresses[record["id"]] = allocator.alloc(record["bytes"], own.get(roles.get(record["id"]), [TRAIN]))
        elif kind == "storage":
            made[record["id"]] = record["bytes"]
        elif kind == "op":
            library = [frame("/lib/python3/site-packages/torch/nn/functional.py", 10, "f")]
            here = BACKWARD if phase in ("backward", "accumulation", "hook") else OPTIMIZER if phase in ("optimizer", "clip") else library + stacks.get(record.get("stack"), [])
            for storage, size in sorted(made.items()):
                addresses[storage] = allocator.alloc(size, here)
            made.clear()
            for storage in goes.get(record["n"], []):
                if storage in addresses:
                    allocator.free(addresses.pop(storage), here)
