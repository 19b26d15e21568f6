// Rows in blocks, for methods that treat all rows as one matrix Z: products with Z and
// Z', and Z' diag(theta) Z. The rows of a set may be in memory, or be read block by
// block in every pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "centring.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace dualgap {

// BLAS and LAPACK functions of SciPy: column-major, 32-bit sizes.
struct LinearAlgebra {
  void (*dsyrk)(char *, char *, int *, int *, double *, double *, int *, double *,
                double *, int *);
  void (*ssyrk)(char *, char *, int *, int *, float *, float *, int *, float *, float *,
                int *);
  void (*dpotrf)(char *, int *, double *, int *, int *);
  void (*dpotrs)(char *, int *, int *, double *, int *, double *, int *, int *);
};

inline constexpr Index kBlock = 256;  // rows that a pass takes at a time
// Columns of a window, and the number of single entries that cost as much as a window.
inline constexpr Index kWindow = 8, kWindowCost = 3;
inline constexpr double kDenseRows = 0.2;  // share of entries from which panels pay

inline void rank_update(const LinearAlgebra &algebra, char *lower, char *plain, int *d,
                        int *m, double *one, double *x, double *gram) {
  algebra.dsyrk(lower, plain, d, m, one, x, d, one, gram, d);
}
inline void rank_update(const LinearAlgebra &algebra, char *lower, char *plain, int *d,
                        int *m, float *one, float *x, float *gram) {
  algebra.ssyrk(lower, plain, d, m, one, x, d, one, gram, d);
}

// Consecutive rows of a set, with their dtypes erased. Row numbers count within the
// set. The caller applies the labels y_i.
class RowBlock {
 public:
  virtual ~RowBlock() = default;
  // Lets dots, sums and gram see centred rows. Null: the rows as they are.
  void centre(const Centring *centring) { centring_ = centring; }
  // Chooses the columns to centre by a sample of these rows.
  virtual void sample(Centring &centring) const = 0;
  virtual Index begin() const = 0;
  virtual Index end() const = 0;
  virtual Index entries() const = 0;
  // Number of multiply-adds of gram() over all rows.
  virtual Index gram_cost() const = 0;
  // out_k = x_{begin+k}.w
  virtual void dots(Index begin, Index end, const double *w, double *out) const = 0;
  // r += sum_k first_k x_{begin+k}; if `second` is given, r2 += sum_k second_k
  // x_{begin+k}.
  virtual void sums(Index begin, Index end, const double *first, double *r,
                    const double *second, double *r2) const = 0;
  // gram += sum_k theta_k x_k x_k', entries (i, j) with i <= j at gram[i width + j].
  // Rows with theta = 0 are skipped.
  virtual void gram(Index begin, Index end, const double *theta, double *gram,
                    Vec &room, const LinearAlgebra &algebra) const = 0;
  // Whether gram() uses BLAS over dense panels. float32 then takes half the time.
  virtual bool panels() const = 0;
  virtual void gram(Index begin, Index end, const double *theta, float *gram,
                    FloatVec &room, const LinearAlgebra &algebra) const = 0;

 protected:
  const Centring *centring_ = nullptr;
};

// All rows of a set, as blocks that every pass visits in order.
class RowSet {
 public:
  virtual ~RowSet() = default;
  virtual Index rows() const = 0;
  virtual Index width() const = 0;
  // Centres the rows of all blocks.
  virtual void centre(const Centring *centring) = 0;
  // Calls body(block) for the blocks in order, until it returns false.
  virtual void visit(const std::function<bool(const RowBlock &)> &body) const = 0;
};

// Rows of another accessor: the chosen ones, or all if there is no choice.
template <class Rows>
class SomeOf {
 public:
  explicit SomeOf(Rows rows) : rows_(std::move(rows)), count_(rows_.rows()) {}
  SomeOf(Rows rows, const Order *chosen, Index count)
      : rows_(std::move(rows)), chosen_(chosen), count_(count) {}
  Index rows() const { return count_; }
  Index width() const { return rows_.width(); }
  double constant() const { return rows_.constant(); }
  Index count(Index i) const { return rows_.count(at(i)); }
  double dot(Index i, const double *w) const { return rows_.dot(at(i), w); }
  void axpy(Index i, double s, double *w) const { rows_.axpy(at(i), s, w); }
  template <class F>
  void for_each(Index i, F &&f) const {
    rows_.for_each(at(i), std::forward<F>(f));
  }

