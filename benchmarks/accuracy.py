"""How often are the factors right? The same as `manifactor bench accuracy`.

python benchmarks/accuracy.py [--quick]
"""

import sys

from manifactor.command.main import main

if __name__ == "__main__":
    sys.exit(main(["bench", "accuracy", *sys.argv[1:]]))
