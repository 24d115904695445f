"""Which program the package starts, and the command that pip installs for it."""
import json
import os
import subprocess
import sys
from pathlib import Path

from support import InFolder, unittest

from retrograd import ProgramNotFound, _program

SCRIPT = Path(sys.executable).parent / "retrograd"


class Program(InFolder):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))

    def other(self):
        """A program in a folder on PATH."""
        program = self.folder / "retrograd"
        program.write_text("#!/bin/sh\necho other \"$@\"\n")
        program.chmod(0o755)
        return program

    def test_order(self):
        """$RETROGRAD, then the program that the wheel carries, then PATH."""
        program = self.other()
        os.environ.update(RETROGRAD="/somewhere/retrograd", PATH=str(self.folder))
        self.assertEqual(_program.find(), Path("/somewhere/retrograd"))
        del os.environ["RETROGRAD"]
        self.assertEqual(_program.find(), _program.carried() or program)
        program.unlink()
        if _program.carried() is None:
            self.assertRaises(ProgramNotFound, _program.find)

    def test_one_module_starts_the_program(self):
        """The program of a wheel needs LibTorch's folder in its environment, which _program.run gives. A module that starts it otherwise works until the package is a wheel."""
        for module in Path(_program.__file__).parent.glob("*.py"):
            if module.name != "_program.py":
                self.assertNotRegex(module.read_text(), r"(?m)^\s*import subprocess|subprocess\.(run|Popen)|import .*\bPopen", module.name)

    @unittest.skipUnless(_program.carried(), "the package is not that of a wheel")
    def test_the_program_of_the_wheel_finds_its_kernels(self):
        done = subprocess.run([_program.carried(), "version", "--format", "json"], capture_output=True, text=True, timeout=60)
        self.assertTrue(json.loads(done.stdout)["gpu_kernels"], done.stderr)

    @unittest.skipUnless(SCRIPT.exists(), "pip has not installed the package")
    def test_the_command_does_not_start_itself(self):
        """$RETROGRAD and PATH may name the command itself."""
        self.other()
        path = os.pathsep.join([str(SCRIPT.parent), str(self.folder), "/usr/bin", "/bin"])
        done = subprocess.run([SCRIPT, "version"], env=dict(os.environ, RETROGRAD=str(SCRIPT), PATH=path), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("retrograd" if _program.carried() else "other version", done.stdout)

    @unittest.skipUnless(SCRIPT.exists(), "pip has not installed the package")
    def test_nor_through_a_link(self):
        """A virtual environment may be reached through a link."""
        self.other()
        link = self.folder / "linked"
        link.symlink_to(SCRIPT.parent.parent)
        script = link / "bin" / "retrograd"
        code = "import sys; sys.argv = ['retrograd', 'version']; from retrograd._program import main; main()"
        path = os.pathsep.join([str(script.parent), str(self.folder), "/usr/bin", "/bin"])
        done = subprocess.run([link / "bin" / "python", "-c", code], env=dict(os.environ, RETROGRAD=str(script), PATH=path), capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_another_pytorch_is_refused(self):
        """LibTorch of another minor version would crash the program."""
        program = self.folder / "program" / "bin" / "retrograd"
        libraries = self.folder / "torch" / "lib"
        libraries.mkdir(parents=True)
        program.parent.mkdir(parents=True)
        (libraries.parent / "version.py").write_text("__version__ = '2.15.0+cu132'\n")
        private = program.parent.parent / "lib" / "retrograd"
        for version in ("2.9", "2.11"):
            (private / f"torch-{version}").mkdir(parents=True)
        with self.assertRaisesRegex(ProgramNotFound, r"for PyTorch 2\.9, 2\.11, and PyTorch 2\.15\.0\+cu132 is installed"):
            _program._torch_version(program, libraries)
        (private / "torch-2.15").mkdir()
        self.assertEqual(_program._torch_version(program, libraries), "2.15")

    def test_the_package_is_a_command(self):
        other = self.other()
        done = subprocess.run([sys.executable, "-m", "retrograd", "version"], env=dict(os.environ, RETROGRAD=str(other)), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, subprocess.run([other, "version"], capture_output=True, text=True).stdout), done.stderr)


if __name__ == "__main__":
    unittest.main()
