"""What printed text and commands do for the sake of one compiler: each with the versions, the reason, and the test that
fails without it. Sites name it, as `workarounds.HELD`; what each is worth stands in docs/experiments.

A workaround without a test that fails is deleted; to see whether a newer compiler still needs one, take its `text` away
and run its test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_WIDTH = 120


@dataclass(frozen=True)
class Workaround:
    """`reason` is what the compiler does, in these `versions` ("seen with": others were not tried). `test` names a test
    that fails without it. `text` is what is printed, or what a command says; it is empty where a pass or another way to
    write something is the workaround: such functions are marked, `@workarounds.NARROWED`."""

    compiler: str
    versions: str
    reason: str
    test: str
    text: str = ""

    def __call__(self, site: _Function) -> _Function:
        """Marks a function that is the workaround."""
        return site

    @property
    def macro(self) -> str:
        """The name that its text defines."""
        found = re.search(r"#define (\w+)", self.text)
        assert found is not None, self
        return found[1]

    @property
    def explained(self) -> str:
        """The text below the reason, for files that are read elsewhere."""
        return fill(f"/* {self.reason} */", _WIDTH, subsequent_indent="   ", break_on_hyphens=False) + f"\n{self.text}"


_PRESSURE = "tests/cpu/codegen/c/test_register_pressure.py"
_SCARCE = "tests/cpu/codegen/c/test_scarce_registers.py"
_SELECT = "tests/cpu/codegen/c/test_c_select.py"
_TEXT = "tests/cpu/codegen/c/test_workaround_texts.py"

# Exported C: vector registers

IN_ORDER = Workaround(
    "Clang",
    "19 on",
    "Where sums and operands take most registers, Clang (19 and later) loads the next operand ahead and keeps a sum on"
    " the stack instead, at half the speed: not where what a sum is made of has to be done in the order of the text.",
    f"{_PRESSURE}::test_sums_stay_in_registers",
    """\
#if defined __clang__ && defined __x86_64__
#define in_order(sum) __asm__ volatile("" : "+v"(sum))
#else
#define in_order(sum) (void)0
#endif""",
)
IN_ORDER_INT = Workaround(
    "GCC and Clang",
    "seen with GCC 12.2",
    "Where sums of integers and their operands take most registers, GCC adds products to each other first, and Clang"
    " loads operands ahead; both then keep sums on the stack. Not where that has to be done in the order of the text.",
    f"{_PRESSURE}::test_products_of_bytes_are_not_added_to_each_other_first",
    """\
#ifdef __x86_64__
#define in_order_int(sum) __asm__ volatile("" : "+v"(sum))
#else
#define in_order_int(sum) (void)0
#endif""",
)
HELD = Workaround(
    "GCC",
    "seen with 12.2",
    "An operand that stays where it is: GCC would sooner take others from memory again than leave it a register.",
    f"{_PRESSURE}::test_sums_are_not_copied_between_registers",
    """\
#if defined __x86_64__ && !defined __clang__
#define held(operand) __asm__("" : "+v"(operand))
#else
#define held(operand) (void)0
#endif""",
)
NEXT_ROUND = Workaround(
    "GCC and Clang",
    "seen with GCC 12.2, Clang 14 and 19",
    "What one round loads is not kept for the next, nor loaded before it: that takes registers from sums.",
    f"{_PRESSURE}::test_unrolled_steps_of_a_window_share_no_loads",
    """#define next_round() __asm__ volatile("" : : : "memory")""",
)
ROLLED_WINDOW = Workaround(
    "Clang",
    "seen with 14, 19 and 22.1",
    "Clang unrolls a loop along which a window slides, and then keeps what its rounds loaded.",
    f"{_PRESSURE}::test_rounds_are_apart_where_a_window_slides",
    "#pragma GCC unroll 1",
)
SUMS_DONE = Workaround(
    "GCC",
    "seen with 12.2",
    "What finished sums are combined with is loaded when they are finished: compilers would keep it beside them.",
    f"{_PRESSURE}::test_what_sums_are_combined_with_takes_no_registers_from_them",
    """#define sums_done() __asm__ volatile("" : : : "memory")""",
)
BY_PRIORITY = Workaround(
    "GCC",
    "seen with 12.2",
    "Where sums in turn take one operand and most registers, GCC's usual way to hand those out puts a sum on the"
    " stack.",
    f"{_PRESSURE}::test_unrolled_steps_of_a_window_share_no_loads",
    """\
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("ira-algorithm=priority")
#endif""",
)
FROM_MEMORY = Workaround(
    "GCC and Clang",
    "seen with GCC 12.2 and Clang 14 to 22.1",
    "These constants are taken from memory where they are needed: to keep or repeat each in one of sixteen registers"
    " would put what loops carry on the stack.",
    f"{_SCARCE}::test_exported_c_takes_constants_from_memory_and_aligns_the_stack",
    """\
#ifdef __x86_64__
#define from_memory(constants, x) __asm__("" : "+r"(constants) : "x"(x))
#else
#define from_memory(constants, x) (void)0
#endif""",
)
ALIGNED_STACK = Workaround(
    "Clang",
    "seen with 14 to 22.1",
    "Clang does not align the stack for vectors that it keeps there: they would lie across lines, some across pages.",
    f"{_SCARCE}::test_exported_c_takes_constants_from_memory_and_aligns_the_stack",
    """\
#if defined __clang__ && defined __x86_64__
#define aligned_stack __attribute__((force_align_arg_pointer))
#else
#define aligned_stack
#endif""",
)
ALIGNED_THREADS = Workaround(
    "Clang",
    "seen with 14 to 22.1",
    "What threads run are functions of Clang's own making, to which `aligned_stack` does not apply.",
    f"{_SCARCE}::test_threads_of_exported_c_align_their_stack_too",
    "-mstackrealign",
)
AS_WRITTEN = Workaround(
    "GCC",
    "seen with 12.2",
    "Stores stay before or behind a load of a matrix, of which GCC does not know that it reads memory.",
    f"{_TEXT}::test_what_a_matrix_is_loaded_from_is_stored_before",
    """#define as_written() __asm__ volatile("" ::: "memory")""",
)
MACROS = (IN_ORDER, IN_ORDER_INT, HELD, NEXT_ROUND, SUMS_DONE, FROM_MEMORY, ALIGNED_STACK, AS_WRITTEN)
"""Those that exported C defines where it uses them."""

