"""Emission templates: text with named fields, and nothing that runs.

`{a}` is an operand (its value, in the operand's register type), `%{t}` a temporary of an LLVM block, `{{` and `}}` are
literal braces. An LLVM template is lines `%{t} = …` and a last line, the expression that is the accumulator's new
value; a C template is one expression. `{a_layout}` is the layout of an opaque operand (`row`, `col`). The texts of a
language with `descriptors` also have `{keep}` (0 where the accumulator starts from zero, else 1) and `{a.across}` of an
operand by descriptor (1 where its rows do not run along the reduction, else 0), and `{a.0}`, `{a.1}` … of single
registers of a lane, without braces around them. Printers bitcast between the register's
type and the vector of its elements (`natural_llvm`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from autosched.backends import language_of_text
from autosched.errors import SpecError
from autosched.ir.dtypes import DType
from autosched.tensorize.intrinsic import Intrinsic, Operand

_TOKEN = re.compile(
    r"\{\{|\}\}|%\{(?P<temp>[A-Za-z_]\w*)\}|\{(?P<operand>[A-Za-z_]\w*)(?P<across>\.across|\.\d+)?\}|(?P<lone>[{}])"
)
KEEP = "keep"
_FAST_MATH = re.compile(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b(?!\.)")
# Words of LLVM that reach memory, end a block or hide code: a file that came from elsewhere must not do any of it.
_MEMORY = re.compile(
    r"\b(load|store|alloca|getelementptr|atomicrmw|cmpxchg|fence|va_arg|inttoptr|ptrtoint|asm|invoke|callbr|br|ret|switch"
    r"|indirectbr|resume|unreachable|blockaddress|ptr)\b"
)
_NO_EXPRESSION = re.compile(r"//|/\*|[\"'#\\]")
_SAID = {
    "//": "its lines are joined, and // hides what follows: write /* … */",
    "/*": "a comment has no end",
    "#": "# is no operator",
    "\\": "\\ is no operator",
}
_CLOSES = {")": "(", "]": "[", "}": "{"}
_NO_CODE = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)  # of C
_CALL = re.compile(r"\b(?:tail |musttail |notail )?call\s+(?P<rest>.*)$")
_LLVM_FLOAT = {"f16": "half", "bf16": "bfloat", "f32": "float", "tf32": "float", "f64": "double"}
_LLVM_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "fp128": 128}


def natural_llvm(operand: Operand) -> str:
    """The vector type of an operand's elements, as `<64 x i8>`; types that LLVM lacks are integers of their width.

    One element is `<1 x float>`, so that a family needs no special case.
    """
    return f"<{operand.elements} x {llvm_scalar(operand.dtype)}>"


def llvm_scalar(dtype: DType) -> str:
    """The LLVM type of one element in a register."""
    return _LLVM_FLOAT.get(dtype.name, f"i{dtype.bits}")


def render_llvm(intrinsic: Intrinsic, values: Mapping[str, str], fresh: Callable[[], str]) -> tuple[list[str], str]:
    """Instruction lines that issue the intrinsic, and the SSA value that then holds the accumulator.

    `values` maps each operand to an SSA value of its `registers["llvm"]` type, `fresh` returns an unused name (`%t7`).
    SpecError where the intrinsic has no llvm text.
    """
    temporaries: dict[str, str] = {}
    out: list[str] = []
    lines = _llvm_lines(_template(intrinsic, "llvm"))
    for name, expression in lines:
        text = _fill(expression, values, temporaries)
        result = fresh()
        if name is not None:
            temporaries[name] = result
        out.append(f"{result} = {text}")
    return out, result


def render(intrinsic: Intrinsic, printer: str, values: Mapping[str, str]) -> str:
    """A text of one line with its operands filled in, as instructions on numbered registers have it."""
    return " ".join(_fill(_template(intrinsic, printer), values, {}).split())


def declaration(text: str) -> tuple[str, str]:
    """The name of the function that one call calls, and its `declare` line."""
    called = _CALL.search(text)
    result, rest = _leading_type(called["rest"]) if called else ("", "")
    function = re.match(r"\s*@([\w.$-]+)\s*\((.*)\)", rest)
    if function is None:
        raise SpecError(f"cannot read the call in {text!r}", hint="write: call TYPE @name(TYPE value, …)")
    types = [_leading_type(a.strip())[0] for a in _arguments(function[2])]
    return function[1], f"declare {result} @{function[1]}({', '.join(types)})"


def render_c(intrinsic: Intrinsic, values: Mapping[str, str]) -> str:
    """The C expression of the accumulator's new value; `values` maps operands to C expressions of their register type.

    SpecError where the intrinsic has no C text.
    """
    return " ".join(_fill(_template(intrinsic, "c"), values, {}).split())


def llvm_declarations(intrinsic: Intrinsic) -> list[str]:
    """A `declare` line for every function that the llvm text calls, types read off the call; no duplicates."""
    found: dict[str, None] = {}
    for _, expression in _llvm_lines(_template(intrinsic, "llvm")):
        text = _fill(expression, dict.fromkeys(intrinsic.operands, "%x"), _Any())
        called = _CALL.search(text)
        if called is None:
            continue
        try:
            found[declaration(text)[1]] = None
        except SpecError as error:
            raise SpecError(f"{intrinsic.name}: {error.message}", hint=error.hint) from None
    return list(found)


def fault_of_template(
    printer: str, text: str, operands: Mapping[str, Operand], accumulator: str, overwrites: bool = False
) -> str | None:
    """What is wrong with an emission text (None: nothing). `overwrites`: what the accumulator holds does not count."""
    if not text.strip():
        return "it is empty"
    if KEEP in operands and _has_descriptors(printer):
        return f"an operand has the name of the field {{{KEEP}}}"
    used = set()
    layouts = {f"{name}_layout" for name, o in operands.items() if o.opaque is not None}
    for token in _TOKEN.finditer(text):
        if token["lone"]:
            return f"a lone {token['lone']!r} (write {token['lone'] * 2} for the character)"
        if token["temp"] and printer != "llvm":
            return f"%{{{token['temp']}}}: temporaries belong to llvm text"
        if token["operand"]:
            if token["operand"] in layouts:
                continue
            if token["across"] and not _has_descriptors(printer):
                return f"{token[0]}: descriptors belong to cuda text"
            if token["operand"] not in operands:
                if token["operand"] == KEEP and _has_descriptors(printer):
                    continue  # a field
                return f"{{{token['operand']}}} is no operand; operands: {', '.join(operands)}"
            if token["across"] and (number := token["across"][1:]).isdigit():
                held = operands[token["operand"]].registers.get(printer, "")
                if int(number) >= int(held.partition(" x ")[0] if " x " in held else 1):
                    return f"{token[0]}: {token['operand']} has no register {number} ({held or 'none are stated'})"
            used.add(token["operand"])
    fault = _fault_of_llvm(text) if printer == "llvm" else fault_of_c(text) if printer == "c" else None
    value = printer in ("llvm", "c")  # other texts are statements, which name what they write
    if value and overwrites and accumulator in used:
        return f"{{{accumulator}}} is named, and the semantics overwrites it: the text is its new value"
    needed = [o for o in operands if not (overwrites and value and o == accumulator)]
    unused = [o for o in needed if o not in used] if value or overwrites else []
    return fault or (f"the operand {{{unused[0]}}} is not used" if unused else None)


def with_operand(text: str, old: str, new: str) -> str:
    """A text with one operand's name for another."""
    return _TOKEN.sub(lambda t: f"{{{new}{t['across'] or ''}}}" if t["operand"] == old else t[0], text)


