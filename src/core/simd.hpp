// Vector registers of floats and doubles, as wide as the level of the compilation
// allows: AVX-512, AVX2 with FMA, or 128 bits elsewhere (compiler vectors, or arrays of
// lanes without these).
//
// fma(a, b, c) is fused exactly if the level has the instruction, so results differ
// between levels by rounding. On 64-bit ARM the instruction is named explicitly,
// because compilers differ in whether they fuse a * b + c.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__AVX512F__) || defined(__AVX2__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about registers that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#endif

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define DUALGAP_NEON
#endif

#include "rows.hpp"

namespace dualgap::simd {

// A number in [0, 1] in 16 bits, with an error of at most 2^-17. Packs of floats store
// it, and load it multiplied by kFixed.
using Fixed = std::uint16_t;
inline constexpr float kFixed = 65535.0f;

template <class T>
struct Pack;

#if defined(__AVX512F__)

template <>
struct Pack<float> {
  static constexpr int kLanes = 16;
  __m512 v;
  static Pack all(float x) { return {_mm512_set1_ps(x)}; }
  static Pack load(const float *p) { return {_mm512_loadu_ps(p)}; }
  static Pack load(const Fixed *p) {
    const auto *at = reinterpret_cast<const __m256i *>(p);
    return {_mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256(at)))};
  }
  void store(float *p) const { _mm512_storeu_ps(p, v); }
  void store(Fixed *p) const {
    const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(v, _mm512_set1_ps(kFixed)));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), _mm512_cvtepi32_epi16(whole));
  }
  void store_float(float *p) const { store(p); }
  void add_to(double *p) const {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    const __m512d high = _mm512_cvtps_pd(
        _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
    _mm512_storeu_pd(p, _mm512_add_pd(_mm512_loadu_pd(p), low));
    _mm512_storeu_pd(p + 8, _mm512_add_pd(_mm512_loadu_pd(p + 8), high));
  }
  friend Pack operator+(Pack a, Pack b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Pack max(Pack a, Pack b) { return {_mm512_max_ps(a.v, b.v)}; }
  friend Pack min(Pack a, Pack b) { return {_mm512_min_ps(a.v, b.v)}; }
  friend Pack abs(Pack a) { return {_mm512_abs_ps(a.v)}; }
  // a > b ? x : y
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ), y.v, x.v)};
  }
  // Moves the low bits into the exponent.
  Pack to_exponent() const {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 23))};
  }
};

template <>
struct Pack<double> {
  static constexpr int kLanes = 8;
  __m512d v;
  static Pack all(double x) { return {_mm512_set1_pd(x)}; }
  static Pack load(const double *p) { return {_mm512_loadu_pd(p)}; }
  void store(double *p) const { _mm512_storeu_pd(p, v); }
  void store_float(float *p) const { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); }
  void add_to(double *p) const {
    _mm512_storeu_pd(p, _mm512_add_pd(_mm512_loadu_pd(p), v));
  }
  friend Pack operator+(Pack a, Pack b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm512_sub_pd(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm512_mul_pd(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm512_div_pd(a.v, b.v)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  friend Pack max(Pack a, Pack b) { return {_mm512_max_pd(a.v, b.v)}; }
  friend Pack min(Pack a, Pack b) { return {_mm512_min_pd(a.v, b.v)}; }
  friend Pack abs(Pack a) { return {_mm512_abs_pd(a.v)}; }
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(a.v, b.v, _CMP_GT_OQ), y.v, x.v)};
  }
  Pack to_exponent() const {
    return {_mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(v), 52))};
  }
};

#elif defined(__AVX2__)

template <>
struct Pack<float> {
  static constexpr int kLanes = 8;
  __m256 v;
  static Pack all(float x) { return {_mm256_set1_ps(x)}; }
  static Pack load(const float *p) { return {_mm256_loadu_ps(p)}; }
  static Pack load(const Fixed *p) {
    const __m128i whole = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(whole))};
  }
  void store(float *p) const { _mm256_storeu_ps(p, v); }
  void store(Fixed *p) const {
    const __m256i whole = _mm256_cvtps_epi32(_mm256_mul_ps(v, _mm256_set1_ps(kFixed)));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(p),
                     _mm_packus_epi32(_mm256_castsi256_si128(whole),
                                      _mm256_extracti128_si256(whole, 1)));
  }
  void store_float(float *p) const { store(p); }
  void add_to(double *p) const {
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
    _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), low));
    _mm256_storeu_pd(p + 4, _mm256_add_pd(_mm256_loadu_pd(p + 4), high));
  }
  friend Pack operator+(Pack a, Pack b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  friend Pack max(Pack a, Pack b) { return {_mm256_max_ps(a.v, b.v)}; }
  friend Pack min(Pack a, Pack b) { return {_mm256_min_ps(a.v, b.v)}; }
  friend Pack abs(Pack a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return {_mm256_blendv_ps(y.v, x.v, _mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ))};
  }
  Pack to_exponent() const {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 23))};
  }
};

