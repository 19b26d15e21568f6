// Numbers of rows and columns, vectors that they index, and prefetching.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace dualgap {

using Index = std::int64_t;
using Order = std::uint32_t;  // a row number inside a visiting order

// A vector that is indexed by Index. Its size is one, too.
template <class T, class Allocator = std::allocator<T>>
class Vector : public std::vector<T, Allocator> {
  using Base = std::vector<T, Allocator>;

 public:
  using Base::Base;
  Vector() = default;
  explicit Vector(Index n) : Base(static_cast<std::size_t>(n)) {}
  Vector(Index n, const T &value) : Base(static_cast<std::size_t>(n), value) {}
  Index size() const { return static_cast<Index>(Base::size()); }
  void resize(Index n) { Base::resize(static_cast<std::size_t>(n)); }
  void resize(Index n, const T &value) {
    Base::resize(static_cast<std::size_t>(n), value);
  }
  T &operator[](Index i) { return Base::operator[](static_cast<std::size_t>(i)); }
  const T &operator[](Index i) const {
    return Base::operator[](static_cast<std::size_t>(i));
  }
};

// An array that lives elsewhere, with its length if a caller has to check it.
template <class T>
struct Span {
  T *first = nullptr;
  Index length = 0;
  Span() = default;
  Span(T *at, Index n = 0) : first(at), length(n) {}
  operator T *() const { return first; }
};

using Vec = Vector<double>;
using FloatVec = Vector<float>;

inline constexpr Index kAhead = 4;          // rows
inline constexpr Index kPointerAhead = 16;  // row pointers
inline constexpr Index kLine = 64;          // bytes in a cache line

// GCC treats a function that only prefetches as having no effect and drops calls to
// it, so these functions must always be inlined.
#if defined(__GNUC__) || defined(__clang__)
#ifdef DUALGAP_COVERAGE  // an inlined line would count once per place of inlining
#define DUALGAP_INLINE inline
#else
#define DUALGAP_INLINE inline __attribute__((always_inline))
#endif
#define DUALGAP_NOINLINE __attribute__((noinline))
DUALGAP_INLINE void prefetch_line(const void *p) { __builtin_prefetch(p, 0, 3); }
#else
#define DUALGAP_INLINE __forceinline
#define DUALGAP_NOINLINE __declspec(noinline)
DUALGAP_INLINE void prefetch_line(const void *p) {
  _mm_prefetch(static_cast<const char *>(p), _MM_HINT_T0);
}
#endif

DUALGAP_INLINE void prefetch_range(const void *first, const void *last) {
  const auto *p = static_cast<const char *>(first);
  const auto *end = static_cast<const char *>(last);
  for (; p < end; p += kLine) prefetch_line(p);
}

}  // namespace dualgap