# Exported C: how it is compiled

NO_SLP = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC gathers what rows have left in their first lanes into a vector, which all of them then wait for.",
    f"{_TEXT}::test_rows_are_not_gathered_into_vectors",
    "-fno-tree-slp-vectorize",
)
NO_PSABI = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC says of vectors wider than the machine's that calls would pass them another way; inlined ones do not.",
    f"{_TEXT}::test_vectors_wider_than_the_machine_s_compile_without_warnings",
    "-Wno-psabi",
)
WHOLE_LIBRARY = Workaround(
    "zig",
    "seen with 0.17.1 (Clang 22.1)",
    "Zig has no OpenMP, and makes a library without its functions all the same, which nobody can load.",
    "tests/cpu/codegen/c/test_c_shared.py::test_a_function_that_nobody_has",
    "-Wl,-z,defs",
)

# Exported C: vectors

NARROWED = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC keeps vectors wider than the machine's in memory; LLVM cuts them by itself.",
    "tests/pure/codegen/test_narrow.py::test_the_same_in_narrower_vectors",
)
SCALARIZED = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC keeps operands and sums of calls that are wider than the machine's vectors in memory, as it does other vectors"
    " (`NARROWED`).",
    "tests/cpu/codegen/c/test_c_edges.py::test_wide_vectors_ask_for_no_more_than_the_target_has",
)
ONE_ELEMENT_TYPE = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC leaves an array of accumulators in the registers where they are only if every access has one element type:"
    " else each is copied twice a round, half the speed for `vpdpbusd`.",
    f"{_TEXT}::test_accumulators_stay_in_their_registers",
)
MASKED_ENDS = Workaround(
    "GCC",
    "12",
    "GCC keeps what is stored, an accumulator, in memory all along where its first few bytes are copied.",
    f"{_PRESSURE}::test_sums_stay_in_registers",
)
VECTORS_INLINED = Workaround(
    "GCC and Clang",
    "seen with GCC 12.2",
    "Inlined: a vector that is passed to a function, or returned, goes through memory.",
    f"{_TEXT}::test_functions_on_vectors_are_not_called",
    "#define VECTOR_INLINE static inline __attribute__((always_inline, unused))",
)
BLEND_BY_LANES = Workaround(
    "GCC",
    "12 on",
    "GCC makes a blend of this, and several operations of the other",
    f"{_SELECT}::test_a_selection_by_a_mask_is_a_blend",
)
ROLLED_BLEND = Workaround(
    "GCC",
    "seen with 12.2",
    "unrolled by -O3 it is no blend any more",
    f"{_SELECT}::test_selections_of_a_kernel_stay_blends_at_the_third_level",
    "#pragma GCC unroll 1",
)
MASK_AS_IT_IS = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC copies a mask that it knows into an array wrongly, where its first words repeat and the rest is all ones or"
    " zeros: it repeats the first word over the array. It is read lane by lane where it is.",
    f"{_SELECT}::test_a_mask_that_the_compiler_knows",
)
OWN_BLEND = Workaround(
    "Clang",
    "seen with 22.1",
    "Clang makes two or three operations of a selection by masks, where x86 has an instruction.",
    f"{_SELECT}::test_a_selection_by_a_mask_is_a_blend",
)
OWN_FMA = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC does not always see that `fma` of all elements is one instruction.",
    f"{_TEXT}::test_fused_products_are_one_instruction",
)
HALVED_CONVERSIONS = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC takes elements one by one where sizes differ by more than a factor of two, and where size and kind of number"
    " change at once.",
    f"{_TEXT}::test_vectors_are_converted_whole",
)
OWN_EXTENSION = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC does not find x86's instruction that makes wider integers of at most 8 bytes of narrower ones, nor by factors"
    " above two.",
    f"{_TEXT}::test_vectors_are_converted_whole",
)
REPEATED_ELEMENT = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC builds vectors of elements and zeros through memory.",
    f"{_TEXT}::test_elements_that_a_mask_leaves_out_are_not_zeros",
)

