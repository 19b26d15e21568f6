// Memory for packs that are read out of order: aligned to cache lines and, if it is
// large, on large pages if the system provides them.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "../rows.hpp"

namespace dualgap {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

inline std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= 2 * kLargePage ? kLargePage : std::size_t{kLine}};
}
inline void *allocate_aligned(std::size_t bytes) {
  void *p = ::operator new(bytes, alignment_of(bytes));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // The system may ignore this advice. The last page is left out, because the memory
  // need not fill it.
  if (bytes >= 2 * kLargePage)
    madvise(p, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return p;
}

// Allocator for std::vector.
template <class T>
struct AlignedAllocator {
  static_assert(std::is_trivial_v<T>);
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  explicit(false) AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(std::size_t n) {
    return static_cast<T *>(allocate_aligned(n * sizeof(T)));
  }
  void deallocate(T *p, std::size_t n) {
    ::operator delete(p, alignment_of(n * sizeof(T)));
  }
  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

}  // namespace dualgap
