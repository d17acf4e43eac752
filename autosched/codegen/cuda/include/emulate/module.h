// What every emulated module exports beside its kernels: where it lies, and its kernels as functions of arguments' addresses.
#pragma once

extern "C" {
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern char __start_emulate_shared[] __attribute__((visibility("hidden"), weak));
extern char __stop_emulate_shared[] __attribute__((visibility("hidden"), weak));

__attribute__((no_sanitize("thread"))) void emulate_module(unsigned long* at) {
    at[0] = reinterpret_cast<unsigned long>(__ehdr_start);
    at[1] = reinterpret_cast<unsigned long>(_end);
    at[2] = reinterpret_cast<unsigned long>(__start_emulate_shared);
    at[3] = reinterpret_cast<unsigned long>(__stop_emulate_shared);
}
}

namespace emulate {

template <unsigned long... I>
struct Numbers {};
template <unsigned long N, unsigned long... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <unsigned long... I>
struct Count<0, I...> {
    using type = Numbers<I...>;
};

template <class T>
struct Plain {
    using type = T;
};
template <class T>
struct Plain<const T> {
    using type = T;
};

template <class... A, unsigned long... I>
__attribute__((no_sanitize("thread"))) void call(void (*kernel)(A...), [[maybe_unused]] void** arguments, Numbers<I...>) {
    kernel(*static_cast<typename Plain<A>::type*>(arguments[I])...);
}

template <class... A>
__attribute__((no_sanitize("thread"))) void call(void (*kernel)(A...), void** arguments) {
    call(kernel, arguments, typename Count<sizeof...(A)>::type());
}

}  // namespace emulate
