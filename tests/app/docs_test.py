#!/usr/bin/env python3
"""Runs every command of every document with the built `retrograd` (first argument) and compares what it prints with what the text says.

A block marked `console` is run in a folder of its own with the samples in it, `model.pt2` (tiny_gpt.pt2), `other.pt2` (mlp.pt2), `memory.pickle.xz`, `checkpointed.pickle.xz` and `gpt.txt` (two histories of one model, and the model) and `models/`. A line that begins with `$ ` is a
command; the lines below are its output, where `...` stands for anything. `# exit code 1` behind a command says how it ends. A comment `<!-- not run: REASON -->` before a block of
another kind says why its commands are not run; without one they may not name `retrograd`.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import support
from support import TOP, run, subcommands

PAGES = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
SAMPLES = TOP / "resources" / "samples"
BLOCK = re.compile(r"(?P<before>[^\n]*\n)?^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^ *```", re.M | re.S)


def name(page):
    return str(page.relative_to(TOP))


def blocks(page):
    text = page.read_text()
    for match in BLOCK.finditer(text):
        body = re.sub(r"^" + match["indent"], "", match["body"], flags=re.M)
        yield match["kind"], body, match["before"] or "", text[:match.start()].count("\n") + 2


def commands(body):
    """Each command with the lines that are to follow."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """A regular expression for the output; a line of `...` is any number of lines."""
    text = ""
    for line in lines:
        text += r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r" *\n"
    return re.compile(text + r"\Z")


def prepare(folder, page_text):
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    shutil.copy(SAMPLES / "tiny_gpt.pt2", folder / "model.pt2")
    shutil.copy(SAMPLES / "mlp.pt2", folder / "other.pt2")
    for name, copy in ("plain.pickle.xz", "memory.pickle.xz"), ("checkpoint.pickle.xz", "checkpointed.pickle.xz"), ("leak.pickle.xz", "leak.pickle.xz"), ("plain.txt", "gpt.txt"):
        shutil.copy(TOP / "tests" / "data" / "memory" / name, folder / copy)
    (folder / "run").write_text('#!/bin/sh\nexec retrograd "$@"\n')  # in a checkout ./run builds first
    (folder / "run").chmod(0o755)
    (folder / "models").mkdir()
    shutil.copy(SAMPLES / "mlp.pt2", folder / "models" / "mlp.pt2")
    for given in re.findall(r"<!-- files: (.*?) -->", page_text):
        for pair in given.split():
            if "=" in pair:
                target, source = pair.split("=")
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TOP / source, folder / target)


def shell(command, folder):
    environment = dict(support.environment(), PATH=f"{pathlib.Path(support.PROGRAM).parent}:{support.os.environ['PATH']}", XDG_STATE_HOME=str(folder / "state"))
    return subprocess.run(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env=environment)


def opens_the_window(command):
    return re.fullmatch(r"(?:retrograd|\./run)( \S+\.(pt2|pt|retrograd))*( +#.*)?", command) is not None


class Commands(unittest.TestCase):
    def run_page(self, page):
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            prepare(folder, page.read_text())
            for kind, body, _, line in blocks(page):
                if kind != "console":
                    continue
                for command, expected in commands(body):
                    if opens_the_window(command):
                        continue
                    with self.subTest(page=name(page), line=line, command=command):
                        code = re.search(r"# exit code (\d+)", command)
                        result = shell(command, folder)
                        self.assertEqual(result.returncode, int(code[1]) if code else 0, result.stdout[-3000:])
                        # Numbers of a recording are those of the recorder's kind of processor.
                        elsewhere = "it was recorded with the instruction set" in result.stdout
                        if expected and not elsewhere:
                            output = re.sub(r" +$", "", result.stdout, flags=re.M)
                            self.assertRegex(output, pattern(expected), f"\n--- printed ---\n{output[:4000]}")

    def test_every_command_in_help_runs(self):
        listed = subcommands()
        nested = [f"pipeline {name}" for name in subcommands("pipeline")]
        found = 0
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            prepare(folder, "")
            for command in listed + nested:
                text = run("help", *command.split()).stdout
                for example in re.findall(r"^  (retrograd .*)$", text.split("Examples:")[1] if "Examples:" in text else "", re.M):
                    found += 1
                    if example.startswith("retrograd picture") and "picture" not in listed:
                        continue
                    with self.subTest(example=example):
                        result = shell(example, folder)
                        self.assertIn(result.returncode, (0, 1) if example.startswith("retrograd diff") else (0,), result.stdout[-2000:])
        self.assertGreater(found, 20)

    def test_what_is_not_run_says_why(self):
        for page in PAGES:
            for kind, body, before, line in blocks(page):
                if kind in ("console", "python", "cpp"):
                    continue
                runs = [text for text in body.splitlines() if re.match(r"(\$ )?retrograd\s", text.strip())]
                self.assertTrue(not runs or "<!-- not run:" in before, f"{name(page)}:{line}: {runs[:1]}")

    def test_no_command_hides_in_an_indented_block(self):
        for page in PAGES:
            text = BLOCK.sub("", page.read_text())
            for line in text.splitlines():
                self.assertFalse(re.match(r"(    |\t)\s*(\$ )?retrograd\s", line), f"{name(page)}: {line}")


class Options(unittest.TestCase):
    """`retrograd NAME --option` within a sentence names what there is."""
    known = {}

    def options(self, *command):
        if command not in self.known:
            result = run("help", *command)
            self.known[command] = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", result.stdout)) if result.returncode == 0 else None
        return self.known[command]

    def test_names_in_sentences(self):
        for page in PAGES:
            text = BLOCK.sub("", page.read_text())
            for code in re.findall(r"`(retrograd [^`]+)`", text):
                words = code.split()[1:]
                command = [w for w in words[:2] if re.fullmatch(r"[a-z][a-z-]*", w)]
                command = tuple(command[:2] if command[:1] == ["pipeline"] else command[:1])
                if command[:1] == ("help",) or not command:
                    continue
                with self.subTest(page=name(page), code=code):
                    known = self.options(*command)
                    self.assertIsNotNone(known, "there is no such subcommand")
                    for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code.split(" -- ")[0]):
                        self.assertIn(option, known | {"--help", "--version"})


class Places(unittest.TestCase):
    def test_no_file_names_the_place_of_this_checkout(self):
        """Traces hold the paths of the code that was traced; `tests/data/jobs/make.py` replaces the checkout's place."""
        place = f"{TOP}/".encode()
        for folder in ("docs", "resources", "tests"):
            for file in (TOP / folder).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    for text in contents(file):
                        self.assertNotIn(place, text, name(file))


