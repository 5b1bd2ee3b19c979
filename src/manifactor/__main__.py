"""The `manifactor` command: the command line, imported inside the guard that answers an interrupt."""

import sys


def main() -> int:
    """Run the command line; 130 when interrupted, even while numpy and scikit-learn are being imported."""
    try:
        from manifactor.command.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("manifactor: interrupted; nothing was written.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
