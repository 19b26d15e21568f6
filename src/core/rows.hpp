// Row accessors. Every kernel is a template over them, and does not depend on
// whether the matrix is dense or CSR, float32 or float64, int32 or int64.
//
//   dot(i, w)      x_i . w            w has width() entries, float64
//   axpy(i, s, w)  w += s x_i
//   for_each(i, f) f(j, x_ij) for every stored entry and the constant feature
//   partial_dot    start + the dot over some stored entries of a row
//   roundings(m)   bound on the roundings of a term of a dot over m stored entries
//   equal(i, k)    whether the stored entries of two rows are the same
//   prefetch(i)    prefetches every cache line of row i
//
// A constant feature (the penalised bias of the papers) is a number besides the
// matrix, not a column of it: entry cols() of w belongs to it.
//
// Visits in random order are limited by memory latency. Prefetching the row that
// comes kAhead visits later, and the row pointer that comes kPointerAhead visits
// later, brings an epoch to the cost of a sequential product.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "index.hpp"

namespace dualgap {

// Row pointers of either width. The branch always goes the same way. It costs less
// than twice as many compiled kernels.
class Pointers {
 public:
  Pointers() = default;
  explicit Pointers(const std::int32_t *p) : narrow_(p) {}
  explicit Pointers(const std::int64_t *p) : wide_(p) {}
  Index operator[](Index i) const {
    return wide_ ? wide_[i] : static_cast<Index>(narrow_[i]);
  }
  DUALGAP_INLINE void prefetch(Index i) const {
    prefetch_line(wide_ ? static_cast<const void *>(wide_ + i)
                        : static_cast<const void *>(narrow_ + i));
  }

 private:
  const std::int32_t *narrow_ = nullptr;
  const std::int64_t *wide_ = nullptr;
};

template <class V, class I>
class CsrRows {
 public:
  using Value = V;
  static constexpr Index kEntryBytes = sizeof(V) + sizeof(I);
  CsrRows(const V *values, const I *indices, Pointers indptr, Index n, Index d,
          double constant)
      : values_(values),
        indices_(indices),
        indptr_(indptr),
        n_(n),
        d_(d),
        constant_(constant) {}

  Index rows() const { return n_; }
  Index cols() const { return d_; }
  Index width() const { return d_ + (constant_ != 0.0); }
  Index count(Index i) const { return indptr_[i + 1] - indptr_[i]; }
  double constant() const { return constant_; }
  // Longer rows are summed in blocks of this size in passes that bound rounding.
  static constexpr Index kBlock = 64;
  // Counts the product, a quarter of the additions, up to 3 left over, the constant,
  // and 2 at the end.
  static Index roundings(Index entries) { return entries / 4 + 7; }
  // Returns the same rows with another constant feature.
  CsrRows with_constant(double constant) const {
    return {values_, indices_, indptr_, n_, d_, constant};
  }

  double dot(Index i, const double *w) const {
    return partial_dot(i, 0, count(i), w, constant_ != 0.0 ? constant_ * w[d_] : 0.0);
  }
  double partial_dot(Index i, Index first, Index last, const double *w,
                     double start) const {
    const Index begin = indptr_[i] + first, end = indptr_[i] + last;
    double s0 = start, s1 = 0, s2 = 0, s3 = 0;
    Index k = begin;
    for (; k + 4 <= end; k += 4) {
      s0 += static_cast<double>(values_[k]) * w[indices_[k]];
      s1 += static_cast<double>(values_[k + 1]) * w[indices_[k + 1]];
      s2 += static_cast<double>(values_[k + 2]) * w[indices_[k + 2]];
      s3 += static_cast<double>(values_[k + 3]) * w[indices_[k + 3]];
    }
    for (; k < end; ++k) s0 += static_cast<double>(values_[k]) * w[indices_[k]];
    return (s0 + s1) + (s2 + s3);
  }

  void axpy(Index i, double s, double *w) const {
    const Index end = indptr_[i + 1];
    for (Index k = indptr_[i]; k < end; ++k)
      w[indices_[k]] += s * static_cast<double>(values_[k]);
    if (constant_ != 0.0) w[d_] += s * constant_;
  }

  template <class F>
  void for_each(Index i, F &&f) const {
    const Index end = indptr_[i + 1];
    for (Index k = indptr_[i]; k < end; ++k)
      f(static_cast<Index>(indices_[k]), static_cast<double>(values_[k]));
    if (constant_ != 0.0) f(d_, constant_);
  }

  bool equal(Index i, Index k) const {
    const Index a = indptr_[i], b = indptr_[k], m = count(i);
    return m == count(k) && std::equal(indices_ + a, indices_ + a + m, indices_ + b) &&
           std::equal(values_ + a, values_ + a + m, values_ + b);
  }

