// Module that returns the processor's level. It is compiled with the compiler's
// baseline flags and apart from the core, because it must run on processors that cannot
// run the core.

#include <nanobind/nanobind.h>

#include "cpu_level.hpp"

NB_MODULE(_cpu, m) {
  m.def("x86_64_level", &x86_64_level,
        "x86_64_level() -> int\n\n"
        "The highest x86-64 level (1 to 4) that the processor and the operating\n"
        "system support; 0 on another architecture.");
}
