#!/usr/bin/env python3
"""Holds tests and docs/semantics/ together: each number that a test names is a statement there, and each statement is named by a test.

A test names a number in its own name (`R4_ReferenceOf...`, `test_R4_...`), in a comment, in a docstring, or by its patch under tests/inversions.
"""
import pathlib
import re
import sys
import unittest

import words_test

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
STATEMENT = re.compile(r"^- \*\*([A-Z]{1,2}\d+[a-z]?)\*\* (\S.*)$", re.M)
LETTERS = "FA|[ABCDEGHJLMNPRSTUVW]"
NUMBER = re.compile(rf"(?<![\w$-])(?:{LETTERS})\d{{1,2}}[ab]?(?![\w.-]*\w)|(?<![\w$-])(?:{LETTERS})\d{{1,2}}[ab]?(?=[.,:;]? )")
IN_A_NAME = re.compile(rf"(?:(?<=_)|\b)((?:{LETTERS})\d{{1,2}}[ab]?)(?=_)")


def statements():
    """Number -> the pages that state it."""
    found = {}
    for page in sorted((TOP / "docs" / "semantics").glob("*.md")):
        for number, _ in STATEMENT.findall(page.read_text()):
            found.setdefault(number, []).append(page.name)
    return found


def named():
    """Number -> the first place where a test names it."""
    found = {}

    def add(numbers, place):
        for number in numbers:
            found.setdefault(number, place)

    for path in sorted((TOP / "tests").rglob("*")):
        where = path.relative_to(TOP)
        if path.suffix in (".cpp", ".h"):
            for block in words_test.comments(path):
                for line, text in block:
                    add(NUMBER.findall(text), f"{where}:{line}")
            for line, text in enumerate(path.read_text().splitlines(), 1):
                add(IN_A_NAME.findall(words_test.LITERAL.sub("", text)), f"{where}:{line}")
        elif path.suffix == ".py":
            for line, text in enumerate(path.read_text().splitlines(), 1):
                if re.match(r'\s*("""|#)', text) or "def test_" in text:
                    add(NUMBER.findall(text) + IN_A_NAME.findall(text), f"{where}:{line}")
        elif path.suffix == ".patch":
            add(re.findall(rf"^((?:{LETTERS})\d+)(?:-|$)", path.stem), str(where))
    return found


class Statements(unittest.TestCase):
    maxDiff = None

    def test_each_number_is_stated_once(self):
        self.assertEqual([f"{number}: {', '.join(pages)}" for number, pages in statements().items() if len(pages) > 1], [])

    def test_each_number_that_a_test_names_is_stated(self):
        known = statements()
        self.assertEqual([f"{place} names {number}" for number, place in sorted(named().items()) if number not in known], [])

    def test_each_statement_is_tested(self):
        tested = named()
        self.assertEqual([number for number in statements() if number not in tested], [])

    def test_the_index_has_each_page_and_letter(self):
        index = (TOP / "docs" / "semantics" / "index.md").read_text()
        for number, pages in statements().items():
            self.assertRegex(index, rf"\| [A-Z, ]*\b{number.rstrip('0123456789ab')}\b.*\({re.escape(pages[0])}\)", number)


if __name__ == "__main__":
    sys.argv[1:] = [argument for argument in sys.argv[1:] if not argument.startswith("/")]  # the program, which is not needed
    unittest.main()
