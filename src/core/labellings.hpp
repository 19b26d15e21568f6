// Small problems with the same rows and different labels, solved and proved together.
//
// Problem    for every labelling: min over w of
//            1/2 ||w||^2 + sum_i c_i l(1 - y_i w.x_i)
// Update     smoothing_newton.hpp, over all rows together
// Guarantee  as in smoothing_newton.hpp
// Cost       as in smoothing_newton.hpp; the labellings one after another, each over
//            its rows of positive cost
// Source     as in smoothing_newton.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "certify.hpp"
#include "epoch.hpp"
#include "smoothing_newton.hpp"

namespace dualgap {

struct LabellingTuning {
  // Share of a target gap that ends the steps: a proof adds what rounding may hide.
  static constexpr double kSafe = 0.999;
};

// When to end: once the relative gap is at most `goal`, or `tol` (or the gap `atol`)
// after steps that read `free` entries of rows; after `most` steps in any case. An
// epoch has up to `epoch` steps. The first smoothing is `tau`.
struct LabellingSettings {
  double tau, tol, atol, goal, free;
  int most, epoch;
  NewtonRules rules;
};

// Labels and costs of all rows, and room for w and alpha.
struct Labelling {
  const std::int8_t *y;
  const double *cost;
  double *w, *alpha;
};

// Points of all labellings, and their epochs. Epochs of labelling k end before ends[k].
struct LabellingProofs {
  std::vector<GivenPoint> points;
  std::vector<Epoch> epochs;
  std::vector<Index> ends;
};

template <class Rows>
class LabellingSolver : private LabellingTuning {
 public:
  using MakeSet = std::function<std::unique_ptr<RowSet>(const std::vector<Order> &)>;

  // `q` are the squared norms of the rows. `make_set` returns the rows of an order.
  LabellingSolver(const Rows &rows, const double *q, const Loss &loss, MakeSet make_set,
                  Team &threads, const LinearAlgebra &algebra)
      : rows_(rows),
        q_(q),
        loss_(loss),
        make_set_(std::move(make_set)),
        team_(threads),
        algebra_(algebra) {}

  // Solves and proves every labelling, or the first ones if told to stop.
  LabellingProofs solve(const std::vector<Labelling> &labellings,
                        const LabellingSettings &settings, Poll &poll,
                        const Stop &stop) {
    LabellingProofs all;
    for (const Labelling &of : labellings) {
      const bool done = minimise(of, settings, all.epochs, poll, stop);
      if (!done || stop.requested() || stop.expired()) {
        all.epochs.resize(all.ends.empty() ? 0 : all.ends.back());
        return all;
      }
      if (!in_box(of.alpha, of.cost, rows_.rows(), loss_))
        std::fill_n(of.alpha, rows_.rows(), 0.0);
      const MarginTerms terms{of.y, of.cost, loss_};
      all.points.push_back(evaluate_given(rows_, terms, q_, of.w, of.alpha, team_));
      all.ends.push_back(static_cast<Index>(all.epochs.size()));
    }
    return all;
  }

 private:
  bool minimise(const Labelling &of, const LabellingSettings &settings,
                std::vector<Epoch> &epochs, Poll &poll, const Stop &stop) {
    const Index n = rows_.rows(), width = rows_.width();
    std::vector<Order> kept;
    std::vector<std::int8_t> y;
    Vec cost;
    for (Index i = 0; i < n; ++i) {
      if (of.cost[i] == 0.0) continue;
      kept.push_back(static_cast<Order>(i));
      y.push_back(of.y[i]), cost.push_back(of.cost[i]);
    }
    SomeRows data{make_set_(kept), std::move(y), std::move(cost),
                  Vec(static_cast<std::size_t>(width)), 0.0};
    SmoothingNewton newton(std::move(data), loss_, false, team_, algebra_);
    const Vec origin(static_cast<std::size_t>(width));
    if (!newton.start(origin.data(), settings.tau, poll, stop)) return false;
    const double entries =
        static_cast<double>(kept.size()) * static_cast<double>(width);
    // The gap is relative to P here, and to D in a proof.
    const double enough = kSafe * settings.tol / (1.0 + settings.tol);
    int steps = 0;
    for (bool ended = false; !ended;) {
      const double goal = steps * entries < settings.free ? settings.goal : enough;
      const int most = std::min(settings.epoch, settings.most - steps);
      const auto run = newton.run(goal, true, std::numeric_limits<double>::infinity(),
                                  most, settings.rules, poll, stop);
      if (run.outcome == Outcome::kLeft) return false;
      steps += run.steps;
      epochs.push_back({newton.primal(), newton.dual(), steps});
      const double gap = newton.primal() - newton.dual();
      ended = run.stuck || steps >= settings.most ||
              gap <= std::max(goal * newton.primal(), kSafe * settings.atol);
    }
    std::copy(newton.w().begin(), newton.w().end(), of.w);
    std::fill_n(of.alpha, n, 0.0);
    for (std::size_t t = 0; t < kept.size(); ++t) of.alpha[kept[t]] = newton.alpha()[t];
    return true;
  }

  const Rows &rows_;
  const double *q_;
  Loss loss_;
  MakeSet make_set_;
  Team &team_;
  LinearAlgebra algebra_;
};

}  // namespace dualgap
