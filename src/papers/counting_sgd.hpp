// SGD-r, SGD-s and SGD-m: stochastic gradient descent in the variable
// a_t = lambda t w_t, which turns every step into a perceptron-like decision.
//
// Problem    min 1/2 ||w||^2 + sum c_i max(0, 1 - y_i w.x_i);  lambda = 1/sum c_i
// Update     t-th presentation, row k, p = y_k a.x_k:
//              a <- a + omega_k y_k x_k  if p <= lambda t;   t <- t + 1
//            omega_k = c_k / mean(c) (1 without weights); w_t = a_t/(lambda t).
//            If a row is presented l times in succession from P = p - lambda t,
//            the number of margin errors is (Proposition 3; |y|^2 there is
//            omega_k q_k here)
//              0                                             if P > (l-1) lambda
//              min(l, floor(((l-1) lambda - P)/max(omega_k q_k, lambda)) + 1)
// Guarantee  after T whole epochs a_k = c_k I_k/T is in the box (I_k counts the
//            margin errors of row k) and w_T = sum a_k y_k x_k, hence
//            P* >= L_T = sum a_k - 1/2 ||w_T||^2 (Proposition 2)
// Cost       one dot per visit, one axpy per row with an error, and O(1)
// Source     Panagiotakopoulos and Tsampouka 2013 (arXiv 1304.6383)
#pragma once

#include <algorithm>
#include <cmath>

#include "../core/epochs/dual.hpp"
#include "../core/stop.hpp"

namespace dualgap {

// The costs are the weights omega.
struct CountingData : DualData {
  double lambda;
  Index multiplicity;  // l: presentations of a row per visit
};

struct CountingState {
  Span<double> a;
  Span<std::int64_t> errors;  // I_k
  double t;                   // presentations so far
  double norm;                // r = ||a||^2
};

struct CountingPass {
  Index visited = 0;
  Index updates = 0;    // margin errors
  double weighted = 0;  // sum of omega_k over margin errors: M of the paper
  double loss = 0;      // sum of omega_k max(0, 1 - p/theta) at visit time
};

inline Index margin_errors(double gap, double step, double lambda, Index l) {
  const double last = static_cast<double>(l - 1) * lambda;
  if (gap > last) return 0;
  const double count = std::floor((last - gap) / std::max(step, lambda)) + 1.0;
  return count >= static_cast<double>(l) ? l : static_cast<Index>(count);
}

template <class Rows>
CountingPass counting_sgd_epoch(const Rows &rows, const CountingData &data,
                                const Order *order, Index m, CountingState &state,
                                Poll &poll) {
  CountingPass pass;
  const Index l = data.multiplicity;
  for (Index s = 0; s < m; ++s) {
    look_ahead(rows, order, s, m, data.cost, data.q, data.y, state.errors);
    const Index k = order[s];
    const double omega = data.cost[k];
    if (omega > 0.0) {
      const double p = data.y[k] * rows.dot(k, state.a);
      const double theta = data.lambda * state.t;
      const Index count = margin_errors(p - theta, omega * data.q[k], data.lambda, l);
      if (p <= theta) pass.loss += omega * (state.t > 0 ? 1.0 - p / theta : 1.0);
      if (count > 0) {
        const double step = static_cast<double>(count) * omega;
        rows.axpy(k, step * data.y[k], state.a);
        state.norm += 2.0 * step * p + step * step * data.q[k];
        state.errors[k] += count;
        pass.updates += count;
        pass.weighted += step;
      }
    }
    state.t += static_cast<double>(l);
    ++pass.visited;
    if (poll(rows.count(k))) break;
  }
  return pass;
}

}  // namespace dualgap
