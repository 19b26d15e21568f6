// Margin perceptron with unlearning (MPU), reconstructed.
//
// Problem    min 1/2 ||w||^2 + sum_i c_i l(1 - y_i w.x_i) through its dual
//            (losses.hpp) with alpha_k = s n_k, w = s a, a = sum n_k y_k x_k; n_k
//            counts the updates of row k. The soft margin caps the counter, n_k <=
//            U_k/s (hinge), or extends row k by its own coordinate,
//            y_k -> [y_k, sqrt(delta_k) e_k] (squared hinge).
// Update     row k, p = a.y_k + delta_k n_k, q = ||x_k||^2 + delta_k, b = 1/s:
//              a <- a + y_k x_k, n_k <- n_k + 1  while p < b - q/2 and n_k < U_k/s
//              a <- a - y_k x_k, n_k <- n_k - 1  while p > b + q/2 and n_k > 0
//            A visit makes ceil(|b - p|/q - 1/2) updates at once, with the counter
//            clipped to [0, U_k/s]. The last update may be a fraction, because U_k/s
//            need not be an integer.
// Guarantee  an update raises D by s^2 (|b - p| - q/2) > 0. As the counters lie on a
//            lattice, the method ends after finitely many updates. Then every row with
//            n_k < U_k/s has m_k + delta_k alpha_k >= 1 - s q/2, and every row with
//            n_k > 0 has m_k + delta_k alpha_k <= 1 + s q/2: the KKT conditions up to
//            s q/2.
// Cost       one dot per visit, one axpy per row that updates; 8 bytes per row
// Source     Panagiotakopoulos and Tsampouka, ICML 2010 (abstract and parameters only).
//            The thresholds, the cap and the steps are reconstructed and may differ
//            from the paper.
#pragma once

#include <algorithm>
#include <cmath>

#include "../core/epochs/dual.hpp"
#include "../core/stop.hpp"

namespace dualgap {

struct UnlearningData : DualData {
  double s;  // alpha = s n
};

struct UnlearningState {
  double *a;
  double *count;  // n_k
};

struct UnlearningPass {
  Index visited = 0;
  Index updates = 0;    // visits that changed a
  Index unlearned = 0;  // updates that lowered a counter
  double gap = 0;       // sum of gap shares at visit time
};

// Returns the counter after all updates of one visit, given lack = b - p.
inline double counter_after(double n, double lack, double q, double cap) {
  const double excess = std::abs(lack) - 0.5 * q;
  if (!(excess > 0.0)) return n;
  // The margin of a row of length 0 never moves: `times` is infinite.
  const double times = std::ceil(std::abs(lack) / q - 0.5);
  return lack > 0.0 ? std::min(n + times, cap) : std::max(n - times, 0.0);
}

template <class Rows>
UnlearningPass unlearning_epoch(const Rows &rows, const UnlearningData &data,
                                const Order *order, Index m, UnlearningState &state,
                                Poll &poll) {
  UnlearningPass pass;
  const double b = 1.0 / data.s;
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, order, t, m, state.count, data.cost, data.q, data.y);
    const Index k = order[t];
    const double c = data.cost[k], n = state.count[k];
    const double delta = data.loss.diagonal(c);
    const double dot = data.y[k] * rows.dot(k, state.a);
    pass.gap += gap_share(data.loss, data.s * n, data.s * dot, c);
    const double next = counter_after(n, b - (dot + delta * n), data.q[k] + delta,
                                      data.loss.upper(c) / data.s);
    if (next != n) {
      state.count[k] = next;
      rows.axpy(k, (next - n) * data.y[k], state.a);
      ++pass.updates;
      pass.unlearned += next < n;
    }
    ++pass.visited;
    if (poll(rows.count(k))) break;
  }
  return pass;
}

}  // namespace dualgap
