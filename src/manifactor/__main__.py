"""The `manifactor` command and ``python -m manifactor``."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    _end_silently()
    # Not before: the imports would print a traceback if Ctrl-C interrupted them.
    from manifactor.command import EXIT_BAD_INPUT, shortages

    try:
        # First: libraries that find too little room end the process, or hang.
        problem = shortages.missing_room()
        if not problem:
            return _ended_by_signals()
    except (ImportError, MemoryError, RuntimeError, OSError) as error:
        problem = shortages.shortage(error)
        if not problem:
            raise
    sys.stderr.write(f"manifactor: error: {problem}\n")
    return EXIT_BAD_INPUT


def _ended_by_signals() -> int:
    """Run the command; a signal that ends it gives one line and its exit code."""
    from manifactor.command import signals

    try:
        with signals.ended_by_signals():
            # Importing numpy and scikit-learn takes a second or more. Ctrl-C during that time gives
            # one line.
            from manifactor.command.main import main as run

            return run()
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"manifactor: {signals.how(stop)}; nothing was written.\n")
        return signals.exit_code(stop)


def _end_silently() -> None:
    """Let Ctrl-C end the process before and after the command, without a traceback."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored, as in the background, or the caller's own
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # only the main thread may
        return


if __name__ == "__main__":
    sys.exit(main())
