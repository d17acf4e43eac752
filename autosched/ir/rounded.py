"""The form of a workload that sums in one type and stores another: derived from its text, so that none stands twice."""

from __future__ import annotations

import ast
from typing import cast

SUM = "S"


def rounded(text: str, function: str) -> str:
    """The text of `{function}_to`: `function`, whose last parameter is of type `acc` and filled by its one nest, with
    sums in an intermediate `S` and a nest behind it that converts them to the new dtype `out`.

    def f(…, C: acc[m], *, …):          def f_to(…, C: out[m], *, …, out="f16"):
        for i in range(m):                  S: acc[m]
            C[i] = 0                        for i in range(m):
            …                                   S[i] = 0
                                                …
                                            for i in range(m):
                                                C[i] = out(S[i])
    """
    found = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == function)
    result = found.args.args[-1]
    held = ast.parse(f"{SUM}: {ast.unparse(cast(ast.expr, result.annotation))}").body[0]
    result.annotation = ast.parse(f"out[{ast.unparse(cast(ast.Subscript, result.annotation).slice)}]", mode="eval").body
    found.args.kwonlyargs.append(ast.arg("out"))
    found.args.kw_defaults.append(ast.Constant("f16"))
    nest = found.body[-1]
    assert isinstance(nest, ast.For)
    first = nest.body[0]
    assert isinstance(first, ast.Assign)
    element = ast.unparse(first.targets[0])
    for node in ast.walk(nest):
        if isinstance(node, ast.Name) and node.id == result.arg:
            node.id = SUM
    stored = ast.parse(f"{element} = out({ast.unparse(first.targets[0])})").body
    found.body[-1:] = [held, nest, ast.For(nest.target, nest.iter, stored, [])]
    doc = cast(str, ast.get_docstring(found))
    found.body[0] = ast.Expr(ast.Constant(f"{doc.removesuffix('.')}, summed in `acc` and converted to `out`."))
    found.name += "_to"
    return ast.unparse(ast.fix_missing_locations(found))
