"""`python -m retrograd train.py ARGS`: the script runs as it is, and its first bad step is in a folder."""
import os
import subprocess
import sys
from pathlib import Path

from support import InFolder, retrograd, unittest

SCRIPT = """
import sys
import torch
import helper

torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
model = Net()
{optimizer}
for step in range(6):
    x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
    if step == int(sys.argv[1]):
        x = {bad}
    optimizer.zero_grad()
    torch.nn.CrossEntropyLoss()(model(x), y).backward()
    optimizer.step()
print("finished", helper.word, __name__, sys.argv[1:], float(model.head.weight.sum()))
"""
SGD = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"


class Script(InFolder):
    def python(self, script, *arguments, through=True):
        folder = self.folder / "scripts"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(script)
        (folder / "helper.py").write_text("word = 'helped'\n")
        command = [sys.executable, *(["-m", "retrograd"] if through else []), str(folder / "train.py"), *arguments]
        path = os.pathsep.join([str(Path(retrograd.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": path})

    def test_the_first_bad_step_is_in_a_folder_and_the_script_ends_as_alone(self):
        script = SCRIPT.format(optimizer=SGD, bad="x / 0")
        alone, through = self.python(script, "4", through=False), self.python(script, "4")
        self.assertEqual((alone.returncode, alone.stdout), (through.returncode, through.stdout), through.stderr)
        self.assertIn("finished helped __main__ ['4']", through.stdout)
        self.assertIn("step 4: the loss is nan", through.stderr)
        self.assertTrue(Path("retrograd-catch/step4").is_dir())

    def test_a_right_script_leaves_nothing(self):
        through = self.python(SCRIPT.format(optimizer=SGD, bad="x"), "99")
        self.assertEqual(through.returncode, 0, through.stderr)
        self.assertFalse(Path("retrograd-catch").exists())

    def test_an_exception_is_the_script_s_own(self):
        through = self.python(SCRIPT.format(optimizer=SGD, bad="unknown"), "2")
        self.assertEqual(through.returncode, 1)
        self.assertIn("NameError: name 'unknown' is not defined", through.stderr)

    def test_a_script_without_a_model_is_told(self):
        through = self.python("print(1)")
        self.assertEqual((through.returncode, through.stdout), (0, "1\n"))
        self.assertIn("nothing was watched", through.stderr)

    def test_what_an_optimizer_does_not_train_is_not_the_model(self):
        teacher = "teacher = torch.nn.Linear(4, 4)\n" + SGD
        script = SCRIPT.format(optimizer=teacher, bad="x / 0").replace("    optimizer.zero_grad()", "    teacher(x)\n    optimizer.zero_grad()")
        self.assertIn("step 4: the loss is nan", self.python(script, "4").stderr)


if __name__ == "__main__":
    unittest.main()