  DUALGAP_INLINE void prefetch(Index i) const {
    const Index begin = indptr_[i], end = indptr_[i + 1];
    prefetch_range(values_ + begin, values_ + end);
    prefetch_range(indices_ + begin, indices_ + end);
  }
  DUALGAP_INLINE void prefetch_pointer(Index i) const { indptr_.prefetch(i); }
  Index ahead() const { return kAhead; }

  // Checks pointers, indices and values in one pass. Fills q_i = ||x_i||^2 (constant
  // feature included). Returns a description of the first fault, or null. Unsorted rows
  // are valid. `unique` becomes false if a row names a column twice: q would be wrong.
  // Rows are checked in groups, so that loops are long enough for vector code.
  const char *inspect(double *q, Index stored, bool *unique, Index *where) const {
    *unique = true;
    *where = 0;
    if (indptr_[0] != 0) return "indptr does not start at 0";
    Columns seen{d_};
    constexpr Index kGroup = 4096;  // entries
    for (Index first = 0, next; first < n_; first = next) {
      const Index begin = indptr_[first];
      Index end = begin;
      for (next = first; next < n_ && (next == first || end - begin < kGroup); ++next) {
        const Index after = indptr_[next + 1];
        *where = next;
        if (after < end || after > stored) return "indptr decreases or passes the end";
        end = after;
      }
      if (!in_range(begin, end)) {
        for (*where = first; in_range(begin, indptr_[*where + 1]);) ++*where;
        return "column index out of range";
      }
      if (!ascending(first, next)) *unique &= no_column_twice(first, next, seen);
      for (Index i = first; i < next; ++i) {
        q[i] = squared_norm(i);
        if (std::isfinite(q[i])) continue;
        *where = i;
        for (Index k = indptr_[i]; k < indptr_[i + 1]; ++k)
          if (!std::isfinite(static_cast<double>(values_[k])))
            return "value is NaN or infinite";
        return "squared norm overflows";
      }
    }
    return nullptr;
  }

 private:
  bool in_range(Index begin, Index end) const {
    using Unsigned = std::make_unsigned_t<I>;  // a negative index becomes a large one
    Unsigned largest = 0;
    for (Index k = begin; k < end; ++k)
      largest = std::max(largest, static_cast<Unsigned>(indices_[k]));
    return begin == end ||
           static_cast<std::uint64_t>(largest) < static_cast<std::uint64_t>(d_);
  }

  // Whether indices rise inside every row, that is, fall only between rows.
  bool ascending(Index first, Index next) const {
    const Index begin = indptr_[first], end = indptr_[next];
    Index falls = 0;
    for (Index k = begin + 1; k < end; ++k) falls += indices_[k] <= indices_[k - 1];
    for (Index i = first + 1; i < next && falls > 0; ++i) {
      const Index k = indptr_[i];
      if (k > begin && k < indptr_[i + 1]) falls -= indices_[k] <= indices_[k - 1];
    }
    return falls == 0;
  }

  // For each column a mark of the row that named it last. Marks have two bytes, so that
  // they use few cache lines. Allocated on first use.
  struct Columns {
    using Mark = std::uint16_t;
    Mark next() {
      if (++mark == 0 || marks.empty()) {
        marks.assign(d, 0);
        mark = 1;
      }
      return mark;
    }
    Index d;
    Vector<Mark> marks{};
    Mark mark = 0;
  };

  bool no_column_twice(Index first, Index next, Columns &seen) const {
    bool unique = true;
    for (Index i = first; i < next; ++i) {
      const auto mark = seen.next();
      for (Index k = indptr_[i]; k < indptr_[i + 1]; ++k) {
        auto &column = seen.marks[indices_[k]];
        unique &= column != mark;
        column = mark;
      }
    }
    return unique;
  }

  double squared_norm(Index i) const {
    constexpr Index kLanes = 8;
    double lane[kLanes] = {};
    Index k = indptr_[i];
    const Index end = indptr_[i + 1];
    for (; k + kLanes <= end; k += kLanes)
      for (Index l = 0; l < kLanes; ++l) {
        const double v = static_cast<double>(values_[k + l]);
        lane[l] += v * v;
      }
    double sum = constant_ * constant_;
    for (; k < end; ++k) {
      const double v = static_cast<double>(values_[k]);
      sum += v * v;
    }
    for (Index half = kLanes / 2; half > 0; half /= 2)
      for (Index l = 0; l < half; ++l) lane[l] += lane[l + half];
    return sum + lane[0];
  }

  const V *values_;
  const I *indices_;
  Pointers indptr_;
  Index n_, d_;
  double constant_;
};

template <class V>
class DenseRows {
 public:
  using Value = V;
  static constexpr Index kEntryBytes = sizeof(V);
  DenseRows(const V *values, Index n, Index d, double constant)
      : values_(values), n_(n), d_(d), constant_(constant) {}