# Exported C: warnings

UNUSED = Workaround(
    "Clang",
    "seen with 22.1",
    "Clang warns of functions in a file that it does not use; this one stands in for an instruction that a compiler may"
    " have.",
    "tests/cpu/codegen/llvm/test_special_functions.py::test_what_stands_in_for_an_instruction_may_be_unused",
    "__attribute__((unused))",
)
FLIPPED_APART = Workaround(
    "GCC",
    "seen with 12.2",
    "GCC warns where the complement of a type that C widens to a signed int, or `x ^ 255` for one, is compared, even if"
    " it is cast back; not where a function of its own has it.",
    "tests/cpu/codegen/c/test_c_values.py::test_flipped_bits_are_compared_without_a_warning",
)
KNOWN_LIMITS = Workaround(
    "GCC and Clang",
    "seen with GCC 12.2",
    "Compilers warn of a comparison that the limits of its integer type decide.",
    f"{_TEXT}::test_comparisons_with_limits_compile_without_warnings",
)

# LLVM's code generator

_LLVM = "tests/cpu/codegen/llvm/test_llvm_workarounds.py"

ONLY_LANE = Workaround(
    "LLVM",
    "22 (seen with 22.1)",
    "For a masked store of a truncated vector under a constant mask of one lane LLVM stores the element as it was"
    " before (four bytes of an i8 that was an i32), over its neighbours; so it is written as the scalar store that"
    " it is.",
    "tests/cpu/codegen/llvm/test_llvm_one_lane.py::test_one_kept_lane_writes_one_element",
)
CLEAN_WIDTH = Workaround(
    "LLVM",
    "22 (seen with 22.1)",
    "A compare that fills no vector register is done on a wider one and leaves truth values of its own beyond the"
    " lanes. LLVM clears them by `kmovb`, which its spiller takes for a plain copy and drops: a masked store then"
    " writes past its lanes.",
    "tests/cpu/codegen/llvm/test_llvm_kernels.py::test_masks_survive_calls",
)
STACK_REALIGN = Workaround(
    "LLVM",
    "22 (seen with 22.1)",
    "LLVM keeps wide vectors on a stack that is aligned to 16 bytes, across lines and pages: with a page's end among"
    " them a kernel took 2.4 times as long, in one process of fifty.",
    f"{_SCARCE}::test_vectors_on_the_stack_are_aligned",
    '"stackrealign"',
)
FULL_WIDTH = Workaround(
    "LLVM",
    "seen with 22.1, for products of bytes",
    "Without these, types of 512 bits are split on CPUs that LLVM tunes for 256 bits.",
    f"{_LLVM}::test_vectors_are_as_wide_as_the_machine_s",
    '"prefer-vector-width"="512" "min-legal-vector-width"="512"',
)
NO_REDUCTION = Workaround(
    "LLVM",
    "seen with 22.1",
    "Strength reduction: addresses are already what the printer wants them to be, and on unrolled loops with hundreds"
    " of them it takes up to three quarters of the time to compile.",
    f"{_LLVM}::test_addresses_are_those_of_the_text",
    "lsr",
)
NO_SINKING = Workaround(
    "LLVM",
    "seen with 22.1",
    "Sinking: behind guarded loads it moves all multiply-adds down to where their sums are used, past the branches of"
    " the other loads, so that all that was loaded has to live at once and spills.",
    "tests/cpu/codegen/lower/test_guarded_loads_code.py::test_what_guarded_loads_brought_does_not_wait_on_the_stack",
    "machine-sink",
)
KNOWN_INTRINSICS = Workaround(
    "LLVM",
    "seen with 22.1",
    "LLVM takes a name that it does not know for an outside function, and the loader gives that the address 0.",
    f"{_LLVM}::test_an_intrinsic_that_llvm_does_not_have_is_refused",
)
CLAMPED_FIRST = Workaround(
    "LLVM",
    "seen with 22.1",
    "LLVM takes its saturating conversions apart lane by lane; compares and selects stay vectors.",
    f"{_LLVM}::test_clamped_conversions_stay_vectors",
)
NUMBER_IN_MEMORY = Workaround(
    "LLVM",
    "seen with 22.1",
    "LLVM broadcasts a constant for every use, or keeps it in a register all along; not a number that may change.",
    f"{_LLVM}::test_numbers_in_memory_are_not_repeated",
    "internal global",
)
BF16_IN_INTEGERS = Workaround(
    "LLVM",
    "seen with 22.1",
    "For `fptrunc … to bfloat` LLVM picks `vcvtneps2bf16`, which flushes subnormals (Intel SDM volume 2).",
    f"{_LLVM}::test_bf16_is_rounded_in_integers",
)
JIT_LINK = Workaround(
    "LLVM",
    "seen with 22.1",
    "LLVM's older loader (MCJIT) asks for memory section by section, and where a large process leaves only small holes"
    " near the code, its constants end up further away than the 2 GiB that code reaches: that ended the process.",
    "tests/cpu/codegen/llvm/test_llvm_far_memory.py::test_constants_are_within_reach",
)

