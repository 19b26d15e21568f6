// A point of the dual in its box, and its values: the problem of block.hpp without its
// working sets. BlockSolver, Folds and Whole choose these.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../certify.hpp"
#include "../threads.hpp"
#include "inner_steps.hpp"

namespace dualgap {

struct BlockProblem {
  bool squared = false;   // the loss
  Vec y, cost, diagonal;  // labels, c_i, k(x_i, x_i)
  Vec p;                  // linear term
  double epsilon = 0.0, total = 0.0;
  // -below C_i <= c_i <= above C_i, whatever y_i; then alpha is c
  bool two_sided = false;
  bool two_sums = false;  // `total` is the sum where y_i = 1, -total elsewhere
  double above = 1.0, below = 1.0;
};

// Results of a scan over all rows.
struct BlockScan {
  double violation = 0.0;  // largest v that may rise minus smallest v that may fall
  double threshold = 0.0;  // half way between these two: the bias of the hinge
  // With two sums the violation is the worse group's, and the thresholds of the
  // groups are `threshold` plus and minus this.
  double apart = 0.0;
  std::array<double, 2> top{}, bottom{};  // largest and smallest v of each group
  double primal = 0.0, dual = 0.0;        // for this F, which may have drifted
};

class Box {
 public:
  // The point 0. F has room for `stride` entries.
  Box(BlockProblem problem, Index n, Index stride, Team &team)
      : problem_(std::move(problem)),
        n_(n),
        variables_(problem_.y.size()),
        c_(variables_, 0.0),
        lo_(variables_, 0.0),
        hi_(variables_, 0.0),
        F_(stride, 0.0),
        team_(team) {
    bound();
    problem_.total = on_grid(problem_.total);
    const auto zero = [](double p) { return p == 0.0; };
    scalable_ =
        problem_.two_sums && std::all_of(problem_.p.begin(), problem_.p.end(), zero);
  }

  const BlockScan &last_scan() const { return scan_; }
  Index n() const { return n_; }
  Vec alpha() const {
    Vec out(n_);
    for (Index i = 0; i < n_; ++i)
      out[i] = paired() ? c_[i] + c_[i + n_] + 0.0 : problem_.y[i] * c_[i] + 0.0;
    return out;
  }
  const Vec &gradient() const { return F_; }
  // Sets c_i = y_i alpha_i for an alpha in the box. With a free bias c is rounded to
  // the grid and its sum is corrected; for a sum of 0 rows of the heavier sign are
  // lowered.
  void set_alpha(const double *alpha) {
    for (Index i = 0; i < variables_; ++i) {
      const double a = problem_.squared ? alpha[i] : on_grid(alpha[at(i)]);
      c_[i] = std::clamp(paired() ? a : problem_.y[i] * a, lo_[i], hi_[i]);
    }
    if (paired()) fill_pairs();
    for (int group = 0; group <= problem_.two_sums; ++group) correct(group);
  }

 protected:
  // The point 0 of as many variables as there are rows.
  Box(const BlockProblem &problem, Team &team)
      : Box(problem, problem.y.size(), problem.y.size(), team) {}

  static constexpr double kInf = std::numeric_limits<double>::infinity();
  double on_grid(double x) const { return std::trunc(x / unit_) * unit_; }

  // Sets the grid and the box of these costs.
  void bound() {
    double largest_cost = 0.0;
    for (const double cost : problem_.cost) largest_cost = std::max(largest_cost, cost);
    unit_ = largest_cost > 0.0 ? std::ldexp(1.0, std::ilogb(largest_cost) - 52) : 1.0;
    for (Index i = 0; i < variables_; ++i) {
      const double cost = problem_.cost[i];
      if (!(cost > 0.0)) continue;
      const auto bound = [&](double side) {
        return problem_.squared ? kInf : on_grid(side * cost);
      };
      if (problem_.two_sided || problem_.y[i] > 0.0) hi_[i] = bound(problem_.above);
      if (problem_.two_sided || problem_.y[i] < 0.0) lo_[i] = -bound(problem_.below);
    }
  }