template <>
struct Pack<double> {
  static constexpr int kLanes = 4;
  __m256d v;
  static Pack all(double x) { return {_mm256_set1_pd(x)}; }
  static Pack load(const double *p) { return {_mm256_loadu_pd(p)}; }
  void store(double *p) const { _mm256_storeu_pd(p, v); }
  void store_float(float *p) const { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }
  void add_to(double *p) const {
    _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), v));
  }
  friend Pack operator+(Pack a, Pack b) { return {_mm256_add_pd(a.v, b.v)}; }
  friend Pack operator-(Pack a, Pack b) { return {_mm256_sub_pd(a.v, b.v)}; }
  friend Pack operator*(Pack a, Pack b) { return {_mm256_mul_pd(a.v, b.v)}; }
  friend Pack operator/(Pack a, Pack b) { return {_mm256_div_pd(a.v, b.v)}; }
  friend Pack fma(Pack a, Pack b, Pack c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
  friend Pack max(Pack a, Pack b) { return {_mm256_max_pd(a.v, b.v)}; }
  friend Pack min(Pack a, Pack b) { return {_mm256_min_pd(a.v, b.v)}; }
  friend Pack abs(Pack a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)}; }
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return {_mm256_blendv_pd(y.v, x.v, _mm256_cmp_pd(a.v, b.v, _CMP_GT_OQ))};
  }
  Pack to_exponent() const {
    return {_mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(v), 52))};
  }
};

#else

template <class T>
struct Lanes {
  static constexpr int kCount = 16 / sizeof(T);
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
#if defined(__GNUC__) || defined(__clang__)
  typedef T Vector __attribute__((vector_size(16)));
#else
  struct Vector {
    T lane[kCount];
    T &operator[](int l) { return lane[l]; }
    T operator[](int l) const { return lane[l]; }
  };
#endif
};

template <class T>
struct Pack {
  static constexpr int kLanes = Lanes<T>::kCount;
  typename Lanes<T>::Vector v;

  template <class F>
  static Pack each(F &&f) {
    Pack out;
    for (int l = 0; l < kLanes; ++l) out.v[l] = f(l);
    return out;
  }
  static Pack all(T x) {
    return each([&](int) { return x; });
  }
  static Pack load(const T *p) {
    return each([&](int l) { return p[l]; });
  }
  static Pack load(const Fixed *p) {
    return each([&](int l) { return static_cast<T>(p[l]); });
  }
  void store(T *p) const {
    for (int l = 0; l < kLanes; ++l) p[l] = v[l];
  }
  void store(Fixed *p) const {
    for (int l = 0; l < kLanes; ++l)
      p[l] = static_cast<Fixed>(static_cast<int>(v[l] * T(kFixed) + T(0.5)));
  }
  void store_float(float *p) const {
    for (int l = 0; l < kLanes; ++l) p[l] = static_cast<float>(v[l]);
  }
  void add_to(double *p) const {
    for (int l = 0; l < kLanes; ++l) p[l] += static_cast<double>(v[l]);
  }
#if defined(__GNUC__) || defined(__clang__)
  friend Pack operator+(Pack a, Pack b) { return {a.v + b.v}; }
  friend Pack operator-(Pack a, Pack b) { return {a.v - b.v}; }
  friend Pack operator*(Pack a, Pack b) { return {a.v * b.v}; }
  friend Pack operator/(Pack a, Pack b) { return {a.v / b.v}; }
  friend Pack max(Pack a, Pack b) { return {a.v > b.v ? a.v : b.v}; }
  friend Pack min(Pack a, Pack b) { return {a.v < b.v ? a.v : b.v}; }
  friend Pack abs(Pack a) { return max(a, {-a.v}); }
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return {a.v > b.v ? x.v : y.v};
  }
#else
  friend Pack operator+(Pack a, Pack b) {
    return each([&](int l) { return a.v[l] + b.v[l]; });
  }
  friend Pack operator-(Pack a, Pack b) {
    return each([&](int l) { return a.v[l] - b.v[l]; });
  }
  friend Pack operator*(Pack a, Pack b) {
    return each([&](int l) { return a.v[l] * b.v[l]; });
  }
  friend Pack operator/(Pack a, Pack b) {
    return each([&](int l) { return a.v[l] / b.v[l]; });
  }
  friend Pack max(Pack a, Pack b) { return where_greater(a, b, a, b); }
  friend Pack min(Pack a, Pack b) { return where_greater(b, a, a, b); }
  friend Pack abs(Pack a) {
    return each([&](int l) { return std::abs(a.v[l]); });
  }
  friend Pack where_greater(Pack a, Pack b, Pack x, Pack y) {
    return each([&](int l) { return a.v[l] > b.v[l] ? x.v[l] : y.v[l]; });
  }
#endif
  friend Pack fma(Pack a, Pack b, Pack c) {
#if defined(DUALGAP_NEON)
    if constexpr (sizeof(T) == 4)
      return {vfmaq_f32(c.v, a.v, b.v)};
    else
      return {vfmaq_f64(c.v, a.v, b.v)};
#else
    return a * b + c;
#endif
  }
  Pack to_exponent() const {
    constexpr int kShift = sizeof(T) == 4 ? 23 : 52;
    using Bits = typename Lanes<T>::Bits;
    return each([&](int l) {
      const T x = v[l];
      return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(x) << kShift));
    });
  }
};

