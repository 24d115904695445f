"""Runs `retrograd check`: the program itself, or by a process that has it loaded (tests/fuzz/commands)."""

import os
import subprocess
import tempfile
from pathlib import Path

TIME = 120  # seconds of one check


class Program:
    """RETROGRAD names the program. RETROGRAD_COMMANDS names fuzz_commands, which is many times as fast."""

    def __init__(self):
        self.server = None
        self.folder = tempfile.TemporaryDirectory()
        self.files = [Path(self.folder.name) / name for name in ("out", "err")]
        if os.environ.get("RETROGRAD_COMMANDS"):
            self.server = subprocess.Popen(
                [os.environ["RETROGRAD_COMMANDS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )

    def run(self, *arguments):
        """(exit code, standard output, standard error)."""
        arguments = [str(argument) for argument in arguments]
        if self.server is None:
            done = subprocess.run([os.environ["RETROGRAD"], *arguments], capture_output=True, text=True, timeout=TIME)
            return done.returncode, done.stdout, done.stderr
        self.server.stdin.write("\t".join([*map(str, self.files), *arguments]) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        return code, *(file.read_text() if file.exists() else "" for file in self.files)
