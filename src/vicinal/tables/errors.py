"""What is wrong with a table, in words for the person who made it."""

from __future__ import annotations


class TableError(ValueError):
    """A table cannot be used as it is; the message names the column and says what to do."""
