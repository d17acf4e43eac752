// A fiber: one CUDA thread's stack and where it stands. Fibers hand over to the scheduler and back; nothing runs at once.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulate {

constexpr size_t kStack = 256 << 10;
constexpr size_t kPoisoned = 16 << 10;  // bytes of a fresh stack that hold NaN patterns: unset registers show in results

#if defined(__x86_64__)

struct Context {
  void* stack_pointer;
};

// Saves the callee's registers on the stack it leaves, and takes those of the stack it enters.
extern "C" void emulate_switch(void** leave, void* enter);
asm(R"(
.text
.weak emulate_switch
.hidden emulate_switch
.type emulate_switch, @function
emulate_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulate_switch, .-emulate_switch
)");

inline void hand_over(Context& leave, Context& enter) { emulate_switch(&leave.stack_pointer, enter.stack_pointer); }

inline void prepare(Context& context, char* low, void (*life)()) {
  void** top = reinterpret_cast<void**>(low + kStack - 64);  // aligned to 16: `life` starts as if it had been called
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(life);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context.stack_pointer = top;
}

#else

struct Context {
  ucontext_t state;
};

inline void hand_over(Context& leave, Context& enter) { swapcontext(&leave.state, &enter.state); }

inline void prepare(Context& context, char* low, void (*life)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = low;
  context.state.uc_stack.ss_size = kStack;
  context.state.uc_link = nullptr;
  makecontext(&context.state, life, 0);
}

#endif

// Stacks stay mapped from launch to launch: one range, so that "is this some thread's stack" is one comparison.
struct Stacks {
  char* base = nullptr;
  size_t count = 0;

  void reserve(size_t wanted) {
    if (wanted <= count) return;
    if (base) munmap(base, count * kStack);
    void* found = mmap(nullptr, wanted * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) abort();
    base = static_cast<char*>(found);
    count = wanted;
  }

  char* low(size_t n) { return base + n * kStack; }
  bool holds(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(base) < count * kStack; }
};

}  // namespace emulate
