// Block solver for small problems with the hinge and a free bias, in float64.
//
// Problem    the first one of block.hpp
// Update     the working set has all rows between their bounds, and all others that
//            violate the optimality conditions. Pair steps (inner_steps.hpp) solve its
//            problem to a tenth of the violation. Then F = K c is computed again.
// Guarantee  as in block.hpp
// Cost       8 n^2 bytes, and as much for the largest working set; three passes over
//            the working set per step
// Source     as in block.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "inner_steps.hpp"
#include "kernel_rows.hpp"

namespace dualgap {

// When to end: once the gap is at most `goal` times D. Work is counted in entries of
// kernel rows. After the gap has met `tol` or `atol`, it may grow to twice as much plus
// `free`. It is never more than `limit`.
struct WholeSettings {
  double tol, atol, goal, free, limit;
  Index epochs;
};

// State after an epoch: P and D for F, and the steps so far.
struct WholeEpoch {
  double primal, dual;
  Index steps;
};

// Memory for doubles that are written before they are read.
class Buffer {
 public:
  explicit Buffer(Index size)
      : data_(AlignedAllocator<double>().allocate(static_cast<std::size_t>(size)),
              Free{static_cast<std::size_t>(size)}) {}
  double *data() const { return data_.get(); }

 private:
  struct Free {
    std::size_t size;
    void operator()(double *p) const { AlignedAllocator<double>().deallocate(p, size); }
  };
  std::unique_ptr<double, Free> data_;
};

class Whole {
 public:
  // `signs` and `cost` have an entry for each of the n rows.
  Whole(std::vector<double> signs, std::vector<double> cost)
      : y_(std::move(signs)),
        cost_(std::move(cost)),
        c_(y_.size(), 0.0),
        lo_(y_.size(), 0.0),
        hi_(y_.size(), 0.0),
        F_(y_.size(), 0.0),
        K_(n() * n()) {
    double largest = 0.0;
    for (const double c : cost_) largest = std::max(largest, c);
    unit_ = largest > 0.0 ? std::ldexp(1.0, std::ilogb(largest) - 52) : 1.0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double bound = std::trunc(cost_[i] / unit_) * unit_;
      (y_[i] > 0.0 ? hi_ : lo_)[i] = y_[i] * bound;
    }
  }

  Index n() const { return static_cast<Index>(y_.size()); }
  // Returns row i of K, to be filled with n values.
  double *row(Index i) { return K_.data() + i * n(); }
  double alpha(Index i) const { return y_[at(i)] * c_[at(i)] + 0.0; }
  double c(Index i) const { return c_[at(i)]; }
  // sums_j += sum_i c_i k_ij over the i with c_i > 0, or c_i < 0, as many terms at a
  // time as the tile adds.
  void add_terms(bool positive, double *sums) const {
    constexpr int kRows = tile::kLeastRows;
    const std::vector<double> zeros(y_.size(), 0.0);
    double by[kRows] = {};
    const double *from[kRows];
    std::fill(from, from + kRows, zeros.data());
    int count = 0;
    const auto add = [&] {
      for (Index j = 0; j < n(); ++j) {
        double sum = 0.0;
        for (int r = 0; r < kRows; ++r) sum += by[r] * from[r][j];
        sums[j] += sum;
      }
      std::fill(by, by + kRows, 0.0);
      count = 0;
    };
    for (Index i = 0; i < n(); ++i) {
      if (positive ? !(c(i) > 0.0) : !(c(i) < 0.0)) continue;
      by[count] = c(i);
      from[count] = K_.data() + i * n();
      if (++count == kRows) add();
    }
    if (count > 0) add();
  }

