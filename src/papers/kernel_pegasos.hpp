// Kernelised Pegasos: stochastic subgradient steps in the span of the rows.
//
// Problem    min lambda/2 ||w||^2 + (1/n) sum_i omega_i l(y_i f(x_i)),
//            lambda = 1/sum c_i, f(x) = <w, (phi(x), 1)>,
//            with w_t = sum_j s_j y_j (phi(x_j), 1)/(lambda t). Without a bias, 0 takes
//            the place of the 1.
// Update     step t on k rows i:  s_i <- s_i - omega_i l'(y_i f(x_i))/k
//            most_i <- most_i + omega_i/k: the hinge has s_i <= most_i
// Guarantee  suboptimality O(log t/(lambda t)) in expectation (Theorems 1 to 3)
// Cost       O(1) for a row without a loss, else one kernel row and O(n), because
//            F_i = sum_j s_j y_j (k_ij + 1) is updated at all rows. A step beyond the
//            budget B removes the row of smallest s, at the cost of another kernel row.
// Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Fig. 3
//            (the figure prints y_i inside the sum where the text has y_j). Removal
//            beyond the budget: Wang, Crammer and Vucetic, JMLR 13 (2012). t starts at
//            `offset`, which is 0 for the hinge of the paper. A loss with a quadratic
//            piece needs steps below the inverse of its curvature.
#pragma once

#include <algorithm>

#include "../core/gram/gram.hpp"
#include "../core/losses.hpp"
#include "../core/stop.hpp"
#include "frank_wolfe.hpp"
#include "sum_of_steps.hpp"

namespace dualgap {

struct PegasosSettings {
  Loss loss;
  double lambda;
  Index budget;  // rows with s > 0, or 0 for any number
  Index batch;   // k; the last batch of an order may be shorter
  double t;      // steps made before
};

struct PegasosData : PegasosSettings {
  const double *y, *omega;
};

struct PegasosWalk {
  Index visited = 0, steps = 0, updates = 0;
};

// Makes the steps t + 1, t + 2, ... (counted from the offset) on the rows order[0..m).
// The sums are of the points before all steps, if they have arrays.
inline PegasosWalk kernel_pegasos(Simplex &s, const PegasosData &data,
                                  const Order *order, Index m, double *most,
                                  SumOfSteps &sums, Poll &poll) {
  PegasosWalk walk;
  double t = data.t;
  const auto move = [](Simplex &at, double u, const float *k) {
    at.columns ? move_gradient<true, 1>(at, 1.0, u, k, 0.0, nullptr)
               : move_gradient<false, 1>(at, 1.0, u, k, 0.0, nullptr);
  };
  Simplex past = s;
  past.g = sums.r;
  const auto add = [&](Index i, double change) {
    const float *k = s.gram->row(s.column(i));
    const double u = change * data.y[i];
    move(s, u, k);
    if (!sums.r) return;
    sums.r_beta[i] -= sums.sigma * change;
    move(past, -sums.sigma * u, k);
  };
  Vec changes(std::min(data.batch, m));
  bool leave = false;
  while (walk.visited < m && !leave) {
    const Order *batch = order + walk.visited;
    const Index k = std::min(data.batch, m - walk.visited);
    t += 1.0;
    // g_i = y_i F_i is the margin up to the scale of the step before.
    const double scale = t > 1.0 ? 1.0 / (data.lambda * (t - 1.0)) : 0.0;
    sums.sigma += scale;  // the average takes the point before the step
    for (Index r = 0; r < k; ++r) {
      const Index i = batch[r];
      changes[r] = data.omega[i] * data.loss.derivative(1.0 - s.g[i] * scale) /
                   static_cast<double>(k);
      most[i] += data.omega[i] / static_cast<double>(k);
    }
    for (Index r = 0; r < k; ++r) {
      const Index i = batch[r];
      const double change = changes[r];
      if (change > 0.0) {
        if (s.a[i] == 0.0) s.active[s.size++] = static_cast<Order>(i);
        s.a[i] += change;
        add(i, change);
        ++walk.updates;
        if (data.budget > 0 && s.size > data.budget) {
          Index least = 0;
          for (Index q = 1; q < s.size; ++q)
            if (s.a[s.active[q]] < s.a[s.active[least]]) least = q;
          const Index out = s.active[least];
          s.active[least] = s.active[--s.size];
          add(out, -s.a[out]);
          s.a[out] = 0.0;
        }
      }
      leave |= poll(change > 0.0 ? s.m : 1);
    }
    walk.visited += k;
    ++walk.steps;
  }
  return walk;
}

}  // namespace dualgap