 private:
  Index at(Index i) const { return chosen_ ? static_cast<Index>(chosen_[i]) : i; }

  Rows rows_;
  const Order *chosen_ = nullptr;
  Index count_;
};
template <class Rows>
struct is_dense<SomeOf<Rows>> : is_dense<Rows> {};

// Whether windows of columns hold enough entries to pay, judged by a sample of the
// rows.
template <class Rows>
bool windows_pay(const Rows &rows) {
  const Index n = rows.rows();
  if (is_dense<Rows>::value || rows.width() < 8 * kWindow) return false;
  Index windows = 0, entries = 0;
  for (Index i = 0; i < n; i += n / 64 + 1) {
    Index end = 0;
    rows.for_each(i, [&](Index j, double) {
      ++entries;
      if (j >= end) ++windows, end = j + kWindow;
    });
  }
  return kWindowCost * windows < entries;
}

// Rows of another accessor, centred.
template <class Rows>
class CentredRows {
 public:
  CentredRows(const Rows &rows, const Centring &by) : rows_(rows), by_(by) {}
  template <class F>
  void for_each(Index i, F &&f) const {
    double base = rows_.constant();
    if (base == 0.0)
      rows_.for_each(
          i, [&](Index j, double x) { base += j == by_.reference() ? x : 0.0; });
    Index met = 0;
    rows_.for_each(i, [&](Index j, double x) {
      met += by_.ratio(j) != 0.0;
      f(j, x - by_.ratio(j) * base);
    });
    const Vector<Index> &columns = by_.columns();
    if (met == columns.size()) return;
    for (const Index column : columns) {  // an entry that is not stored is 0
      bool stored = false;
      rows_.for_each(i, [&](Index j, double) { stored |= j == column; });
      if (!stored) f(column, -by_.ratio(column) * base);
    }
  }
  double dot(Index i, const double *w) const {
    double sum = 0;
    for_each(i, [&](Index j, double x) { sum += x * w[j]; });
    return sum;
  }
  void axpy(Index i, double s, double *w) const {
    for_each(i, [&](Index j, double x) { w[j] += s * x; });
  }

 private:
  const Rows &rows_;
  const Centring &by_;
};

template <class Rows>
class RowBlockOf final : public RowBlock {
 public:
  // `rows` are the rows of the set from number `begin` on.
  RowBlockOf(Rows rows, Index begin)
      : rows_(std::move(rows)), begin_(begin), end_(begin + rows_.rows()) {
    if constexpr (is_dense<Rows>::value) entries_ = rows_.rows() * (rows_.width() + 1);
    for (Index i = 0; !is_dense<Rows>::value && i < rows_.rows(); ++i) {
      const Index entries = rows_.count(i) + 1;
      entries_ += entries;
      gram_cost_ += entries * (entries + 1) / 2;
    }
    const Index size = rows_.rows() * rows_.width();
    panels_ = is_dense<Rows>::value ||
              static_cast<double>(entries_) > kDenseRows * static_cast<double>(size);
    windows_ = windows_pay(rows_);
    if (panels_) gram_cost_ = size * (rows_.width() + 1) / 2;
  }

  Index begin() const override { return begin_; }
  Index end() const override { return end_; }
  Index entries() const override { return entries_; }
  Index gram_cost() const override { return gram_cost_; }

  void dots(Index begin, Index end, const double *w, double *out) const override {
    seen([&](const auto &rows) {
      for (Index i = begin; i < end; ++i) out[i - begin] = rows.dot(i - begin_, w);
    });
  }