def names(text: str, operand: str) -> bool:
    """Whether a text has the field of an operand."""
    return any(t["operand"] == operand for t in _TOKEN.finditer(text))


def names_keep(emit: Mapping[str, str], operands: Mapping[str, Operand]) -> bool:
    """Whether a text has the field `{keep}`."""
    return KEEP not in operands and any(f"{{{KEEP}}}" in text for text in emit.values())


def _has_descriptors(printer: str) -> bool:
    language = language_of_text(printer)
    return language is not None and language.descriptors


def fault_of_fields(text: str, fields: set[str], needed: set[str]) -> str | None:
    """What is wrong with a text that may name `fields` and has to name those `needed` (None: nothing)."""
    used = set()
    for token in _TOKEN.finditer(text):
        if token["lone"] or token["temp"]:
            return f"a lone {token.group(0)[0]!r} (write it twice for the character)"
        if token["operand"]:
            used.add(token["operand"])
    if unknown := sorted(used - fields):
        return f"{{{unknown[0]}}} is no field; fields: {', '.join(sorted(fields))}"
    missing = sorted(needed - used)
    return f"{{{missing[0]}}} is not used" if missing else None


def llvm_bits(text: str) -> int | None:
    """Bits of an LLVM scalar or vector type; None where it is neither.

    >>> llvm_bits("<16 x i32>"), llvm_bits("bfloat"), llvm_bits("__m512i")
    (512, 16, None)
    """
    vector = re.fullmatch(r"<\s*([1-9]\d{0,5}) x (\w+)\s*>", text.strip())
    count, scalar = (int(vector[1]), vector[2]) if vector else (1, text.strip())
    if integer := re.fullmatch(r"i([1-9]\d{0,5})", scalar):
        return count * int(integer[1])
    return count * _LLVM_BITS[scalar] if scalar in _LLVM_BITS else None


def c_bits(text: str) -> int | None:
    """Bits of a C register type where its name says them (`__m256`, `int32_t`, `vector_size(16)`); else None."""
    known = {"float": 32, "double": 64, "_Float16": 16}
    if text in known:
        return known[text]
    found = re.fullmatch(r"__m(\d+)\w*|u?int(\d+)_t", text.strip())
    if found:
        return int(found[1] or found[2])
    sized = re.search(r"vector_size\(\s*(\d{1,6})\s*(?:\*\s*(\d{1,3})\s*)?\)", text)
    return 8 * int(sized[1]) * int(sized[2] or 1) if sized else None


