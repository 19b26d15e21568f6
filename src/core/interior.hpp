// The interior-point iteration for a set of rows, the others frozen at a bound.
//
// Problem    min over w of  1/2 ||w||^2 - w.f + sum_i c_i l(1 - z_i) + const over the
//            rows i of the set, z_i = y_i w.x_i, through the pair with its dual
//              z_i - 1 + delta_i a_i - s_i + v_i = 0,   s_i a_i = v_i b_i = g_i mu,
//              J w = f + sum_i a_i y_i x_i,  a_i + b_i = U_i,  g_i = c_i/mean(c)
//            (a row of cost 2 c_i is then the same as two rows of cost c_i),
//            where f = sum of U_i y_i x_i over the rows frozen at U_i. J = I; a bias
//            that is not penalised has a 0 there, and the last line of the sum is the
//            constraint sum_i a_i y_i = 0.
// Update     with theta_i = 1/(delta_i + s_i/a_i + v_i/b_i), targets t_i, u_i of the
//            two products, r = f + sum_i a_i y_i x_i - J w and Z the rows y_i x_i
//              (J + Z' diag(theta) Z) dw = Z' (theta h) + r
//              h = 1 - z - delta a + t/a - u/b,    da = theta (h - Z dw)
//            Mehrotra's predictor has t = u = 0, his corrector the second-order terms
//            and g_i sigma mu; up to three of Gondzio's bring the products of a longer
//            step back to [0.1, 10] g_i sigma mu.
// Guarantee  none on the number of iterations; 10 to 60 in practice, whatever C is.
//            The matrix is in float32 where rows are dense and features many, while
//            the residual r that this leaves, computed anew, is little beside the gap.
// Cost       one Gram matrix of the rows (q^2/2 products for a row of q entries, or
//            panels and BLAS where rows are dense), d^3/6 for its factor, 2 passes over
//            the rows and 2 more per corrector; 8 d^2 bytes per thread, or 12 from 128
//            features on, and 120 a row.
// Source     Mehrotra, SIAM J. Optim. 2 (1992); Gondzio, Comput. Optim. Appl. 6 (1996);
//            the normal equations of Ferris and Munson, SIAM J. Optim. 13 (2002).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "certify.hpp"
#include "gram/simd.hpp"
#include "losses.hpp"
#include "rows.hpp"
#include "stop.hpp"
#include "threads.hpp"

// The arrays of a pass do not overlap: that many are more than compilers check for.
#if defined(__clang__)
#define DUALGAP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define DUALGAP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DUALGAP_INDEPENDENT __pragma(loop(ivdep))
#endif

namespace dualgap {

// The BLAS and LAPACK that SciPy brings along: column-major, 32-bit sizes.
struct LinearAlgebra {
  void (*dsyrk)(char *, char *, int *, int *, double *, double *, int *, double *,
                double *, int *);
  void (*ssyrk)(char *, char *, int *, int *, float *, float *, int *, float *, float *,
                int *);
  void (*dpotrf)(char *, int *, double *, int *, int *);
  void (*dpotrs)(char *, int *, int *, double *, int *, double *, int *, int *);
};

using Vec = std::vector<double>;
using FloatVec = std::vector<float>;

inline constexpr Index kBlock = 256;  // rows that a pass takes at a time
// Columns of a window, and entries that cost as much.
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

// Consecutive rows of the set, their dtypes erased; numbers are those in the set. Signs
// are the caller's.
class RowBlock {
 public:
  virtual ~RowBlock() = default;
  virtual Index begin() const = 0;
  virtual Index end() const = 0;
  virtual Index entries() const = 0;
  // Multiply-adds of gram() over all rows.
  virtual Index gram_cost() const = 0;
  // out_k = x_{begin+k}.w
  virtual void dots(Index begin, Index end, const double *w, double *out) const = 0;
  // r += sum_k coefficient_k x_{begin+k}, and a second one where it is given.
  virtual void sums(Index begin, Index end, const double *first, double *r,
                    const double *second, double *r2) const = 0;
  // gram += sum_k theta_k x_k x_k', entries (i, j) with i <= j at gram[i width + j].
  // Rows with a theta of 0 cost nothing.
  virtual void gram(Index begin, Index end, const double *theta, double *gram,
                    Vec &room, const LinearAlgebra &algebra) const = 0;
  // Whether gram() is BLAS over dense panels: then float32 takes half the time.
  virtual bool panels() const = 0;
  virtual void gram(Index begin, Index end, const double *theta, float *gram,
                    FloatVec &room, const LinearAlgebra &algebra) const = 0;
};

// All rows of the set: blocks that come one after the other in every pass.
class RowSet {
 public:
  virtual ~RowSet() = default;
  virtual Index rows() const = 0;
  virtual Index width() const = 0;
  // body(block) for the blocks in turn, until it says false.
  virtual void visit(const std::function<bool(const RowBlock &)> &body) const = 0;
};

template <class Rows>
struct is_dense : std::false_type {};
template <class V>
struct is_dense<DenseRows<V>> : std::true_type {};

// The rows of another accessor that an order names.
template <class Rows>
class ChosenRows {
 public:
  ChosenRows(Rows rows, const Order *chosen, Index count)
      : rows_(std::move(rows)), chosen_(chosen), count_(count) {}
  Index rows() const { return count_; }
  Index width() const { return rows_.width(); }
  Index count(Index i) const { return rows_.count(chosen_[i]); }
  double dot(Index i, const double *w) const { return rows_.dot(chosen_[i], w); }
  void axpy(Index i, double s, double *w) const { rows_.axpy(chosen_[i], s, w); }
  template <class F>
  void for_each(Index i, F &&f) const {
    rows_.for_each(chosen_[i], std::forward<F>(f));
  }

