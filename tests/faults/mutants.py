"""Damages files: archives by their bytes and by what is in them, JSON by its structure, texts by their lines."""

import hashlib
import json
import re
import struct
import zlib


def flip(draw, raw, most=8):
    raw = bytearray(raw)
    for _ in range(draw.randint(1, most)):
        if raw:
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    return bytes(raw)


def cut(draw, raw):
    return raw[: draw.randrange(len(raw) + 1)]


def splice(draw, raw):
    """A piece of it goes elsewhere, or away."""
    a, b = sorted(draw.randrange(len(raw) + 1) for _ in range(2))
    b = min(b, a + 4096)
    rest = raw[:a] + raw[b:]
    at = draw.randrange(len(rest) + 1)
    return rest[:at] + raw[a:b] * draw.choice([0, 1, 2, 50]) + rest[at:]


NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30, 1.5, 1e308, -0.0)
ODD = (None, True, "", "\0", "../../../etc/passwd", "a" * 100000, [], {}, [[]], "None", "s0", "aten::system", "🜛")


def places(value, found=None):
    """All (container, key) in a tree of JSON."""
    found = [] if found is None else found
    if isinstance(value, (dict, list)):
        for key in list(value if isinstance(value, dict) else range(len(value))):
            found.append((value, key))
            places(value[key], found)
    return found


def nested(draw):
    depth = draw.choice([200, 5000, 200000])
    return draw.choice(["[" * depth + "]" * depth, "[" * depth, '{"a":' * depth + "1" + "}" * depth, "(" * depth])


def damaged_json(draw, raw):
    try:
        value = json.loads(raw)
    except ValueError:
        return flip(draw, raw)
    if draw.random() < 0.12:
        text = json.dumps(value)
        at = draw.choice([i for i, c in enumerate(text) if c in ":[,"] or [0]) + 1
        return (text[:at] + nested(draw) + ("," if text[at - 1] in "[," else "") + text[at:]).encode()
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        found = places(value)
        if not found:
            break
        container, key = draw.choice(found)
        old, how = container[key], draw.randrange(7)
        if how == 0 and isinstance(old, (int, float)) and not isinstance(old, bool):
            container[key] = draw.choice([old + 1, old - 1, old * 2 ** draw.randrange(40), -old, *NUMBERS])
        elif how == 1:
            container[key] = draw.choice(ODD)
        elif how == 2:
            container[key] = draw.choice(NUMBERS)
        elif how == 3:
            del container[key]
        elif how == 4:
            other, there = draw.choice(found)
            try:
                container[key] = json.loads(json.dumps(other[there]))
            except (KeyError, IndexError):
                pass
        elif how == 5 and isinstance(old, list):
            container[key] = old * draw.choice([2, 3, 1000]) if len(json.dumps(old)) < 2000 else old * 2
        elif how == 6 and isinstance(container, list):
            draw.shuffle(container)
        elif isinstance(old, str) and old:
            container[key] = flip(draw, old.encode(), 2).decode(errors="replace")
    return json.dumps(value).encode()


def damaged_text(draw, raw):
    if draw.random() < 0.25:
        return draw.choice([flip, cut, splice])(draw, raw)
    lines = raw.split(b"\n")
    for _ in range(draw.choice([1, 1, 2, 6])):
        at, how = draw.randrange(len(lines)), draw.randrange(7)
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(draw.randrange(len(lines) + 1), lines[at])
        elif how == 2:
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif how == 3:
            lines[at] = flip(draw, lines[at], 3)
        elif how == 4:
            pieces = lines[at].split(b" ")
            pieces[draw.randrange(len(pieces))] = str(draw.choice(NUMBERS)).encode()
            lines[at] = b" ".join(pieces)
        elif how == 5:
            digits = [i for i, c in enumerate(lines[at]) if 48 <= c <= 57]
            if digits:
                i = draw.choice(digits)
                lines[at] = lines[at][:i] + str(draw.choice(NUMBERS)).encode() + lines[at][i + 1 :]
        else:
            i = draw.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:i] + nested(draw).encode() + lines[at][i:]
        if not lines:
            return b""
    return b"\n".join(lines)


def damaged_safetensors(draw, raw):
    if draw.random() < 0.3:
        return draw.choice([flip, cut, splice])(draw, raw)
    size = struct.unpack_from("<Q", raw)[0]
    header = damaged_json(draw, raw[8 : 8 + size])
    length = len(header) if draw.random() < 0.85 else draw.choice([0, 1, len(header) + 8, 2**31, 2**63 - 1, 2**64 - 1, 100 << 20])
    return struct.pack("<Q", length) + header + raw[8 + size :]


class Record:
    def __init__(self, name, content):
        self.name, self.content, self.method, self.packed, self.size, self.crc = name, content, 0, None, None, None

    def put(self, content):
        self.content, self.packed, self.size, self.crc = content, None, None, None


def read_zip(raw):
    """Records in the order of the directory."""
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return [Record(entry.filename.encode(), archive.read(entry)) for entry in archive.infolist()]


