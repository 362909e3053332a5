"""Parts of a check. Each prints one line: `ok`, `skip` if a dependency is not installed, or `FAIL`."""

import contextlib
import sys

failed = []


def part(name):
    """Runs the decorated function at once and prints its result. If it has an argument, it gets an ExitStack."""

    def run(body):
        try:
            with contextlib.ExitStack() as stack:
                print(f"ok    {name}: {body(stack) if body.__code__.co_argcount else body()}")
        except ImportError as error:
            print(f"skip  {name}: {error}")
        except Exception as error:  # Other programs may raise anything.
            failed.append(name)
            print(f"FAIL  {name}: {type(error).__name__}: {error}")

    return run


def end():
    sys.exit(1 if failed else 0)