  // Makes the variable i the one at place s of a working set, with v on its side of 0.
  template <class T>
  void load(Index i, Index s, InnerOf<T> &inner) const {
    const double lead = v(i) - threshold(i);
    const bool positive = c_[i] > 0.0 || (c_[i] == 0.0 && lead > 0.0);
    inner.epsilon = problem_.epsilon;
    inner.shift[s] = positive ? -problem_.epsilon : problem_.epsilon;
    inner.v[s] = static_cast<T>(lead + inner.shift[s]);
    inner.c[s] = c_[i];
    inner.lo[s] = lo_[i];
    inner.hi[s] = hi_[i];
  }

  // Returns v_i. At the optimum the largest v that may rise and the smallest v that may
  // fall meet (hinge), or are 0 (squared hinge).
  double v(Index i) const {
    const double v = problem_.p[i] - F_[at(i)];
    return problem_.squared ? v - bias_ - delta(i) * c_[i] : v;
  }
  // Return v_i for a row that may rise or fall, with the derivative of -epsilon |c_i|
  // on that side.
  double v_rising(Index i) const {
    return v(i) + (c_[i] < 0.0 ? problem_.epsilon : -problem_.epsilon);
  }
  double v_falling(Index i) const {
    return v(i) + (c_[i] > 0.0 ? -problem_.epsilon : problem_.epsilon);
  }
  double delta(Index i) const { return 0.5 / problem_.cost[i]; }
  // Whether each row has two variables, and the row of a variable.
  bool paired() const { return variables_ > n_; }
  Index at(Index i) const { return i < n_ ? i : i - n_; }
  int group(Index i) const { return problem_.two_sums && problem_.y[i] < 0.0; }
  double threshold(Index i) const {
    return scan_.threshold + (group(i) == 0 ? scan_.apart : -scan_.apart);
  }
  bool may_rise(Index i) const { return c_[i] < hi_[i]; }
  bool may_fall(Index i) const { return c_[i] > lo_[i]; }

  void scan() {
    Sum total;
    if (problem_.squared)
      for (Index i = 0; i < n_; ++i) total += c_[i];
    bias_ = total.value();
    struct Ends {
      double top = -kInf, bottom = kInf;
    };
    using Groups = std::array<Ends, 2>;
    const auto ends = [&](Index begin, Index end) {
      Groups groups;
      for (Index i = begin; i < end; ++i) {
        if (!(problem_.cost[i] > 0.0)) continue;
        Ends &of = groups[group(i)];
        if (may_rise(i)) of.top = std::max(of.top, v_rising(i));
        if (may_fall(i)) of.bottom = std::min(of.bottom, v_falling(i));
      }
      return groups;
    };
    Groups all;
    for (const Groups &of : by_pieces<Groups>(ends))
      for (int g = 0; g < 2; ++g) {
        all[g].top = std::max(all[g].top, of[g].top);
        all[g].bottom = std::min(all[g].bottom, of[g].bottom);
      }
    scan_ = BlockScan{};
    std::array<double, 2> thresholds{};
    for (int g = 0; g <= problem_.two_sums; ++g) {
      const auto [top, bottom] = all[g];
      if (problem_.squared) {
        scan_.violation = std::max(top, 0.0) - std::min(bottom, 0.0);
      } else if (std::isfinite(top) && std::isfinite(bottom)) {
        scan_.violation = std::max(scan_.violation, top - bottom);
        thresholds[g] = 0.5 * (top + bottom);
      } else {  // rows of one class only, or no row
        thresholds[g] = std::isfinite(top) ? top : std::isfinite(bottom) ? bottom : 0.0;
      }
    }
    for (int g = 0; g < 2; ++g) {
      scan_.top[g] = all[g].top;
      scan_.bottom[g] = all[g].bottom;
    }
    scan_.threshold = thresholds[0];
    if (problem_.two_sums) {
      scan_.threshold = 0.5 * (thresholds[0] + thresholds[1]);
      scan_.apart = 0.5 * (thresholds[0] - thresholds[1]);
    }
    evaluate();
  }

