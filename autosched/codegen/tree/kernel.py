"""`Kernel`: the scheduled loop tree. Printers and the interpreter read it and decide nothing.

Registers are buffers too: a buffer of scope `register` holds an array of vector registers; its last dimension is the
elements of one register. An `Assign` with a lane computes `width` elements at once: its lane variable runs over
0 … width-1 inside indices and values: a vector load, a splat, a gather and an epilogue are all one node, told apart by
how the address depends on the lane (`codegen.analysis.access`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from autosched.ir.dtypes import DType
from autosched.ir.formula import Formula
from autosched.ir.program import Program
from autosched.ir.value import Value
from autosched.logic import FALSE, TRUE, Bool, Const, Int
from autosched.tensorize.fragment import Fragment
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matrices import Matrices


class KernelError(AssertionError):
    """A kernel that no printer could print rightly; says where and why."""


SCOPES = ("global", "workspace", "packed", "register", "matrix", "shared", "local", "accumulator", "state")
"""global: a program parameter · workspace: scratch memory of one call · packed: `const` data re-laid out before the
run · register: vector registers · matrix: registers of an instruction's own, which hold a matrix each · shared, local:
GPU memories; shared is an accelerator's scratchpad too · accumulator: the memory that an accelerator accumulates in,
tile by tile · state: what an accelerator's array holds of an operand from one load to the next."""
PRIVATE_SCOPES = ("register", "matrix", "local", "shared", "accumulator", "state")
"""Scopes whose memory a function declares itself; the others are passed to it."""
WORKERS = ("cluster", "warpgroup", "warp", "thread")
"""Loops over the workers of a block (of a cluster's blocks, outside their own); two of them one after the other are
separated by a barrier."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a dtype and a shape, row-major, in elements. `origin` names the program tensor it holds or re-lays, or
    the state that it is.

    `elements_per_thread`: of registers that a warp's threads hold together. Each thread in turn holds so many
    neighbours; 0 where an instruction's fragment map decides, or one thread holds all. `fragment`: how the threads of
    a warp or a warpgroup hold the last dimension of registers that belong to no one instruction.
    `matrices`: of scope `matrix`, the machine's registers, of which the buffer has those from number `first` on. Each
    is set to zero, loaded and stored as a whole (`codegen.analysis.matrix_moves`)."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    scope: str
    origin: str | None = None
    elements_per_thread: int = 0
    matrices: Matrices | None = None
    first: int = 0
    fragment: Fragment | None = None

    @property
    def elements(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total


@dataclass(frozen=True, slots=True)
class Lane:
    """The lane variable of a vector assignment and its width in elements."""

    var: str
    width: int


@dataclass(frozen=True, slots=True)
class For:
    """`for var in range(lower, upper, step)`. `unrolled` loops have constant bounds; a `parallel` or bound loop's
    iterations are independent. `note` becomes a comment in printed code (`cache block of k`). A loop over workers with
    `no_barrier` has none in front: workers reach it one by one. `registers`, of the outermost loop over blocks, is
    the most that a thread may use (0: the compiler decides). `apart`: a loop inside a block whose iterations were
    blocks, which share no memory that one of them writes."""

    var: str
    lower: Int
    upper: Int
    body: tuple[Stmt, ...]
    kind: str = "serial"
    step: int = 1
    note: str = ""
    no_barrier: bool = False
    registers: int = 0
    apart: bool = False


@dataclass(frozen=True, slots=True)
class If:
    condition: Bool
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """`body` where the data say so: `condition` is a truth value, asked once, before."""

    condition: Value
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """`body` once, in which `var` is the number that data choose: `value`, or the nearest of 0 to `extent` - 1 where it
    is none of these. So no address inside leaves its tensor, whatever the data are."""

    var: str
    value: Value
    extent: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    """`buffer[index] = value`, for every lane whose `valid` holds; other lanes of memory stay untouched, other lanes of
    a register become zero. Reads in `value` name buffers of the kernel; a `Select` reads only the side it chooses.

    `stream`: nobody reads the elements soon, so a whole vector that is aligned to its size goes past the caches. Other
    threads see it after a `StoreFence`."""

    buffer: str
    index: tuple[Int, ...]
    value: Value
    lane: Lane | None = None
    valid: Bool = TRUE
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Descriptor:
    """How an instruction finds an operand in shared memory, in blocks of 8 rows by 16 bytes.

    The operand begins `start` elements into its buffer, swizzles aside. `across`: its rows run along the operand's own
    axis and not along the reduction. `leading` and `stride` are bytes from block to block: along and across a span of
    `swizzle` bytes (`across`: from span to span, and along the reduction), or along the reduction and across it."""

    start: Int
    swizzle: int
    across: bool
    leading: int
    stride: int


@dataclass(frozen=True, slots=True)
class RegisterRef:
    """One register: a register buffer and all indices but the last. With a `lane`, an operand that the instruction
    takes from shared memory itself: the index of its element number `lane.var`, one for each of its elements, which is
    where the `descriptor` finds it. `holds`, of a state: the elements that must be there, as a load of it says them
    (`codegen.analysis.held_states`)."""

    buffer: str
    index: tuple[Int, ...]
    lane: Lane | None = None
    descriptor: Descriptor | None = None
    holds: Value | None = None


@dataclass(frozen=True)
class IntrinsicCall:
    """Issue an intrinsic; the accumulator operand is read and written in place. Where `zero_init` holds it starts from
    zero instead, by the form that the intrinsic has for that."""

    intrinsic: Intrinsic
    operands: dict[str, RegisterRef]
    zero_init: Bool = FALSE


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask for the cache line of `buffer[index]`; `write` when it will be stored to. May lie outside the buffer."""

    buffer: str
    index: tuple[Int, ...]
    write: bool = False