 private:
  Rows rows_;
  const Order *chosen_;
  Index count_;
};
template <class Rows>
struct is_dense<ChosenRows<Rows>> : is_dense<Rows> {};

// Whether windows of columns hold enough entries to pay, by some of the rows.
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

template <class Rows>
class RowBlockOf final : public RowBlock {
 public:
  // The rows from number `begin` of the set on.
  RowBlockOf(Rows rows, Index begin)
      : rows_(std::move(rows)), begin_(begin), end_(begin + rows_.rows()) {
    for (Index i = 0; i < rows_.rows(); ++i) {
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
    for (Index i = begin; i < end; ++i) out[i - begin] = rows_.dot(i - begin_, w);
  }

  void sums(Index begin, Index end, const double *first, double *r,
            const double *second, double *r2) const override {
    for (Index i = begin; i < end; ++i) {
      const double p = first[i - begin];
      if (!second) {
        rows_.axpy(i - begin_, p, r);
        continue;
      }
      const double q = second[i - begin];
      rows_.for_each(i - begin_, [&](Index j, double x) {
        r[j] += p * x;
        r2[j] += q * x;
      });
    }
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

  bool panels() const override { return panels_; }
  void gram(Index begin, Index end, const double *theta, float *gram, FloatVec &room,
            const LinearAlgebra &algebra) const override {
    panel(begin, end, theta, gram, room, algebra);
  }

 private:
  // A dense panel of rows times sqrt(theta), and BLAS.
  template <class F>
  void panel(Index begin, Index end, const double *theta, F *gram, std::vector<F> &room,
             const LinearAlgebra &algebra) const {
    const Index d = rows_.width();
    room.resize(static_cast<std::size_t>(kBlock * d));
    F *x = room.data();
    if constexpr (!is_dense<Rows>::value) std::fill_n(x, (end - begin) * d, F(0));
    Index m = 0;
    for (Index i = begin; i < end; ++i) {
      if (theta[i - begin] == 0.0) continue;
      const double root = std::sqrt(theta[i - begin]);
      rows_.for_each(i - begin_, [&](Index j, double value) {
        x[j] = static_cast<F>(root * value);
      });
      x += d;
      ++m;
    }
    if (m == 0) return;
    char lower = 'L', plain = 'N';
    int size = static_cast<int>(d), depth = static_cast<int>(m);
    F one = 1;
    rank_update(algebra, &lower, &plain, &size, &depth, &one, room.data(), gram);
  }

  // Row by row into the triangle.
  void scatter(Index begin, Index end, const double *theta, double *gram,
               Vec &room) const {
    const Index d = rows_.width();
    room.resize(static_cast<std::size_t>(2 * d));
    double *value = room.data();
    auto *column = reinterpret_cast<Index *>(value + d);
    static_assert(sizeof(Index) == sizeof(double));
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

  // The same where entries have neighbours, as in images: windows of columns, those
  // without an entry 0, go into the triangle as a whole.
  void scatter_windows(Index begin, Index end, const double *theta, double *gram,
                       Vec &room) const {
    using Pack = simd::Pack<double>;
    const Index d = rows_.width();
    room.resize(static_cast<std::size_t>((3 + kWindow) * d));
    double *value = room.data(), *window = value + d;
    auto *column = reinterpret_cast<Index *>(window + kWindow * d);
    Index *start = column + d;
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

  // Values and columns of a row, sorted; how many.
  Index entries_of(Index i, double *value, Index *column) const {
    Index count = 0, last = -1;
    bool sorted = true;
    rows_.for_each(i, [&](Index j, double x) {
      sorted &= j > last;
      last = j;
      value[count] = x;
      column[count++] = j;
    });
    if (!sorted) sort(value, column, count);
    return count;
  }

  static void sort(double *value, Index *column, Index count) {
    std::vector<std::pair<Index, double>> pairs;
    for (Index p = 0; p < count; ++p) pairs.emplace_back(column[p], value[p]);
    std::sort(pairs.begin(), pairs.end());
    for (Index p = 0; p < count; ++p) std::tie(column[p], value[p]) = pairs[p];
  }

  Rows rows_;
  Index begin_, end_, entries_ = 0, gram_cost_ = 0;
  bool panels_, windows_;
};

// The chosen rows, copied close together, and what keeps the copy alive.
template <class V, class I>
std::pair<CsrRows<V, I>, std::shared_ptr<void>> copy_rows(const CsrRows<V, I> &rows,
                                                          const Order *chosen, Index m,
                                                          double constant) {
  struct Storage {
    std::vector<V> values;
    std::vector<I> indices;
    std::vector<std::int64_t> pointers{0};
  };
  const auto storage = std::make_shared<Storage>();
  Index all = 0;
  for (Index t = 0; t < m; ++t) all += rows.count(chosen[t]);
  storage->values.reserve(static_cast<std::size_t>(all));
  storage->indices.reserve(static_cast<std::size_t>(all));
  storage->pointers.reserve(static_cast<std::size_t>(m) + 1);
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
  const auto storage = std::make_shared<std::vector<V>>();
  storage->resize(static_cast<std::size_t>(m * rows.cols()));
  const auto bare = rows.with_constant(0.0);
  V *out = storage->data();
  for (Index t = 0; t < m; ++t, out += rows.cols()) {
    look_ahead(rows, chosen, t, m);
    bare.for_each(chosen[t], [&](Index j, double x) { out[j] = static_cast<V>(x); });
  }
  return {DenseRows<V>(storage->data(), m, rows.cols(), constant), storage};
}

// The a in (0, U) with  g + delta a - mu/a + mu/(U - a) = 0,  and U - a: where both
// products are mu at a margin of 1 + g. Without an upper bound, U is infinite.
inline std::pair<double, double> centred(double g, double delta, double upper,
                                         double mu) {
  if (std::isinf(upper)) {
    const double root = std::sqrt(g * g + 4.0 * delta * mu);
    return {g > 0.0 ? 2.0 * mu / (g + root) : (root - g) / (2.0 * delta), 1.0};
  }
  if (delta > 0.0) {
    double low = 0.0, high = upper;
    for (int k = 0; k < 50; ++k) {
      const double a = 0.5 * (low + high);
      const double f = g + delta * a - mu / a + mu / (upper - a);
      (f > 0.0 ? high : low) = a;
    }
    g += delta * 0.5 * (low + high);
  }
  // g a^2 - (g U + 2 mu) a + mu U = 0, in the form that does not cancel.
  const double e = std::abs(g) * upper;
  const double small = 2.0 * mu * upper / (e + 2.0 * mu + std::hypot(e, 2.0 * mu));
  return g > 0.0 ? std::pair{small, upper - small} : std::pair{upper - small, small};
}

// Sums and the like of up to kBlock numbers, in lanes: the compiler may not reorder
// them by itself.
template <class Combine>
double reduce(const double *x, Index n, const Combine &combine) {
  constexpr Index kLanes = 8;
  double lane[kLanes] = {};
  Index k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (Index l = 0; l < kLanes; ++l) lane[l] = combine(lane[l], x[k + l]);
  for (Index l = 0; k < n; ++k, ++l) lane[l] = combine(lane[l], x[k]);
  for (Index half = kLanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  return lane[0];
}
inline double total(const double *x, Index n) {
  return reduce(x, n, [](double a, double b) { return a + b; });
}
inline double largest(const double *x, Index n) {  // 0 if none is positive
  return reduce(x, n, [](double a, double b) { return a > b ? a : b; });
}

class Interior {
 public:
  enum class Outcome { kStepped, kLeft, kSingular };

  struct Data {
    std::unique_ptr<RowSet> rows;
    std::vector<std::int8_t> y;
    Vec cost;         // all positive
    Vec fixed;        // f
    double constant;  // of the objective: sum of U_i - delta_i U_i^2/2 at a bound
    double scale;     // a typical ||x_i||^2
  };

  Interior(Data data, const Loss &loss, bool free_bias, Team &threads,
           const LinearAlgebra &algebra)
      : data_(std::move(data)),
        loss_(loss),
        free_bias_(free_bias),
        bounded_(!std::isinf(loss.slope)),
        bound_(bounded_ ? 1.0 : 0.0),
        algebra_(algebra),
        m_(data_.rows->rows()),
        d_(data_.rows->width()),
        parts_(static_cast<std::size_t>(threads.size())),
        team_(threads) {
    for (Vec *x : {&a_, &b_, &s_, &v_, &z_, &theta_, &t_, &u_, &dz_, &t2_, &u2_, &dz2_})
      x->resize(size(m_));
    for (Vec *x : {&w_, &r_, &dw_, &dw2_, &first_, &second_, &third_})
      x->resize(size(d_));
    delta_.resize(size(m_));
    for (Index i = 0; i < m_; ++i) delta_[size(i)] = loss.diagonal(data_.cost[size(i)]);
    weight_ = data_.cost;
    double sum = 0;
    for (const double c : data_.cost) sum += c;
    for (double &weight : weight_) weight *= static_cast<double>(m_) / sum;
  }

  Index width() const { return d_; }
  Index rows() const { return m_; }
  const Vec &w() const { return w_; }
  const Vec &alpha() const { return a_; }
  double mu() const { return mu_; }
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double step() const { return step_; }
  int correctors() const { return correctors_; }
  bool single() const { return single_; }

  // Starts at w, every product at mu times its weight; mu = 0: a point far inside for
  // w = 0. False: told to leave.
  bool start(const double *w, double mu, Poll &poll, const Stop &stop) {
    std::copy_n(w, d_, w_.begin());
    if (mu == 0.0) {
      for (const double c : data_.cost) mu += c / static_cast<double>(m_);
      mu *= bounded_ ? 2.0 / 3.0 * loss_.slope : 2.0 / loss_.curvature;
    }
    if (!margins(poll, stop)) return false;
    for (std::size_t i = 0; i < size(m_); ++i) {
      const double upper = loss_.upper(data_.cost[i]);
      const double product = mu * weight_[i];
      std::tie(a_[i], b_[i]) = centred(z_[i] - 1.0, delta_[i], upper, product);
      s_[i] = product / a_[i];
      v_[i] = product / b_[i];
    }
    iterations_ = 0;
    ridge_ = kRidge;
    single_ = d_ >= kWorthSingle;
    return residual(poll, stop);
  }

  // z, r, P and D from a and w, free of the rounding of the steps. False: told to
  // leave, and nothing is worse than it was.
  bool refresh(Poll &poll, const Stop &stop) {
    return margins(poll, stop) && residual(poll, stop);
  }

  // One iteration; nothing has moved unless the outcome is kStepped.
  Outcome iterate(Poll &poll, const Stop &stop) {
    if (iterations_ > 0 && iterations_ % 10 == 0 && !refresh(poll, stop))
      return Outcome::kLeft;
    for (;; single_ ? void(single_ = false) : void(ridge_ *= 100.0)) {
      if (ridge_ > kLargestRidge) return Outcome::kSingular;
      if (!normal_equations(poll, stop)) return Outcome::kLeft;
      if (factor()) break;
    }
    for (std::size_t j = 0; j < size(d_); ++j) dw_[j] = first_[j] + r_[j];
    backsolve(dw_);
    double ratio = 0, cross = 0;
    if (!predict(ratio, cross, poll, stop)) return Outcome::kLeft;
    const double far = 1.0 / std::max(1.0, ratio);
    const double after = (1.0 - far) * mu_ + far * far * cross / products();
    const double fall = std::clamp(after / mu_, 0.0, 1.0);
    const double target = fall * fall * fall * mu_;

    for (std::size_t j = 0; j < size(d_); ++j)
      dw_[j] = first_[j] + r_[j] + target * second_[j] - third_[j];
    backsolve(dw_);
    const double target_u = bound_ * target;
    for (std::size_t i = 0; i < size(m_); ++i) {
      t_[i] = target * weight_[i] - t_[i];
      u_[i] = target_u * weight_[i] - u_[i];
    }
    double length = 0;
    if (!direction(dw_, t_, u_, dz_, length, poll, stop)) return Outcome::kLeft;
    correctors_ = 0;
    while (correctors_ < kCorrectors && length < 0.9) {
      if (!correct(length, target, poll, stop)) return Outcome::kLeft;
      ++correctors_;
      double longer = 0;
      if (!direction(dw2_, t2_, u2_, dz2_, longer, poll, stop)) return Outcome::kLeft;
      if (longer < 1.01 * length) break;
      const bool last = longer < 1.1 * length;
      dw_.swap(dw2_), dz_.swap(dz2_), t_.swap(t2_), u_.swap(u2_);
      length = longer;
      if (last) break;
    }
    step_ = std::min(1.0, kBack * length);
    move();
    ++iterations_;
    if (single_) look_at_rounding(poll, stop);
    return Outcome::kStepped;
  }

 private:
  static constexpr int kCorrectors = 3;
  static constexpr double kBack = 0.995;
  static constexpr double kRidge = 1e-13, kLargestRidge = 1e-6;
  static constexpr double kProximal = 1e-12;
  static constexpr Index kWorthThreads = 400'000;  // a tenth of a millisecond
  // Features from which the matrix is most of the cost; rows added up in float32 before
  // float64 takes over the sum; share of the gap that its rounding may leave in D.
  static constexpr Index kWorthSingle = 128, kSingleRows = 4096;
  static constexpr double kRoundingShare = 0.03;

  // What one thread needs, and what it leaves.
  struct Part {
    double p[kBlock], q[kBlock];
    Vec first, second, gram, room;
    FloatVec single, single_room;
    Index single_rows = 0;
    double ratio, cross, mu, loss, sum;
    bool left;
  };

  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }
  double products() const { return static_cast<double>(m_) * (bounded_ ? 2.0 : 1.0); }
  Index penalised() const { return d_ - free_bias_; }

  // body(part, begin, end) over stretches of the rows from `first` to `last`, in as
  // many parts as pay for `work` multiply-adds. False: told to leave.
  template <class Body>
  bool share(Index first, Index last, Index work, Poll *poll, const Stop *stop,
             const Body &body) {
    const Index blocks = (last - first + kBlock - 1) / kBlock;
    const Index most = work < kWorthThreads ? 1 : static_cast<Index>(parts_.size());
    const Index used = std::min(most, std::max<Index>(blocks, 1));
    const Index per_row = work / std::max<Index>(last - first, 1);
    team_.run(used, blocks, [&](Index number, Index from, Index to) {
      Part &part = parts_[size(number)];
      std::optional<Poll> own;
      if (poll && number > 0) own.emplace(*stop, [] {});
      Poll *mine = own ? &*own : poll;
      for (Index k = from; k < to && !part.left; ++k) {
        const Index begin = first + k * kBlock, end = std::min(last, begin + kBlock);
        body(part, begin, end);
        part.left = mine && (*mine)(per_row * (end - begin));
      }
    });
    return std::none_of(parts_.begin(), parts_.end(),
                        [](const Part &part) { return part.left; });
  }

  void clear_parts() {
    for (Part &part : parts_) {
      part.first.assign(size(d_), 0.0);
      part.second.assign(size(d_), 0.0);
      part.ratio = part.cross = part.mu = part.loss = part.sum = 0.0;
      part.left = false;
    }
  }

  // body(part, block, begin, end) over all rows, which takes `work(block)`
  // multiply-adds.
  template <class Work, class Body>
  bool read(const Work &work, Poll &poll, const Stop &stop, const Body &body) {
    clear_parts();
    bool stays = true;
    data_.rows->visit([&](const RowBlock &rows) {
      stays = share(
          rows.begin(), rows.end(), work(rows), &poll, &stop,
          [&](Part &part, Index begin, Index end) { body(part, rows, begin, end); });
      return stays;
    });
    return stays;
  }
  static Index one_product(const RowBlock &rows) { return rows.entries(); }
  static Index two_products(const RowBlock &rows) { return 2 * rows.entries(); }

  // body(part, begin, end) over the variables of all rows.
  template <class Body>
  void each(Index per_row, const Body &body) {
    clear_parts();
    share(0, m_, per_row * m_, nullptr, nullptr, body);
  }

  void collect(Vec Part::*sum, Vec &out) const {
    out = parts_[0].*sum;
    for (std::size_t p = 1; p < parts_.size(); ++p)
      for (std::size_t j = 0; j < out.size(); ++j) out[j] += (parts_[p].*sum)[j];
  }

  bool margins(Poll &poll, const Stop &stop) {
    return read(one_product, poll, stop,
                [&](Part &, const RowBlock &rows, Index begin, Index end) {
                  outputs(rows, begin, end, w_, &z_[size(begin)]);
                });
  }

  // r, P and D from z, a and w.
  bool residual(Poll &poll, const Stop &stop) {
    const auto weigh = [&](Part &part, const RowBlock &rows, Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        part.p[i - begin] = data_.y[size(i)] * a_[size(i)];
      rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
    };
    if (!read(one_product, poll, stop, weigh)) return false;
    collect(&Part::first, r_);
    for (Index j = 0; j < d_; ++j)
      r_[size(j)] += data_.fixed[size(j)] - (j < penalised() ? w_[size(j)] : 0.0);
    summarise();
    return true;
  }

  void outputs(const RowBlock &rows, Index begin, Index end, const Vec &w,
               double *out) const {
    rows.dots(begin, end, w.data(), out);
    const std::int8_t *y = &data_.y[size(begin)];
    for (Index k = 0; k < end - begin; ++k) out[k] *= y[k];
  }
  // p <- y p, that sums() of the rows x_i are sums of y_i x_i.
  void sign(Index begin, Index end, double *p) const {
    const std::int8_t *y = &data_.y[size(begin)];
    for (Index k = 0; k < end - begin; ++k) p[k] *= y[k];
  }

  // theta, the matrix, Z'(theta (1 - z - delta a)) and Z'(theta (1/a - 1/b)).
  bool normal_equations(Poll &poll, const Stop &stop) {
    // The smooth losses have a delta of their own, and it may be smaller.
    const double proximal = loss_.curvature > 0.0 ? 0.0 : kProximal * data_.scale;
    for (Part &part : parts_) part.gram.clear(), part.single.clear();
    const auto cost = [](const RowBlock &rows) { return rows.gram_cost(); };
    if (!read(cost, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                if (part.gram.empty()) part.gram.assign(size(d_ * d_), 0.0);
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double theta =
                      1.0 / (delta_[k] + s_[k] * ra + v_[k] * rb + proximal);
                  theta_[k] = theta;
                  part.p[i - begin] = theta * (1.0 - z_[k] - delta_[k] * a_[k]);
                  part.q[i - begin] = theta * weight_[k] * (ra - rb);
                }
                sign(begin, end, part.p);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.p, part.first.data(), part.q,
                          part.second.data());
                const double *theta = &theta_[size(begin)];
                if (single_ && rows.panels())
                  single_gram(part, rows, begin, end, theta);
                else
                  rows.gram(begin, end, theta, part.gram.data(), part.room, algebra_);
              }))
      return false;
    for (Part &part : parts_) take_over(part);
    collect(&Part::first, first_);
    collect(&Part::second, second_);
    Vec &gram = parts_[0].gram;
    if (gram.empty()) gram.assign(size(d_ * d_), 0.0);
    for (std::size_t p = 1; p < parts_.size(); ++p) {
      const Vec &other = parts_[p].gram;
      for (std::size_t j = 0; j < other.size(); ++j) gram[j] += other[j];
    }
    return true;
  }

  void single_gram(Part &part, const RowBlock &rows, Index begin, Index end,
                   const double *theta) {
    if (part.single.empty())
      part.single.assign(size(d_ * d_), 0.0F), part.single_rows = 0;
    rows.gram(begin, end, theta, part.single.data(), part.single_room, algebra_);
    part.single_rows += end - begin;
    if (part.single_rows >= kSingleRows) take_over(part);
  }

  // What was added up in float32 goes to the sum in float64.
  void take_over(Part &part) const {
    if (part.single.empty() || part.single_rows == 0) return;
    for (Index i = 0; i < d_; ++i) {
      double *sum = &part.gram[size(i * d_)];
      float *more = &part.single[size(i * d_)];
      for (Index j = i; j < d_; ++j) {
        sum[j] += static_cast<double>(more[j]);
        more[j] = 0.0F;
      }
    }
    part.single_rows = 0;
  }

  // r as it is, after a step by a matrix in float32; what that added to it must be
  // little beside the gap, else the next matrices are in float64.
  void look_at_rounding(Poll &poll, const Stop &stop) {
    const Vec expected = r_;
    if (!residual(poll, stop)) return;
    double along = 0, norm = 0;
    for (std::size_t j = 0; j < size(d_); ++j) {
      const double off = r_[j] - expected[j];
      if (j < size(penalised())) {
        along += off * (w_[j] + expected[j]);
        norm += off * off;
      } else {
        norm += 2.0 * std::abs(off) * (1.0 + std::abs(w_[j]));
      }
    }
    single_ = std::abs(along) + 0.5 * norm <= kRoundingShare * (primal_ - dual_);
  }

  // Cholesky; false: not positive definite.
  bool factor() {
    Vec &gram = parts_[0].gram;
    double most = 0;
    for (Index j = 0; j < d_; ++j) {
      double &entry = gram[size(j * d_ + j)];
      entry += j < penalised() ? 1.0 : 0.0;
      most = std::max(most, entry);
    }
    for (Index j = 0; j < d_; ++j) gram[size(j * d_ + j)] *= 1.0 + ridge_;
    char lower = 'L';
    int n = static_cast<int>(d_), info = 0;
    if (!std::isfinite(most)) return false;
    algebra_.dpotrf(&lower, &n, gram.data(), &n, &info);
    return info == 0;
  }

  void backsolve(Vec &x) {
    char lower = 'L';
    int n = static_cast<int>(d_), one = 1, info = 0;
    algebra_.dpotrs(&lower, &n, &one, parts_[0].gram.data(), &n, x.data(), &n, &info);
  }

  // Along dw without targets: how far each variable can go (as a ratio), the sum of
  // the second-order terms, these terms in t and u, and Z' theta of what they cause.
  bool predict(double &ratio, double &cross, Poll &poll, const Stop &stop) {
    if (!read(two_products, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                const Index n = end - begin;
                outputs(rows, begin, end, dw_, &dz_[size(begin)]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double h = 1.0 - z_[k] - delta_[k] * a_[k];
                  const double da = theta_[k] * (h - dz_[k]), db = -f * da;
                  const double ds = -s_[k] - s_[k] * da * ra,
                               dv = -v_[k] - v_[k] * db * rb;
                  t_[k] = da * ds;
                  u_[k] = db * dv;
                  // -da/a and -ds/s = 1 + da/a, the same for b and v: the largest.
                  const double low = std::abs(da * ra + 0.5),
                               high = std::abs(db * rb + 0.5);
                  part.p[i - begin] = 0.5 + (low > high ? low : high);
                }
                part.ratio = std::max(part.ratio, largest(part.p, n));
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  part.p[i - begin] = t_[k] + u_[k];
                  part.q[i - begin] = theta_[k] * (t_[k] / a_[k] - u_[k] / b_[k]);
                }
                part.cross += total(part.p, n);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.q, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, third_);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      ratio = std::max(ratio, parts_[p].ratio);
      cross += parts_[p].cross;
    }
    return true;
  }

