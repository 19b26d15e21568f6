// SGD-QN: stochastic gradient descent with a diagonal quasi-Newton scaling.
//
// Problem    min lambda/2 ||w||^2 + sum_i p_i l(1 - y_i w.x_i),
//            p_i = c_i/sum c, lambda = 1/sum c (the C-form divided by sum c)
// Update     g = omega_i l'(1 - y_i w.x_i), omega_i = c_i/mean(c) (1 without weights):
//              w <- w + g y_i B x_i/(t + t0)          on the entries of x_i only
//              w <- w - skip lambda B w/(t + t0)      every `skip` steps, O(d)
//            The step after each regularisation refreshes B from two points w' and w''
//            and the row of the step: with Delta g = g(w'') - g(w'),
//              ratio_j = lambda - Delta g y_i x_ij/(w''_j - w'_j)
//   2009       w', w'' before and after the row's own step;
//              B_j <- max(B_j + 2/r (1/ratio_j - B_j), 1e-2/lambda), r = 2, 3, ...;
//              B starts at 1/lambda. Algorithm of Bordes, Bottou and Gallinari 2009.
//   corrected  w' before the last regularisation, w'' now. The steps have no factor
//              1/(t + t0), because B contains it; B starts at 1/(lambda t0):
//              1/B_j <- 1/B_j + skip clip(ratio_j, 0.1 lambda, 100 lambda).
//              This is the authors' later source, except for one rule: there B stays
//              the same while Delta g is 0, and the steps since then replace skip. With
//              the hinge few rows change B, and each would count for thousands of
//              steps.
// Guarantee  none for a finite run; asymptotically O(1/t)
// Cost       O(nnz of the row) per step, and O(d) every `skip` steps; 24 bytes per
//            column and 8 per row. The diagonal scaling leaves no exact
//            w = sum beta_i y_i x_i. The running mean of l' of each row tends to its
//            dual variable over c_i, and is in the box by construction. With
//            v = sum alpha_i y_i x_i of this dual point, P - D is the sum of gap
//            shares, which a pass computes, plus ||w - v||^2/2.
// Source     Bordes, Bottou and Gallinari 2009, and the authors' later source
#pragma once

#include <algorithm>

#include "../core/epochs/dual.hpp"
#include "../core/stop.hpp"