  void sums(Index begin, Index end, const double *first, double *r,
            const double *second, double *r2) const override {
    seen([&](const auto &rows) {
      for (Index i = begin; i < end; ++i) {
        const double p = first[i - begin];
        if (!second) {
          if (p != 0.0) rows.axpy(i - begin_, p, r);
          continue;
        }
        const double q = second[i - begin];
        rows.for_each(i - begin_, [&](Index j, double x) {
          r[j] += p * x;
          r2[j] += q * x;
        });
      }
    });
  }

  void gram(Index begin, Index end, const double *theta, double *gram, Vec &room,
            const LinearAlgebra &algebra) const override {
    if (panels_)
      panel(begin, end, theta, gram, room, algebra);
    else if (windows_)
      scatter_windows(begin, end, theta, gram, room);
    else
      scatter(begin, end, theta, gram, room);
  }

  void sample(Centring &centring) const override {
    const Index d = rows_.width(), n = rows_.rows(), step = n / Centring::kSample + 1;
    Vec values;
    for (Index i = 0; i < n; i += step) {
      const Index first = values.size();
      values.resize(first + d, 0.0);
      rows_.for_each(i, [&](Index j, double x) { values[first + j] = x; });
    }
    if (n > 0) centring.choose(values, (n - 1) / step + 1, d, rows_.constant() != 0.0);
  }

  bool panels() const override { return panels_; }
  void gram(Index begin, Index end, const double *theta, float *gram, FloatVec &room,
            const LinearAlgebra &algebra) const override {
    panel(begin, end, theta, gram, room, algebra);
  }

 private:
  // Calls body(rows) with the rows, or with the centred ones, and returns its result.
  // The loops over both are compiled apart: one that could be either keeps no counter
  // in a register.
  template <class Body>
  decltype(auto) seen(const Body &body) const {
    return centring_ ? body(CentredRows<Rows>(rows_, *centring_)) : body(rows_);
  }

  // Copies rows times sqrt(theta) into a dense panel, and calls BLAS.
  template <class F>
  void panel(Index begin, Index end, const double *theta, F *gram, Vector<F> &room,
             const LinearAlgebra &algebra) const {
    const Index d = rows_.width();
    room.resize(kBlock * d);
    F *x = room.data();
    if constexpr (!is_dense<Rows>::value) std::fill_n(x, (end - begin) * d, F(0));
    Index m = 0;
    seen([&](const auto &rows) {
      for (Index i = begin; i < end; ++i) {
        if (theta[i - begin] == 0.0) continue;
        const double root = std::sqrt(theta[i - begin]);
        rows.for_each(i - begin_, [&](Index j, double value) {
          x[j] = static_cast<F>(root * value);
        });
        x += d;
        ++m;
      }
    });
    if (m == 0) return;
    char lower = 'L', plain = 'N';
    int size = static_cast<int>(d), depth = static_cast<int>(m);
    F one = 1;
    rank_update(algebra, &lower, &plain, &size, &depth, &one, room.data(), gram);
  }

  // Adds the rows one by one to the triangle.
  void scatter(Index begin, Index end, const double *theta, double *gram,
               Vec &room) const {
    const Index d = rows_.width();
    room.resize(d);
    Vector<Index> columns(d);
    double *value = room.data();
    Index *column = columns.data();
    for (Index i = begin; i < end; ++i) {
      if (theta[i - begin] == 0.0) continue;
      const Index count = entries_of(i - begin_, value, column);
      const double factor = theta[i - begin];
      for (Index p = 0; p < count; ++p) {
        const double x = factor * value[p];
        double *line = gram + column[p] * d;
        for (Index q = p; q < count; ++q) line[column[q]] += x * value[q];
      }
    }
  }

