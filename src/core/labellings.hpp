// Small problems with the same rows and different labels, solved and proved together.
//
// Problem    for every labelling: min over w of
//            1/2 ||w||^2 + sum_i c_i l(1 - y_i w.x_i)
// Update     smoothing_newton.hpp, over all rows together, or over the rows of the
//            rarer label and the other rows that have a loss
// Guarantee  as in smoothing_newton.hpp. P counts all rows, and the dual variables of
//            the rows that are left out are 0, which is a dual point of the problem
// Cost       as in smoothing_newton.hpp; the labellings one after another, each over
//            its rows of positive cost. Where one label is rare, passes over few rows,
//            and a product with all rows whenever others join them
// Source     as in smoothing_newton.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "certify.hpp"
#include "epoch.hpp"
#include "smoothing_newton.hpp"

namespace dualgap {

struct LabellingTuning {
  // Rows of the common label for one of the rare label from which few of them matter.
  static constexpr Index kRare = 16;
  // Rows of the common label that begin, for each feature.
  static constexpr Index kBegin = 4;
  // Share of the target gap to leave among the rows that have joined.
  static constexpr double kAmong = 0.5;
  // Rounds in a row in which most rows have a squared hinge loss, after which they all
  // matter: the classes overlap. A loss of bounded slope soon falls to 0 at most rows.
  static constexpr int kCrowded = 2;
};

// When to end, where work is counted in entries of rows that steps read, and after
// `most` steps in any case. An epoch has up to `epoch` steps. The first smoothing is
// `tau`. Unless `whole`, problems in which most rows matter are left to others.
struct LabellingSettings : Targets {
  double tau;
  int most, epoch;
  NewtonRules rules;
  bool whole = true;  // also problems in which most rows matter
  bool near = false;  // begin at w, as it is given; else at 0
};

// Labels and costs of all rows, and room for w and alpha. w may be a start.
struct Labelling {
  const std::int8_t *y;
  const double *cost;
  double *w, *alpha;
};

// Points of all labellings, and their epochs. Epochs of labelling k end before ends[k].
// `left` of the problems are left to others.
struct LabellingProofs {
  Vector<GivenPoint> points;
  Vector<Epoch> epochs;
  Vector<Index> ends;
  Index left = 0;
};

template <class Rows>
class LabellingSolver : private LabellingTuning {
 public:
  using MakeSet = std::function<std::unique_ptr<RowSet>(const Vector<Order> &)>;

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
  LabellingProofs solve(const Vector<Labelling> &labellings,
                        const LabellingSettings &settings, Poll &poll,
                        const Stop &stop) {
    LabellingProofs all;
    for (const Labelling &of : labellings) {
      const bool done = minimise(of, settings, all, poll, stop);
      if (!done || stop.requested() || stop.expired()) {
        all.epochs.resize(all.ends.empty() ? 0 : all.ends.back());
        return all;
      }
      if (!in_box(of.alpha, of.cost, rows_.rows(), loss_))
        std::fill_n(of.alpha, rows_.rows(), 0.0);
      const MarginTerms terms{of.y, of.cost, loss_};
      all.points.push_back(evaluate_given(rows_, terms, q_, of.w, of.alpha, team_));
      all.ends.push_back(all.epochs.size());
    }
    return all;
  }

 private:
  bool minimise(const Labelling &of, const LabellingSettings &settings,
                LabellingProofs &all, Poll &poll, const Stop &stop) {
    Vector<Epoch> &epochs = all.epochs;
    Vector<Order> kept;
    Index positive = 0;
    for (Index i = 0; i < rows_.rows(); ++i) {
      if (of.cost[i] == 0.0) continue;
      kept.push_back(static_cast<Order>(i));
      positive += of.y[i] > 0;
    }
    const Index least = std::min(positive, kept.size() - positive);
    if (entries(kept) > settings.free && least * kRare < kept.size()) {
      const auto rare = static_cast<std::int8_t>(least == positive ? 1 : -1);
      const auto done = minimise_rare(of, kept, rare, settings, epochs, poll, stop);
      if (done) return *done;
    }
    if (!settings.whole && entries(kept) > settings.free) {
      std::fill_n(of.w, rows_.width(), 0.0);
      std::fill_n(of.alpha, rows_.rows(), 0.0);
      epochs.push_back({});
      ++all.left;
      return true;
    }
    SmoothingNewton newton(taken(of, kept), loss_, false, team_, algebra_);
    if (!settings.near) std::fill_n(of.w, rows_.width(), 0.0);
    if (!newton.start(of.w, settings.tau, poll, stop)) return false;
    int steps = 0;
    bool met = false;  // whether the point that is given meets the target
    for (bool ended = false; !ended;) {
      const bool few = steps * entries(kept) < settings.free;
      const double goal = few ? settings.goal : enough(settings);
      const int most = std::min(settings.epoch, settings.most - steps);
      const auto run = newton.run(goal, true, std::numeric_limits<double>::infinity(),
                                  most, settings.rules, poll, stop);
      if (run.outcome == Outcome::kLeft) return false;
      steps += run.steps;
      epochs.push_back({newton.primal(), newton.dual(), steps});
      const double gap = newton.primal() - newton.dual();
      ended = run.stuck || steps >= settings.most ||
              gap <= std::max(goal * newton.primal(), kSafe * settings.atol);
      // Rounding may spoil a point that aims at less than the target.
      const double target = enough(settings) * newton.primal();
      const bool meets = gap <= std::max(target, kSafe * settings.atol);
      if (meets || !met) give(newton, kept, of);
      met = met || meets;
    }
    return true;
  }

