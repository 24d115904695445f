"""What the tests of the built `retrograd` share."""
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
DATA = TOP / "tests" / "data"
MODELS = DATA / "models"
PROGRAM = None  # the first argument of each file of tests


def environment():
    return {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}


def run(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([PROGRAM, *map(str, arguments)], text=True, timeout=300, env=environment(), **options)


def subcommands(*of):
    return re.findall(r"^  (\w[\w-]*)\s", run("help", *of).stdout.split("Subcommands:")[1], re.M)


def valid(text, name):
    """The JSON, which docs/NAME.schema.json allows."""
    import jsonschema  # some interpreters that test the window have none

    value = json.loads(text)
    jsonschema.validate(value, json.loads((TOP / "docs" / f"{name}.schema.json").read_text()))
    return value


def verdicts(text):
    """The reports of a check, each of which fits its schema."""
    return [valid(json.dumps(report), "report") for report in json.loads(text)]


def start(*arguments, **options):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], text=True, env=environment(), **options)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def good(self, *arguments, **options):
        return self.ends(0, *arguments, **options)

    def bad(self, *arguments, code=2, **options):
        result = self.ends(code, *arguments, **options)
        self.assertTrue(result.stderr or result.stdout, "it failed without a word")
        return result

    def ends(self, code, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, f"{arguments}: {(result.stdout or '')[-2000:]}{(result.stderr or '')[-2000:]}")
        return result

    def fits(self, schema, *arguments, code=0):
        """The report of a command, which its schema allows."""
        return valid(self.ends(code, *arguments, "--format", "json").stdout, schema)

    def peak(self, *arguments, **options):
        """Exit code, standard error and the most memory (bytes) that a run had."""
        with (self.path / "errors").open("w+") as errors:
            process = start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, **options)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            return process.returncode, errors.read(), usage.ru_maxrss * 1024


def safetensors(path, tensors):
    """Writes float32 vectors by name."""
    header, data = {}, b""
    for name, values in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path