  void evaluate() {
    struct Terms {
      double norm = 0.0, sum = 0.0, loss = 0.0, diagonal = 0.0;
    };
    const auto terms = [&](Index begin, Index end) {
      Terms of;
      for (Index i = begin; i < end; ++i) {
        const double c = c_[i], cost = problem_.cost[i];
        // The loss of the row per unit of cost: the maximum over its box of
        // (p - F - b) c - epsilon |c|, divided by the cost.
        const double F = F_[at(i)];
        const double r =
            problem_.p[i] - (F + (problem_.squared ? bias_ : threshold(i)));
        const double above =
            hi_[i] > 0.0 ? problem_.above * (r - problem_.epsilon) : 0.0;
        const double below =
            lo_[i] < 0.0 ? problem_.below * (-r - problem_.epsilon) : 0.0;
        const double u = std::max({0.0, above, below});
        of.norm += c * F;
        of.sum += problem_.p[i] * c - problem_.epsilon * std::abs(c);
        of.loss += cost * (problem_.squared ? u * u : u);
        if (problem_.squared && c != 0.0) of.diagonal += delta(i) * c * c;
      }
      return of;
    };
    Terms all;
    for (const Terms &of : by_pieces<Terms>(terms)) {
      all.norm += of.norm;
      all.sum += of.sum;
      all.loss += of.loss;
      all.diagonal += of.diagonal;
    }
    if (problem_.squared) all.norm += bias_ * bias_;
    const double b = problem_.squared    ? bias_
                     : problem_.two_sums ? 2.0 * scan_.apart
                                         : scan_.threshold;
    scan_.primal = 0.5 * all.norm + all.loss + b * problem_.total;
    if (scalable_) scan_.primal = std::min(scan_.primal, 0.0);
    scan_.dual = all.sum - 0.5 * (all.norm + all.diagonal);
  }

  // Returns the results of body(begin, end) for pieces of the rows that do not depend
  // on the number of threads.
  template <class Result, class Body>
  Vector<Result> by_pieces(const Body &body) {
    const Index pieces = (variables_ + kRows - 1) / kRows;
    Vector<Result> results(pieces);
    const Index parts = std::clamp<Index>(pieces, 1, team_.shares());
    team_.run(parts, pieces, [&](Index, Index begin, Index end) {
      for (Index k = begin; k < end; ++k)
        results[k] = body(k * kRows, std::min((k + 1) * kRows, variables_));
    });
    return results;
  }

  // Moves the variables of a group to the right sum. A sum far from 0 has fewer digits
  // than the grid, so repeat. Stop if all are at their bounds, whose sum may be too
  // small by a rounding.
  void correct(int group) {
    const double total = group == 0 ? problem_.total : -problem_.total;
    for (bool moved = !problem_.squared; moved;) {
      Sum sum;
      sum += -total;
      for (Index i = 0; i < variables_; ++i)
        if (this->group(i) == group) sum += c_[i];
      double off = sum.value();
      if (std::isnan(off)) throw std::invalid_argument("a start is not a number");
      moved = false;
      for (Index i = 0; i < variables_ && off != 0.0; ++i) {
        if (this->group(i) != group) continue;
        double &c = c_[i];
        const double end = total == 0.0 ? 0.0 : (off > 0.0 ? lo_ : hi_)[i];
        if ((c - end) * off <= 0.0) continue;
        const double t = std::copysign(std::min(std::abs(c - end), std::abs(off)), off);
        c -= t;
        off -= t;
        moved = true;
      }
    }
  }

 private:
  // Rows of a piece of a scan: they stay in the first-level cache, and are worth waking
  // a thread.
  static constexpr Index kRows = 8192;

  // Raises the two variables of rows together, up to the sum, where F stays the same.
  void fill_pairs() {
    Sum sum;
    sum += problem_.total;
    for (Index i = 0; i < n_; ++i) sum += -c_[i];
    double lack = sum.value();
    for (Index i = 0; i < n_ && lack > 0.0; ++i) {
      const double t =
          std::min({hi_[i] - c_[i], c_[i + n_] - lo_[i + n_], on_grid(lack)});
      c_[i] += t;
      c_[i + n_] -= t;
      lack -= t;
    }
  }

 protected:
  BlockProblem problem_;
  Index n_, variables_;
  double unit_ = 1.0, bias_ = 0.0;
  bool scalable_ = false;  // whether P of the model 0 is 0: it may be multiplied by 0
  Vec c_, lo_, hi_, F_;
  BlockScan scan_;

 private:
  Team &team_;
};

}  // namespace dualgap
