"""Names of a kernel as C identifiers: buffers, loop variables, macros, none of them a keyword or used twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files

from autosched.codegen.c_like.helpers import is_helper

# Keywords (C++'s too: it reads headers), what the included headers define as macros or types, and what printed code
# itself uses.
_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while asm typeof
    alignas alignof and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl
    concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export friend mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires
    static_assert static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq
    bool true false NULL NAN INFINITY HUGE_VAL I DBL_MAX INT32_MIN INT64_MIN
    INT64_C UINT64_C main memcpy memset memmove errno EOF linux unix abs exp exp2 log log2 log10 sqrt
    cbrt hypot tanh sinh cosh erf erfc floor ceil round trunc fma fmaf fmax fmin rint fmod fabs sin cos
    tan asin acos atan pow gamma index div y0 y1 yn j0 j1 jn signgam lanes workspace VECTOR_INLINE
    a64l abort abs alloca aligned_alloc arc4random atexit atof atoi atol atoll bsearch calloc clearenv drand48 ecvt
    erand48 exit fcvt free gcvt getenv getloadavg getsubopt grantpt initstate jrand48 l64a labs lcong48 ldiv llabs
    lldiv lrand48 malloc mblen mbstowcs mbtowc mkdtemp mkstemp mktemp mrand48 nrand48 on_exit posix_memalign ptsname
    putenv qsort rand random realloc reallocarray realpath rpmatch seed48 select setenv setstate srand srand48 srandom
    strtod strtof strtol strtold strtoll strtoq strtoul strtoull strtouq system unlockpt unsetenv valloc wcstombs wctomb
    pselect
    """.split()  # noqa: SIM905
)
_HELPER = (
    r"^(load|store|stream|past|splat|first|load_first|load_between|store_first|repeat_\d+|select|min|max|greater|lesser|fma|sqrt|rint|floor"
    r"|ceil|fabs|bits|satrint|extend|nearest|approximate_[a-z]+)_[a-z]\w*x\d+$"
)
# Macros of <math.h>, <float.h> and <stdint.h>; none ends in _.
_MACRO = r"^((M|FLT|DBL|LDBL|FP|MATH)_|(U?INT\d*|U?INTMAX|U?INTPTR|U?INT_\w*\d|SIZE|PTRDIFF|HUGE)_)[A-Z0-9_]*[A-Z0-9]$"
_VECTOR = r"^([a-z]?[bfsu]\d+|e\dm\d\w*|bool)x\d+(_operand\d*)?$"  # types of vectors; mm64x64 is free


@cache
def libc() -> frozenset[str]:
    """Functions and variables of the C library."""
    lines = files("autosched.codegen.c_like").joinpath("libc.txt").read_text("utf-8").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


class Names:
    """`names("out[0]")` is a free identifier, the same at every call; `names.local("i")` that of a loop variable, or of
    another name that printed code declares itself, whether or not a tensor has it too.

    >>> names = Names()
    >>> names("A"), names("double"), names("B'"), names("A"), names.local("A"), names.local("A")
    ('A', 'double_', 'B_', 'A', 'A_', 'A_')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._given: dict[str, str] = {}
        self._locals: dict[str, str] = {}
        self._taken = set(taken) | _RESERVED

    def __call__(self, name: str) -> str:
        found = self._given.get(name)
        if found is None:
            found = self.fresh(name)
            self._given[name] = found
        return found

    def local(self, name: str) -> str:
        found = self._locals.get(name)
        if found is None:
            found = self._locals[name] = self.fresh(name)
        return found

    def function(self, like: str, declared: Callable[[str], bool] = lambda name: False) -> str:
        """The same for a function that others call: it takes the place of none of the C library, and of none that the
        language has `declared`."""
        while like in libc() or declared(like):
            like += "_"
        return self.fresh(like)

    def fresh(self, like: str) -> str:
        """An identifier that nothing else has, as near to `like` as possible."""
        base = re.sub(r"\W", "_", like, flags=re.ASCII)
        if not re.match(r"[A-Za-z]", base):
            base = f"v{base}"
        while base in self._taken or is_helper(base) or re.search(rf"_t$|{_HELPER}|{_MACRO}|{_VECTOR}", base):
            base += "_"
        self._taken.add(base)
        return base


class Spelling(dict[str, str]):
    """Variables to identifiers, on demand; those of printed loops (`.v`) get the plain name where it is free."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, key: str) -> str:
        self[key] = self._names.fresh(key[1:]) if key.startswith(".") else self._names.local(key)
        return self[key]
