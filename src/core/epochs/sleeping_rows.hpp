// Dual coordinate ascent with shrinking: rows firmly at a bound are skipped.
//
// Problem    as in dual_coordinate.hpp
// Update     for one i:  G = y_i w.x_i - 1 + delta_i a_i
//            a_i <- min(max(a_i - omega G/(q_i + delta_i), 0), U_i),  0 < omega < 2
//            w   <- w + (change of a_i) y_i x_i
//            Let g be the mean projected gradient of the last epoch. A row is firmly at
//            a bound if its G points outward by more than g. It is skipped for 1 epoch,
//            then for 3, 7, ..., 127, as long as every visit finds it so, or for G/2g
//            epochs if these are more, because margins move by about g in an epoch.
//            After a visit that finds G pointing inward it starts at 1 again. In the
//            first epoch g is the mean so far, from a quarter of the visits on. The
//            first epoch may be Modified-SGD (dual_coordinate.hpp).
// Guarantee  D never falls, except in Modified-SGD. Every row is visited at least once
//            in 128 epochs, so the restart of Hsieh et al. 2008, which restores all
//            rows, is not needed. A skipped row adds 0 to the gap while its margin
//            stays on the same side.
// Cost       one dot per active row, one axpy per change; 4 bytes of order and 2 of
//            counters per row. Rows with few common features (text) are visited in
//            chunks of consecutive rows, in random order. This takes as many epochs as
//            single rows, and a chunk is read as one stream of memory.
// Source     the step: Hsieh et al. 2008, eq. 9; over-relaxation as in SOR: Mangasarian
//            and Musicant, IEEE Trans. Neural Networks 10, 1999
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../stop.hpp"
#include "dual_coordinate.hpp"

namespace dualgap {

struct SweepSettings {
  double omega = 1;  // over-relaxation
  Index chunk = 1;   // consecutive rows that are visited together
  bool scale = false;
  bool modified_sgd = false;
};

DUALGAP_INLINE void add_scaled(const Loss &loss, double c, double margin,
                               const double *scales, double *sums) {
  if (loss.curvature == 0.0) {
    for (Index k = 0; k < kScales; ++k)
      sums[k] += c * std::max(0.0, 1.0 - scales[k] * margin);
  } else {
    for (Index k = 0; k < kScales; ++k)
      sums[k] += c * loss.value(1.0 - scales[k] * margin);
  }
}

// `state` and `sleep` are copies, since bytes that are written may be parts of others.
template <class Rows>
SleepingPass sleeping_epoch(const Rows &rows, const DualData &data, DualState state,
                            Sleep sleep, const SweepSettings &settings, Order *order,
                            Random &random, Poll &poll) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  SleepingPass pass;
  const auto [omega, chunk, wants_scale, modified_sgd] = settings;
  const Index m = awake_rows(sleep.wake, rows.rows(), order);
  shuffle_chunks(order, m, chunk, random);
  double moving = 0;  // sum of |projected gradient|
  const bool learns = std::isnan(sleep.threshold);
  double threshold = learns ? kInf : sleep.threshold;
  double scales[kScales];
  const bool scale = wants_scale && sleep.threshold < kInf;
  for (Index k = 0; k < kScales; ++k) scales[k] = 1.0 + kStretch[k] * sleep.threshold;
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, order, t, m, state.alpha, data.cost, data.q, data.y, sleep.length);
    const Index i = order[t];
    const double c = data.cost[i];
    const double a = state.alpha[i];
    const double upper = data.loss.upper(c), delta = data.loss.diagonal(c);
    double margin = data.y[i] * rows.dot(i, state.w), q = data.q[i];
    if (modified_sgd) {
      const SoFar so_far(static_cast<double>(t), static_cast<double>(m));
      margin *= so_far.stretch;
      q *= so_far.weight;
    }
    const double gradient = margin - 1.0 + delta * a;
    pass.gap += gap_share(data.loss, a, margin, c);
    ++pass.visited;
    if (scale) {
      add_scaled(data.loss, c, margin, scales, pass.scaled);
      pass.product += a * margin;
    }

    const double above = a == 0.0 ? gradient : -kInf;
    const double below = a == upper ? -gradient : -kInf;
    const double outward = std::max(above, below);
    if (learns && 4 * t >= m) threshold = moving / static_cast<double>(t);
    if (outward >= 0.0) {
      int next = 0;
      if (outward > threshold) {
        const double away = std::min(0.5 * outward / threshold, kLongestSleep);
        next = std::max(2 * sleep.length[i] + 1, static_cast<int>(away));
        next = std::min(next, sleep.longest);
      }
      sleep.wake[i] = sleep.length[i] = static_cast<std::uint8_t>(next);
    } else {
      sleep.length[i] = 0;
      moving += std::abs(gradient);
      const double curvature = q + delta;
      // For a zero row with the hinge D is linear in a_i.
      const double next =
          curvature == 0.0 ? upper
                           : std::clamp(a - omega * gradient / curvature, 0.0, upper);
      if (next != a) {
        state.alpha[i] = next;
        const double change = next - a;
        pass.linear += change * (1.0 - 0.5 * delta * (next + a));
        rows.axpy(i, change * data.y[i], state.w);
        ++pass.updates;
      }
    }
    if (poll(rows.count(i))) break;
  }
  pass.threshold =
      pass.visited > 0 ? moving / static_cast<double>(pass.visited) : sleep.threshold;
  return pass;
}

}  // namespace dualgap
