// Stochastic subgradient descent on the primal: Pegasos, NORMA, SvmSGD.
//
// Problem    min lambda/2 ||w||^2 + sum_i p_i l(1 - y_i w.x_i),
//            p_i = c_i/sum c, lambda = 1/sum c (the C-form divided by sum c)
// Update     step t on a batch A of k rows, b_i = l'(1 - y_i w.x_i):
//              w <- (1 - eta_t lambda) w + (eta_t/k) sum_{i in A} omega_i b_i y_i x_i
//              Pegasos also projects: w <- min(1, 1/(sqrt(lambda) ||w||)) w
//            omega_i = c_i/mean(c) (1 without weights).
//   Pegasos  eta_t = 1/(lambda t), t = 1, 2, ...  Shalev-Shwartz, Singer, Srebro
//            and Cotter 2011, Figs. 1 and 2.
//            An unpenalised bias b (section 6) replaces y_i w.x_i by y_i (w.x_i + b).
//            b is fixed, or moves along the subgradient,
//              b <- b + 1/(k sqrt(t)) sum_{i in A} omega_i b_i y_i
//            (not by eta_t, which starts at 1/lambda: P is not strongly convex in b),
//            or is the best b for each batch (hinge): a weighted quantile of the kinks
//            y_i - w.x_i. The row j at the kink then gets the b_j in [0, 1] that makes
//            sum_{i in A} omega_i b_i y_i = 0, as a subgradient in w alone requires.
//   NORMA    eta_t = p/(lambda sqrt(t)). Kivinen, Smola and Williamson 2004.
//   SvmSGD   eta_t = eta0/(1 + lambda eta0 (t-1)). Bottou's svmsgd.
// Guarantee  Pegasos: expected suboptimality O(log t/(lambda t)); NORMA:
//            O(1/(lambda sqrt t))
// Cost       a step costs O(nnz of the rows), not O(d), because w = a v and its norm
//            nu = ||w|| are updated. beta holds v = sum beta_i y_i x_i, so that
//            clip(a beta_i) is a dual point: 8 bytes per row.
// Source     the papers named above
#pragma once

#include <algorithm>
#include <cmath>

#include "../core/epochs/dual.hpp"
#include "../core/stop.hpp"
#include "sum_of_steps.hpp"