namespace dualgap {

// Least entry of B, relative to the largest: the authors' value.
inline constexpr double kLeastEntry = 1e-2;
// Bounds on a ratio, relative to lambda: the authors' values.
inline constexpr double kLeastRatio = 0.1, kLargestRatio = 100.0;

struct SgdQnSettings {
  double lambda;
  bool corrected;
  Index skip;
  double t0;
  double gain;  // weight of a new l' in the running mean
};

// The costs are the weights omega.
struct SgdQnData : DualData, SgdQnSettings {};

struct SgdQnState {
  Span<double> w, B;
  Span<double> past;   // corrected: w'. 2009: scratch
  Span<double> slope;  // running mean of l' per row
  double t;            // steps so far
  double r;            // refreshes so far + 2
  Index count;         // steps until the next regularisation
  bool refresh;        // B is refreshed in the next step
};

struct SgdQnPass {
  Index visited = 0;
  Index updates = 0;
  double loss = 0;  // sum of omega_i l_i at visit time
  double gap = 0;   // sum of gap shares at visit time, over mean(c)
};

// Refreshes B from the step of the row: w''_j - w'_j = step B_j x_ij, so that
// ratio_j = lambda + fall/(step B_j). Without a step or an entry the target is
// 1/lambda.
template <class Rows>
void refresh_2009(const Rows &rows, Index i, const SgdQnData &data, double step,
                  double fall, SgdQnState &state) {
  const Index width = rows.width();
  const double largest = 1.0 / data.lambda, rate = 2.0 / state.r;
  double *target = state.past;
  std::fill(target, target + width, largest);
  if (step != 0.0)
    rows.for_each(i, [&](Index j, double x) {
      if (x != 0.0) target[j] = 1.0 / (data.lambda + fall / (step * state.B[j]));
    });
  for (Index j = 0; j < width; ++j)
    state.B[j] =
        std::max(state.B[j] + rate * (target[j] - state.B[j]), kLeastEntry * largest);
  state.r += 1.0;
}

// Adds skip lambda to every 1/B_j, and skip (ratio_j - lambda) more on the entries of
// the row. fall = y_i (g(w') - g(w'')).
template <class Rows>
void refresh_corrected(const Rows &rows, Index i, const SgdQnData &data, double fall,
                       SgdQnState &state) {
  const double lambda = data.lambda, skip = static_cast<double>(data.skip);
  const auto grow = [&](Index j, double ratio) {
    state.B[j] /= 1.0 + skip * ratio * state.B[j];
  };
  for (Index j = 0; j < rows.width(); ++j) grow(j, lambda);
  if (fall == 0.0) return;
  rows.for_each(i, [&](Index j, double x) {
    if (x == 0.0) return;
    const double change = state.w[j] - state.past[j];
    const double ratio = change == 0.0
                             ? kLargestRatio * lambda
                             : std::clamp(lambda + fall * x / change,
                                          kLeastRatio * lambda, kLargestRatio * lambda);
    grow(j, ratio - lambda);
  });
}

template <class Rows>
SgdQnPass sgd_qn_epoch(const Rows &rows, const SgdQnData &data, const Order *order,
                       Index m, SgdQnState &state, Poll &poll) {
  SgdQnPass pass;
  const Index width = rows.width();
  for (Index s = 0; s < m; ++s) {
    look_ahead(rows, order, s, m, data.cost, data.y, state.slope);
    const Index i = order[s];
    const double y = data.y[i], omega = data.cost[i];
    const auto slope_at = [&](const double *w) {
      return data.loss.derivative(1.0 - y * rows.dot(i, w));
    };
    const double margin = y * rows.dot(i, state.w);
    const double slope = data.loss.derivative(1.0 - margin);
    pass.loss += omega * data.loss.value(1.0 - margin);
    // Use the mean before this visit. At the first visit the mean after it would be l'
    // itself, and the gap share 0.
    pass.gap += gap_share(data.loss, omega * state.slope[i], margin, omega);
    state.slope[i] += data.gain * (slope - state.slope[i]);

    const double step = omega * slope * y;
    const auto descend = [&](double rate) {
      if (step == 0.0) return;
      rows.for_each(
          i, [&](Index j, double x) { state.w[j] += rate * step * state.B[j] * x; });
      ++pass.updates;
    };
    const auto regularise = [&](double rate) {
      if (--state.count > 0) return;
      state.count = data.skip;
      state.refresh = true;
      const double forget = static_cast<double>(data.skip) * rate * data.lambda;
      // A share above 1 would reverse w; later steps are shorter.
      for (Index j = 0; j < width; ++j)
        state.w[j] *= std::max(0.0, 1.0 - forget * state.B[j]);
    };

    if (data.corrected) {
      if (state.refresh) {
        refresh_corrected(rows, i, data, y * omega * (slope_at(state.past) - slope),
                          state);
        state.refresh = false;
      }
      if (state.count <= 1) std::copy_n(state.w.first, width, state.past.first);
      regularise(1.0);
      descend(1.0);
    } else {
      const double rate = 1.0 / (state.t + data.t0);
      descend(rate);
      if (state.refresh) {
        const double fall = y * omega * (slope - slope_at(state.w));
        refresh_2009(rows, i, data, rate * step, fall, state);
        state.refresh = false;
      }
      regularise(rate);
    }
    state.t += 1.0;
    ++pass.visited;
    if (poll(rows.count(i))) break;
  }
  return pass;
}

}  // namespace dualgap
