#!/usr/bin/env python3
"""H6: looks in documents, help, messages, resources and comments for wording that a reader has to read twice. The first argument is the built `retrograd`.

A phrase that is quoted on purpose (a name of PyTorch, a reason by another program) is listed in ALLOWED with its reason.
"""
import io
import json
import pathlib
import re
import sys
import tokenize
import unittest

import support
from support import TOP, run

PHRASES = [  # expression, what to write
    (r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b|wider\b)\w+", "say what it is, or 'is not a ...' (negated nouns)"),
    (r"(?<!-)\b[Tt]ell(?:s|ing)?\b|\b[Tt]old\b", "says, shows, names, reports"),
    (r"(?<![-\w])[Ss]tands?\b(?!-| for\b| in for\b| out\b)|\bstood\b(?! for\b)", "is, appears"),
    (r"\b[Aa]new\b", "again"),
    (r"\b[Bb]eside\b", "next to, with, besides"),
    (r"\bof then\b", "of that time"),
    (r"\bby words\b", "in words"),
    (r"\b(?:Compared|Aligned|Shown|Kept|Counted|Added) (?:are|is)\b", "subject first"),
    (r"\binside of\b", "inside"),
    (r"\bcame to be\b|\bcome to be\b", "was produced"),
    (r"\b(?:runs?|they|two) part\b(?! of)", "diverge"),
    (r"\b[Aa]nswers? to\b(?! (?:a|the) question)", "matches"),
    (r"[Oo]pened lately", "recent"),
    (r"[Tt]hese go together", "you can combine"),
    (r"\bin place of\b", "instead of"),
    (r"(?:^|[.:;] )What (?:has|have|is|are|was|goes|stands|comes|it|the) [^?.:;|]{3,70}? (?:is|are|has|stays|counts)\b(?![^.:;|]*\?)", "name the thing first (a clause as subject)"),
    (r"(?<![\w-])--(?:to|out) (?!be\b)", "--format, --output (earlier names of options)"),
    (r"no file of a kind", "unrecognized file format"),
    (r"that one looks at", "name the thing"),
    (r"\b(?:that|those) which\b", "the thing's name"),
    (r"\b[Mm]end(?:s|ed|ing)?\b", "fix"),
    (r"\bno text, are\b|\bis no text\b", "binary files are not shown"),
]

ALLOWED = {  # file or "*": texts
    "*": ["stand-in", "understand", "standalone",
          "draws anew",  # printed traces of earlier versions have it, and still open
          "twins_mended"],  # a sample
    "twins.py": ["mended"],  # its lines are those that the traces of the samples name
}