  // Returns one entry per epoch. The first one is the state before any step. `inner` is
  // room for the working sets.
  std::vector<WholeEpoch> solve(const WholeSettings &settings, InnerOf<double> &inner,
                                const Stop &stop, Poll &poll) {
    std::vector<WholeEpoch> epochs;
    Index steps = 0, idle = 0;
    double work = 0.0, allowed = settings.limit, best = kInf;
    for (;;) {
      scan();
      epochs.push_back({primal_, dual_, steps});
      const double gap = primal_ - dual_;
      if (allowed == settings.limit &&
          gap <= std::max(settings.tol * dual_, settings.atol))
        allowed = std::min(settings.limit, 2.0 * work + settings.free);
      idle = gap < best ? 0 : idle + 1;
      best = std::min(best, gap);
      if (gap <= settings.goal * dual_ || !(top_ > bottom_) || !(work < allowed) ||
          idle > kIdle || steps >= most_steps() ||
          static_cast<Index>(epochs.size()) > settings.epochs)
        return epochs;
      const double q = static_cast<double>(choose());
      const Index left = static_cast<Index>((allowed - work) / q) + 1;
      const Index made = advance(inner, std::min(left, most_steps() - steps), poll);
      if (made == 0 || stop.requested() || stop.expired()) return epochs;
      steps += made;
      work += static_cast<double>(made) * q;
    }
  }

 private:
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kInner = 0.1;
  static constexpr Index kIdle = 3;  // epochs in a row that do not lower the gap
  // Badly conditioned problems need more steps, but other methods are faster there.
  Index most_steps() const { return std::max<Index>(n() * n(), 10'000); }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  // Computes F = K c, the largest v that may rise, the least v that may fall, P and D.
  void scan() {
    std::fill(F_.begin(), F_.end(), 0.0);
    for (Index i = 0; i < n(); ++i) {
      const double c = c_[at(i)];
      if (c == 0.0) continue;
      const double *K = row(i);
      for (Index j = 0; j < n(); ++j) F_[at(j)] += c * K[j];
    }
    top_ = -kInf;
    bottom_ = kInf;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      if (c_[i] < hi_[i]) top_ = std::max(top_, y_[i] - F_[i]);
      if (c_[i] > lo_[i]) bottom_ = std::min(bottom_, y_[i] - F_[i]);
    }
    const double bias = 0.5 * (top_ + bottom_);
    double norm = 0.0, sum = 0.0, loss = 0.0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      norm += c_[i] * F_[i];
      sum += y_[i] * c_[i];
      loss += cost_[i] * std::max(0.0, 1.0 - y_[i] * (F_[i] + bias));
    }
    primal_ = 0.5 * norm + loss;
    dual_ = sum - 0.5 * norm;
  }

  // Chooses the working set: the rows between their bounds, and the others that violate
  // the optimality conditions. Returns its size.
  Index choose() {
    who_.clear();
    for (Index i = 0; i < n(); ++i) {
      const double v = y_[at(i)] - F_[at(i)];
      const bool rises = c_[at(i)] < hi_[at(i)], falls = c_[at(i)] > lo_[at(i)];
      if ((rises && falls) || (rises && v > bottom_) || (falls && v < top_))
        who_.push_back(i);
    }
    return static_cast<Index>(who_.size());
  }

  // Makes pair steps on the working set. Returns their number.
  Index advance(InnerOf<double> &inner, Index most, Poll &poll) {
    const Index q = static_cast<Index>(who_.size());
    inner.reset(q);
    const double bias = 0.5 * (top_ + bottom_);
    for (Index s = 0; s < inner.q; ++s) inner.s[at(s)] = 1.0;
    for (Index s = 0; s < q; ++s) {
      const std::size_t i = at(who_[at(s)]);
      const double *K = row(who_[at(s)]);
      double *H = inner.H.data() + s * inner.stride();
      if (q == n())
        std::copy_n(K, q, H);
      else
        for (Index t = 0; t < q; ++t) H[t] = K[who_[at(t)]];
      inner.s[at(s)] = H[s];
      inner.c[at(s)] = c_[i];
      inner.lo[at(s)] = lo_[i];
      inner.hi[at(s)] = hi_[i];
      inner.v[at(s)] = y_[i] - F_[i] - bias;
    }
    const Index made = pair_steps(inner, unit_, kInner * (top_ - bottom_), most, poll);
    for (Index s = 0; s < q; ++s) c_[at(who_[at(s)])] = inner.c[at(s)];
    return made;
  }

  std::vector<double> y_, cost_, c_, lo_, hi_, F_;
  Buffer K_;
  std::vector<Index> who_;
  double unit_ = 1.0, top_ = 0.0, bottom_ = 0.0, primal_ = 0.0, dual_ = 0.0;
};

// Solutions of pairs, one after another, each with the rows of the first class first:
// dual variables, scores sum_j c_j k_ij in float64, and bounds on their errors as in
// KernelRows::times, infinity for other kernels.
struct PairSolutions {
  double *alpha, *scores, *errors;
  std::vector<std::vector<WholeEpoch>> epochs;
};

