"""A sample of the planted faults of opinion_faults.py: each kind, with its right step."""
from support import PROGRAM, unittest
import opinion_faults


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Faults(unittest.TestCase):
    pass


def test_of(kind):
    def test(self):
        found = opinion_faults.one(kind, 100)
        self.assertTrue(found.named and found.listed and found.right, found)

    return test


for name in opinion_faults.KINDS:
    setattr(Faults, f"test_C12_C14_{name.replace(' ', '_')}", test_of(name))

if __name__ == "__main__":
    unittest.main()
