"""`python -m retrograd train.py ARGS` runs a script and catches the first step that goes wrong. With anything else it is the program, as `retrograd ...` is."""
import sys
from pathlib import Path

if len(sys.argv) > 1 and sys.argv[1].endswith(".py") and Path(sys.argv[1]).is_file():
    from ._script import run_script

    run_script(Path(sys.argv[1]), sys.argv[2:])
else:
    from ._program import main

    main()