namespace dualgap {

enum class Schedule { kPegasos, kNorma, kSvmSgd };
enum class BiasRule { kFixed, kStep, kBatch };

struct GradientSettings {
  double lambda;
  Schedule schedule;
  double eta0;  // NORMA: p.  SvmSGD: eta0.  Pegasos: unused
  Index batch;  // k
  bool project;
  BiasRule rule = BiasRule::kFixed;
};

// The costs are the weights omega.
struct GradientData : DualData, GradientSettings {};

struct GradientState {
  Span<double> v, beta;
  double a;     // w = a v
  double norm;  // nu^2 = ||w||^2
  double t;     // steps so far
  // The average of w_1 ... w_t is (sigma v + r)/t, likewise for beta. Null: no average.
  SumOfSteps *sum;
  Span<double> bias;  // one entry, or null
};

// Scale a below which v is absorbed. With an average, sigma v and r would soon cancel;
// without one, only underflow matters.
inline constexpr double kLeastScaleOfMean = 1e-4, kLeastScale = 1e-100;

struct GradientPass {
  Index visited = 0;
  Index updates = 0;
  double loss = 0;  // sum of omega_i l_i at visit time
};

// Returns eta_t lambda, the share of w that step t forgets. It is exactly 1 for Pegasos
// at t = 1: a remainder of 1e-16 would leave huge entries in v that cancel in the
// average.
inline double forgetting(const GradientData &data, double t) {
  switch (data.schedule) {
    case Schedule::kPegasos:
      return 1.0 / t;
    case Schedule::kNorma:
      return data.eta0 / std::sqrt(t);
    case Schedule::kSvmSgd: {
      const double rate = data.lambda * data.eta0;
      return rate / (1.0 + rate * (t - 1.0));
    }
  }
  return 0.0;
}

// Sets v <- a v and a <- 1, and adds sigma v to r. This costs O(d + n), so it is done
// only when a is 0 (Pegasos at t = 1), when a becomes very small, or, with an average,
// before sigma v and r become so large that they cancel.
inline void absorb_scale(GradientState &state, SumOfSteps &sum, Index width, Index n) {
  if (sum.r) {
    for (Index j = 0; j < width; ++j) sum.r[j] += sum.sigma * state.v[j];
    for (Index i = 0; i < n; ++i) sum.r_beta[i] += sum.sigma * state.beta[i];
    sum.sigma = 0.0;
  }
  for (Index j = 0; j < width; ++j) state.v[j] *= state.a;
  for (Index i = 0; i < n; ++i) state.beta[i] *= state.a;
  state.a = 1.0;
}

struct Kink {
  double at;  // the b at which the margin is 1
  Index s;    // place in the batch
};

// Returns the best b for one batch, for the hinge. `slopes` holds the y_i w.x_i on
// entry, and on return the omega_i b_i, with sum omega_i b_i y_i = 0. Cost: O(k log k).
inline double best_for_batch(const GradientData &data, const Order *batch, Index k,
                             double *slopes, Vector<Kink> &kinks) {
  double left = 0;  // the slope of the loss in b is -left, until it changes sign
  kinks.clear();
  for (Index s = 0; s < k; ++s) {
    const Index i = batch[s];
    kinks.push_back({data.y[i] * (1.0 - slopes[s]), s});
    if (data.y[i] > 0) left += data.cost[i];
  }
  std::sort(kinks.begin(), kinks.end(), [](const Kink &a, const Kink &b) {
    return a.at < b.at || (a.at == b.at && a.s < b.s);
  });
  Index best = 0;
  for (; best < k - 1; ++best) {
    const double weight = data.cost[batch[kinks[best].s]];
    if (left <= weight) break;
    left -= weight;
  }
  for (Index p = 0; p < k; ++p) {
    const Index i = batch[kinks[p].s];
    const bool positive = data.y[i] > 0;
    double share = positive == (p > best) ? data.cost[i] : 0.0;
    if (p == best)
      share = std::clamp(positive ? data.cost[i] - left : left, 0.0, data.cost[i]);
    slopes[kinks[p].s] = share;
  }
  return kinks[best].at;
}

// Makes one pass over an order. `slopes` has room for `batch` numbers. The last batch
// may be short.
template <class Rows>
GradientPass stochastic_gradient_epoch(const Rows &rows, const GradientData &data,
                                       const Order *order, Index m, double *slopes,
                                       GradientState &state, Poll &poll) {
  GradientPass pass;
  const Index width = rows.width(), n = rows.rows();
  Vector<Kink> kinks;
  SumOfSteps none;
  SumOfSteps &sum = state.sum ? *state.sum : none;
  double bias = state.bias ? state.bias[0] : 0.0;
  const double smallest_scale = sum.r ? kLeastScaleOfMean : kLeastScale;
  for (Index begin = 0; begin < m; begin += data.batch) {
    const Index end = std::min(m, begin + data.batch);
    const double k = static_cast<double>(end - begin);
    bool leave = false;
    double y_dot = 0;  // y w.x of the last row, before the step
    for (Index s = begin; s < end; ++s) {
      look_ahead(rows, order, s, m, data.cost, data.q, data.y, state.beta);
      const Index i = order[s];
      y_dot = state.a * (data.y[i] * rows.dot(i, state.v));
      slopes[s - begin] = y_dot;
      leave |= poll(rows.count(i));
    }
    if (data.rule == BiasRule::kBatch) {
      bias = best_for_batch(data, order + begin, end - begin, slopes, kinks);
      for (const Kink &kink : kinks) {
        const Index i = order[begin + kink.s];
        pass.loss += data.cost[i] * data.loss.value(data.y[i] * (kink.at - bias));
      }
    } else {
      for (Index s = begin; s < end; ++s) {
        const Index i = order[s];
        const double u = 1.0 - slopes[s - begin] - data.y[i] * bias;
        pass.loss += data.cost[i] * data.loss.value(u);
        slopes[s - begin] = data.cost[i] * data.loss.derivative(u);
      }
    }

    state.t += 1.0;
    const double forgotten = forgetting(data, state.t);
    const double eta = forgotten / data.lambda;
    const double decay = std::max(0.0, 1.0 - forgotten);
    sum.sigma += state.a;  // the average takes w_t, the point before the step
    state.a *= decay;
    state.norm *= decay * decay;
    if (state.a < smallest_scale) absorb_scale(state, sum, width, n);

    for (Index s = begin; s < end; ++s) {
      if (slopes[s - begin] == 0.0) continue;
      const Index i = order[s];
      const double step = eta / k * slopes[s - begin];  // change of the coefficient
      const double margin = data.batch == 1
                                ? decay * y_dot
                                : state.a * (data.y[i] * rows.dot(i, state.v));
      state.norm += 2.0 * step * margin + step * step * data.q[i];
      const double change = step / state.a;
      rows.axpy(i, change * data.y[i], state.v);
      state.beta[i] += change;
      if (data.rule == BiasRule::kStep)
        bias += slopes[s - begin] / (k * std::sqrt(state.t)) * data.y[i];
      if (sum.r) {
        rows.axpy(i, -sum.sigma * change * data.y[i], sum.r);
        sum.r_beta[i] -= sum.sigma * change;
      }
      ++pass.updates;
    }
    if (data.project && state.norm * data.lambda > 1.0) {
      const double scale = 1.0 / std::sqrt(state.norm * data.lambda);
      state.a *= scale;
      state.norm = 1.0 / data.lambda;
    }
    pass.visited = end;
    if (leave) break;
  }
  if (state.bias) state.bias[0] = bias;
  return pass;
}

}  // namespace dualgap
