"""The command line: ``vicinal --help``."""

from __future__ import annotations

import sys

from vicinal.interrupted_import import listen_again


def main() -> None:
    """Run the command line; the exit code is 0, 1 (failure), 2 (usage) or 130 (Ctrl-C)."""
    try:
        from vicinal.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'vicinal[cli]'")
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)
    listen_again()
    app()
