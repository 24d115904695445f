"""A sample of the planted faults of opinion_faults.py: each kind, with its right step."""
from support import PROGRAM, unittest
import opinion_faults
import opinion_programs


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Faults(unittest.TestCase):
    pass


def test_of(kind):
    def test(self):
        found = opinion_faults.one(kind, 100)
        self.assertTrue(found.named and found.listed and found.right, found)

    return test


class Programs(unittest.TestCase):
    @unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
    def test_C12_random_programs_have_the_cuts_that_are_there_and_no_others(self):
        for seed in range(8):
            problem, compared, _ = opinion_programs.wrong(seed)
            self.assertTrue(not problem or problem.startswith("not listed"), (seed, problem))
            self.assertGreater(compared + bool(problem), 0, seed)


for name in opinion_faults.KINDS:
    setattr(Faults, f"test_C12_C14_{name.replace(' ', '_')}", test_of(name))

if __name__ == "__main__":
    unittest.main()
