// Highest x86-64 level that this processor and operating system support: 1 to 4, or 0
// on another architecture. The build uses it too.
//
// Source: the levels of the x86-64 psABI, section "Micro-Architecture Levels",
// https://gitlab.com/x86-psABIs/x86-64-ABI.
#pragma once

#if defined(_MSC_VER) && defined(_M_X64)
#include <immintrin.h>
#include <intrin.h>
#endif

#if defined(_MSC_VER) && defined(_M_X64)

inline int x86_64_level() {
  struct Registers {
    int eax, ebx, ecx, edx;
  };
  const auto cpuid = [](int leaf) {
    Registers r{};
    __cpuidex(reinterpret_cast<int *>(&r), leaf, 0);
    return r;
  };
  const auto all = [](unsigned long long word, unsigned long long mask) {
    return (word & mask) == mask;
  };
  const auto bit = [](int i) { return 1u << i; };

  const int highest = cpuid(0).eax;
  if (highest < 1) return 1;
  const unsigned c1 = cpuid(1).ecx;
  const bool has_extended =
      static_cast<unsigned>(cpuid(static_cast<int>(0x80000000u)).eax) >= 0x80000001u;
  const unsigned ce = has_extended ? cpuid(static_cast<int>(0x80000001u)).ecx : 0;
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  if (!all(c1, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) ||
      !all(ce, bit(0)))
    return 1;

  // FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; and the system saves xmm and ymm
  if (highest < 7 || !all(c1, bit(12) | bit(22) | bit(27) | bit(28) | bit(29)) ||
      !all(ce, bit(5)))
    return 2;
  const unsigned long long saved = _xgetbv(0);
  const unsigned b7 = cpuid(7).ebx;
  // BMI1, AVX2, BMI2
  if (!all(saved, 0x6) || !all(b7, bit(3) | bit(5) | bit(8))) return 2;

  // AVX512 F, DQ, CD, BW, VL; and the system saves the mask and zmm registers
  if (!all(saved, 0xe6) || !all(b7, bit(16) | bit(17) | bit(28) | bit(30) | bit(31)))
    return 3;
  return 4;
}

#elif defined(__x86_64__)

// The builtin also checks that the operating system saves the registers (XCR0). The
// code tests the features that the compiler may use at a level and whose names every
// supported compiler knows. Every processor with these also has the scalar ones (MOVBE,
// LZCNT, ...).
inline int x86_64_level() {
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
        __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
        __builtin_cpu_supports("popcnt")))
    return 1;
  if (!(__builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("fma")))
    return 2;
  if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")))
    return 3;
  return 4;
}

#else

inline int x86_64_level() { return 0; }

#endif