def write_zip(records, align=64):
    """As PyTorch writes them: stored, each record's bytes aligned. What a record says of itself may be wrong: `size`, `crc`, `packed`."""
    out, directory = bytearray(), bytearray()
    for record in records:
        packed = record.content if record.packed is None else record.packed
        crc = zlib.crc32(record.content) if record.crc is None else record.crc
        size = len(record.content) if record.size is None else record.size
        at = len(out)
        pad = -(at + 30 + len(record.name) + 4) % align
        extra = struct.pack("<HH", 0x4246, pad) + b"\0" * pad
        fields = struct.pack("<HHHHHIII", 20, 0, record.method, 0, 0x21, crc & 0xFFFFFFFF, len(packed) & 0xFFFFFFFF, size & 0xFFFFFFFF)
        out += b"PK\3\4" + fields + struct.pack("<HH", len(record.name), len(extra)) + record.name + extra + packed
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHHHII", len(record.name), 0, 0, 0, 0, 0, at) + record.name
    end = struct.pack("<HHHHIIH", 0, 0, len(records), len(records), len(directory), len(out), 0)
    return bytes(out + directory + b"PK\5\6" + end)


_bombs = {}


def bomb(megabytes):
    """Zeros or spaces that a small file holds: (packed, size, checksum)."""
    if megabytes not in _bombs:
        packer, piece, crc = zlib.compressobj(9, zlib.DEFLATED, -15), b" " * (1 << 20), 0
        packed = bytearray()
        for _ in range(megabytes):
            packed += packer.compress(piece)
            crc = zlib.crc32(piece, crc)
        _bombs[megabytes] = bytes(packed + packer.flush()), megabytes << 20, crc
    return _bombs[megabytes]


def damaged_zip(draw, raw):
    how = draw.random()
    if how < 0.1:
        return cut(draw, raw)
    if how < 0.22:
        return flip(draw, raw)  # checksums no longer fit
    if how < 0.28:
        tail = max(0, len(raw) - 4096)  # the directory
        return raw[:tail] + flip(draw, raw[tail:])
    if how < 0.32:
        return splice(draw, raw)
    records = read_zip(raw)
    for _ in range(draw.choice([1, 1, 1, 2])):
        record, how = draw.choice(records), draw.randrange(20)
        if how < 4:
            record.put(draw.choice([flip, cut, splice])(draw, record.content))  # with the right checksum
        elif how < 11:
            text = [r for r in records if r.content[:1] in (b"{", b"[")]
            chosen = draw.choice(text or records)
            chosen.put(damaged_json(draw, chosen.content))
        elif how < 13:
            text = [r for r in records if r.name.endswith((b".py", b".txt", b".pkl", b"version"))]
            chosen = draw.choice(text or records)
            chosen.put(flip(draw, chosen.content, 4) if chosen.name.endswith(b".pkl") else damaged_text(draw, chosen.content or b"\n"))
        elif how == 13:
            other = draw.choice(records)
            record.content, other.content = other.content, record.content
        elif how == 14:
            records.remove(record)
            if not records:
                break
        elif how == 15:
            records.append(Record(record.name, draw.choice(records).content))
        elif how == 16:
            record.size = draw.choice([len(record.content) * 2, len(record.content) + 1, 0, 2**31, 2**32 - 2, 2**32 - 1])
        elif how == 17:
            record.name = draw.choice([b"", b"/", b"../../x", record.name + b"\0", b"a" * 60000, record.name.upper()])
        elif how == 18:
            record.method = draw.choice([1, 8, 12, 14, 93, 99])  # says that it is packed
        else:
            record.method = 8
            record.packed, record.size, record.crc = bomb(draw.choice([64, 600, 1800]))
    return write_zip(records)


def damaged_log(draw, raw):
    """A structured trace log. Half of the time with right hashes of the payloads, so that what reads their text is reached."""
    raw = damaged_text(draw, raw)
    if draw.random() < 0.5:
        return raw
    lines, record = raw.split(b"\n"), None
    for at in range(len(lines) + 1):
        if at < len(lines) and lines[at].startswith(b"\t"):
            continue
        if record is not None and at > record + 1:
            payload = b"\n".join(line[1:] for line in lines[record + 1 : at])
            renewed = b'"has_payload": "' + hashlib.md5(payload).hexdigest().encode() + b'"'
            lines[record] = re.sub(rb'"has_payload": "[0-9a-f]*"', renewed, lines[record])
        record = at
    return b"\n".join(lines)


def saved_weights(shapes):
    """A state dict as torch.save writes it, made without PyTorch: {name: shape} of float32 tensors."""
    import collections
    import io
    import pickle
    import sys
    import types

    def class_of(module, name):
        made = type(name, (), {"__module__": module})
        sys.modules.setdefault(module, types.ModuleType(module)).__dict__[name] = made
        return made

    storage_type, rebuild = class_of("torch", "FloatStorage"), class_of("torch._utils", "_rebuild_tensor_v2")

    class Storage:
        def __init__(self, key, count):
            self.key, self.count = key, count

    class Tensor:
        def __init__(self, storage, shape):
            self.storage, self.shape = storage, shape

        def __reduce__(self):
            strides = [1]
            for size in reversed(self.shape[1:]):
                strides.insert(0, strides[0] * size)
            return rebuild, (self.storage, 0, tuple(self.shape), tuple(strides), False, collections.OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", storage_type, value.key, "cpu", value.count) if isinstance(value, Storage) else None

    weights, records, text = collections.OrderedDict(), [], io.BytesIO()
    for i, (name, shape) in enumerate(shapes.items()):
        count = 1
        for size in shape:
            count *= size
        weights[name] = Tensor(Storage(str(i), count), shape)
        records.append(Record(f"weights/data/{i}".encode(), struct.pack(f"<{count}f", *((j % 7) / 8 - 0.4 for j in range(count)))))
    Pickler(text, 2).dump({"model": weights, "step": 7})
    for module in ("torch", "torch._utils"):
        del sys.modules[module]
    return write_zip([Record(b"weights/data.pkl", text.getvalue()), Record(b"weights/byteorder", b"little"), *records, Record(b"weights/version", b"3\n")])
