"""z3 is used by one thread at a time, and its terms may be dropped by any."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import z3

import autosched
from autosched import api
from autosched.logic.solver import PROVING, own_context, proving
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize.spec.catalogue import Catalogue

WINDOW = """
def window(X: f32[n, k], W: const[f32[3, k, m]], Y: f32[n, m], *, n=14, k=4, m=16):
    for p, j in grid(n, m):
        Y[p, j] = 0
        for r in range(3):
            if 0 <= p + r - 1 < n:
                for q in range(k):
                    Y[p, j] += X[p + r - 1, q] * W[r, q, j]
"""
SEVERAL = f"""
import gc, threading
from autosched import api
from autosched.tensorize.spec.catalogue import Catalogue
gc.set_threshold(50)
program = api.parse({WINDOW!r})
known = [i for i in Catalogue.builtin().of_isa("x86") if i.kind == "compute"][:8]
found = []
def work():
    for _ in range(3):
        found.append(str([(m.intrinsic.name, m.verdict, m.mapping_count) for m in api.match(program, known)]))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 12 and len(set(found)) == 1
"""
DROPPED = """
import gc, sys, threading
from autosched.logic.solver import own_context, proving, z3
gc.disable()
sys.setswitchinterval(1e-5)
done, handed = threading.Event(), []
class Held:
    pass
def drop():
    while not done.is_set():
        if handed:
            handed.clear()
            gc.collect()
@proving
def prove(number, context):
    x = [z3.Int(f"x{number}.{i}", context) for i in range(300)]
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", 20000)
    solver.add([a + b * 3 > i for i, (a, b) in enumerate(zip(x, x[1:]))])
    solver.check()
    held = Held()
    held.itself, held.terms, held.solver = held, x, solver
    handed.append(held)
thread = threading.Thread(target=drop)
thread.start()
own = own_context()
for number in range(16):
    prove(number, own if number % 2 else z3.main_ctx())
done.set()
thread.join()
"""


def test_there_is_one_way_to_z3() -> None:
    root = Path(autosched.__file__).parent
    direct = re.compile(r"^\s*(import z3|from z3)", re.MULTILINE)
    found = [p.relative_to(root).as_posix() for p in root.rglob("*.py") if direct.search(p.read_text("utf-8"))]
    assert found == ["logic/solver.py"]


def test_whoever_makes_terms_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, alone = z3.main_ctx, []

    def is_free() -> bool:
        free = PROVING.acquire(blocking=False)
        if free:
            PROVING.release()
        return free

    def main_ctx() -> z3.Context:
        alone.append(not another.submit(is_free).result())
        return plain()

    program = api.parse(WINDOW)
    with ThreadPoolExecutor(1) as another:
        monkeypatch.setattr(z3.z3, "main_ctx", main_ctx)  # of z3, which asks for it in every term
        api.match(program, [i for i in Catalogue.builtin().of_isa("x86") if i.kind == "compute"][:6])
        plans_of(TuneRequest(program, api.target("x86-avx2"), device="simulator"))
    assert alone
    assert all(alone)


def test_proofs_wait_for_each_other() -> None:
    inside, most = [0], [0]

    @proving
    def outer() -> None:
        @proving
        def inner() -> None:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            for _ in range(1000):
                pass
            inside[0] -= 1

        inner()

    threads = [threading.Thread(target=lambda: [outer() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_context_of_its_own_ends_with_its_terms() -> None:
    context = own_context()
    term = z3.Int("x", context) + 1
    assert term.ctx is context
    del term, context
    gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("text", [SEVERAL, DROPPED], ids=["several", "dropped"])
def test_threads_do_not_end_the_process(text: str) -> None:
    command = [sys.executable, "-P", "-X", "faulthandler", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
