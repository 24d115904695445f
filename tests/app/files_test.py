#!/usr/bin/env python3
"""Files that the built `retrograd` (first argument) reads and writes: nothing is lost, and nothing changes unnoticed under it."""
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

import support
from support import DATA, MODELS, Case, run, safetensors, start

MLP = MODELS / "mlp" / "model.pt2"


def limited(size):
    """Files that are written may grow to `size` bytes, as on a disk that is full then."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Outputs(Case):
    def setUp(self):
        super().setUp()
        self.model = self.path / "m.pt2"
        shutil.copy(MLP, self.model)
        self.content = self.model.read_bytes()

    def kept(self, *arguments):
        errors = self.bad(*arguments).stderr
        self.assertEqual(self.model.read_bytes(), self.content, f"{arguments}: the model was written over")
        self.assertEqual([p.name for p in self.path.iterdir() if ".pt2." in p.name], [], "a temporary file was left")
        return errors

    # The model is not replaced by a session that refers to it, under whatever name it is known.
    def test_an_input_is_never_written_over(self):
        other = self.path / "other.pt2"
        os.link(self.model, other)
        link = self.path / "link.pt2"
        link.symlink_to(self.model)
        folder = self.path / "folder"
        folder.mkdir()
        for out in (self.model, other, link, folder / ".." / "m.pt2"):
            for command in (["save", self.model, "-o", out], ["save", self.model, "--embed", "-o", out], ["run", self.model, "--save", out],
                            ["export", self.model, "--to", "text", "-o", out], ["check", self.model, "--report", out]):
                with self.subTest(command=command):
                    self.assertTrue(self.kept(*command))

    def test_nor_what_an_input_refers_to(self):
        session = self.path / "s.retrograd"
        self.good("save", self.model, "-o", session)
        self.kept("save", session, "-o", self.model)
        self.kept("save", session, "--embed", "-o", self.model)
        inputs = self.path / "in.safetensors"
        self.good("run", self.model, "--save", inputs)
        before = inputs.read_bytes()
        self.bad("run", self.model, "--inputs", inputs, "--save", inputs)
        self.assertEqual(inputs.read_bytes(), before)

    def test_a_session_is_saved_in_its_own_place(self):
        session = self.path / "m.retrograd"
        self.good("save", self.model)
        self.good("save", session)
        self.good("save", session, "--embed", "-o", session)
        self.model.unlink()
        self.good("run", session)

    def test_two_outputs_are_two_files(self):
        reference = self.path / "ref.safetensors"
        shutil.copy(MODELS / "mlp" / "ref.safetensors", reference)
        before = reference.read_bytes()
        self.assertIn("both read and written", self.bad("check", self.model, "--reference", reference, "--report", reference).stderr)
        self.assertEqual(reference.read_bytes(), before)

    # Whole or not at all, and only where a file is.
    def test_a_full_disk_leaves_what_was_there(self):
        for name, command in {"report": ["check", self.model, "--report"], "schedule": ["pipeline", "schedule", "GPipe", "--ranks", 4, "--microbatches", 64, "-o"],
                              "session": ["save", self.model, "-o"], "export": ["export", self.model, "--to", "text", "-o"],
                              "tensors": ["run", self.model, "--save"], "stages": ["pipeline", "split", self.model, "--stages", 2, "--out"]}.items():
            with self.subTest(name=name):
                out = self.path / name
                if name == "stages":
                    out.mkdir()
                else:
                    out.write_text("what was there")
                errors = self.bad(*command, out, preexec_fn=limited(100)).stderr
                self.assertIn(str(out), errors)
                self.assertIn("File too large", errors)
                self.assertEqual(list(out.iterdir()) if name == "stages" else out.read_text(), [] if name == "stages" else "what was there")
                self.assertEqual([p.name for p in self.path.iterdir() if p.name.startswith(name + ".")], [], "a temporary file was left")

    def test_devices_folders_and_links_are_no_files_to_write(self):
        link = self.path / "link.json"
        link.symlink_to(self.path / "elsewhere.json")
        folder = self.path / "folder"
        folder.mkdir()
        for out, why in ((link, "is a symbolic link to"), ("/dev/null", "is a device"), (folder, "is a folder"), ("/dev/stderr", "is a symbolic link")):
            with self.subTest(out=out):
                self.assertIn(why, self.bad("check", self.model, "--report", out).stderr)
                self.assertIn(why, self.bad("pipeline", "schedule", "GPipe", "--ranks", 2, "--microbatches", 2, "-o", out).stderr)
                self.assertIn(why, self.bad("run", self.model, "--save", out).stderr)
        self.assertTrue(link.is_symlink())
        self.assertFalse((self.path / "elsewhere.json").exists())
        self.assertIn("not to standard output", self.bad("save", self.model, "-o", "-").stderr)

    def test_permissions_are_those_of_the_umask_or_of_the_file_before(self):
        out = self.path / "r.json"
        self.good("check", self.model, "--report", out, preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o640)
        out.chmod(0o604)
        self.good("check", self.model, "--report", out)
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o604)

    def test_a_place_that_is_not_there_is_said_before_the_work(self):
        result = self.bad("run", MLP, "-o", self.path / "no_folder" / "out.safetensors")
        self.assertIn("out.safetensors: cannot write: No such file or directory", result.stderr)
        self.assertEqual(result.stdout, "")  # no table: nothing ran

    def test_a_text_goes_to_standard_output_on_request(self):
        for out in ("-", "/dev/stdout"):
            self.assertIn('"verdict"', self.good("check", self.model, "--report", out).stdout)
            self.assertIn("0F0", self.good("pipeline", "schedule", "GPipe", "--ranks", 2, "--microbatches", 2, "--format", "csv", "-o", out).stdout)
            self.assertIn("def computation(", self.good("export", self.model, "--to", "text", "-o", out).stdout)
            self.assertIn("<html", self.good("report", self.model, "-o", out).stdout)
        self.assertFalse((self.path / "-").exists())


class StandardOutput(Case):
    COMMANDS = (["trace", MLP], ["trace", MLP, "--format", "json"], ["run", MLP], ["bench", MLP, "--repeat", 1], ["check", MLP], ["check", MLP, "--format", "json"],
                ["export", MLP, "--to", "text"], ["notes", MLP], ["compare", MLP, MLP], ["diff", MLP, MLP, "--format", "json"], ["debug", MLP, "-c", "where"],
                ["pipeline", "split", MLP, "--stages", 2], ["pipeline", "schedule", "GPipe", "--ranks", 2, "--microbatches", 2], ["pipeline", "check", MLP, "--stages", 2],
                ["help"], ["help", "man"], ["--help"], ["--version"], ["version"])

    # Output that is lost is a failure.
    def test_a_full_disk_is_a_failure(self):
        for command in self.COMMANDS:
            with self.subTest(command=command), open("/dev/full", "w") as full:
                errors = self.bad(*command, stdout=full).stderr
                self.assertIn("retrograd: standard output: cannot be written: No space left on device", errors)

    def test_so_is_a_closed_pipe(self):
        for command in self.COMMANDS[:3]:
            with self.subTest(command=command):
                readable, writable = os.pipe()
                os.close(readable)
                self.assertIn("standard output: cannot be written: Broken pipe", self.bad(*command, stdout=writable).stderr)
                os.close(writable)

    def test_debug_ends_quietly_where_nobody_reads_on(self):
        many = [word for _ in range(400) for word in ("-c", "list 50")]
        with subprocess.Popen([support.PROGRAM, "debug", MLP, *many], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, -signal.SIGPIPE)

    def test_so_is_output_that_is_closed(self):
        out = self.path / "out.retrograd"
        self.assertIn("standard output: cannot be written", self.bad("trace", MLP, preexec_fn=lambda: os.close(1), stdout=None).stderr)
        self.bad("save", MLP, "-o", out, preexec_fn=lambda: os.close(1), stdout=None)
        self.good("run", out)  # no text got into it


class Changing(Case):
    """A model that changes while it is open. The bytes of its weights are used where they lie in the file."""

    def setUp(self):
        super().setUp()
        self.model = self.path / "g.pt2"
        shutil.copy(MLP, self.model)

    def debug(self, *options):
        process = start("debug", self.model, *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.tell(process, "step")
        self.assertTrue(process.stdout.readline())  # it is open, and one op ran
        return process

    def tell(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def ending(self, process, *lines):
        out, errors = process.communicate("".join(line + "\n" for line in lines), timeout=120)
        return process.returncode, out, errors

    # A clear error instead of a signal or a wrong number.
    def test_a_file_that_is_cut_short(self):
        for size in (0, 1000):
            with self.subTest(size=size):
                shutil.copy(MLP, self.model)
                process = self.debug()
                os.truncate(self.model, size)
                code, _, errors = self.ending(process, "continue")
                self.assertEqual(code, 2, errors)
                self.assertIn(f"{self.model}: the file lost content while it was open", errors)

    def test_a_file_that_is_written_in_place(self):
        process = self.debug()
        with self.model.open("r+b") as file:
            file.seek(self.model.stat().st_size // 2)
            file.write(b"other")
        code, _, errors = self.ending(process, "continue")
        self.assertEqual(code, 2, errors)
        self.assertIn(f"{self.model}: the file changed while it was open", errors)

    def test_a_file_that_is_replaced_or_removed_is_kept_open(self):
        for change in (lambda: os.replace(shutil.copy(DATA / "texts" / "linear.txt", self.path / "new"), self.model), self.model.unlink):
            shutil.copy(MLP, self.model)
            process = self.debug()
            change()
            code, out, errors = self.ending(process, "continue")
            self.assertEqual((code, errors), (0, ""))
            self.assertTrue(out)

    def test_the_session_stays_with_what_it_has(self):
        process = self.debug("--keep-going", "--format", "json")
        os.truncate(self.model, 0)
        code, out, errors = self.ending(process, "continue", "where", "reverse-step", "where")
        self.assertEqual(code, 2)
        self.assertIn("lost content", out)
        self.assertEqual(out.count("lost content"), 1, out)
        self.assertIn('"position":0', out.replace(" ", ""))

    def test_commands_that_run_to_the_end(self):
        """Cut short at some moment of a run: good output and 0, or an error; never a signal."""
        for command in (["run"], ["check"], ["trace"], ["bench", "--repeat", 1], ["save", "--embed", "-o", self.path / "s.retrograd"]):
            for delay in (0.1, 0.2, 0.3, 0.5):
                with self.subTest(command=command, delay=delay):
                    shutil.copy(MLP, self.model)
                    process = start(command[0], self.model, *command[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    time.sleep(delay)
                    os.truncate(self.model, 0)
                    _, errors = process.communicate(timeout=120)
                    self.assertIn(process.returncode, (0, 1, 2), errors)
                    self.assertEqual(bool(errors), process.returncode != 0, errors)


class Large(Case):
    """Archives whose weights are more than opening waits for: zeros, in a sparse file."""

    def archive(self, *options):
        path = self.path / "large.pt2"
        script = support.TOP / "scripts" / "sparse-archive"
        subprocess.run([sys.executable, script, "0.68", path, "--width", "8192", *options], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_a_damaged_weight_is_reported_before_it_is_used(self):
        path = self.archive("--damage")
        listing = run("trace", path)
        self.assertIn("linear_4", listing.stdout)  # nothing of it needs a weight
        done = run("run", path)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("weight_4: is damaged: its checksum (CRC) does not agree", done.stderr)
        self.assertEqual(run("run", path, "--until", "linear_3").returncode in (0, 2), True)

    def test_whole_weights_run(self):
        done = run("run", self.archive(), "--until", "linear_4")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_K4_a_run_that_takes_more_than_is_allowed_is_refused_with_the_figure(self):
        path = self.archive()
        done = run("run", path, "--running-memory", "300M")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"the run would take 0\.[67] GB more at its fullest \(after .*\), and 0\.3 GB are allowed; .*allow \d+ bytes with --running-memory")
        self.assertEqual(run("run", path, "--running-memory", "300M", "--until", "linear_4").returncode, 0)  # the forward has room


class References(Case):
    # A name that ends in no number is an error that says so.
    def test_names_of_outputs_end_in_numbers(self):
        for name in ("out.x", "out.", "out.1x", "out.-1", "out.+1", "out.01", "out.99999999999999999999", "f64/out.x", "cot.x"):
            with self.subTest(name=name):
                reference = safetensors(self.path / "r.safetensors", {name: [1.0, 2.0]})
                errors = self.bad("check", MLP, "--reference", reference).stderr
                self.assertIn(f"{reference}: tensor '{name}': its name does not end in the number of an output", errors)

    def test_devices_have_small_numbers(self):
        for device in ("cuda:300", "cuda:1x", "cuda:-1", "cuda:99999999999"):
            self.assertIn("is not a device", self.bad("trace", MLP, "--device", device).stderr)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
