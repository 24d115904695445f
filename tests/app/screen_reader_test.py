#!/usr/bin/env python3
"""The window as a screen reader has it: screen_reader_test.py PROGRAM. A real AT-SPI client reads docks, tables, the diff and dialogs, and walks the three journeys through the accessibility tree alone, on an X server and a
session bus of its own. Skipped where Xvfb, openbox, dbus-run-session or Debian's gir1.2-atspi-2.0 are missing (scripts/packages-tests.txt)."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import support

SAMPLES = support.TOP / "resources" / "samples"
NEEDED = ("Xvfb", "openbox", "dbus-run-session")
WAIT = 60  # seconds that a thing may take to appear on a busy machine
CONTROLS = {"push button", "toggle button", "check box", "combo box", "text", "entry", "list", "table", "tree table", "tree", "page tab", "page tab list", "spin button", "slider",
            "menu item", "check menu item", "radio button", "radio menu item", "menu"}
TABLES = {"table", "tree table", "tree"}
ENTRIES = {"menu item", "check menu item", "radio menu item", "menu"}
Atspi = None


def python_with_atspi():
    for python in (sys.executable, "/usr/bin/python3"):
        check = "import gi; gi.require_version('Atspi', '2.0'); from gi.repository import Atspi"
        if shutil.which(python) and subprocess.run([python, "-c", check], capture_output=True).returncode == 0:
            return python
    return None


def until(what, condition):
    """The first true answer of the condition; what is asked may go away meanwhile."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            found = condition()
            if found:
                return found
        except Exception:  # the tree changes under the client
            pass
        time.sleep(0.1)
    raise AssertionError("never seen: " + what)


def children(node):
    for i in range(node.get_child_count()):
        child = node.get_child_at_index(i)
        if child:
            yield child


def walk(node, depth=0):
    yield node
    if node.get_role_name() in ("list", "table", "tree table", "tree") or depth > 40:
        return  # rows are asked for by themselves
    for child in children(node):
        yield from walk(child, depth + 1)


def shows(node):
    return node.get_state_set().contains(Atspi.StateType.SHOWING)


class Client(unittest.TestCase):
    sample = None  # that the program opens
    rows = 10  # that the forward listing has at least

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        environment = dict(os.environ, XDG_CONFIG_HOME=cls.folder.name, QT_LINUX_ACCESSIBILITY_ALWAYS_ON="1", QT_QPA_PLATFORM="xcb", OMP_NUM_THREADS="1")
        cls.process = subprocess.Popen([support.PROGRAM, str(cls.sample)], env=environment)
        Atspi.init()
        cls.app = until("the program on the accessibility bus", cls.find_program)
        until("the forward listing", lambda: cls.list_named("Forward listing").get_child_count() > cls.rows)

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait(30)
        cls.folder.cleanup()

    @classmethod
    def find_program(cls):
        for app in children(Atspi.get_desktop(0)):
            if "etrograd" in (app.get_name() or "") and app.get_child_count() > 0:
                return app
        return None

    @classmethod
    def find(cls, role, name):
        for node in walk(cls.app):
            if node.get_role_name() == role and (node.get_name() or "") in (name, name + " listing"):
                return node
        return None

    @classmethod
    def list_named(cls, name):
        return cls.find("list", name)

    def press(self, role, name):
        node = until(f"{role} {name}", lambda: self.find(role, name))
        until(f"{name} enabled", lambda: node.get_state_set().contains(Atspi.StateType.ENABLED))
        self.assertTrue(node.get_action_iface().do_action(0), name)

    def row(self, listing, *words):
        view = self.list_named(listing)
        for child in children(view):
            if all(word in child.get_name() for word in words):
                return child
        return None

    def selected(self, listing):
        for child in children(self.list_named(listing)):
            if child.get_state_set().contains(Atspi.StateType.SELECTED):
                return child.get_name()
        return ""

    def position(self):
        return until("where execution stands", lambda: self.find("label", "Where execution stands")).get_text_iface().get_text(0, -1)

    def nameless(self, root):
        """The controls in sight below this node that have no name, and tables with an unnamed cell in their first rows."""
        found = []
        for node in walk(root):
            role = node.get_role_name()
            if role in CONTROLS and shows(node) and not node.get_name():
                found.append(f"{role} in {node.get_parent().get_name()!r}")
            if role in TABLES and shows(node) and node.get_table_iface().get_n_rows() > 0 and not any(self.cells(node, rows=1)):
                found.append(f"first row of {node.get_name()!r}")
        return found

    @staticmethod
    def cells(table, rows=5):
        """The names of the cells in the first rows."""
        grid = table.get_table_iface()
        return [grid.get_accessible_at(row, column).get_name() for row in range(min(rows, grid.get_n_rows())) for column in range(grid.get_n_columns())]

    def entry(self, *names):
        """The entry of a menu, wherever it is: menus need not be open. "Undo" also names "Undo: Recompute It"."""
        return until(f"menu entry {names}", lambda: next((node for node in walk(self.app) if node.get_role_name() in ENTRIES and node.get_name().split("\t")[0].split(":")[0] in names), None))

    def choose(self, *names):
        self.assertTrue(self.entry(*names).get_action_iface().do_action(0), names)

    def window(self, role, *words):
        return until(f"{role} {words}", lambda: next((node for node in children(self.app) if node.get_role_name() == role and shows(node) and all(word in (node.get_name() or "") for word in words)), None))


