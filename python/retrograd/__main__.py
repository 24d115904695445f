"""`python -m retrograd ...` becomes the program, as `retrograd ...` does."""
from ._program import main

main()
