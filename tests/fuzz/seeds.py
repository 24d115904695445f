#!/usr/bin/env python3
"""Seed corpora of the fuzz targets: seeds.py TARGET OUT FOLDER... writes what the target takes, made of the files below the folders,
and beside it OUT.dict, the words that stand in quotes in them.

A target that has no function here starts from the files of tests/fuzz/seeds/TARGET, or from nothing.
"""
import hashlib
import io
import lzma
import pickle as pickle_module
import pathlib
import re
import sys
import zipfile

LARGEST = 64 * 1024  # bytes; larger seeds make every execution slow


def files(folders, ending):
    for folder in folders:
        yield from (path.read_bytes() for path in sorted(folder.rglob("*" + ending)) if path.stat().st_size <= LARGEST * 4)


def archives(folders, ending=".pt2"):
    """Each archive as {record without the top folder: content}."""
    for content in files(folders, ending):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield {entry.filename.split("/", 1)[-1]: archive.read(entry) for entry in archive.infolist()}


def pt2(folders):
    return files(folders, ".pt2")


def graph(folders):
    for records in archives(folders):
        if "models/model.json" in records:
            yield records["models/model.json"] + b"\0" + records.get("data/weights/model_weights_config.json", b"")


def safetensors(folders):
    return files(folders, ".safetensors")


def pickle(folders):
    for records in archives(folders):
        if "data/sample_inputs/model.pt" not in records:
            continue
        with zipfile.ZipFile(io.BytesIO(records["data/sample_inputs/model.pt"])) as archive:
            yield from (archive.read(entry) for entry in archive.infolist() if entry.filename.endswith("data.pkl"))


SESSION_RECORDS = """session model document/strings document/metas document/symbols document/patterns document/sources document/subgraphs
    document/storages document/values document/terms document/ops document/sizes computation traces analysis values""".split()


def session(folders):
    for content in files(folders, ".retrograd"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
            records = (name + ".json" for name in SESSION_RECORDS)
            yield b"\0".join(archive.read(record) if record in names else b'{"tensors":[],"numbers":[]}' for record in records)


def memory(folders):
    """The start and the end of each history: a whole one is long."""
    for content in files(folders, ".pickle.xz"):
        pickled = lzma.decompress(content)
        snapshot = pickle_module.loads(pickled)
        for trace in snapshot["device_traces"]:
            del trace[120:]
        yield pickle_module.dumps(snapshot)
        yield pickled[:LARGEST]


def text(folders):
    return files(folders, ".txt")


def size(folders):
    """Sizes and guards of exported graphs."""
    for content in graph(folders):
        for expression in re.findall(rb'"expr_str": ?"([^"]*)"', content):
            yield expression
        for guards in re.findall(rb'"guards_code": ?\[([^\]]*(?:\][^\]]*)*?)\], ?"', content):
            yield from re.findall(rb'"([^"]*)"', guards)


def kept(target):
    folder = pathlib.Path(__file__).parent / "seeds" / target
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []


def dictionary(seeds):
    words = {word for seed in seeds for word in re.findall(rb'"[A-Za-z_][A-Za-z0-9_.]{1,30}"', seed)}
    return "".join('"\\"{}\\""\n'.format(word[1:-1].decode()) for word in sorted(words)[:2000])


def main(target, out, *folders):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    make = globals().get(target)
    seeds = kept(target) + (list(make([pathlib.Path(f) for f in folders if pathlib.Path(f).is_dir()])) if callable(make) else [])
    for seed in seeds:
        if len(seed) <= LARGEST:
            (out / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    pathlib.Path(f"{out}.dict").write_text(dictionary(seeds))
    print(f"{target}: {len(list(out.iterdir()))} seeds")


if __name__ == "__main__":
    main(*sys.argv[1:])
