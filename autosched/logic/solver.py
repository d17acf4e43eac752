"""z3 for those who seldom prove anything: the builder's process lowers what has been proved, and loading it would be a
tenth of its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import z3
else:

    class _Later:
        """The module, loaded when something in it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            import z3

            return getattr(z3, name)

    z3 = _Later()

__all__ = ["z3"]