class Reader(Client):
    sample = SAMPLES / "tiny_gpt.pt2"

    # Holds J: no control is without a name.
    def test_every_control_has_a_name(self):
        self.assertEqual(self.nameless(self.app), [])

    # Holds J: docks that are closed at first are opened from the menu, and are as complete.
    def test_closed_docks_open_and_have_names(self):
        docks = [entry for entry in children(self.entry("Docks")) for entry in ([entry] if entry.get_role_name() in ENTRIES else children(entry)) if entry.get_name() and entry.get_role_name() != "separator"]
        docks = [entry for entry in docks if entry.get_name() != "Close This Panel"]
        names = [entry.get_name() for entry in docks]
        self.assertGreater(len(names), 12, names)
        missing = []
        for entry, name in zip(docks, names):
            opened = not entry.get_state_set().contains(Atspi.StateType.CHECKED)
            if opened:
                entry.get_action_iface().do_action(0)
            dock = until(f"dock {name}", lambda: next((node for node in walk(self.app) if node.get_name() == name and node.get_role_name() not in ENTRIES and shows(node)
                                                       and node.get_role_name() not in ("page tab", "label", "push button", "toggle button")), None)) if opened else None
            if dock:
                missing += [f"{name}: {what}" for what in self.nameless(dock)]
                entry.get_action_iface().do_action(0)
        self.assertEqual(missing, [])

    # Holds J: rows of tables are items with their text.
    def test_rows_of_the_trace_table(self):
        self.choose("Trace Table")
        table = until("the table", lambda: next((node for node in walk(self.app) if node.get_name() == "Ops of the trace with their numbers" and node.get_role_name() in TABLES and shows(node)), None))
        until("its rows", lambda: table.get_table_iface().get_n_rows() > 50)
        cells = self.cells(table)
        self.assertTrue(all(cells[at * len(cells) // 5] for at in range(5)), cells)
        self.assertTrue(any(cell.startswith("#") for cell in cells) and any("aten." in cell for cell in cells), cells)
        header = table.get_table_iface()
        self.assertTrue(all(header.get_column_header(column).get_name() for column in range(header.get_n_columns())))
        self.choose("Trace Table")

    # Holds J: the diff of two traces row by row.
    def test_rows_of_the_diff(self):
        self.choose("Compare Traces", "Compare Traces...")
        view = until("the diff", lambda: self.find("list", "Two traces side by side"))
        until("its rows", lambda: view.get_child_count() > 50)
        rows = [child.get_name() for child in children(view)]
        self.assertTrue(all(rows), rows[:20])
        self.assertTrue(any("aten." in row for row in rows))
        self.assertTrue(any("only on the right" in row for row in rows) and any("changed" in row for row in rows), rows[:60])
        child = view.get_child_at_index(3)
        self.assertEqual(child.get_role_name(), "list item")
        self.assertTrue(child.get_action_iface().do_action(0))
        until("the row is selected", lambda: view.get_child_at_index(3).get_state_set().contains(Atspi.StateType.SELECTED))
        frame = view
        while frame.get_role_name() not in ("frame", "window", "dialog"):
            frame = frame.get_parent()
        self.assertEqual(self.nameless(frame), [])

    # Holds J: dialogs.
    def test_dialogs_have_names(self):
        missing = []
        for names in (("Preferences...", "Preferences"), ("Keys", "Keys..."), ("Change Keys...",), ("Inputs...", "Inputs")):
            self.choose(*names)
            dialog = until(f"dialog {names}", lambda: next((node for node in walk(self.app) if node.get_role_name() == "dialog" and shows(node)), None))
            self.assertTrue(dialog.get_name(), names)
            missing += [f"{names[0]}: {what}" for what in self.nameless(dialog)]
            close = next(node for node in walk(dialog) if node.get_role_name() == "push button" and node.get_name() in ("Close", "Cancel", "OK"))
            close.get_action_iface().do_action(0)
            until(f"{names} closed", lambda: not any(node.get_role_name() == "dialog" and shows(node) for node in walk(self.app)))
        self.assertEqual(missing, [])

    # Holds J: the rows of listings are items of the tree, with their text as name.
    def test_rows_of_listings_are_items_with_their_text(self):
        for listing in ("Forward listing", "Backward listing"):
            view = self.list_named(listing)
            self.assertGreater(view.get_child_count(), 50)
            for at in (0, 1, view.get_child_count() // 2, view.get_child_count() - 1):
                row = view.get_child_at_index(at)
                self.assertEqual(row.get_role_name(), "list item")
                self.assertTrue(row.get_name())
            self.assertTrue(any("aten." in child.get_name() for child in children(view)))

    # Holds J: the first journey, from a backward op to its origin and back, through the tree alone.
    def test_journey_to_the_origin_and_back(self):
        row = until("a backward op", lambda: self.row("Backward listing", "aten.mm(", "forward: linear_8"))
        self.assertTrue(row.get_action_iface().do_action(0))
        until("it is selected", lambda: "aten.mm(" in self.selected("Backward listing"))
        until("its origin is told", lambda: self.row("Forward listing", "aten.mm(", "origin of the selected op"))
        self.assertNotIn("of: linear_8", self.selected("Forward listing"))
        self.press("push button", "Origin and Back")
        # The origin is the operation linear_8, four ops: the cursor goes to the product, not to a view before it.
        until("the origin has the cursor", lambda: "aten.mm(" in self.selected("Forward listing") and "of: linear_8" in self.selected("Forward listing"))
        until("what comes from it is told", lambda: self.row("Backward listing", "comes from the selected op"))
        self.press("push button", "Origin and Back")
        until("and back", lambda: "aten.mm(" in self.selected("Backward listing"))

    # Holds J: the second journey, over the border and back.
    def test_journey_over_the_border(self):
        self.press("push button", "Step Over")
        until("the op that runs next", lambda: self.row("Forward listing", "runs next"))
        row = until("an op of the backward", lambda: self.row("Backward listing", "aten.nll_loss_backward"))
        row.get_action_iface().do_action(0)
        self.press("push button", "To Cursor")
        until("it stands in the backward", lambda: self.row("Backward listing", "aten.nll_loss_backward", "runs next"))
        self.press("push button", "Step Back")
        until("it is back in the forward", lambda: not self.row("Backward listing", "runs next"))

    # Holds J: the third journey, why a value is saved.
    def test_journey_why_is_this_saved(self):
        row = until("a saved value", lambda: self.row("Forward listing", "aten.t(", "saved"))
        row.get_action_iface().do_action(0)
        tree = until("the tree of Why", lambda: next((node for node in walk(self.app) if node.get_role_name() in ("tree", "tree table") and node.get_name().startswith("Why")), None))
        names = until("what Why says", lambda: [child.get_name() for child in children(tree) if child.get_name()])
        self.assertTrue(any("mm" in name or "saved" in name.lower() for name in names), names[:20])

    # Holds J: the graph reads out the box that the cursor is on: here the closed group that holds the selected op.
    def test_the_graph_reads_its_box_out(self):
        row = until("a backward op", lambda: self.row("Backward listing", "aten.mm(", "forward: linear_8"))
        row.get_action_iface().do_action(0)
        self.choose("Graph")
        graph = until("the graph", lambda: next((node for node in walk(self.app) if node.get_name() == "Graph" and node.get_role_name() == "canvas" and shows(node)), None))
        until("the op's group", lambda: graph.get_description() == "head \u00b7 linear backward, 8 ops, backward, closed")
        self.choose("Graph")


class JobReader(Client):
    """What a job's log adds to the window."""
    sample = SAMPLES / "layers" / "trace"

    def tree(self, name):
        return until(f"the tree {name}", lambda: next((node for node in walk(self.app) if node.get_name() == name and node.get_role_name() in TABLES and shows(node)), None))

    # Holds J: compiles of the log and what it saves are read out, findings as whole sentences.
    def test_the_panels_of_a_job(self):
        self.assertEqual(self.nameless(self.app), [])
        self.choose("Show the Save Plan")
        plan = self.tree("Save plan")
        cells = until("its findings", lambda: [name for name in self.cells(plan, 3) if "layer 1 (blocks.1)" in (name or "")])
        self.assertTrue(any("is saved (MUST_SAVE)" in name for name in cells), cells)
        self.choose("Compare the Passes")
        frame = self.window("frame", "0/0")
        passes = until("the list of passes", lambda: next((node for node in walk(frame) if node.get_role_name() in TABLES), None))
        names = until("its rows", lambda: [name for name in self.cells(passes, 9) if name])
        self.assertTrue({"joint", "forward", "backward"} <= set(names), names)
        rows = until("the rows of the diff", lambda: [child.get_name() for child in children(next(node for node in walk(frame) if node.get_role_name() == "list"))])
        self.assertTrue(rows and all(rows), rows[:20])
        self.assertEqual(self.nameless(frame), [])


class Journey(Client):
    """Counts what a person does: each command, button, tab and click."""

    def setUp(self):
        self.actions = 0

    def press(self, role, name):
        self.actions += 1
        super().press(role, name)

    def choose(self, *names):
        self.actions += 1
        super().choose(*names)

    def table(self, name):
        return until(f"the table {name}", lambda: next((node for node in walk(self.app) if node.get_name() == name and node.get_role_name() in TABLES and shows(node)), None))

    def has_cell(self, table, *words):
        return until(f"{words} in {table}", lambda: any(all(word in name for word in words) for name in self.cells(self.table(table), 200) if name))


class NanJourney(Journey):
    sample = SAMPLES / "twins.pt2"

    # From an open model to the line of Python in one action.
    def test_one_action_leads_to_the_line_of_python(self):
        self.choose("Walk to the Root")
        self.has_cell("Source", "line 25", "of the selected op")
        until("the element", lambda: any("0 / 0 = nan at [2]" in node.get_name() and shows(node) for node in walk(self.app)))
        until("the root is selected", lambda: "aten.div.Tensor" in self.selected("Backward listing"))
        self.assertEqual(self.actions, 1)


class SavedJourney(Journey):
    sample = SAMPLES / "tiny_gpt.pt2"

    def saves(self):
        return until("what the forward saves", lambda: next((node.get_name() for node in walk(self.app) if node.get_role_name() == "label" and shows(node)
                                                              and (node.get_name() or "").startswith("Forward") and "saves" in node.get_name()), None))

    # One action to the origin, one back.
    def test_one_action_to_the_origin_and_one_back(self):
        row = until("a backward op", lambda: self.row("Backward listing", "aten.mm(", "forward: linear_8"))
        row.get_action_iface().do_action(0)
        until("it is selected", lambda: "aten.mm(" in self.selected("Backward listing"))
        self.press("push button", "Origin and Back")
        until("the origin", lambda: "of: linear_8" in self.selected("Forward listing"))
        self.assertEqual(self.actions, 1)
        self.press("push button", "Origin and Back")
        until("and back", lambda: "aten.mm(" in self.selected("Backward listing"))
        self.assertEqual(self.actions, 2)

    # Two actions from a saved value to another choice, one takes it back: Why is in sight.
    def test_two_actions_adopt_a_choice_and_one_takes_it_back(self):
        row = until("a saved value", lambda: self.row("Forward listing", "linear_6 = aten._unsafe_view("))
        row.get_action_iface().do_action(0)
        until("it is selected", lambda: "linear_6" in self.selected("Forward listing"))
        before = self.saves()
        until("why it is saved", lambda: any(" is saved, " in node.get_name() and shows(node) for node in walk(self.app)))
        self.choose("Recompute It")
        self.press("push button", "Adopt")
        until("less is saved", lambda: self.saves() != before)
        self.assertEqual(self.actions, 2)
        self.choose("Undo")
        until("as before", lambda: self.saves() == before)
        self.assertEqual(self.actions, 3)


def inside():
    """Within the bus: an X server, a window manager, the tests."""
    global Atspi
    import gi
    gi.require_version("Atspi", "2.0")
    from gi.repository import Atspi as found
    Atspi = found
    read, write = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"], pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    os.environ["DISPLAY"] = ":" + os.read(read, 16).decode().strip()
    manager = subprocess.Popen(["openbox"], stderr=subprocess.DEVNULL)
    try:
        unittest.main(verbosity=1)
    finally:
        for process in (manager, server):
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.argv.remove("--inside")
        support.PROGRAM = sys.argv.pop(1)
        inside()
    missing = [tool for tool in NEEDED if not shutil.which(tool)]
    interpreter = python_with_atspi()
    if missing or not interpreter:
        print("skipped: there is no " + ", ".join(missing or ["gir1.2-atspi-2.0"]) + " (scripts/packages-tests.txt)")
        sys.exit(0)
    sys.exit(subprocess.run(["dbus-run-session", "--", interpreter, __file__, *sys.argv[1:], "--inside"]).returncode)
