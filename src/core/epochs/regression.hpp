// Dual coordinate ascent for regression, and pair steps for one class.
//
// Regression, with the loss l(|y_i - w.x_i| - epsilon), times `above` or `below`:
// Problem    max over -below U_i <= b_i <= above U_i of
//            D(b) = sum_i (y_i b_i - epsilon |b_i|) - 1/2 ||w||^2
//                   - 1/2 sum delta_i b_i^2,  w = sum b_i x_i
// Update     for one i:  G = w.x_i - y_i + delta_i b_i,  H = q_i + delta_i
//            z = b_i - G/H;  b_i <- the point of the box nearest to
//            sign(z) max(|z| - epsilon/H, 0);  w <- w + (change of b_i) x_i
//            (Ho and Lin, JMLR 13, 2012, eq. 27, written as soft thresholding)
//            Shrinking as in sleeping_rows.hpp skips rows firmly at a bound or 0.
// Guarantee  D never falls; linear rate (Ho and Lin, section 3.2; Wang and Lin, JMLR
//            15, 2014)
// Cost       one dot per active row, one axpy per change
//
// One class, the plane w.x = rho:
// Problem    min 1/2 ||w||^2 over 0 <= a_i <= U_i, sum_i a_i = total, w = sum a_i x_i
// Update     for a pair chosen by the caller: t = (w.x_j - w.x_i)/||x_i - x_j||^2,
//            clipped to the box; a_i += t, a_j -= t, w += t (x_i - x_j)
// Guarantee  the objective never rises, and sum_i a_i is constant up to rounding
// Cost       three dots and up to four axpys per pair
// Source     Chou, Lin and Lin, SDM 2020: pairs are chosen by the gradients of a pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../stop.hpp"
#include "dual.hpp"

namespace dualgap {

using RegressionData = DualDataOf<ResidualLoss, double>;

// Curvature of a pair, relative to its two squared norms, that is rounding.
inline constexpr double kFlat = 1e-14;

// Returns the exact maximiser of D over one b, with the others fixed. A zero row
// without delta has no curvature: D is linear on either side of 0. `upper` is U_i.
inline double regression_step(double b, double gradient, double curvature, double upper,
                              const ResidualLoss &loss) {
  const double z = curvature == 0.0 ? -gradient : b - gradient / curvature;
  const double most = loss.weight(z) * upper;
  if (curvature == 0.0)
    return std::abs(gradient) > loss.epsilon ? std::copysign(most, z) : 0.0;
  const double size = std::max(std::abs(z) - loss.epsilon / curvature, 0.0);
  return std::copysign(std::min(size, most), z);
}

template <class Rows>
SleepingPass regression_epoch(const Rows &rows, const RegressionData &data,
                              DualState state, Sleep sleep, Index chunk, Order *order,
                              Random &random, Poll &poll) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  SleepingPass pass;
  const Index m = awake_rows(sleep.wake, rows.rows(), order);
  shuffle_chunks(order, m, chunk, random);
  const ResidualLoss &loss = data.loss;
  const double epsilon = loss.epsilon;
  double moving = 0;  // sum of |projected gradient|
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, order, t, m, state.alpha, data.cost, data.q, data.y, sleep.length);
    const Index i = order[t];
    const double c = data.cost[i], y = data.y[i];
    const double b = state.alpha[i];
    const double upper = loss.form.upper(c), delta = loss.form.diagonal(c);
    const double residual = y - rows.dot(i, state.w);
    const double gradient = delta * b - residual;
    const double lost =
        c * loss.weight(residual) * loss.form.value(std::abs(residual) - epsilon);
    pass.gap += lost - b * residual + epsilon * std::abs(b) + 0.5 * delta * b * b;
    ++pass.visited;

    // `side` is the negative derivative of D if b is not 0. `outward` measures how
    // firmly b stays at 0 or at a bound.
    const double side = gradient + std::copysign(epsilon, b);
    double outward = b == 0.0 ? epsilon - std::abs(gradient) : -kInf;
    if (std::abs(b) == loss.weight(b) * upper)
      outward = b == 0.0 ? kInf : std::copysign(1.0, b) * -side;
    if (outward >= 0.0) {
      const bool firm = outward > sleep.threshold;
      const int next = firm ? std::min(2 * sleep.length[i] + 1, sleep.longest) : 0;
      sleep.wake[i] = sleep.length[i] = static_cast<std::uint8_t>(next);
    } else {
      sleep.length[i] = 0;
      moving += b == 0.0 ? std::abs(gradient) - epsilon : std::abs(side);
      const double next = regression_step(b, gradient, data.q[i] + delta, upper, loss);
      if (next != b) {
        state.alpha[i] = next;
        pass.linear += (next - b) * (y - 0.5 * delta * (next + b)) -
                       epsilon * (std::abs(next) - std::abs(b));
        rows.axpy(i, next - b, state.w);
        ++pass.updates;
      }
    }
    if (poll(rows.count(i))) break;
  }
  pass.threshold =
      pass.visited > 0 ? moving / static_cast<double>(pass.visited) : sleep.threshold;
  return pass;
}

// Returns a + t, and the bound exactly if t is the distance to it.
inline double moved(double a, double t, double upper) {
  if (t == upper - a) return upper;
  return t == -a ? 0.0 : std::clamp(a + t, 0.0, upper);
}

// Makes steps on the pairs (rise[t], fall[t]). `room` has width() zeros on entry and on
// return.
template <class Rows>
DualPass pair_epoch(const Rows &rows, const double *upper, const double *q,
                    const Order *rise, const Order *fall, Index m, DualState &state,
                    double *room, Poll &poll) {
  DualPass pass;
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, rise, t, m, state.alpha, q);
    look_ahead(rows, fall, t, m, state.alpha, q);
    const Index i = rise[t], j = fall[t];
    const double lead = rows.dot(j, state.w) - rows.dot(i, state.w);
    rows.axpy(i, 1.0, room);
    const double product = rows.dot(j, room);
    rows.axpy(i, -1.0, room);
    const double curvature = q[i] + q[j] - 2.0 * product;
    const double most = std::min(upper[i] - state.alpha[i], state.alpha[j]);
    const double least = -std::min(state.alpha[i], upper[j] - state.alpha[j]);
    // Rows that are equal up to rounding have nothing to gain.
    const bool flat = curvature <= kFlat * (q[i] + q[j]);
    const double by = flat ? 0.0 : std::clamp(lead / curvature, least, most);
    pass.visited += 2;
    if (by != 0.0) {
      state.alpha[i] = moved(state.alpha[i], by, upper[i]);
      state.alpha[j] = moved(state.alpha[j], -by, upper[j]);
      rows.axpy(i, by, state.w);
      rows.axpy(j, -by, state.w);
      ++pass.updates;
    }
    if (poll(2 * (rows.count(i) + rows.count(j)))) break;
  }
  return pass;
}

}  // namespace dualgap
