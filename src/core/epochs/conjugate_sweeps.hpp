// Acceleration between two sweeps of sleeping_rows.hpp: momentum, and conjugate
// directions.
//
// Problem    as in dual_coordinate.hpp. With K = Z Z' + diag(delta), z_i = y_i x_i:
//            D(a) = sum a_i - 1/2 a'K a. A product u'K v = (Z'u).(Z'v) +
//            sum delta_i u_i v_i costs O(d) if the images Z'u, Z'v are known, and O(n)
//            more for delta > 0.
// Update     momentum   a <- clip(a + beta (a - a')), a' the end of the sweep before
//                       (Nesterov 1983 on whole sweeps)
//            conjugate  s = displacement by a sweep from a0; directions p_1, p_2 of the
//                       last steps;  q = s - sum_r p_r s'K p_r / p_r'K p_r
//                       a = clip(a0 + q (sum q - q'K a0)/(q'K q)), the exact maximiser
//                       on the line except for the clipping. If D is below its value
//                       after the sweep, the result of the sweep is kept and the
//                       directions are discarded.
// Guarantee  D after a conjugate step is never below D after the sweep; momentum has no
//            such guarantee
// Cost       some passes over n and d numbers, and one axpy per clipped row
// Source     Nesterov 1983; flexible conjugate gradients with the sweep as a
//            preconditioner: Notay, SIAM J. Sci. Comput. 22, 2000
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "../losses.hpp"
#include "../rows.hpp"
#include "../stop.hpp"
#include "../sums.hpp"
#include "dual.hpp"

namespace dualgap {

// Writes the rows whose variables are outside their boxes to `order`, and returns their
// number.
template <class Box>
Index outside(const double *point, Index n, const Box &upper, Order *order) {
  Index m = 0;
  for (Index i = 0; i < n; ++i) {
    order[m] = static_cast<Order>(i);
    m += (point[i] < 0.0) | (point[i] > upper(i));
  }
  return m;
}

// Clips these rows to their boxes and corrects the image. If told to stop, it only
// clips, and returns false: the image is then wrong.
template <class Rows>
bool clip_rows(const Rows &rows, const DualData &data, const Order *order, Index m,
               double *point, double *image, Poll &poll) {
  bool whole = true;
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, order, t, m, point);
    const Index i = order[t];
    const double inside = std::clamp(point[i], 0.0, data.loss.upper(data.cost[i]));
    if (whole) rows.axpy(i, (inside - point[i]) * data.y[i], image);
    point[i] = inside;
    whole = whole && !poll(rows.count(i));
  }
  return whole;
}

// Does clip_rows with the first m rows of an order. Only this depends on the kind of
// rows, so the steps are compiled once.
using Clip = std::function<bool(Index m, double *point, double *image)>;

inline constexpr double kNoise = 1e-14;  // relative to D

struct Leap {
  bool whole = true;   // w is the image of alpha
  bool taken = false;  // the conjugate point is better than the point of the sweep
  Index clipped = 0;
  Index moved = 0;    // rows whose alpha has changed
  double linear = 0;  // sum a_i - 1/2 sum delta_i a_i^2 at the new point
};

// Moves beyond the end of a sweep, away from the end `before` of the sweep before it,
// which then becomes the end of the last sweep.
inline Leap momentum(Index n, Index width, const DualData &data, DualState &state,
                     const DualState &before, double beta, std::uint8_t *wake,
                     Order *order, const Clip &clip) {
  double *end = before.alpha, *end_w = before.w;
  const auto upper = [&](Index i) { return data.loss.upper(data.cost[i]); };
  Leap leap;
  for (Index j = 0; j < width; ++j) {
    const double w = state.w[j];
    state.w[j] = w + beta * (w - end_w[j]);
    end_w[j] = w;
  }
  for (Index i = 0; i < n; ++i) {
    const double a = state.alpha[i];
    state.alpha[i] = a + beta * (a - end[i]);
    end[i] = a;
  }
  leap.clipped = outside(state.alpha, n, upper, order);
  leap.whole = clip(leap.clipped, state.alpha, state.w);
  for (Index i = 0; i < n; ++i) {
    const bool moved = state.alpha[i] != end[i];
    leap.moved += moved;
    if (moved) wake[i] = 0;
  }
  leap.linear = sum_of(0, n, [&](Index i) {
    const double a = state.alpha[i];
    return a - 0.5 * data.loss.diagonal(data.cost[i]) * a * a;
  });
  return leap;
}

