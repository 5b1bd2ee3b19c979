"""How often are factors found rightly? The whole table, or --quick; the same as `manifactor bench accuracy`."""

import sys

from manifactor.command.main import main

if __name__ == "__main__":
    sys.exit(main(["bench", "accuracy", *sys.argv[1:]]))