class _Any(dict[str, str]):
    """Temporaries where only their types matter."""

    def __missing__(self, key: str) -> str:
        return "%x"


def _template(intrinsic: Intrinsic, printer: str) -> str:
    if printer not in intrinsic.emit:
        raise SpecError(
            f"{intrinsic.name} has no emit.{printer}", hint="such an intrinsic can be matched and simulated only"
        )
    return intrinsic.emit[printer]


def _fill(text: str, values: Mapping[str, str], temporaries: Mapping[str, str]) -> str:
    known = {"operand": values, "temp": temporaries}
    return "".join([known[kind][part] if kind else part for kind, part in _pieces(text)])


@cache
def _pieces(text: str) -> tuple[tuple[str, str], ...]:
    """The pieces of a template, in order: ("operand", name), ("temp", name), or ("", text)."""
    found: list[tuple[str, str]] = []
    end = 0
    for token in _TOKEN.finditer(text):
        found.append(("", text[end : token.start()]))
        kind = next((kind for kind in ("temp", "operand") if token[kind]), "")
        found.append((kind, token[kind] if kind else token.group(0)[0]))
        end = token.end()
    return (*found, ("", text[end:]))


@cache
def _llvm_lines(text: str) -> tuple[tuple[str | None, str], ...]:
    """(temporary, expression) of each line; None for the last, whose value is the result."""
    rows = [line.split(";")[0].strip() for line in text.splitlines()]
    out: list[tuple[str | None, str]] = []
    for row in filter(None, rows):
        assigned = re.fullmatch(r"%\{(\w+)\}\s*=\s*(.+)", row)
        out.append((assigned[1], assigned[2]) if assigned else (None, row))
    return tuple(out)


def _fault_of_llvm(text: str) -> str | None:
    lines = _llvm_lines(text)
    if not lines:
        return "it is empty"
    known: set[str] = set()
    for number, (name, expression) in enumerate(lines):
        for token in _TOKEN.finditer(expression):
            if token["temp"] and token["temp"] not in known:
                return f"%{{{token['temp']}}} is used before it is assigned"
        last = number == len(lines) - 1
        if last and name is not None:
            return "the last line is the result: an expression without `%{…} =`"
        if not last and name is None:
            return f"the line {expression!r} assigns nothing: write %{{name}} = …; only the last line is the result"
        if name is not None:
            if name in known:
                return f"%{{{name}}} is assigned twice"
            known.add(name)
        if found := _FAST_MATH.search(expression):
            return f"the fast-math flag {found[0]!r} changes what is computed"
        if found := _MEMORY.search(expression):
            return f"{found[0]!r} is not accepted: an emission computes on registers, and touches no memory"
        if len(re.findall(r"\bcall\b", expression)) > 1:
            return f"{expression!r} calls twice: write one instruction a line"
        if found := re.search(r"(?<![\w%])@(?!llvm\.)[^\s(]*", expression):
            return f"{found[0]!r} is not accepted: only LLVM's own functions (@llvm.…) are called"
        if re.search(r"(?<![\w}])%[\w.]+", expression):
            return f"{expression!r} names a value of its own: write %{{name}}"
    return None


def fault_of_c(text: str) -> str | None:
    """Why a C text is no expression (None: it may be one). A bracket that closes none, or `;` outside of brackets,
    would end the expression, and statements could follow; a comment without an end would hide what is printed behind
    it. Brackets in comments and strings do not count."""
    bare = _NO_CODE.sub(" ", _TOKEN.sub(lambda token: token[0][0] if token[0] in ("{{", "}}") else "x", text))
    if found := _NO_EXPRESSION.search(bare):
        return f"it is no expression: {_SAID.get(found[0], 'a quote has no end')}"
    opened: list[str] = []
    for character in bare:
        if character in _CLOSES.values():
            opened.append(character)
        elif character in _CLOSES and (not opened or opened.pop() != _CLOSES[character]):
            return "it is no expression: a bracket is closed that was not opened"
        elif character == ";" and not opened:
            return "it is no expression: `;` ends it"
    return f"it is no expression: the bracket {opened[-1]} is not closed" if opened else None


def _leading_type(text: str) -> tuple[str, str]:
    """The type at the start of `text` and what follows it."""
    text = text.lstrip()
    depth = 0
    for at, character in enumerate(text):
        if character in "<[{(":
            depth += 1
        elif character in ">]})":
            depth -= 1
        if depth == 0 and (at + 1 == len(text) or text[at + 1] in " ,)") and not text[: at + 1].isspace():
            return text[: at + 1], text[at + 1 :]
    return text, ""


def _arguments(text: str) -> Iterator[str]:
    """The comma-separated arguments, commas inside brackets aside."""
    depth = start = 0
    for at, character in enumerate(text):
        if character in "<[{(":
            depth += 1
        elif character in ">]})":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]
