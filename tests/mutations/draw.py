"""Draw lines of the core and of the problems, and one change in each.

A change is a sign, a bound, a factor or a connective inside a function:

- ``a + b`` and ``a - b``, ``a * b`` and ``a / b``, ``+=`` and ``-=``, ``min`` and
  ``max``, ``and`` and ``or``, ``==`` and ``!=`` change places; ``-a`` becomes ``a``;
  0.5, 1.0 and 2.0 become 0.25, 1.5 and 3.0;
- a comparison is reversed: ``<`` becomes ``>=``. It does not become ``<=``, because
  the two agree wherever the sides differ;
- a loop of ``++i`` over ``i < n`` leaves out the last turn; loops by larger steps do
  not change.

These rules, and no list of places, keep out what cannot change a result:

- constants that the compiler must know, lines that the preprocessor leaves out for
  this processor, and statements that ask which instructions it has (``PROCESSOR``);
- statements about the size of a buffer, about the work of each thread, about blocks
  and vector registers, about reading ahead, about clocks and about Ctrl-C: those that
  use one of the names in ``SIZES``, ``SHARING`` and ``SPEED``;
- in the core, checks whose only effect is an exception, because Python has checked the
  arguments before; in Python, the texts of messages.

`loosened` draws other changes: a bound on a rounding error becomes twice as large. It
stays true, so only a test of its tightness can notice.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

#: Names in statements that size a buffer.
SIZES = r"reserve|resize|assign|capacity|room\w*|bytes|stride|padding|\w+_bytes"
#: Names in statements that split work between threads, blocks or vector registers.
SHARING = (
    r"team\w*|shares?|shared|threads?|n_jobs|parts\w*|pieces?|worth\w*|chunks?|together|"
    r"panels?|blocks?|groups?|lanes?|block_size|"
    r"k(Worth|Block|Lanes|Panel|Chunk|Together|Line|Bytes|Width|Near|Wide|Group|"
    r"Rows|Span|Window|Queries|Targets|Columns|Class)\w*"
)
#: Names in statements about reading ahead, clocks and the wish to stop.
SPEED = (
    r"look_ahead|prefetch\w*|k\w*Ahead|\w*poll|stop\w*|clock\w*|seconds|"
    r"\w*deadline|time_limit|perf_counter"
)
#: Names in statements that ask which instructions the processor has.
PROCESSOR = r"__builtin_cpu_supports|has_\w*products"
#: Labels and signs, 1 or -1.
LABEL = re.compile(r"(\w+(\.|->|_\.))?(y_?|sign|label)(\[.*\])?|np\.sign\(.*\)")
NO_RESULT = re.compile(rf"\b({SIZES}|{SHARING}|{SPEED}|{PROCESSOR})\b", re.IGNORECASE)

#: Files without arithmetic: arguments, threads, Ctrl-C, processors, memory.
NO_ARITHMETIC = re.compile(r"(bindings.*|threads|stop|cpu_level|aligned)\.hpp")

#: Files that bound rounding errors, and the names there of what they add up.
OF_BOUNDS = [
    *("core/certify.hpp", "core/gram/placement.hpp", "core/gram/points.hpp"),
    *("core/gram/proof.hpp", "core/gram/row_errors.hpp", "core/gram/times.hpp"),
    "dualgap/problems/rounding.py",
]
BOUND = re.compile(
    r"(\w+(\.|->))?(\w*errors?|off|added|adding|known|exponent|least|widest|each|one|"
    r"more|most|rest|tiny|own|drift|lost|rounded|straight|seen|relative|closing|"
    r"underflow|roundings|apart)(\[.*\])?"
)
#: Functions that return bounds.
BOUNDING = re.compile(
    r"rate|value|off|rounding|bound|term|underflow|of_\w+|precise_drift"
)

SWAPS = {
    **{"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+="},
    **{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="},
    **{"&&": "||", "||": "&&", "and": "or", "or": "and"},
    **{"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"},
    **{"0.5": "0.25", "1.0": "1.5", "2.0": "3.0"},
}


class Change(NamedTuple):
    """Bytes of a file, what stands there, and what takes its place."""

    file: Path
    line: int
    begin: int
    end: int
    statement: int  # where its statement begins
    old: str
    new: str

    def switched(self, number: int) -> str:
        """Return code that is the old or the new, as the number of the run says."""
        if self.file.suffix == ".py":
            return f"(({self.new}) if dualgap_mutant({number}) else ({self.old}))"
        code = f"(dualgap_mutant({number}) ? ({self.new}) : ({self.old}))"
        return " ".join(code.split())  # other lines keep their numbers


def loosened(root: Path, level: str, seed: int) -> Iterator[Change]:
    """Yield bounds that become twice as large, in random order."""
    changes = []
    for name in OF_BOUNDS:
        file = root / "src" / name
        loose = loose_python if file.suffix == ".py" else loose_cpp
        changes += loose(file, level)
    random.Random(seed).shuffle(changes)
    yield from changes


def drawn(root: Path, level: str, seed: int) -> Iterator[Change]:
    """Yield changes of different statements, in random order."""
    package = root / "src" / "dualgap"
    lines: dict[tuple[Path, int], list[Change]] = {}
    for file in sorted((root / "src" / "core").rglob("*.hpp")):
        if not NO_ARITHMETIC.fullmatch(file.name):
            for change in changes_of_cpp(file, level):
                lines.setdefault((file, change.line), []).append(change)
    for file in [
        *sorted((package / "problems").rglob("*.py")),
        *sorted((package / "data").rglob("*.py")),
        package / "training" / "loop.py",
    ]:
        for change in changes_of_python(file):
            lines.setdefault((file, change.line), []).append(change)
    # A line drawn stays where it is in the order when the rules leave out another one.
    places = [(file.relative_to(root), line) for file, line in lines]
    draws = [random.Random(f"{seed} {place}") for place in places]
    order = [(draw.random(), k) for k, draw in enumerate(draws)]
    every = list(lines.values())
    statements = set()
    for _, k in sorted(order):
        change = draws[k].choice(every[k])
        if (change.file, change.statement) not in statements:
            statements.add((change.file, change.statement))
            yield change


def compiled_lines(file: Path, level: str) -> set[int]:
    """Numbers of the lines that the preprocessor keeps for this processor."""
    flags = [f"-march={level}"] if level.startswith("x86-64") else []
    text = subprocess.check_output(
        ["c++", "-std=c++20", "-E", *flags, "-x", "c++", str(file)],
        text=True,
        stderr=subprocess.DEVNULL,
    )
    kept, here, number = set(), False, 0
    for line in text.split("\n"):
        if marker := re.match(r'# (\d+) "(.*?)"', line):
            number, here = int(marker[1]), marker[2] == str(file)
            continue
        if here and line.strip():
            kept.add(number)
        number += 1
    return kept


# -------------------------------------------------------------------------------- C++

STATEMENTS = {
    *("declaration", "expression_statement", "return_statement", "condition_clause"),
    *("field_initializer", "for_range_loop"),
}
#: What no run-time choice can stand in, or what decides nothing.
CLOSED = {
    *("template_argument_list", "static_assert_declaration", "array_declarator"),
    *("parameter_list", "throw_statement", "attribute_declaration", "type_descriptor"),
    *("lambda_capture_specifier", "case_statement_value", "field_declaration"),
}


def changes_of_cpp(file: Path, level: str) -> Iterator[Change]:
    source = file.read_bytes()
    tree = Parser(Language(tree_sitter_cpp.language())).parse(source)
    kept = compiled_lines(file, level)

    def text(node: Node) -> str:
        return source[node.start_byte : node.end_byte].decode()

    def visit(node: Node, within: bool, statement: Node | None) -> Iterator[Change]:
        if node.type in CLOSED or _only_throws(node):
            return
        if node.type == "class_specifier" and "Clock" in text(node).partition("{")[0]:
            return
        if node.type == "declaration" and "constexpr" in map(text, node.children):
            return
        if node.type == "if_statement" and any(
            child.type == "constexpr" for child in node.children
        ):
            yield from visit_all(node.children_by_field_name("consequence"), within)
            yield from visit_all(node.children_by_field_name("alternative"), within)
            return
        if node.type in STATEMENTS:
            statement = node
        if node.type == "for_statement":
            for name in ("initializer", "condition", "update"):
                for child in node.children_by_field_name(name):
                    yield from visit(child, within, child)
            yield from visit_all(node.children_by_field_name("body"), within)
            return
        if within and statement is not None:
            found = _change_of_cpp(node, text)
            if (
                found
                and "//" not in found[0]
                and node.start_point.row + 1 in kept
                and not NO_RESULT.search(_own_text(statement, text))
            ):
                yield Change(
                    file, node.start_point.row + 1, node.start_byte, node.end_byte,
                    statement.start_byte, *found,
                )  # fmt: skip
        within = within or node.type == "function_definition"
        for child in node.children:
            yield from visit(child, within, statement)

    def visit_all(nodes: list[Node], within: bool) -> Iterator[Change]:
        for node in nodes:
            yield from visit(node, within, None)

    yield from visit(tree.root_node, False, None)


def loose_cpp(file: Path, level: str) -> Iterator[Change]:
    source = file.read_bytes()
    kept = compiled_lines(file, level)

    def text(node: Node) -> str:
        return source[node.start_byte : node.end_byte].decode()

    def visit(node: Node, function: str) -> Iterator[Change]:
        name, value = "", None
        if node.type == "function_definition":
            function = text(node.child_by_field_name("declarator")).partition("(")[0]
            function = function.rpartition(":")[2]
        elif node.type == "init_declarator" and function:
            name = text(node.child_by_field_name("declarator"))
            value = node.child_by_field_name("value")
        elif node.type == "assignment_expression":
            name = text(node.child_by_field_name("left"))
            value = node.child_by_field_name("right")
        elif node.type == "return_statement" and BOUNDING.fullmatch(function):
            name, value = "error", node.named_children[0]
        if value is not None and BOUND.fullmatch(name):
            old, line = text(value), value.start_point.row + 1
            closed = value.type in {"lambda_expression", "number_literal"}
            if line in kept and not closed and "//" not in old:
                yield Change(
                    file, line, value.start_byte, value.end_byte, node.start_byte,
                    old, f"2.0 * ({old})",
                )  # fmt: skip
                return
        for child in node.children:
            yield from visit(child, function)

    yield from visit(
        Parser(Language(tree_sitter_cpp.language())).parse(source).root_node, ""
    )


def _own_text(statement: Node, text) -> str:
    """Return a statement without the bodies of its lambda functions."""
    whole = text(statement)
    for body in _bodies(statement):
        whole = whole.replace(text(body), "")
    return whole


def _bodies(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "compound_statement":
            yield child
        else:
            yield from _bodies(child)


def _only_throws(node: Node) -> bool:
    if node.type != "if_statement" or node.child_by_field_name("alternative"):
        return False
    body = node.child_by_field_name("consequence")
    if body is not None and body.type == "compound_statement":
        inner = body.named_children
        body = inner[0] if len(inner) == 1 else None
    return body is not None and body.type == "throw_statement"


def _change_of_cpp(node: Node, text) -> tuple[str, str] | None:
    if node.type in {"binary_expression", "assignment_expression"}:
        left, sign, right = (
            text(node.child_by_field_name(name))
            for name in ("left", "operator", "right")
        )
        if sign not in SWAPS or (
            sign in "*/" and any(map(LABEL.fullmatch, (left, right)))
        ):
            return None
        loop = node.parent
        if loop is not None and loop.type == "for_statement" and sign == "<":
            step = loop.child_by_field_name("update")
            if step is None or step.type != "update_expression":
                return None
            return f"{left} < {right}", f"{left} + 1 < {right}"
        return f"{left} {sign} {right}", f"{left} {SWAPS[sign]} {right}"
    if node.type == "unary_expression" and text(node.children[0]) == "-":
        inner = node.child_by_field_name("argument")
        if inner.type != "number_literal" and inner.type != "identifier":
            return text(node), text(inner)
        if not text(inner).startswith("k"):  # -kInf begins a search for the largest
            return text(node), text(inner)
    if node.type == "number_literal" and text(node) in SWAPS:
        return text(node), SWAPS[text(node)]
    if node.type == "call_expression":
        name = text(node.child_by_field_name("function"))
        if found := re.match(r"std::(min|max)(<|$)", name):
            rest = text(node)[len("std::min") :]
            return text(node), f"std::{SWAPS[found[1]]}{rest}"
    return None


# ----------------------------------------------------------------------------- Python

SIGNS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or"},
}


def changes_of_python(file: Path) -> Iterator[Change]:
    source = file.read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def span(node: ast.AST) -> tuple[int, int]:
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(node: ast.AST) -> str:
        begin, end = span(node)
        return source[begin:end].decode()

    def visit(node: ast.AST, within: bool, statement: ast.AST) -> Iterator[Change]:
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.arguments, ast.Assert)):
            return
        if isinstance(node, ast.Call) and re.search(
            r"\b(warn|info|debug|warning)$", text(node.func)
        ):
            return
        if isinstance(node, ast.stmt):
            statement = node
        if within:
            found = _change_of_python(node, text)
            heading = text(statement).split(":\n")[0]
            if found and not NO_RESULT.search(heading):
                yield Change(file, node.lineno, *span(node), span(statement)[0], *found)
        within = within or isinstance(node, ast.FunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, within, statement)

    tree = ast.parse(source)
    yield from visit(tree, False, tree)


def _change_of_python(node: ast.AST, text) -> tuple[str, str] | None:
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        parts, sign = [node.left, node.right], SIGNS[type(node.op)]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        parts, sign = [node.left, *node.comparators], SIGNS.get(type(node.ops[0]))
    elif isinstance(node, ast.BoolOp):
        parts, sign = node.values, SIGNS[type(node.op)]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if isinstance(node.operand, ast.Constant | ast.Attribute):
            return None  # -1 among shapes, and -inf, which begins a search
        return text(node), text(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        old = text(node)
        return (old, SWAPS[old]) if old in SWAPS else None
    elif isinstance(node, ast.Call):
        name = text(node.func)
        if found := re.fullmatch(r"(?:np\.)?(min|max|minimum|maximum)", name):
            other = name.replace(found[1], SWAPS[found[1]])
            return text(node), other + text(node)[len(name) :]
        return None
    else:
        return None
    if sign is None or (sign in "*/" and any(LABEL.fullmatch(text(p)) for p in parts)):
        return None
    texts = [f"({text(part)})" for part in parts]
    return text(node), f" {SWAPS[sign]} ".join(texts)


def loose_python(file: Path, level: str) -> Iterator[Change]:
    source = file.read_text("utf-8")
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign):
                target = (
                    node.targets[0] if isinstance(node, ast.Assign) else node.target
                )
                loose = BOUND.fullmatch(ast.unparse(target))
            else:
                loose = isinstance(node, ast.Return) and BOUNDING.fullmatch(
                    function.name
                )
            value = getattr(node, "value", None)
            if not loose or not isinstance(value, ast.BinOp | ast.Call):
                continue
            begin = starts[value.lineno - 1] + value.col_offset
            end = starts[value.end_lineno - 1] + value.end_col_offset
            old = source.encode()[begin:end].decode()
            yield Change(
                file, value.lineno, begin, end, starts[node.lineno - 1],
                old, f"2.0 * ({old})",
            )  # fmt: skip