  // As `minimise`, over the rows of the label `rare` and the other rows that turn out
  // to have a loss. Nothing if these are most of the rows, or seem to be.
  std::optional<bool> minimise_rare(const Labelling &of, const Vector<Order> &kept,
                                    std::int8_t rare, const LabellingSettings &settings,
                                    Vector<Epoch> &epochs, Poll &poll,
                                    const Stop &stop) {
    const Index begin = epochs.size();
    const auto first = kBegin * rows_.width();
    const Index every = std::max<Index>(kept.size() / first, 1);
    Vector<char> joined(kept.size());
    for (Index t = 0; t < kept.size(); ++t)
      joined[t] = of.y[kept[t]] == rare || t % every == 0;
    // With a bias, the constant that has no loss at the rows of the common label.
    Vec w(rows_.width());
    if (rows_.constant() != 0.0) w.back() = -rare / rows_.constant();
    double tau = settings.tau;
    const double goal = enough(settings);
    const RowLoss loss_of(loss_);
    Vector<Order> some;
    Vector<std::pair<double, Index>> missed;  // margins, and places in kept
    int crowded = 0;
    for (int steps = 0;;) {
      some.clear();
      for (Index t = 0; t < kept.size(); ++t)
        if (joined[t]) some.push_back(kept[t]);
      if (2 * some.size() > kept.size()) {
        epochs.resize(begin);
        return std::nullopt;
      }
      SmoothingNewton newton(taken(of, some), loss_, false, team_, algebra_);
      if (!newton.start(w.data(), tau, poll, stop)) return false;
      const int left = std::min(settings.epoch, settings.most - steps);
      const auto run =
          newton.run(kAmong * goal, true, std::numeric_limits<double>::infinity(), left,
                     settings.rules, poll, stop);
      if (run.outcome == Outcome::kLeft) return false;
      steps += run.steps;
      w = newton.w(), tau = newton.tau();
      double primal = newton.primal();
      missed.clear();
      for (Index t = 0; t < kept.size(); ++t) {
        if (joined[t]) continue;
        const auto i = static_cast<Index>(kept[t]);
        const double u = 1.0 - of.y[i] * rows_.dot(i, w.data());
        if (!(u > 0.0)) continue;
        primal += of.cost[i] * loss_of.value(u);
        missed.emplace_back(-u, t);
      }
      if (poll(static_cast<Index>(entries(kept)))) return false;
      epochs.push_back({primal, newton.dual(), steps});
      const double gap = primal - newton.dual();
      if (steps >= settings.most || (run.stuck && missed.empty()) ||
          gap <= std::max(goal * primal, kSafe * settings.atol)) {
        give(newton, some, of);
        return true;
      }
      const bool most = std::isinf(loss_.slope) && 2 * missed.size() > kept.size();
      crowded = most ? crowded + 1 : 0;
      if (crowded == kCrowded) {
        epochs.resize(begin);
        return std::nullopt;
      }
      // The rows of largest loss join, as many as there are.
      if (missed.size() > some.size()) {
        const auto last = missed.begin() + static_cast<std::ptrdiff_t>(some.size());
        std::nth_element(missed.begin(), last, missed.end());
        missed.erase(last, missed.end());
      }
      for (const auto &[margin, t] : missed) joined[t] = true;
    }
  }

  double entries(const Vector<Order> &some) const {
    return static_cast<double>(some.size()) * static_cast<double>(rows_.width());
  }

  // The gap is relative to P here, and to D in a proof.
  static double enough(const LabellingSettings &settings) {
    return kSafe * settings.tol / (1.0 + settings.tol);
  }

  SomeRows taken(const Labelling &of, const Vector<Order> &some) {
    Vector<std::int8_t> y;
    Vec cost;
    y.reserve(some.size()), cost.reserve(some.size());
    for (const Order i : some) y.push_back(of.y[i]), cost.push_back(of.cost[i]);
    SomeRows data{make_set_(some), std::move(y), std::move(cost), Vec(rows_.width()),
                  0.0};
    if (some.size() == rows_.rows()) {
      if (!centring_) centring_ = centring_of(*data.rows);
      data.centring = &*centring_;
    }
    return data;
  }

  // Writes the point of a method over some rows.
  void give(const SmoothingNewton &newton, const Vector<Order> &some,
            const Labelling &of) const {
    std::copy(newton.w().begin(), newton.w().end(), of.w);
    std::fill_n(of.alpha, rows_.rows(), 0.0);
    for (Index t = 0; t < some.size(); ++t) of.alpha[some[t]] = newton.alpha()[t];
  }

  const Rows &rows_;
  const double *q_;
  Loss loss_;
  MakeSet make_set_;
  Team &team_;
  LinearAlgebra algebra_;
  std::optional<Centring> centring_;  // of all rows, for all labellings
};

}  // namespace dualgap