  // Does the same for rows whose entries have neighbours, as in images: adds whole
  // windows of columns, with 0 for missing entries.
  void scatter_windows(Index begin, Index end, const double *theta, double *gram,
                       Vec &room) const {
    using Pack = simd::Pack<double>;
    const Index d = rows_.width();
    room.resize((1 + kWindow) * d);
    Vector<Index> columns(2 * d);
    double *value = room.data(), *window = value + d;
    Index *column = columns.data(), *start = column + d;
    for (Index i = begin; i < end; ++i) {
      if (theta[i - begin] == 0.0) continue;
      const Index count = entries_of(i - begin_, value, column);
      Index windows = 0;
      for (Index p = 0; p < count; ++windows) {
        const Index first = std::min(column[p], d - kWindow);
        double *here = window + windows * kWindow;
        std::fill_n(here, kWindow, 0.0);
        for (; p < count && column[p] < first + kWindow; ++p)
          here[column[p] - first] = value[p];
        start[windows] = first;
      }
      for (Index p = 0, k = 0; p < count; ++p) {
        while (column[p] >= start[k] + kWindow) ++k;
        const auto x = Pack::all(theta[i - begin] * value[p]);
        double *line = gram + column[p] * d;
        for (Index q = k; q < windows; ++q) {
          double *at = line + start[q];
          const double *from = window + q * kWindow;
          for (Index l = 0; l < kWindow; l += Pack::kLanes)
            fma(x, Pack::load(from + l), Pack::load(at + l)).store(at + l);
        }
      }
    }
  }

  // Writes the values and columns of a row, sorted by column, and returns their number.
  Index entries_of(Index i, double *value, Index *column) const {
    return seen([&](const auto &rows) {
      Index count = 0, last = -1;
      bool sorted = true;
      rows.for_each(i, [&](Index j, double x) {
        sorted &= j > last;
        last = j;
        value[count] = x;
        column[count++] = j;
      });
      if (!sorted) sort(value, column, count);
      return count;
    });
  }

  static void sort(double *value, Index *column, Index count) {
    Vector<std::pair<Index, double>> pairs;
    for (Index p = 0; p < count; ++p) pairs.emplace_back(column[p], value[p]);
    std::sort(pairs.begin(), pairs.end());
    for (Index p = 0; p < count; ++p) std::tie(column[p], value[p]) = pairs[p];
  }

  Rows rows_;
  Index begin_, end_, entries_ = 0, gram_cost_ = 0;
  bool panels_, windows_;
};

// Returns a contiguous copy of the chosen rows, and an owner that keeps it alive.
template <class V, class I>
std::pair<CsrRows<V, I>, std::shared_ptr<void>> copy_rows(const CsrRows<V, I> &rows,
                                                          const Order *chosen, Index m,
                                                          double constant) {
  struct Storage {
    Vector<V> values;
    Vector<I> indices;
    Vector<std::int64_t> pointers{0};
  };
  const auto storage = std::make_shared<Storage>();
  Index all = 0;
  for (Index t = 0; t < m; ++t) all += rows.count(chosen[t]);
  storage->values.reserve(all);
  storage->indices.reserve(all);
  storage->pointers.reserve(m + 1);
  const auto bare = rows.with_constant(0.0);
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, chosen, t, m);
    bare.for_each(chosen[t], [&](Index j, double x) {
      storage->values.push_back(static_cast<V>(x));
      storage->indices.push_back(static_cast<I>(j));
    });
    storage->pointers.push_back(static_cast<std::int64_t>(storage->values.size()));
  }
  return {CsrRows<V, I>(storage->values.data(), storage->indices.data(),
                        Pointers(storage->pointers.data()), m, rows.cols(), constant),
          storage};
}

template <class V>
std::pair<DenseRows<V>, std::shared_ptr<void>> copy_rows(const DenseRows<V> &rows,
                                                         const Order *chosen, Index m,
                                                         double constant) {
  const auto storage = std::make_shared<Vector<V>>();
  storage->resize(m * rows.cols());
  const auto bare = rows.with_constant(0.0);
  V *out = storage->data();
  for (Index t = 0; t < m; ++t, out += rows.cols()) {
    look_ahead(rows, chosen, t, m);
    bare.for_each(chosen[t], [&](Index j, double x) { out[j] = static_cast<V>(x); });
  }
  return {DenseRows<V>(storage->data(), m, rows.cols(), constant), storage};
}

}  // namespace dualgap
