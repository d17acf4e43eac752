"""What lowering collects on its way: buffers, preparations, and fresh names."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.codegen.tree.kernel import Buffer, Function
from autosched.ir.dtypes import DType
from autosched.ir.program import Program
from autosched.tensorize.fragment import Fragment
from autosched.tiling.analysis.variable_names import looks_generated


@dataclass
class Context:
    """Mutable only while one kernel is lowered."""

    program: Program
    values: dict[str, int]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    prepare: list[Function] = field(default_factory=list)
    cores: int = 1  # of the target: how many persistent blocks there are
    lanes: int = 1  # of a warp of it
    registers: int = 65536  # of a core of it
    limits: dict[str, int] = field(default_factory=dict)  # of a thread's registers, by the name of the derived quantity
    barriers: dict[str, int] = field(default_factory=dict)  # of blocks, with their slots

    def tensor(self, name: str) -> Buffer:
        """The buffer of a program tensor: a parameter, or scratch for an intermediate."""
        if name not in self.buffers:
            t = self.program.tensors[name]
            scope = "workspace" if t.intermediate else "global"
            self.buffers[name] = Buffer(name, t.dtype, t.extents, scope, name)
        return self.buffers[name]

    def declare(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        scope: str,
        origin: str | None = None,
        elements_per_thread: int = 0,
        fragment: Fragment | None = None,
    ) -> Buffer:
        """A new buffer; a taken name gets a number."""
        unique, n = name, 2
        while unique in self.buffers or self._in_program(unique):
            unique, n = f"{name}_{n}", n + 1
        own = Buffer(unique, dtype, shape, scope, origin, elements_per_thread, fragment=fragment)
        self.buffers[unique] = own
        return self.buffers[unique]

    def barrier(self, name: str, slots: int) -> str:
        """A new barrier of a block; a taken name gets a number."""
        unique, n = name, 2
        while unique in self.barriers or unique in self.buffers or self._in_program(unique):
            unique, n = f"{name}_{n}", n + 1
        self.barriers[unique] = slots
        return unique

    def _in_program(self, name: str) -> bool:
        return name in self.program.tensors or name in self.program.scalars


def identifier(name: str) -> str:
    """An axis name as an identifier: fused axes `y.x` become `y_x`, an empty axis `k'` becomes `k_`.

    A program's axis that looks like a generated variable (`ir` is the register unit of `i`) gets an underscore.
    """
    plain = name.replace(".", "_").replace("'", "_")
    return plain + "_" if looks_generated(plain) else plain