@dataclass(frozen=True, slots=True)
class GuardedDispatch:
    """`body` where every check is 0, else `fallback`, which computes the same on any data.

    A check is a buffer of one s32: other than 0 where the data break what `body` relies on (`note`, in words).
    Statements in front of this one fill it, or a prepare function where the data are `const`.
    """

    checks: tuple[str, ...]
    body: tuple[Stmt, ...]
    fallback: tuple[Stmt, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class AsyncCopies:
    """Copies that run on while their issuer goes on. With a `barrier` TMA signals its `slot` once all have
    landed; without, they are the issuing worker's next group, which a `WaitCopies` waits for. Until then nothing may
    touch what they write, nor change what they read. Where TMA moves tiles, `boxes` says how: the same
    elements to the same places as `body` says one by one."""

    body: tuple[Stmt, ...]
    barrier: str
    slot: Int
    boxes: tuple[Stmt, ...] = ()


FIRST_BLOCK = Const(0)


@dataclass(frozen=True, slots=True)
class Im2colWalk:
    """The pixels that a box holds, one after another, as the corner of a window passes over an image: along each
    dimension between the innermost (channels) and the outermost (images) from `lower` on in `steps`, up to the
    dimension's last element plus `upper`; then it begins anew, a step further along the next dimension."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """How TMA sees a tensor: `extents` in elements, the innermost (contiguous) dimension first; `strides`,
    also in elements, from one to the next along each dimension but the innermost; what it moves at once is a `box`,
    whose rows are spans of `swizzle` bytes in which chunks of 16 bytes change places in shared memory. Along a `walk` a
    box is (channels, pixels)."""

    name: str
    buffer: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    walk: Im2colWalk | None = None

    @property
    def elements(self) -> int:
        total = 1
        for n in self.box:
            total *= n
        return total


@dataclass(frozen=True, slots=True)
class TileCopy:
    """One of the `boxes` of `AsyncCopies`: TMA moves the box at `coordinates` (in elements, the innermost
    first) of a tensor to where `index` of a shared buffer is, row-major from there on; zeros where the tensor has no
    element. So many `blocks` of a cluster receive it, the `first` and every `apart`-th from there on, each in its part
    of the buffer (the first subscript). A `store` goes the other way, and drops what is outside. Along a walk
    `coordinates` are those of the window's corner for the first pixel, and `inside` is added to all pixels': the place
    inside the window, for each dimension walked."""

    map: TensorMap
    coordinates: tuple[Int, ...]
    buffer: str
    index: tuple[Int, ...]
    blocks: int = 1
    store: bool = False
    inside: tuple[Int, ...] = ()
    first: Int = FIRST_BLOCK
    apart: int = 1


@dataclass(frozen=True, slots=True)
class AsyncCalls:
    """Calls that run on while their worker goes on. Until a `WaitCalls` has waited for them nothing may touch what they
    write, nor change what they read."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class WaitCalls:
    """Go on once all groups of calls of this worker have ended, but for the `pending` last ones."""

    pending: int


@dataclass(frozen=True, slots=True)
class AsyncProxyFence:
    """What this worker's threads have written to shared memory is there for TMA, and for instructions that
    take operands from it, after the next barrier; and what they read of it has been read."""


@dataclass(frozen=True, slots=True)
class WorkerBarrier:
    """The threads of this worker have all come here, and see what any of them wrote before."""


@dataclass(frozen=True, slots=True)
class WaitCopies:
    """Go on once all groups of copies that this worker issued have landed, but for the `pending` last ones; `engine`:
    those that it asked TMA for, which is then done with what it reads."""

    pending: int
    engine: bool = False


@dataclass(frozen=True, slots=True)
class BarrierArrive:
    """One more arrival at a slot of a barrier, of each worker: in all blocks of a cluster, or only its `own`."""

    barrier: str
    slot: Int
    own: bool = False


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """Go on once a slot of a barrier has seen `times` arrivals since the block began, which is when its phase number
    `phase` has ended; phase -1 has before it begins. `everywhere`: what other blocks of the cluster wrote to their
    shared memory before they signalled is there."""

    barrier: str
    slot: Int
    times: Int
    phase: Int
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class WarpSpecialize:
    """Parts of a block that run side by side, each on workers of its own, and meet at barriers: `names` says what each
    of `bodies` is. All have ended when the statement ends. `registers` are what a thread of each takes (none: as many
    as the launch gives). `stays`: one of them ends once the other blocks of the cluster have signalled all that they
    will, so that none has to wait for the others beyond that."""

    names: tuple[str, ...]
    bodies: tuple[tuple[Stmt, ...], ...]
    registers: tuple[int, ...] = ()
    stays: bool = False


@dataclass(frozen=True, slots=True)
class StoreFence:
    """What this thread has written past the caches is in memory before anything that it writes after."""


@dataclass(frozen=True, slots=True)
class Configure:
    """From here on this thread uses the registers `matrices` (`on`), or no more. Either way they hold nothing now."""

    matrices: Matrices
    on: bool


@dataclass(frozen=True, slots=True)
class Comment:
    text: str


Asynchronous: TypeAlias = AsyncCopies | WaitCopies | TileCopy | AsyncCalls | WaitCalls | AsyncProxyFence
Synchronized: TypeAlias = WorkerBarrier | BarrierArrive | BarrierWait | WarpSpecialize
Concurrent: TypeAlias = Asynchronous | Synchronized
"""What only kernels of a GPU have."""
CONCURRENT = "copies under way, barriers and roles are for GPU kernels"
"""Why other printers refuse those."""
Plain: TypeAlias = (
    For | If | Branch | Chosen | GuardedDispatch | Assign | IntrinsicCall | Prefetch | StoreFence | Configure | Comment
)
Stmt: TypeAlias = Plain | Concurrent


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statements inside a statement: one body of a loop or a branch, two of a choice, else none."""
    match stmt:
        case For() | If() | Branch() | Chosen() | AsyncCopies() | AsyncCalls():
            return (stmt.body,)
        case GuardedDispatch():
            return stmt.body, stmt.fallback
        case WarpSpecialize():
            return stmt.bodies
        case _:
            return ()


def with_bodies(stmt: Stmt, to: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt | None:
    """A loop, a branch, a choice or a group of calls with what `to` makes of its bodies; None for all else."""
    match stmt:
        case For() | If() | Branch() | Chosen() | AsyncCalls():
            return replace(stmt, body=to(stmt.body))
        case GuardedDispatch():
            return replace(stmt, body=to(stmt.body), fallback=to(stmt.fallback))
        case _:
            return None


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a body, each before those inside it."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


@dataclass(frozen=True)
class Function:
    """A callable part of a kernel: buffers it takes, in order, registers it declares, and its body."""

    name: str
    buffers: tuple[str, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, repr=False)
class Kernel:
    """`prepare` functions, in order, fill one `packed` buffer each (their last) from a `const` tensor, or from a buffer
    that an earlier one filled, before the run; `main` is the timed call.

    `main.buffers` are the program's tensor parameters still needed in their own layout, then packed buffers, then
    workspaces. `schedule` is the named row, for headers and comments; `threads` is the width of parallel loops;
    `formulas` are the functions that values call by name in place of the language's own; `relies` says, in words, what
    callers must see to; `vector_bytes` is the target's widest vector.
    """

    name: str
    program: Program
    buffers: dict[str, Buffer]
    prepare: tuple[Function, ...]
    main: Function
    threads: int = 1
    schedule: dict[str, object] = field(default_factory=dict)
    isa: str = "portable"
    relies: tuple[str, ...] = ()
    formulas: dict[str, Formula] = field(default_factory=dict)
    vector_bytes: int = 64
    barriers: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        on = ", ".join(i.name for i in self.intrinsics) or "scalar code"
        return f"<Kernel {self.name}, on {on}; codegen.tree.text.print_kernel prints it>"

    @property
    def statements(self) -> Iterator[Stmt]:
        """All statements of all functions, each before those inside it."""
        return (stmt for function in (*self.prepare, self.main) for stmt in statements(function.body))

    @property
    def intrinsics(self) -> tuple[Intrinsic, ...]:
        """The distinct intrinsics issued, by first use; those of one name differ in their operands' shapes."""
        found: dict[tuple[object, ...], Intrinsic] = {}
        for stmt in self.statements:
            if isinstance(stmt, IntrinsicCall):
                found.setdefault(stmt.intrinsic.form, stmt.intrinsic)
        return tuple(found.values())

    def rewritten(self, to: Callable[[Stmt], Iterable[Stmt]]) -> Kernel:
        """The kernel with what `to` makes of each statement that has none inside in its place."""

        def body(old: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(new for stmt in old for new in each(stmt))

        def each(stmt: Stmt) -> Iterable[Stmt]:
            changed = with_bodies(stmt, body)
            return to(stmt) if changed is None else (changed,)

        def function(old: Function) -> Function:
            return replace(old, body=body(old.body))

        return replace(self, prepare=tuple(map(function, self.prepare)), main=function(self.main))