# NVRTC, and the assembler in it (ptxas)

_NVRTC = "tests/cuda/codegen/test_nvrtc.py"

ROLLED_PRODUCTS = Workaround(
    "ptxas",
    "seen with NVRTC 12.9",
    "In an unrolled loop, products of a warpgroup may stand where ptxas finds a divergent path: it then waits for each"
    " (C7520).",
    "tests/cuda/codegen/test_compiled_kernels.py::test_products_of_short_loops_over_slices_are_not_serialised",
    "#pragma unroll 1",
)
SOLE_BLOCK = Workaround(
    "ptxas",
    "seen with NVRTC 12.9",
    "Without launch bounds for a single block of a core ptxas ignores what roles take of the registers (C7508); with"
    " them, it takes as many as there are.",
    "tests/cuda/codegen/test_printer_hopper.py::test_roles_get_the_registers_that_they_take",
    ", 1",
)
LIMITED_REGISTERS = Workaround(
    "NVRTC and nvcc",
    "before CUDA 12.4",
    "Older compilers do not know `__maxnreg__`: a macro gives them launch bounds in its place.",
    f"{_NVRTC}::test_older_compilers_are_given_launch_bounds_for_limits",
    "LIMIT_REGISTERS",
)
UNLIMITED = Workaround(
    "ptxas",
    "seen with NVRTC 12.9",
    "With a limit of registers close above what a kernel needs ptxas uses nearly all of it, and below that it spills.",
    f"{_NVRTC}::test_a_kernel_that_spills_within_its_limit_is_compiled_without_one",
    "--define-macro=AUTOSCHED_UNLIMITED",
)
ROLLED_TURNS = Workaround(
    "NVRTC",
    "seen with 12.9",
    "The addresses and loads of all turns of unrolled loops are moved ahead, which may take more registers than a limit"
    " leaves.",
    f"{_NVRTC}::test_a_kernel_that_spills_within_its_limit_has_its_loops_rolled",
    "--define-macro=AUTOSCHED_ROLLED",
)
NO_CACHE = Workaround(
    "NVRTC",
    "12.9 on",
    "Where a driver is NVRTC keeps what it compiled, for all processes, and what it finds there comes without the"
    " assembler's words: registers, spills and warnings. Our own cache keeps those.",
    f"{_NVRTC}::test_the_compiler_s_own_cache_is_not_used",
    "--no-cache",
)
FEW_UNROLLED = Workaround(
    "NVRTC",
    "seen with 13.0",
    "A launch of one thread waits for memory whatever is unrolled, and NVRTC takes minutes to unroll loops as they are"
    " written.",
    "tests/cuda/device/test_baseline.py::test_loops_of_one_thread_are_hardly_unrolled",
)
PART_UNROLLED = Workaround(
    "NVRTC",
    "seen once; 12.9 takes up to 7 registers more for it, and spills none",
    "What loops on a team's registers load is loaded all at once where they are unrolled, and spills where a block has"
    " all the threads that it may have.",
    "tests/cuda/codegen/test_compiled_kernels.py::test_sums_of_many_warps_spill_nothing",
)