// Solves the problems of all pairs of classes over one kernel matrix. Class k has the
// rows bounds[k] to bounds[k + 1] - 1. Returns false if told to stop.
inline bool solve_pairs(const KernelRows &rows, const std::vector<Index> &bounds,
                        const double *cost, bool first_positive,
                        const WholeSettings &settings, PairSolutions &out,
                        const Stop &stop, Poll &poll) {
  // Every class has its rows, and the columns from its own first row on.
  const std::size_t classes = bounds.size() - 1;
  const Index n = rows.n();
  std::vector<Index> stride(classes), begin(classes + 1, 0);
  for (std::size_t a = 0; a < classes; ++a) {
    stride[a] = (n - bounds[a] + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
    begin[a + 1] = begin[a] + (bounds[a + 1] - bounds[a]) * stride[a];
  }
  const Buffer values(std::max<Index>(begin[classes], 1));
  for (std::size_t a = 0; a < classes; ++a)
    if (!rows.table(bounds[a], bounds[a + 1], bounds[a], n, values.data() + begin[a],
                    stride[a], poll))
      return false;
  InnerOf<double> inner;
  for (std::size_t a = 0; a < classes; ++a)
    for (std::size_t b = a + 1; b < classes; ++b) {
      const Index first = bounds[a + 1] - bounds[a], second = bounds[b + 1] - bounds[b];
      const double sign = first_positive ? 1.0 : -1.0;
      std::vector<double> y(static_cast<std::size_t>(first), sign);
      y.resize(static_cast<std::size_t>(first + second), -sign);
      std::vector<double> c(cost + bounds[a], cost + bounds[a + 1]);
      c.insert(c.end(), cost + bounds[b], cost + bounds[b + 1]);
      Whole problem(std::move(y), std::move(c));
      const double *across = values.data() + begin[a] + bounds[b] - bounds[a];
      for (Index s = 0; s < first; ++s) {
        std::copy_n(values.data() + begin[a] + s * stride[a], first, problem.row(s));
        std::copy_n(across + s * stride[a], second, problem.row(s) + first);
      }
      constexpr Index kSide = 16;  // of the blocks that are transposed
      for (Index s0 = 0; s0 < second; s0 += kSide)
        for (Index t0 = 0; t0 < first; t0 += kSide)
          for (Index s = s0; s < std::min(s0 + kSide, second); ++s)
            for (Index t = t0; t < std::min(t0 + kSide, first); ++t)
              problem.row(first + s)[t] = across[t * stride[a] + s];
      for (Index s = 0; s < second; ++s)
        std::copy_n(values.data() + begin[b] + s * stride[b], second,
                    problem.row(first + s) + first);
      out.epochs.push_back(problem.solve(settings, inner, stop, poll));
      if (stop.requested() || stop.expired()) return false;
      const Index m = first + second;
      std::vector<double> both(static_cast<std::size_t>(2 * m), 0.0);
      std::vector<Order> who(static_cast<std::size_t>(m));
      double *up = both.data(), *down = both.data() + m;
      problem.add_terms(true, up);
      problem.add_terms(false, down);
      KernelRows::Terms terms;
      for (Index s = 0; s < m; ++s) {
        const Index i = s < first ? bounds[a] + s : bounds[b] + (s - first);
        who[static_cast<std::size_t>(s)] = static_cast<Order>(i);
        out.alpha[s] = problem.alpha(s);
        if (rows.bounded() && problem.c(s) != 0.0)
          rows.note(terms, static_cast<Order>(i), problem.c(s));
      }
      if (rows.bounded()) {
        std::fill(out.scores, out.scores + m, 0.0);
        std::fill(out.errors, out.errors + m, 0.0);
        rows.add_bounded(terms, Way::kDouble, {who.data(), m}, up, down, out.scores,
                         out.errors);
      } else {
        for (Index s = 0; s < m; ++s) out.scores[s] = up[s] + down[s];
        std::fill(out.errors, out.errors + m, std::numeric_limits<double>::infinity());
      }
      out.alpha += m;
      out.scores += m;
      out.errors += m;
    }
  return true;
}

}  // namespace dualgap
