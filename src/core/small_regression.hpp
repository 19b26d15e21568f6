// A small regression problem, solved and proved in one call.
//
// Problem    as in epochs/regression.hpp, from b = 0
// Update     the epochs of epochs/regression.hpp. Once what they saw of the gap is near
//            the goal, w is recomputed from b and P and D are evaluated; if the gap is
//            larger than it seemed, all rows are visited again.
// Guarantee  as in epochs/regression.hpp
// Cost       as in epochs/regression.hpp; 14 bytes per row
// Source     as in epochs/regression.hpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "certify.hpp"
#include "epoch.hpp"
#include "epochs/regression.hpp"

namespace dualgap {

struct SmallRegressionTuning {
  // P and D are evaluated once the gap seems this many times the goal. Where it is
  // larger than it seemed, the next time is when it seems smaller by that factor, or
  // after a pause.
  static constexpr double kNear = 1.2;
  // Least pause, and the inverse share of the epochs so far.
  static constexpr Index kPause = 4;
};

// When to end, where work is counted in entries of rows; after `most` entries or
// `epochs` in any case.
struct RegressionTargets : Targets {
  double most;
  Index epochs;
};

// Sums at w = sum b_i x_i, and the epochs, whose steps are updates. No epochs: told
// to stop.
struct RegressionProof {
  Values values;
  double norm = 0;
  Vector<Epoch> epochs;
};

template <class Rows>
class SmallRegression : private SmallRegressionTuning {
 public:
  // `state` is zero on entry, and has the solution on return.
  SmallRegression(const Rows &rows, const RegressionData &data, DualState state,
                  Team &threads)
      : rows_(rows), data_(data), state_(state), team_(threads) {}

  RegressionProof solve(const RegressionTargets &targets, Random &random, Poll &poll,
                        const Stop &stop) {
    const Index n = rows_.rows(), width = rows_.width();
    Vector<std::uint8_t> wake(n), length(wake);
    Vector<Order> order(n);
    RegressionProof proof;
    double linear = 0, threshold = std::numeric_limits<double>::infinity();
    double near = kNear, entries = 0;
    Index updates = 0, epochs = 0, again = 0;
    for (bool ended = false; !ended;) {
      Sleep sleep{wake.data(), length.data(), threshold,
                  static_cast<int>(kLongestSleep)};
      const SleepingPass pass =
          regression_epoch(rows_, data_, state_, sleep, 1, order.data(), random, poll);
      if (stop.requested() || stop.expired()) return {};
      threshold = pass.threshold;
      linear += pass.linear;
      updates += pass.updates;
      entries += static_cast<double>((pass.visited + 1) * width);
      const double dual = linear - 0.5 * squared_norm(state_.w, width);
      proof.epochs.push_back({dual + pass.gap, dual, updates});
      ended = ++epochs == targets.epochs || entries >= targets.most;
      const double goal = targets.relative(entries);
      const double enough = std::max(goal * dual, targets.atol);
      const double needed = enough * (epochs < again ? near : kNear);
      if (!ended && pass.updates > 0 && pass.gap > needed) continue;
      linear = evaluate_here(proof);
      Epoch &exact = proof.epochs.back();
      exact = {0.5 * proof.norm + proof.values.loss, linear - 0.5 * proof.norm,
               updates};
      const double gap = exact.primal - exact.dual;
      const double allowed = std::max(goal * exact.dual, targets.atol);
      // Without an update after all rows were visited, b is a fixed point.
      ended =
          ended || !(gap > kSafe * allowed) || (pass.updates == 0 && pass.visited == n);
      if (pass.gap > 0.0 && gap > 0.0) near = next_factor(pass.gap, gap, kNear);
      again = epochs + std::max(kPause, epochs / kPause);
      std::fill(wake.begin(), wake.end(), std::uint8_t{0});
    }
    return proof;
  }

 private:
  // Recomputes w, and evaluates P and D there. Returns the terms of D without the norm.
  double evaluate_here(RegressionProof &proof) {
    std::fill_n(state_.w.first, rows_.width(), 0.0);
    for (Index i = 0; i < rows_.rows(); ++i)
      if (state_.alpha[i] != 0.0) rows_.axpy(i, state_.alpha[i], state_.w);
    const ResidualTerms terms{data_.y, data_.cost, data_.loss};
    proof.values = evaluate(rows_, terms, data_.q, state_.w, Dual::kOfW, state_.alpha,
                            nullptr, nullptr, team_);
    proof.norm = squared_norm(state_.w, rows_.width());
    return proof.values.sum - 0.5 * proof.values.diagonal;
  }

  const Rows &rows_;
  RegressionData data_;
  DualState state_;
  Team &team_;
};

}  // namespace dualgap
