// Base of methods that take Newton steps over some rows of a problem: threaded passes
// over these rows, and the d x d system  (J + Z' diag(theta) Z) x = b.  Z has the rows
// y_i x_i; J = I, with a 0 at the end for an unpenalised bias. Passes and the system
// see centred rows (centring.hpp): a point is w = T u, and steps are for u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "losses.hpp"
#include "row_blocks.hpp"
#include "rows.hpp"
#include "shared_rows.hpp"
#include "stop.hpp"
#include "sums.hpp"

namespace dualgap {

struct NewtonTuning {
  // First and largest ridge, relative to each entry of the diagonal: the first is some
  // hundred roundings, and a matrix that needs more than the last is singular.
  static constexpr double kRidge = 1e-13, kLargestRidge = 1e-6;
  // From kWorthSingle features on the matrix dominates the cost and is summed in
  // float32; after kSingleRows rows the sum is added to a float64 sum.
  static constexpr Index kWorthSingle = 128, kSingleRows = 4096;
  // Multiply-adds that are worth waking threads: a tenth of a millisecond.
  static constexpr Index kWorthThreads = 400'000;
  // Most trials of a search: 60 halvings of its interval use up float64.
  static constexpr int kTrials = 60;
  // Growth of the interval until it holds the minimiser.
  static constexpr double kGrowth = 4.0;
};

// Returns the t, up to `most`, where the slope of P along a step is at most `enough`.
// at(t) returns the first and the second derivative; the first one rises, and is linear
// between the points where rows change their kind. Newton steps from `t` are
// safeguarded by an interval that holds the minimiser.
template <class At>
double search_along(double t, double most, double enough, const At &at) {
  double low = 0.0, high = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < NewtonTuning::kTrials; ++trial) {
    const auto [slope, bend] = at(t);
    if (std::abs(slope) <= enough || (slope < 0.0 && t == most)) break;
    (slope < 0.0 ? low : high) = t;
    double next = t - slope / bend;
    if (!(next > low && next < high))
      next = 0.5 * (low + std::min(high, NewtonTuning::kGrowth * t));
    next = std::min(next, most);
    if (next == t) break;
    t = next;
  }
  return t;
}

// Outcome of an iteration: a step was made, the method was told to stop, or the matrix
// has no factor.
enum class Outcome { kStepped, kLeft, kSingular };

// Some rows of a problem. The duals of the other rows are fixed at a bound.
struct SomeRows {
  std::unique_ptr<RowSet> rows;
  Vector<std::int8_t> y;
  Vec cost;         // all positive
  Vec fixed;        // f, the sum of U_i y_i x_i over the rows fixed at U_i
  double constant;  // the sum of U_i - delta_i U_i^2/2 over the rows fixed at U_i
  Vec offset = {};  // o_i; empty if all are 0
  const Centring *centring = nullptr;  // chosen before, for many problems
};

// Returns the columns to centre, chosen by the first block.
inline Centring centring_of(const RowSet &set) {
  Centring chosen;
  set.visit([&](const RowBlock &rows) {
    rows.sample(chosen);
    return false;
  });
  return chosen;
}

// Buffers and sums of one thread. Derived classes add their own sums, and clear(d) to
// reset them.
struct PassPart {
  double p[kBlock], q[kBlock];
  Vec first, gram, room;
  FloatVec single, single_room;
  Index single_rows = 0;
  bool left;
};

template <class Part>
class NewtonSystem : protected NewtonTuning {
 public:
  Index width() const { return d_; }
  Index rows() const { return m_; }

 protected:
  NewtonSystem(SomeRows data, bool free_bias, Team &threads,
               const LinearAlgebra &algebra)
      : data_(std::move(data)),
        free_bias_(free_bias),
        m_(data_.rows->rows()),
        d_(data_.rows->width()),
        parts_(threads.size()),
        team_(threads),
        algebra_(algebra) {}

  Index penalised() const { return d_ - free_bias_; }

  // Chooses the columns to centre, before the first pass.
  void centre() {
    centring_ = data_.centring ? *data_.centring : centring_of(*data_.rows);
    data_.rows->centre(centring_.any() ? &centring_ : nullptr);
  }
  // u of the point w, and w of u.
  Vec seen_of(Vec w) const {
    centring_.enter(w);
    return w;
  }
  Vec point_of(Vec u) const {
    centring_.leave(u);
    return u;
  }

  // Calls body(part, begin, end) for blocks of the rows `first` to `last`. The number
  // of parts pays for `work` multiply-adds. Returns false if told to stop.
  using Body = std::function<void(Part &, Index begin, Index end)>;
  bool share(Index first, Index last, Index work, Poll &poll, const Stop &stop,
             const Body &body) {
    const Index blocks = (last - first + kBlock - 1) / kBlock;
    const Index most = work < kWorthThreads ? 1 : parts_.size();
    const Index used = std::min(most, std::max<Index>(blocks, 1));
    const Index per_row = work / std::max<Index>(last - first, 1);
    const auto visit = [&](Index number, Index from, Index to, Poll &mine) {
      Part &part = parts_[number];
      for (Index k = from; k < to && !part.left; ++k) {
        const Index begin = first + k * kBlock, end = std::min(last, begin + kBlock);
        body(part, begin, end);
        part.left = mine(per_row * (end - begin));
      }
    };
    polled_parts(team_, used, blocks, poll, stop, visit);
    return std::none_of(parts_.begin(), parts_.end(),
                        [](const Part &part) { return part.left; });
  }