def contents(file):
    yield file.read_bytes()
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                yield archive.read(entry)


class Links(unittest.TestCase):
    @staticmethod
    def anchors(page):
        found = set()
        for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M):
            found.add(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"))
        return found

    def links(self, page):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)):
            if "://" not in target:
                yield target

    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for target in self.links(page):
                with self.subTest(page=name(page), target=target):
                    path, _, anchor = target.partition("#")
                    file = (page.parent / path).resolve() if path else page
                    self.assertTrue(file.exists())
                    if anchor:
                        self.assertIn(anchor, self.anchors(file))

    def test_the_index_reaches_every_page(self):
        reached, todo = set(), [TOP / "docs" / "index.md"]
        while todo:
            page = todo.pop()
            if page in reached:
                continue
            reached.add(page)
            if page.name == "index.md":
                todo += [(page.parent / t.partition("#")[0]).resolve() for t in self.links(page) if t.partition("#")[0].endswith(".md")]
        self.assertEqual([name(p) for p in PAGES if p not in reached and p.parent != TOP], [])


def add_pages():
    for page in PAGES:
        setattr(Commands, "test_" + re.sub(r"\W+", "_", name(page)), lambda self, page=page: self.run_page(page))


if __name__ == "__main__":
    support.PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    add_pages()
    unittest.main()
