"""Descriptions of models and of unusual rows: documents for programs, remarks for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vicinal._typing import Document
from vicinal.features.column_codes import LevelCode, NumberCode
from vicinal.features.column_encoding import ColumnEncoding
from vicinal.features.table_values import MISSING
from vicinal.features.target_statistics import TargetCode
from vicinal.tables.table_model import TableCounts, TableModel


def column_text(encoding: ColumnEncoding) -> str:
    """Text on what is done to a column."""
    return str(encoding) if encoding.is_used else f"dropped: {encoding}"


def column_documents(columns: Sequence[ColumnEncoding]) -> list[Document]:
    """The same for programs: what the features are made from."""
    return [
        {
            "name": e.name,
            "kind": e.code.kind,
            "done": column_text(e),
            "n_rows": e.n_rows,
            "n_missing": e.n_missing,
            "features": list(e.feature_names),
            "has_indicator": e.has_indicator,
            "weight": e.weight,
            **vars(e.code),
        }
        for e in columns
    ]


def remarks(model: TableModel, names: Sequence[str], counts: TableCounts) -> Iterator[str]:
    """Remarks on what was unusual in new rows."""
    for encoding in model.columns:
        missing = counts.missing[encoding.name]
        if missing:
            yield f"note: column {encoding.name!r}: {missing} missing, {_filled(encoding)}"
        unseen = counts.unseen.get(encoding.name)
        if unseen:
            shown = ", ".join(map(repr, [level for level, _ in unseen.most_common(5)]))
            more = ", …" if len(unseen) > 5 else ""
            yield (
                f"note: column {encoding.name!r}: {shown}{more} ({unseen.total()} rows) not in "
                "training, taken as none of the known"
            )
    known = {encoding.name for encoding in model.columns} | set(model.roles.names)
    extra = [repr(name) for name in names if name not in known]
    if extra:
        yield f"note: not in the model, ignored: {', '.join(extra[:10])}"


def _filled(encoding: ColumnEncoding) -> str:
    """Text on what is done to missing values of new rows."""
    code = encoding.code
    if isinstance(code, NumberCode):
        return f"filled with {code.fill:.6g}"
    if isinstance(code, LevelCode | TargetCode):
        known = MISSING in code.levels
        return "a level of their own" if known else "taken as none of the known"
    return "filled with the median"
