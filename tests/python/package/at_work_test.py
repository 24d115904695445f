"""The Python of docs/at-work.md, as it is on the page, in the order of the page."""
import re
from pathlib import Path

from support import InFolder, Net, PROGRAM, torch, unittest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "at-work.md"


class Page(InFolder):
    # Pages for where people work are run as they are.
    def test_the_page_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        labels = torch.randint(0, 3, (4,))
        names = {"model": Net(), "batch": torch.randn(4, 6), "loss_function": lambda output: torch.nn.functional.cross_entropy(output, labels)}
        for block in blocks:
            if PROGRAM:
                block = block.replace('["retrograd",', f"[{PROGRAM!r},")
            elif "subprocess.run" in block:
                continue
            exec(compile(block, str(PAGE), "exec"), names)
        self.assertTrue(names["folder"].path.is_dir())
        if PROGRAM:
            names["test_the_backward_is_right"](self.folder)


if __name__ == "__main__":
    unittest.main()