MOST = 40  # comment lines that may fail: a rule of words has exceptions
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def without_code(text):
    """A page without its blocks and without code in sentences."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`x`", text)


def hits(text):
    for expression, advice in PHRASES:
        for match in re.finditer(expression, text, re.M):
            around = text[max(0, match.start() - 60):match.end() + 60].replace("\n", " ")
            if not any(a in around for a in ALLOWED["*"]):
                yield f"'{match.group(0)}' ({advice}): {around}"


def comments(path):
    """(line, text) of each comment of a C++ file; neighbouring lines of comment are one text."""
    found, last = [], 0
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        code = LITERAL.sub('""', line)
        if "//" not in code or "://" in code or "LINT" in code:
            continue
        text = line[line.rindex("//") if code.count("//") == 1 else line.index("//"):].lstrip("/<! ")
        if found and last == number - 1 and line.strip().startswith("//"):
            found[-1].append((number, text))
        else:
            found.append([(number, text)])
        last = number
    return found


def comment_hits(folders=("app", "core", "views", "tests")):
    """Each place in a comment of the C++ that fails, as "path:line: hit"."""
    for folder in folders:
        for path in sorted((TOP / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".cu"):
                continue
            for block in comments(path):
                block = [(line, re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), text)) for line, text in block]
                text = " ".join(line for _, line in block)
                starts = [sum(len(line) + 1 for _, line in block[:i]) for i in range(len(block))]
                for expression, advice in PHRASES:
                    for match in re.finditer(expression, text, re.M):
                        around = text[max(0, match.start() - 60):match.end() + 60]
                        if any(a in around for a in ALLOWED["*"]):
                            continue
                        number = max(line for (line, _), start in zip(block, starts) if start <= match.start())
                        yield f"{path.relative_to(TOP)}:{number}: '{match.group(0)}' ({advice}): {around}"


class Words(unittest.TestCase):
    maxDiff = None

    def none(self, found):
        self.assertEqual(found, [], "\n".join(found))

    def test_documents(self):
        found = []
        for page in sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *(TOP / ".github").rglob("*.md")]):
            found += [f"{page.relative_to(TOP)}: {hit}" for hit in hits(without_code(page.read_text()))]
        self.none(found)

    def test_schemas_and_resources(self):
        found = []
        for file in [*(TOP / "docs").glob("*.json"), *(TOP / "resources").rglob("*.json")]:
            def texts(node):
                if isinstance(node, dict):
                    for key, value in node.items():
                        if key in ("description", "title", "text") and isinstance(value, str):
                            yield value
                        else:
                            yield from texts(value)
                elif isinstance(node, list):
                    for item in node:
                        yield from texts(item)
            for text in texts(json.loads(file.read_text())):
                found += [f"{file.name}: {hit}" for hit in hits(text)]
        for file in [*(TOP / "resources").rglob("*.py"), *(TOP / "resources").rglob("*.in"), *(TOP / "resources").rglob("*.desktop"), *(TOP / "resources" / "desktop").glob("*.xml")]:
            text = file.read_text()
            for allowed in ALLOWED.get(file.name, []):
                text = text.replace(allowed, "x")
            found += [f"{file.name}: {hit}" for hit in hits(text)]
        self.none(found)

    def test_help(self):
        found = []
        listed = re.findall(r"^  (\w[\w-]*)\s", run("help").stdout.split("Subcommands:")[1], re.M)
        nested = [["pipeline", n] for n in re.findall(r"^  (\w[\w-]*)\s", run("help", "pipeline").stdout.split("Subcommands:")[1], re.M)]
        for command in [[], ["saving"], *[[n] for n in listed], *nested]:
            text = re.sub(r"\n +", " ", run("help", *command).stdout)
            found += [f"help {' '.join(command)}: {hit}" for hit in hits(text)]
        self.none(found)

    def test_messages_and_texts_of_the_window(self):
        found = []
        for folder in ("app", "core", "views"):
            for file in sorted((TOP / folder).rglob("*")):
                if file.suffix not in (".cpp", ".h"):
                    continue
                for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                    if line.strip().startswith("//") or "#include" in line:
                        continue
                    for text in filter(lambda t: " " in t.strip(), LITERAL.findall(re.split(r"\s//", line)[0])):
                        found += [f"{file.relative_to(TOP)}:{number}: {hit}" for hit in hits(text)]
        self.none(found)

    def test_comments_of_the_sources(self):
        found = list(comment_hits())
        self.assertLessEqual(len({hit.split(": ")[0] for hit in found}), MOST, "\n".join(found))

    def test_names_of_tests(self):
        found = []
        for path in sorted((TOP / "tests").rglob("*.cpp")):
            text = path.read_text(errors="replace")
            names = re.findall(r"^ *(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\w+,\s*(\w+)\)", text, re.M)
            names += re.findall(r"^  void (\w+)\(\);", text, re.M) if "/views/" in str(path) else []
            for name in names:
                words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", name).lower()
                found += [f"{path.relative_to(TOP)}: {name}: {hit}" for hit in hits(words)]
        self.none(found)

    def test_comments_of_scripts_and_tests(self):
        found = []
        for file in sorted([*(TOP / "tests").rglob("*.py"), *(path for path in (TOP / "scripts").iterdir() if path.is_file())]):
            text = file.read_text()
            if file.name == "words_test.py" or file.parent.name == "scripts" and not text.startswith("#!"):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                for comment in re.findall(r"(?:^|\s)#\s(.*)$", line):
                    found += [f"{file.relative_to(TOP)}:{number}: {hit}" for hit in hits(re.sub(r"`[^`]*`", "`x`", comment))]
        self.none(found)

    def test_python_package(self):
        found = []
        for file in sorted((TOP / "python").rglob("*.py")):
            for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
                if token.type == tokenize.STRING:
                    found += [f"{file.relative_to(TOP)}:{token.start[0]}: {hit}" for hit in hits(token.string)]
        self.none(found)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
