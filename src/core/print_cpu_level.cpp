// Program for the build: prints the level of the building machine.

#include <cstdio>

#include "cpu_level.hpp"

int main() { std::printf("%d\n", x86_64_level()); }