// Two directions p_r, the displacements of the last steps, and the start of the next.
struct Directions {
  DualState base;                     // a0, and Z'a0
  std::array<Span<double>, 2> point;  // p_r
  std::array<Span<double>, 2> image;  // Z'p_r
  std::array<double, 2> norm;         // p_r'K p_r; 0 if there is no direction
  Index next;                         // the direction to be replaced next
};

// One step from a0 = base, given the end of a sweep that began there, and D at its end.
inline Leap conjugate_step(Index n, Index width, const DualData &data, DualState &state,
                           double dual, Directions &dirs, std::uint8_t *wake,
                           Order *order, const Clip &clip) {
  const bool diagonal = data.loss.curvature != 0.0;
  const auto upper = [&](Index i) { return data.loss.upper(data.cost[i]); };
  const auto delta = [&](Index i) { return data.loss.diagonal(data.cost[i]); };
  const double *a = state.alpha, *w = state.w;
  double *a0 = dirs.base.alpha, *w0 = dirs.base.w;

  // s'K p_r, and the weights of the directions in the new one.
  const double *p0 = dirs.point[0], *p1 = dirs.point[1];
  const double *u0 = dirs.image[0], *u1 = dirs.image[1];
  auto products = sums_of<2>(0, width, [&](Index j, double *term) {
    const double s = w[j] - w0[j];
    term[0] = s * u0[j];
    term[1] = s * u1[j];
  });
  if (diagonal) {
    const auto more = sums_of<2>(0, n, [&](Index i, double *term) {
      const double s = delta(i) * (a[i] - a0[i]);
      term[0] = s * p0[i];
      term[1] = s * p1[i];
    });
    products[0] += more[0];
    products[1] += more[1];
  }
  double weight[2];
  for (Index r = 0; r < 2; ++r)
    weight[r] = dirs.norm[r] > 0.0 ? -products[r] / dirs.norm[r] : 0.0;

  // The new direction replaces the oldest one.
  const auto next = dirs.next;
  double *q = dirs.point[next], *image = dirs.image[next];
  const auto along = sums_of<2>(0, n, [&](Index i, double *term) {
    const double value = (a[i] - a0[i]) + weight[0] * p0[i] + weight[1] * p1[i];
    q[i] = value;
    const double curved = diagonal ? delta(i) * value : 0.0;
    term[0] = value - curved * a0[i];
    term[1] = curved * value;
  });
  const auto across = sums_of<2>(0, width, [&](Index j, double *term) {
    const double value = (w[j] - w0[j]) + weight[0] * u0[j] + weight[1] * u1[j];
    image[j] = value;
    term[0] = value * w0[j];
    term[1] = value * value;
  });
  const double slope = along[0] - across[0], curvature = along[1] + across[1];
  const double step = curvature > 0.0 ? slope / curvature : 0.0;

  // q becomes the new point.
  for (Index i = 0; i < n; ++i) q[i] = a0[i] + step * q[i];
  double norm = sum_of(0, width, [&](Index j) {
    image[j] = w0[j] + step * image[j];
    return image[j] * image[j];
  });
  Leap leap;
  leap.clipped = outside(q, n, upper, order);
  leap.whole = clip(leap.clipped, q, image);
  leap.linear =
      sum_of(0, n, [&](Index i) { return q[i] - 0.5 * delta(i) * q[i] * q[i]; });
  if (leap.clipped > 0)
    norm = sum_of(0, width, [&](Index j) { return image[j] * image[j]; });
  // A gain of the size of rounding may be an error of w, which is in the directions too
  // and along which D only seems to rise.
  const double gain = leap.linear - 0.5 * norm - dual;
  leap.taken = leap.whole && gain > kNoise * std::abs(dual);
  leap.whole = true;  // a point that is not taken changes nothing

  if (!leap.taken) {  // keep the result of the sweep
    dirs.norm[1 - next] = 0.0;
    std::copy(a, a + n, q);
    std::copy(w, w + width, image);
  }
  for (Index i = 0; i < n; ++i) {
    const bool moved = q[i] != a[i];
    leap.moved += moved;
    if (moved) wake[i] = 0;
    state.alpha[i] = q[i];
    q[i] -= a0[i];
    a0[i] = a[i];
  }
  dirs.norm[next] = sum_of(0, width, [&](Index j) {
    const double end = image[j], displacement = end - w0[j];
    image[j] = displacement;
    w0[j] = state.w[j] = end;
    return displacement * displacement;
  });
  if (diagonal)
    dirs.norm[next] += sum_of(0, n, [&](Index i) { return delta(i) * q[i] * q[i]; });
  dirs.next = 1 - dirs.next;
  return leap;
}

}  // namespace dualgap
