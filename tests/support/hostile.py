"""Docstrings and names that try to be code in the files that hold them."""

from __future__ import annotations

DOCS = {
    "python": '"""; raise SystemExit("python ran"); """ and \'\'\' too',
    "python end": 'ends in a quote"',
    "comment": "*/ #error ended the comment\n*/ int injected; /*",
    "across": "*\\\n/ #error a continued line *??/\n/ #error a trigraph",
    "nested": "/* opens one //* **/ */*/ /*/",
    "line": "a line that goes on \\",
    "trigraph": "a line that goes on ??/",
    "triples": "???/ ????/ ?? ?/ // ??/",
    "words": "@NAME@ @DOC@ @INPUTS@ {name} ${name} %s %n {{}} $NAME",
    "escapes": "\\x22 \\u0022 \\N{QUOTATION MARK} \\n \\0 \\",
    "letters": "größer, 大, \u202e turned, \ud800 half of a pair, \x00\x07\x0b\x0c\x85\u2028\u2029 and \r return",
    "html": "</script><script>alert(1)</script> </pre><img src=x onerror=alert(1)> &amp; ]]>",
    "include": '#include "autosched/nothing.cuh"\n#include "autosched/nothing.cuh"\n#define float double',
}
"""By what they try."""


def product(doc: str) -> str:
    """A small matrix product with this docstring, whose names are letters of several alphabets."""
    return f"""\
def produkt_é(A: f32[m, k], Bß: const[f32[k, n]], C大: f32[m, n], alpha_ö: f32, *, m=6, n=5, k=7):
    {doc!r}
    for i, j in grid(m, n):
        C大[i, j] = 0
        for p in range(k):
            C大[i, j] += A[i, p] * Bß[p, j] * alpha_ö
"""
