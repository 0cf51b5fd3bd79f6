// check_call(call): a mistake that is known of a StaticCall does not compile. Where the compiler
// can print composed texts it is this macro, else the function of ops.hpp. Included by each header
// that calls it, which takes the macro back at its end.
#include <ein/compiler.hpp>

#if __cpp_static_assert >= 202306L && __cplusplus > 202302L
#define check_call(call) static_assert(!decltype(call)::facts.mistake, decltype(call)::message())
#endif