  // dz = Z dw, and the longest step that keeps all variables at 0 or above.
  bool direction(const Vec &dw, const Vec &t, const Vec &u, Vec &dz, double &length,
                 Poll &poll, const Stop &stop) {
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                outputs(rows, begin, end, dw, &dz[size(begin)]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double h =
                      1.0 - z_[k] - delta_[k] * a_[k] + t[k] * ra - u[k] * rb;
                  const double x = theta_[k] * (h - dz[k]) * ra;
                  const double y = -theta_[k] * (h - dz[k]) * rb;
                  const double p = t[k] * ra / s_[k];
                  const double q = u[k] * rb / v_[k];
                  const double low = -x > 1.0 + x - p ? -x : 1.0 + x - p;
                  const double high = f * (-y > 1.0 + y - q ? -y : 1.0 + y - q);
                  part.p[i - begin] = low > high ? low : high;
                }
                part.ratio = std::max(part.ratio, largest(part.p, end - begin));
              }))
      return false;
    double ratio = 1e-3;
    for (std::size_t p = 0; p < parts_.size(); ++p)
      ratio = std::max(ratio, parts_[p].ratio);
    length = 1.0 / ratio;
    return true;
  }

  // The steps of the row variables for the present dw.
  struct Steps {
    double da, db, ds, dv;
  };
  Steps steps(std::size_t k) const {
    const double f = bound_;
    const double ra = 1.0 / a_[k], rb = f / b_[k];
    const double h = 1.0 - z_[k] - delta_[k] * a_[k] + t_[k] * ra - u_[k] * rb;
    const double da = theta_[k] * (h - dz_[k]), db = -f * da;
    return {da, db, t_[k] * ra - s_[k] - s_[k] * da * ra,
            f * (u_[k] * rb - v_[k] - v_[k] * db * rb)};
  }

  // One of Gondzio's correctors: t2, u2 and dw2 for a step 0.3 longer.
  bool correct(double length, double target, Poll &poll, const Stop &stop) {
    const double trial = std::min(1.0, length + 0.3);
    const double low = 0.1 * target, high = 10.0 * target;
    const auto change = [=](double product, double weight) {
      const double aim = std::min(std::max(product, low * weight), high * weight);
      return std::max(aim - product, -high * weight);
    };
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const Steps step = steps(k);
                  part.p[i - begin] =
                      (a_[k] + trial * step.da) * (s_[k] + trial * step.ds);
                  part.q[i - begin] =
                      (b_[k] + trial * step.db) * (v_[k] + trial * step.dv);
                }
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double t = change(part.p[i - begin], weight_[k]);
                  const double u = f * change(part.q[i - begin], weight_[k]);
                  t2_[k] = t_[k] + t;
                  u2_[k] = u_[k] + u;
                  part.p[i - begin] = theta_[k] * (t / a_[k] - u / b_[k]);
                }
                sign(begin, end, part.p);
                rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, dw2_);
    backsolve(dw2_);
    for (std::size_t j = 0; j < size(d_); ++j) dw2_[j] += dw_[j];
    return true;
  }

  void move() {
    for (std::size_t j = 0; j < size(d_); ++j) {
      w_[j] += step_ * dw_[j];
      r_[j] *= 1.0 - step_;
    }
    each(16, [&](Part &, Index begin, Index end) {
      DUALGAP_INDEPENDENT
      for (std::size_t k = size(begin); k < size(end); ++k) {
        const Steps step = steps(k);
        a_[k] += step_ * step.da;
        b_[k] += step_ * step.db;
        s_[k] += step_ * step.ds;
        v_[k] += step_ * step.dv;
        z_[k] += step_ * dz_[k];
      }
    });
    summarise();
  }

  // mu, P and D; exact for the rows of the set if z and r are.
  void summarise() {
    // l(u) = b u - curvature b^2/2 at the best b.
    const double slope = loss_.slope, curvature = loss_.curvature;
    const bool kink = curvature == 0.0;
    const double inverse = kink ? 0.0 : 1.0 / curvature;
    each(8, [&](Part &part, Index begin, Index end) {
      const double f = bound_;
      const Index n = end - begin;
      const auto at = [&](const Vec &x) { return &x[size(begin)]; };
      const double *a = at(a_), *b = at(b_), *s = at(s_), *v = at(v_), *z = at(z_);
      const double *c = at(data_.cost), *delta = at(delta_);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        part.p[k] = a[k] * s[k] + f * b[k] * v[k];
        part.q[k] = a[k] - 0.5 * delta[k] * a[k] * a[k];
      }
      part.mu += total(part.p, n);
      part.sum += total(part.q, n);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        const double u = z[k] < 1.0 ? 1.0 - z[k] : 0.0;
        const double near = u * inverse < slope ? u * inverse : slope;
        const double best = kink ? slope : near;
        part.p[k] = c[k] * (best * u - 0.5 * curvature * best * best);
      }
      part.loss += total(part.p, n);
    });
    double loss = 0, sum = 0, norm = 0, linear = 0, dual = 0;
    mu_ = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      mu_ += parts_[p].mu;
      loss += parts_[p].loss;
      sum += parts_[p].sum;
    }
    mu_ /= products();
    for (std::size_t j = 0; j < size(d_); ++j) linear += w_[j] * data_.fixed[j];
    for (std::size_t j = 0; j < size(penalised()); ++j) {
      norm += w_[j] * w_[j];
      dual += (w_[j] + r_[j]) * (w_[j] + r_[j]);
    }
    primal_ = 0.5 * norm - linear + loss + data_.constant;
    dual_ = sum - 0.5 * dual + data_.constant;
    // What an unbalanced sum of the a_i y_i costs.
    if (free_bias_) dual_ -= std::abs(r_.back()) * (1.0 + std::abs(w_.back()));
  }

  Data data_;
  Loss loss_;
  bool free_bias_, bounded_, single_ = false;
  double bound_;  // 1; 0 where there is no upper bound, and b = 1, v stand idle
  LinearAlgebra algebra_;
  Index m_, d_;
  std::vector<Part> parts_;
  Team &team_;
  Vec delta_, weight_, a_, b_, s_, v_, z_, theta_;
  Vec t_, u_, dz_, t2_, u2_, dz2_;
  Vec w_, r_, dw_, dw2_, first_, second_, third_;
  double mu_ = 0, primal_ = 0, dual_ = 0, step_ = 0, ridge_ = kRidge;
  int iterations_ = 0, correctors_ = 0;
};

}  // namespace dualgap