  Index rows() const { return n_; }
  Index cols() const { return d_; }
  Index width() const { return d_ + (constant_ != 0.0); }
  Index count(Index) const { return d_; }
  double constant() const { return constant_; }
  static constexpr Index kBlock = 256;  // as for CSR
  // Counts the product, the additions of a lane, 2 halvings, up to 3 left over, and 3
  // at the end.
  static Index roundings(Index entries) { return entries / 16 + 9; }
  DenseRows with_constant(double constant) const { return {values_, n_, d_, constant}; }

  double dot(Index i, const double *w) const {
    return partial_dot(i, 0, d_, w, constant_ != 0.0 ? constant_ * w[d_] : 0.0);
  }
  double partial_dot(Index i, Index first, Index last, const double *w,
                     double start) const {
    // Sixteen lanes, and four for the remainder, because the compiler may not reorder a
    // floating-point sum by itself.
    constexpr Index kLanes = 16, kFew = 4;
    const V *x = values_ + i * d_;
    double lane[kFew] = {};
    Index j = first;
    if (j + kLanes <= last) {
      double wide[kLanes] = {};
      for (; j + kLanes <= last; j += kLanes)
        for (Index l = 0; l < kLanes; ++l)
          wide[l] += static_cast<double>(x[j + l]) * w[j + l];
      for (Index half = kLanes / 2; half >= kFew; half /= 2)
        for (Index l = 0; l < half; ++l) wide[l] += wide[l + half];
      std::copy_n(wide, kFew, lane);
    }
    for (; j + kFew <= last; j += kFew)
      for (Index l = 0; l < kFew; ++l)
        lane[l] += static_cast<double>(x[j + l]) * w[j + l];
    double s = start;
    for (; j < last; ++j) s += static_cast<double>(x[j]) * w[j];
    return s + ((lane[0] + lane[1]) + (lane[2] + lane[3]));
  }

  void axpy(Index i, double s, double *w) const {
    const V *x = values_ + i * d_;
    for (Index j = 0; j < d_; ++j) w[j] += s * static_cast<double>(x[j]);
    if (constant_ != 0.0) w[d_] += s * constant_;
  }

  template <class F>
  void for_each(Index i, F &&f) const {
    const V *x = values_ + i * d_;
    for (Index j = 0; j < d_; ++j) f(j, static_cast<double>(x[j]));
    if (constant_ != 0.0) f(d_, constant_);
  }

  bool equal(Index i, Index k) const {
    return std::equal(values_ + i * d_, values_ + (i + 1) * d_, values_ + k * d_);
  }

  DUALGAP_INLINE void prefetch(Index i) const {
    prefetch_range(values_ + i * d_, values_ + (i + 1) * d_);
  }
  DUALGAP_INLINE void prefetch_pointer(Index) const {}
  // Short rows take little time, so prefetch further ahead, about 1 KiB.
  Index ahead() const {
    const auto bytes = static_cast<Index>(sizeof(V)) * d_;
    return std::clamp<Index>(1024 / std::max<Index>(bytes, 1), kAhead, 16);
  }

  const char *inspect(double *q, Index, bool *unique, Index *where) const {
    *unique = true;
    for (Index i = 0; i < n_; ++i) {
      const V *x = values_ + i * d_;
      constexpr Index kFew = 4;
      double lane[kFew] = {}, sum = 0;
      Index j = 0;
      for (; j + kFew <= d_; j += kFew)
        for (Index l = 0; l < kFew; ++l) {
          const auto value = static_cast<double>(x[j + l]);
          lane[l] += value * value;
        }
      for (; j < d_; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
      sum += (lane[0] + lane[1]) + (lane[2] + lane[3]);
      q[i] = sum + constant_ * constant_;
      if (!std::isfinite(q[i])) {
        *where = i;
        for (j = 0; j < d_; ++j)
          if (!std::isfinite(static_cast<double>(x[j])))
            return "value is NaN or infinite";
        return "squared norm overflows";
      }
    }
    return nullptr;
  }

 private:
  const V *values_;
  Index n_, d_;
  double constant_;
};

template <class Rows>
struct is_dense : std::false_type {};
template <class V>
struct is_dense<DenseRows<V>> : std::true_type {};

// Prefetches the next rows of a visiting order, and the kernel's per-row numbers.
template <class Rows, class... Arrays>
DUALGAP_INLINE void look_ahead(const Rows &rows, const Order *order, Index t, Index m,
                               const Arrays &...per_row) {
  if (t + kPointerAhead < m) rows.prefetch_pointer(order[t + kPointerAhead]);
  const Index ahead = rows.ahead();
  if (t + ahead < m) {
    const Index i = order[t + ahead];
    rows.prefetch(i);
    (prefetch_line(per_row + i), ...);
  }
}

}  // namespace dualgap