  void clear_parts() {
    for (Part &part : parts_) {
      part.first.assign(d_, 0.0);
      part.left = false;
      part.clear(d_);
    }
  }

  // Calls body(part, block, begin, end) for all rows. A block takes `work(block)`
  // multiply-adds.
  using BlockBody = std::function<void(Part &, const RowBlock &, Index, Index)>;
  bool read(Index (*work)(const RowBlock &), Poll &poll, const Stop &stop,
            const BlockBody &body) {
    clear_parts();
    bool stays = true;
    data_.rows->visit([&](const RowBlock &rows) {
      stays = share(
          rows.begin(), rows.end(), work(rows), poll, stop,
          [&](Part &part, Index begin, Index end) { body(part, rows, begin, end); });
      return stays;
    });
    return stays;
  }
  static Index one_product(const RowBlock &rows) { return rows.entries(); }
  static Index two_products(const RowBlock &rows) { return 2 * rows.entries(); }
  static Index gram_cost(const RowBlock &rows) { return rows.gram_cost(); }

  // Calls body(part, begin, end) for the variables of all rows.
  void each(Index per_row, const Body &body) {
    clear_parts();
    const Stop never;
    Poll poll(never, [] {});
    share(0, m_, per_row * m_, poll, never, body);
  }

  void collect(Vec Part::*sum, Vec &out) const {
    out = parts_[0].*sum;
    for (Index p = 1; p < parts_.size(); ++p)
      for (Index j = 0; j < out.size(); ++j) out[j] += (parts_[p].*sum)[j];
  }

  // out_k = y_k x_k.u
  void outputs(const RowBlock &rows, Index begin, Index end, const Vec &u,
               double *out) const {
    rows.dots(begin, end, u.data(), out);
    sign(begin, end, out);
  }
  // z_k = y_k x_k.u - o_k
  void margins_at(const RowBlock &rows, Index begin, Index end, const Vec &u,
                  double *out) const {
    outputs(rows, begin, end, u, out);
    if (data_.offset.empty()) return;
    const double *o = &data_.offset[begin];
    for (Index k = 0; k < end - begin; ++k) out[k] -= o[k];
  }
  // p <- p + o a, for terms of D.
  void add_offsets(Index begin, Index end, const double *a, double *p) const {
    if (data_.offset.empty()) return;
    const double *o = &data_.offset[begin];
    DUALGAP_INDEPENDENT
    for (Index k = 0; k < end - begin; ++k) p[k] += o[k] * a[k];
  }
  // p <- y p, so that sums() adds up y_i x_i instead of x_i.
  void sign(Index begin, Index end, double *p) const {
    const std::int8_t *y = &data_.y[begin];
    for (Index k = 0; k < end - begin; ++k) p[k] *= y[k];
  }

  void clear_gram() {
    for (Part &part : parts_) part.gram.clear(), part.single.clear();
  }

  // Adds the rows' share of Z' diag(theta) Z, in float32 if `single` and BLAS is used.
  void add_gram(Part &part, const RowBlock &rows, Index begin, Index end,
                const double *theta, bool single) {
    if (part.gram.empty()) part.gram.assign(d_ * d_, 0.0);
    if (!single || !rows.panels()) {
      rows.gram(begin, end, theta, part.gram.data(), part.room, algebra_);
      return;
    }
    if (part.single.empty()) part.single.assign(d_ * d_, 0.0F), part.single_rows = 0;
    rows.gram(begin, end, theta, part.single.data(), part.single_room, algebra_);
    part.single_rows += end - begin;
    if (part.single_rows >= kSingleRows) take_over(part);
  }

  // Adds the float32 sum to the float64 sum.
  void take_over(Part &part) const {
    if (part.single.empty() || part.single_rows == 0) return;
    for (Index i = 0; i < d_; ++i) {
      double *sum = &part.gram[i * d_];
      float *more = &part.single[i * d_];
      for (Index j = i; j < d_; ++j) {
        sum[j] += static_cast<double>(more[j]);
        more[j] = 0.0F;
      }
    }
    part.single_rows = 0;
  }

  void sum_gram() {
    for (Part &part : parts_) take_over(part);
    Vec &gram = parts_[0].gram;
    if (gram.empty()) gram.assign(d_ * d_, 0.0);
    for (Index p = 1; p < parts_.size(); ++p) {
      const Vec &other = parts_[p].gram;
      for (Index j = 0; j < other.size(); ++j) gram[j] += other[j];
    }
  }

  // Cholesky factor of T'JT + the sum, with `floor` times the largest entry for a bias
  // that no row determines. Returns false if this is not positive definite.
  bool factor(double floor = 0.0) {
    Vec &gram = parts_[0].gram;
    if (!free_bias_) centring_.add_penalty(gram);
    double most = 0;
    for (Index j = 0; j < d_; ++j) {
      double &entry = gram[j * d_ + j];
      entry += j < penalised() ? 1.0 : 0.0;
      most = std::max(most, entry);
    }
    for (Index j = 0; j < d_; ++j) {
      double &entry = gram[j * d_ + j];
      entry = entry == 0.0 ? floor * most : entry + ridge_ * entry;
    }
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

  SomeRows data_;
  bool free_bias_;
  Index m_, d_;
  Vector<Part> parts_;
  Team &team_;
  LinearAlgebra algebra_;
  Centring centring_;
  double ridge_ = kRidge;
};

}  // namespace dualgap