#endif

// max and min return their second argument when the first is NaN.

// 2^t = power (1 + f g) for t <= 0.
template <class T>
struct Exp2 {
  Pack<T> power, f, g;
};

// t = m + f, where m is the nearest integer. Adding `magic` leaves m + bias in the low
// bits. 2^f = 1 + f g(f), where g interpolates at Chebyshev nodes of [-1/2, 1/2].
inline Exp2<float> exp2_parts(Pack<float> t) {
  using V = Pack<float>;
  const V magic = V::all(12582912.0f + 127.0f);
  t = min(max(t, V::all(-126.0f)), V::all(0.0f));
  const V m = t + magic;
  const V f = t - (m - magic);
  V g = V::all(1.54531629e-4f);
  g = fma(g, f, V::all(1.33908634e-3f));
  g = fma(g, f, V::all(9.61808256e-3f));
  g = fma(g, f, V::all(5.55035711e-2f));
  g = fma(g, f, V::all(2.40226508e-1f));
  g = fma(g, f, V::all(6.93147188e-1f));
  return {m.to_exponent(), f, g};
}

inline Exp2<double> exp2_parts(Pack<double> t) {
  using V = Pack<double>;
  const V magic = V::all(6755399441055744.0 + 1023.0);
  t = min(max(t, V::all(-1022.0)), V::all(0.0));
  const V m = t + magic;
  const V f = t - (m - magic);
  V g = V::all(4.4549831663289935e-10);
  g = fma(g, f, V::all(7.0725869627858727e-9));
  g = fma(g, f, V::all(1.017806228549308e-7));
  g = fma(g, f, V::all(1.3215442582622522e-6));
  g = fma(g, f, V::all(1.5252733830212126e-5));
  g = fma(g, f, V::all(1.5403530441744864e-4));
  g = fma(g, f, V::all(1.3333558146416599e-3));
  g = fma(g, f, V::all(9.618129107606883e-3));
  g = fma(g, f, V::all(5.5504108664821597e-2));
  g = fma(g, f, V::all(2.4022650695910097e-1));
  g = fma(g, f, V::all(6.9314718055994529e-1));
  return {m.to_exponent(), f, g};
}

// Returns 2^t for t <= 0; the smallest normal number if 2^t is below it or t is NaN.
// 2^0 = 1 exactly.
template <class T>
inline Pack<T> exp2_negative(Pack<T> t) {
  const Exp2<T> parts = exp2_parts(t);
  return fma(parts.g, parts.f, Pack<T>::all(T(1))) * parts.power;
}

// Returns 2^t - 1 for t <= 0, without cancellation for small t.
template <class T>
inline Pack<T> exp2_less_one(Pack<T> t) {
  const Exp2<T> parts = exp2_parts(t);
  return fma(parts.power, parts.f * parts.g, parts.power - Pack<T>::all(T(1)));
}

// to[r][offset + t] <- from[t][r] for r < rows and t < kSide, given rows of kSide
// values.
template <int kSide, class T>
inline void transpose(const T *from, Index rows, float *const *to, Index offset) {
  Index r = 0;
#if defined(__SSE2__) || defined(_M_X64)
  if constexpr (std::is_same_v<T, float>) {
    for (; r + 4 <= rows; r += 4)
      for (int t = 0; t < kSide; t += 4) {
        const float *at = from + t * kSide + r;
        __m128 a = _mm_loadu_ps(at), b = _mm_loadu_ps(at + kSide);
        __m128 c = _mm_loadu_ps(at + 2 * kSide), d = _mm_loadu_ps(at + 3 * kSide);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(to[r] + offset + t, a);
        _mm_storeu_ps(to[r + 1] + offset + t, b);
        _mm_storeu_ps(to[r + 2] + offset + t, c);
        _mm_storeu_ps(to[r + 3] + offset + t, d);
      }
  }
#endif
  for (; r < rows; ++r)
    for (int t = 0; t < kSide; ++t)
      to[r][offset + t] = static_cast<float>(from[t * kSide + r]);
}

// Transposes values in [0, 1] into 16-bit values.
template <int kSide>
inline void transpose(const float *from, Index rows, Fixed *const *to, Index offset) {
  float lines[kSide * kSide], *at[kSide];
  for (int r = 0; r < kSide; ++r) at[r] = lines + r * kSide;
  transpose<kSide>(from, rows, at, 0);
  for (Index r = 0; r < rows; ++r)
    for (int t = 0; t < kSide; t += Pack<float>::kLanes)
      Pack<float>::load(at[r] + t).store(to[r] + offset + t);
}

// Calls f(0), ..., f(N - 1) with compile-time constants, so that arrays of registers
// stay in registers.
template <int N, class F>
DUALGAP_INLINE void unroll(F &&f) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

}  // namespace dualgap::simd
