"""Print figures that describe the shape of the package, and compare them with limits.

    python tools/shape.py [folder]

Exit status 1 means that a limit is exceeded. The figures describe the source text alone: nothing is
imported. They do not measure quality; they show where a look is worthwhile.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "vicinal"
COMPILED = {"compiled", "inner", "njit", "jit", "intrinsic", "overload"}
"""Decorators of functions that are compiled: their parameters are what a kernel needs."""
MOST_PARAMETERS = 10
COMPATIBLE = "compat/"
"""Modules and classes below have the names, and the ancestors, of another library's."""
PUBLIC = {"fit", "report"}
"""Functions with a public signature: the options of ``vicinal fit``, and ``vicinal.report``."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Figure:
    """A figure, the limits it should keep, and what exceeds them."""

    name: str
    value: float
    most: float
    least: float = 0
    found: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        return self.least <= self.value <= self.most

    def __str__(self) -> str:
        limit = f"≤ {self.most:,}" if not self.least else f"{self.least:,} to {self.most:,}"
        mark = "" if self.kept else "  exceeded"
        lines = [f"{self.name:<52}{self.value:>8,.0f}   {limit}{mark}"]
        return "\n".join(lines + [f"    {each}" for each in self.found])


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: str
    n_lines: int
    tree: ast.Module

    @property
    def basename(self) -> str:
        return Path(self.path).stem

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Qualified names and definitions, nested ones included."""
        stack: list[tuple[str, ast.AST]] = [("", self.tree)]
        while stack:
            prefix, parent = stack.pop()
            for node in ast.iter_child_nodes(parent):
                name = prefix
                if isinstance(node, Function | ast.ClassDef):
                    name = f"{prefix}.{node.name}" if prefix else node.name
                if isinstance(node, Function):
                    yield name, node
                stack.append((name, node))

    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]


def read(folder: Path) -> list[Module]:
    """All modules below a folder, in the order of their paths."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    return [
        Module(str(path.relative_to(folder)), len(text.splitlines()), ast.parse(text))
        for path, text in texts.items()
    ]


def figures(modules: Sequence[Module]) -> list[Figure]:
    """The figures and their limits."""
    lengths = [module.n_lines for module in modules]
    of_functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules
        for _, node in module.functions()
    ]
    many = tuple(_with_many_parameters(modules))
    named = [module for module in modules if not module.path.startswith(COMPATIBLE)]
    depths = _inheritance_depths(named)
    deep = tuple(sorted(name for name, depth in depths.items() if depth > 3))
    arrays = tuple(_declarations(modules, "FloatArray"))
    basenames = _twice(module.basename for module in named if module.basename != "__init__")
    classes = _twice(node.name for module in named for node in module.classes())
    return [
        Figure("modules", len(modules), 150),
        Figure("lines", sum(lengths), 22_000),
        Figure("lines per module, median", statistics.median(lengths), 200, least=100),
        Figure("lines per module, 90th percentile", _percentile(lengths, 90), 350),
        Figure("lines per function, 90th percentile", _percentile(of_functions, 90), 30),
        Figure("inheritance depth inside the package", max(depths.values()), 3, found=deep),
        Figure(f"functions of more than {MOST_PARAMETERS} parameters", len(many), 0, found=many),
        Figure("uses of Any", sum(map(_uses_of_any, modules)), 250),
        Figure("declarations of FloatArray", len(arrays), 1, found=arrays if arrays[1:] else ()),
        Figure("module names that occur twice", len(basenames), 0, found=basenames),
        Figure("class names that occur twice", len(classes), 0, found=classes),
    ]


def _percentile(values: Sequence[int], percent: int) -> int:
    """The smallest value that at least so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _with_many_parameters(modules: Sequence[Module]) -> Iterator[str]:
    """Functions that are neither compiled nor public, constructors included."""
    for module in modules:
        for name, node in module.functions():
            given = node.args
            n = len([*given.posonlyargs, *given.args, *given.kwonlyargs])
            owner, _, own_name = name.rpartition(".")
            constructor = own_name == "__init__" and not owner.startswith("_")
            n -= bool(owner) and bool(given.args) and given.args[0].arg in ("self", "cls")
            aside = constructor or name in PUBLIC or _decorators(node) & COMPILED
            if n > MOST_PARAMETERS and not aside:
                yield f"{module.path}: {name} ({n})"


def _decorators(node: Function) -> set[str]:
    """The last words of the decorators: njit of ``@numba.njit(cache=True)``."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
            for each in called}  # fmt: skip


def _inheritance_depths(modules: Sequence[Module]) -> dict[str, int]:
    """Class → classes of the package on its longest line of ancestors, itself included."""
    bases = {
        node.name: {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                    for base in node.bases}
        for module in modules for node in module.classes()
    }  # fmt: skip

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name] & bases.keys() - {name}), default=0)

    return {name: depth(name) for name in bases}


def _uses_of_any(module: Module) -> int:
    names = (node for node in ast.walk(module.tree) if isinstance(node, ast.Name))
    return sum(node.id == "Any" for node in names)


def _declarations(modules: Sequence[Module], name: str) -> Iterator[str]:
    for module in modules:
        for node in module.tree.body:
            target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
            if isinstance(target, ast.Name) and target.id == name:
                yield module.path


def _twice(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name, n in Counter(names).items() if n > 1))


def main(folder: Path) -> int:
    """Print the figures; 1 where a limit is exceeded."""
    found = figures(read(folder))
    print("\n".join(map(str, found)))
    return int(not all(figure.kept for figure in found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
