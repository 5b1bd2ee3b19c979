"""The `manifactor` command and ``python -m manifactor``."""

import signal
import sys
from contextlib import suppress


def main() -> int:
    """Run the command line and return its exit code."""
    # Ctrl-C ends the process without a traceback before and after the command, unless it is
    # ignored, as in the background, or the caller's own. Only the main thread may say so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Not before: the imports would print a traceback if Ctrl-C interrupted them.
    from manifactor.command import EXIT_BAD_INPUT, endings

    try:
        # First: libraries that find too little room end the process, or hang.
        problem = endings.missing_room()
        if not problem:
            with endings.end_by_signals():
                from manifactor.command.main import main as run

                return run()
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"manifactor: {endings.how(stop)}; nothing was written.\n")
        return 128 + endings.signal_of(stop)
    except (ImportError, MemoryError, RuntimeError, OSError) as error:
        problem = endings.shortage(error)
        if not problem:
            raise
    sys.stderr.write(f"manifactor: error: {problem}\n")
    return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
