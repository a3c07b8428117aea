"""The command line: ``vicinal --help``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the exit code is 0, 1 (failure), 2 (usage) or 130 (Ctrl-C)."""
    try:
        from vicinal.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'vicinal[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app()
