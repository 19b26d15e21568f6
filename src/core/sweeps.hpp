// Problems with the same sparse rows and different labels, each solved by sweeps of
// dual coordinate ascent, and proved.
//
// Problem    for every labelling: as in epochs/dual_coordinate.hpp, with its
//            certificate
// Update     sweeps of epochs/sleeping_rows.hpp from alpha = 0, as `dcd` makes them
//            before it accelerates (solvers/dcd.py); a proof where the visits of a
//            sweep say that the gap is met (training/progress.py)
// Guarantee  as in epochs/sleeping_rows.hpp. A labelling whose gap is not met after
//            `most` sweeps is left to others
// Cost       as in epochs/sleeping_rows.hpp, and two passes for a proof. The labellings
//            are shared by threads; each visits all rows, and takes 14 bytes a row
// Source     as in epochs/sleeping_rows.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "certify.hpp"
#include "epochs/sleeping_rows.hpp"
#include "labellings.hpp"

namespace dualgap {

// When to end, where a sweep reads `row` entries for each row and `sweep` more, and
// after `most` sweeps in any case. How a sweep is made; it skips a row for up to
// `longest` sweeps, and only the first one may be Modified-SGD. A proof is made from
// `nearly` times the target gap on. With `lag` the gap of a sweep is corrected
// (gap_at_the_end).
struct SweepRules : Targets {
  double row, sweep;
  int most;
  SweepSettings sweeps;
  int longest;
  double nearly, lag = 0.0, least = 0.0;
};

template <class Rows>
class SweepSolver {
 public:
  SweepSolver(const Rows &rows, const double *q, const Loss &loss,
              const SweepRules &rules)
      : rows_(rows), q_(q), loss_(loss), rules_(rules) {}

  // Solves and proves every labelling, or the first ones if told to stop. Their random
  // orders begin with seeds[k mod seeds.size()].
  LabellingProofs solve(const Vector<Labelling> &labellings,
                        const Vector<std::uint64_t> &seeds, Team &threads, Poll &poll,
                        const Stop &stop) const {
    Vector<Found> found(labellings.size());
    const auto caller = std::this_thread::get_id();
    threads.run(labellings.size(), labellings.size(), [&](Index k, Index, Index) {
      if (stop.requested() || stop.expired()) return;
      const std::uint64_t seed = seeds[k % seeds.size()];
      Poll own(stop, [] {});
      const bool mine = std::this_thread::get_id() == caller;
      minimise(labellings[k], seed, found[k], mine ? poll : own, stop);
    });
    LabellingProofs all;
    for (const Found &one : found) {
      if (!one.whole) break;
      all.points.push_back(one.point);
      all.epochs.insert(all.epochs.end(), one.epochs.begin(), one.epochs.end());
      all.ends.push_back(all.epochs.size());
      all.left += !one.met;
    }
    return all;
  }

 private:
  struct Found {
    GivenPoint point{};
    Vector<Epoch> epochs;
    bool met = false, whole = false;  // whole: not stopped before its end
  };

  void minimise(const Labelling &of, std::uint64_t seed, Found &found, Poll &poll,
                const Stop &stop) const {
    const Index n = rows_.rows(), width = rows_.width();
    const DualData data{of.y, of.cost, q_, loss_};
    DualState state{of.alpha, of.w};
    std::fill_n(of.alpha, n, 0.0);
    std::fill_n(of.w, width, 0.0);
    Vector<std::uint8_t> wake(n), length(n);
    Vector<Order> order(n);
    Sleep sleep{wake.data(), length.data(), std::numeric_limits<double>::quiet_NaN(),
                rules_.longest};
    Random random(seed);
    double linear = 0, last = 0, work = 0, nearly = rules_.nearly;
    Index updates = 0;
    int idle = 0;
    for (int made = 0; made < rules_.most && idle < 2;) {
      SweepSettings settings = rules_.sweeps;
      settings.modified_sgd = settings.modified_sgd && made == 0;
      if (settings.modified_sgd) settings.omega = 1.0;
      const SleepingPass pass = sleeping_epoch(rows_, data, state, sleep, settings,
                                               order.data(), random, poll);
      if (stop.requested() || stop.expired()) return;
      ++made;
      idle = pass.updates == 0 ? idle + 1 : 0;
      sleep.threshold = pass.threshold;
      linear += pass.linear;
      work += static_cast<double>(pass.visited) * rules_.row + rules_.sweep;
      const double dual = linear - 0.5 * squared_norm(of.w, width);
      const double before = std::exchange(last, pass.gap);
      const bool after_sgd = rules_.sweeps.modified_sgd && made == 2;
      const double gap =
          rules_.lag == 0.0
              ? pass.gap
              : gap_at_the_end(pass.gap, before, rules_.lag, rules_.least, after_sgd);
      updates += pass.updates;
      found.epochs.push_back({dual + gap, dual, updates});
      const double target = std::max(rules_.relative(work) * dual, rules_.atol);
      if (gap > nearly * target && idle == 0 && made < rules_.most) continue;
      const double proved = prove(of, wake.data(), found);
      found.met = proved <= kSafe * std::max(rules_.tol * dual, rules_.atol);
      if (proved <= kSafe * target) break;
      if (gap > 0.0) nearly = next_factor(gap, proved, rules_.nearly);
    }
    found.whole = true;
  }

  // Returns the gap at w, which becomes the sum of the rows again. Rows on the wrong
  // side of their margin wake up.
  double prove(const Labelling &of, std::uint8_t *wake, Found &found) const {
    Team alone(1);
    std::fill_n(of.w, rows_.width(), 0.0);
    combine(rows_, of.y, of.alpha, of.w, alone);
    const MarginTerms terms{of.y, of.cost, loss_, wake};
    const Values values =
        evaluate(rows_, terms, q_, of.w, Dual::kOfW, of.alpha, nullptr, nullptr, alone);
    const double norm = squared_norm(of.w, rows_.width());
    found.point = {values, norm, norm, 1.0};
    const double primal = 0.5 * norm + values.loss;
    return primal - (values.sum - 0.5 * (norm + values.diagonal));
  }

  const Rows &rows_;
  const double *q_;
  Loss loss_;
  SweepRules rules_;
};

}  // namespace dualgap
