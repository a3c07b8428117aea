from __future__ import annotations

import textwrap

from tools import shape

ONE = """
    from typing import Any
    FloatArray = Any

    class A: ...
    class B(A): ...
    class C(B): ...
    class D(C):
        def __init__(self, a, b, c, d, e, f, g, h, i, j, k): ...
        def many(self, a, b, c, d, e, f, g, h, i, j, k): ...
        def ten(self, a, b, c, d, e, f, g, h, i, j): ...
"""
TWO = """
    import numba
    FloatArray: Any = None

    class A: ...

    @numba.njit(cache=True)
    def kernel(a, b, c, d, e, f, g, h, i, j, k): ...
"""


def test_figures_of_a_small_package(tmp_path, capsys):
    files = {"one.py": ONE, "in/one.py": TWO, "in/__init__.py": "", "compat/in.py": "class B: ..."}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text))
    found = {figure.name: figure for figure in shape.figures(shape.read(tmp_path))}
    assert found["modules"].value == 4
    assert found["lines"].value == 20
    assert found["lines per module, median"].value == 4.5
    assert found["lines per function, 90th percentile"].value == 1
    assert found["inheritance depth inside the package"].value == 4
    assert found["inheritance depth inside the package"].found == ("D",)
    assert found["functions of more than 10 parameters"].found == ("one.py: D.many (11)",)
    assert found["uses of Any"].value == 2
    assert found["declarations of FloatArray"].value == 2
    assert found["module names that occur twice"].found == ("one",)
    assert found["class names that occur twice"].found == ("A",)
    assert shape.main(tmp_path) == 1
    assert "exceeded" in capsys.readouterr().out


def test_percentiles_are_values_of_the_list():
    assert shape._percentile(range(1, 11), 90) == 9
    assert shape._percentile([7], 90) == 7
