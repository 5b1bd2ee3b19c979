"""The command line: grammar, commands, and what they print.

Importing this package must stay cheap: `manifactor.__main__` imports it outside of the guard that
answers Ctrl-C.
"""

EXIT_BAD_INPUT = 2  # the code that argparse uses for a command it cannot parse
