#!/usr/bin/env python3
"""Looks at an installed tree and runs the program in it, as someone has it who has no checkout.

    installed_test.py PREFIX          a tree that is there, e.g. an unpacked package
    installed_test.py --build DIR     what `cmake --install DIR` makes, in a folder of its own
"""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TOP = pathlib.Path(__file__).resolve().parents[2]
ID = "org.retrograd.retrograd"
PREFIX = None
PLAYED = TOP / "build" / "release" / "played_gpu"
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


def execute(*command, **options):
    """Without a variable of ours, so that nothing is found by luck; the home is a folder that is not there."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    return subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True, timeout=300,
                          stdin=options.pop("stdin", subprocess.DEVNULL), **options)


def programs():
    """The ELF files of the tree."""
    for path in sorted(PREFIX.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


class Installed(unittest.TestCase):
    def good(self, *command, **options):
        result = execute(*command, **options)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stdout[-2000:]}{result.stderr[-2000:]}")
        return result.stdout

    def tool(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed")
        return name

    def share(self, path):
        path = PREFIX / "share" / path
        self.assertTrue(path.is_file(), path)
        return path

    def test_programs_find_everything_in_the_tree_or_the_system(self):
        found = list(programs())
        self.assertIn(PREFIX / "bin" / "retrograd", found)
        for program in found:
            dynamic = self.good("readelf", "-d", program)
            for search in re.findall(r"(?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
                for folder in filter(None, search.split(":")):
                    self.assertTrue(folder.startswith("$ORIGIN"), f"{program}: {folder}")
        libraries = self.good("ldd", (PREFIX / "lib" / "retrograd" / "retrograd-program"))
        self.assertNotIn("not found", libraries)
        for path in re.findall(r"=> (/\S+)", libraries):
            inside = pathlib.Path(path).resolve().is_relative_to(PREFIX)
            self.assertTrue(inside or path.startswith(("/lib", "/usr/lib")), path)
        self.assertIn(str(PREFIX / "lib/retrograd/libtorch_cpu.so"), libraries)

    # LibTorch asks for libraries of NVIDIA and knows the folder of the Python package that each lies in. The program does not.
    def test_the_program_asks_for_no_library_of_nvidia(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", self.good("readelf", "-d", PREFIX / "lib" / "retrograd" / "retrograd-program"))
        self.assertIn("libtorch_cpu.so", needed)
        self.assertEqual([name for name in needed if name.startswith(("libcu", "libnv"))], [])

    def test_nothing_of_nvidias_is_there(self):
        lib = PREFIX / "lib" / "retrograd"
        theirs = [path for path in PREFIX.rglob("lib*.so*") if re.match(r"lib(cu|nv|torch_cuda|c10_cuda)", path.name)]
        self.assertEqual([path for path in theirs if path.parent != lib / "standins"], [])
        for path in theirs:
            self.assertLess(path.stat().st_size, 100_000, path)
        # Bound when it starts, not when called: a function that a stand-in lacks would show.
        self.assertIn("LibTorch", self.good((PREFIX / "lib" / "retrograd" / "retrograd-program"), "version", env={"LD_BIND_NOW": "1"}))

    def test_the_kernels_come_along(self):
        kernels = PREFIX / "lib" / "retrograd" / "retrograd_kernels.fatbin"
        self.assertEqual(kernels.read_bytes()[:4], b"\x50\xed\x55\xba")
        about = json.loads(self.good(PREFIX / "bin" / "retrograd", "version", "--format", "json"))
        self.assertTrue(about["gpu_kernels"])  # the program finds them

    # On a GPU that is played (tests/support/played_gpu): its driver runs the kernels that are loaded, and logs it.
    def test_an_installed_program_loads_its_kernels(self):
        if not (PLAYED / "libtorch_cuda.so").exists():
            self.skipTest(f"there is no {PLAYED}")
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "driver.log"
            environment = {"LD_LIBRARY_PATH": str(PLAYED), "RETROGRAD_FAKE_DRIVER_LOG": str(log)}
            sample = PREFIX / "share/retrograd/samples/tiny_gpt.pt2"
            self.good(PREFIX / "bin" / "retrograd", "bench", sample, "--device", "cuda", "--repeat", "1", env=environment)
            calls = log.read_text().splitlines()
            self.assertEqual(calls.count("cuModuleLoadData"), 1)
            self.assertGreater(calls.count("cuLaunchKernel"), 50)
            self.assertEqual([call for call in calls if call.startswith("fault")], [])

    def test_the_checkout_is_not_named(self):
        for program in (PREFIX / "bin" / "retrograd", (PREFIX / "lib" / "retrograd" / "retrograd-program")):
            self.assertNotIn(str(TOP).encode(), program.read_bytes())

    def test_runs_on_its_samples(self):
        samples = sorted((PREFIX / "share/retrograd/samples").glob("*.pt2"))
        self.assertGreaterEqual(len(samples), 2)
        for sample in samples:
            self.assertIn("forward:", self.good(PREFIX / "bin" / "retrograd", "trace", sample, "--show", "backward"))
        self.good(PREFIX / "bin" / "retrograd", "check", samples[0])

    # The graph of this model has crossings, which is when the helper is asked.
    def test_draws_the_window_and_uses_its_own_layout_helper(self):
        helper = PREFIX / "lib/retrograd/retrograd-layout"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            real = folder / "helper"
            shutil.move(helper, real)
            try:
                helper.write_text(f'#!/bin/sh\ntouch "{folder}/used"\nexec "{real}"\n')
                helper.chmod(0o755)
                self.good(PREFIX / "bin/retrograd", "picture", "--graph", "--open", TOP / "tests/data/models/inplace_views/model.pt2", folder / "window.png",
                          env={"XDG_RUNTIME_DIR": str(folder)})
            finally:
                helper.unlink()
                shutil.move(real, helper)
            self.assertTrue((folder / "used").exists())
            self.assertEqual((folder / "window.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_manual_completions_documents_and_licences(self):
        manual = gzip.decompress(self.share("man/man1/retrograd.1.gz").read_bytes()).decode()
        self.assertIn(".SH", manual)
        self.assertIn("retrograd", self.share("bash-completion/completions/retrograd").read_text())
        self.share("zsh/site-functions/_retrograd")
        self.share("fish/vendor_completions.d/retrograd.fish")
        readme = self.share("doc/retrograd/README.md")
        for link in re.findall(r"\]\((docs/[^)#]+)\)", readme.read_text()):
            self.assertTrue((readme.parent / link).exists(), link)
        licences = self.share("doc/retrograd/copyright").read_text()
        for name in ("Apache-2.0", "BSD-3-Clause", "Intel-Simplified-Software-License", "Expat"):
            self.assertIn(f"\nLicense: {name}\n", licences)
        self.assertIn("PyTorch", self.share("doc/retrograd/libtorch/LICENSE").read_text())

    def test_desktop_entry(self):
        entry = self.share(f"applications/{ID}.desktop")
        keys = dict(line.split("=", 1) for line in entry.read_text().splitlines() if "=" in line)
        self.assertEqual(keys["Exec"], "retrograd %F")
        self.share(f"icons/hicolor/scalable/apps/{keys['Icon']}.svg")
        types = xml.etree.ElementTree.parse(self.share(f"mime/packages/{ID}.xml")).getroot().findall(f"{MIME}mime-type")
        known = {mime.get("type") for mime in types}
        self.assertEqual(set(filter(None, keys["MimeType"].split(";"))), known)
        for name in known:
            xml.etree.ElementTree.parse(self.share(f"icons/hicolor/scalable/mimetypes/{name.replace('/', '-')}.svg"))
        self.good(self.tool("desktop-file-validate"), entry)

    def test_appstream(self):
        self.good(self.tool("appstreamcli"), "validate", "--no-net", "--explain", self.share(f"metainfo/{ID}.metainfo.xml"))

    def test_mime_database_takes_the_types(self):
        tool = self.tool("update-mime-database")
        with tempfile.TemporaryDirectory() as folder:
            packages = pathlib.Path(folder) / "mime" / "packages"
            packages.mkdir(parents=True)
            shutil.copy(self.share(f"mime/packages/{ID}.xml"), packages)
            self.good(tool, packages.parent)
            globs = (packages.parent / "globs2").read_text()
            self.assertIn("60:application/x-torch-export:*.pt2", globs)


if __name__ == "__main__":
    if sys.argv[1] == "--build":
        folder = tempfile.TemporaryDirectory()
        PLAYED = pathlib.Path(sys.argv[2]).resolve() / "played_gpu"
        PREFIX = pathlib.Path(folder.name).resolve() / "usr"
        subprocess.run(["cmake", "--install", sys.argv[2], "--prefix", str(PREFIX), "--component", "retrograd"], check=True, stdout=subprocess.DEVNULL)
    else:
        PREFIX = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])
