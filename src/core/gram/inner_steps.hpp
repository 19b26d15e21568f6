// Problems of the working sets in the block solver: q variables whose matrix is in
// cache.
//
// Both kinds use c_i = y_i alpha_i and the kernel matrix K.
//
// Hinge, free bias   v_i = p_i - F_i. up: c_i < hi_i, low: c_i > lo_i.
//     i = argmax_up v_i,  j = argmax over low, v_j < v_i, of (v_i - v_j)^2 / s_ij,
//     s_ij = K_ii + K_jj - 2 K_ij;  t = min((v_i - v_j)/s_ij, hi_i - c_i, c_j - lo_j);
//     c_i += t, c_j -= t, v -= t (K_i - K_j)
//     (second-order pairs: Fan, Chen and Lin, JMLR 6, 2005, WSS 2)
//     With a term -epsilon |c_i| in the objective, v_i is replaced by v_i - epsilon if
//     c_i > 0 and by v_i + epsilon if c_i < 0. At c_i = 0 the first decides whether c_i
//     may rise, the second whether it may fall. A step ends at 0.
// Squared hinge      v_i = y_i - F_i - b - delta_i c_i, b = sum_j c_j the penalised
//     bias. i = argmax of v_i^2 / s_i over rows that can move, s_i = K_ii + 1 +
//     delta_i; c_i += t with t = v_i/s_i, or c_i <- 0 if y_i c_i would be negative;
//     v -= t (K_i + 1), v_i -= t delta_i. At the end i = argmax of |v_i|.
//
// v is float32 and relative to the threshold, so that the values that decide are near
// 0. With epsilon it is relative to the nearer of the two values (`shift`). c is
// float64. In pair steps c stays on a grid, the last place of the largest bound. Sums
// and differences are then exact, and sum_i c_i = 0 to the last bit. Cost: three passes
// (squared hinge: two) over q floats per step, in the first two levels of cache except
// for the rows of a large H.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../rows.hpp"
#include "../simd.hpp"
#include "../stop.hpp"
#include "aligned.hpp"
#include "curvature.hpp"

namespace dualgap {

// Maximum over packs of floats and its index, the first among equal values.
class LaneMaximum {
 public:
  using V = simd::Pack<float>;
  DUALGAP_INLINE void see(V value, V index) {
    index_ = where_greater(value, value_, index, index_);
    value_ = max(value, value_);
  }
  Index index() const {
    float value[V::kLanes], index[V::kLanes];
    value_.store(value);
    index_.store(index);
    int best = 0;
    for (int l = 1; l < V::kLanes; ++l)
      if (value[l] > value[best] || (value[l] == value[best] && index[l] < index[best]))
        best = l;
    return static_cast<Index>(index[best]);
  }
  float value() const {
    float value[V::kLanes];
    value_.store(value);
    return *std::max_element(value, value + V::kLanes);
  }

 private:
  V value_ = V::all(-std::numeric_limits<float>::infinity());
  V index_ = V::all(0.0f);
};

// Variables of the problem of a working set. q is a multiple of kUnit; the variables
// beyond the working set are idle.
struct Inner {
  static constexpr Index kUnit = 16;
  Index q = 0;
  using Floats = std::vector<float, AlignedAllocator<float>>;
  Floats H;     // [q][stride()]
  Floats v, s;  // s: diagonal of K; for the squared hinge s_i
  // Hinge: the number to add to v if c may rise (fall), which is 0 without epsilon;
  // -inf (+inf) if it may not.
  Floats up, low;
  // Squared hinge: the label; inf if alpha_i > 0, else 0; y_i / sqrt(s_i).
  Floats y, room, scale;
  std::vector<double> c, lo, hi, delta, shift;
  double epsilon = 0.0;

  explicit Inner(Index size = 0) : q((size + kUnit - 1) / kUnit * kUnit) {
    const auto n = static_cast<std::size_t>(q);
    H.assign(n * static_cast<std::size_t>(stride()), 0.0f);
    for (auto *a : {&v, &s, &up, &low, &y, &room, &scale}) a->assign(n, 0.0f);
    for (auto *a : {&c, &lo, &hi, &delta, &shift}) a->assign(n, 0.0);
  }
  // Not a power of two, because then all entries of a column would compete for the same
  // cache set.
  Index stride() const { return q + kUnit; }
  const float *row(Index i) const { return H.data() + i * stride(); }
  std::size_t at(Index i) const { return static_cast<std::size_t>(i); }
};

// Makes steps until no pair violates by more than tol. `unit` is the grid of c.
inline Index pair_steps(Inner &p, double unit, double tol, Index most, Poll &poll) {
  using V = simd::Pack<float>;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto mark = [&](Index i) {
    const double c = p.c[p.at(i)], shift = p.shift[p.at(i)];
    const double rising = (c < 0.0 ? p.epsilon : -p.epsilon) - shift;
    const double falling = (c > 0.0 ? -p.epsilon : p.epsilon) - shift;
    p.up[p.at(i)] = c < p.hi[p.at(i)] ? static_cast<float>(rising) : -kInf;
    p.low[p.at(i)] = c > p.lo[p.at(i)] ? static_cast<float>(falling) : kInf;
  };
  for (Index i = 0; i < p.q; ++i) mark(i);
  float lanes[V::kLanes];
  for (int l = 0; l < V::kLanes; ++l) lanes[l] = static_cast<float>(l);
  const V first = V::load(lanes), step = V::all(static_cast<float>(V::kLanes));
  const float *up = p.up.data(), *low = p.low.data(), *s = p.s.data();
  float *v = p.v.data();

  LaneMaximum top;
  V index = first;
  for (Index k = 0; k < p.q; k += V::kLanes, index = index + step)
    top.see(V::load(v + k) + V::load(up + k), index);

  for (Index steps = 0; steps < most; ++steps) {
    const Index i = top.index();
    if (!(top.value() > -kInf) || poll(p.q)) return steps;
    const float *Hi = p.row(i);
    const V vi = V::all(v[i] + up[i]), si = V::all(s[i]);
    V widest = V::all(0.0f);
    LaneMaximum gain;
    index = first;
    for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
      const V lead = max(vi - (V::load(v + k) + V::load(low + k)), V::all(0.0f));
      const V sum = si + V::load(s + k);
      const V Hk = V::load(Hi + k);
      // Keep s_ij away from 0, as rounding in float32 may make it tiny or negative.
      const V bend = max(sum - (Hk + Hk), sum * V::all(5e-7f) + V::all(1e-30f));
      gain.see(lead * lead / bend, index);
      widest = max(widest, lead);
    }
    float lead[V::kLanes];
    widest.store(lead);
    if (!(*std::max_element(lead, lead + V::kLanes) > tol)) return steps;
    const Index j = gain.index();
    const float sum = s[i] + s[j];
    refuse_negative(sum - 2.0f * Hi[j], std::abs(sum) + 2.0f * std::abs(Hi[j]));
    const double bend = std::max(sum - 2.0f * Hi[j], sum * 5e-7f + 1e-30f);
    const double ci = p.c[p.at(i)], cj = p.c[p.at(j)];
    const double most_up = (ci < 0.0 ? 0.0 : p.hi[p.at(i)]) - ci;
    const double most_down = cj - (cj > 0.0 ? 0.0 : p.lo[p.at(j)]);
    const double high = static_cast<double>(v[i]) + static_cast<double>(up[i]);
    const double wish =
        (high - static_cast<double>(v[j]) - static_cast<double>(low[j])) / bend;
    double t = std::min(most_up, most_down);
    if (wish < t) t = std::nearbyint(wish / unit) * unit;
    if (!(t > 0.0)) return steps;  // below the grid, so nothing more to gain
    p.c[p.at(i)] += t;
    p.c[p.at(j)] -= t;
    mark(i);
    mark(j);
    const float *Hj = p.row(j);
    const V by = V::all(static_cast<float>(-t));
    top = LaneMaximum();
    index = first;
    for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
      const V moved = fma(by, V::load(Hi + k) - V::load(Hj + k), V::load(v + k));
      moved.store(v + k);
      top.see(moved + V::load(up + k), index);
    }
  }
  return most;
}

// Makes steps until no row that can move has |v_i| above tol.
inline Index coordinate_steps(Inner &p, double tol, Index most, Poll &poll) {
  using V = simd::Pack<float>;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // y_i / sqrt(s_i), the only number besides v and room needed to rank a row. Idle rows
  // have y = 0.
  for (Index i = 0; i < p.q; ++i) {
    p.scale[p.at(i)] = p.y[p.at(i)] / std::sqrt(p.s[p.at(i)]);
    p.room[p.at(i)] = p.c[p.at(i)] != 0.0 ? kInf : 0.0f;
  }
  float lanes[V::kLanes];
  for (int l = 0; l < V::kLanes; ++l) lanes[l] = static_cast<float>(l);
  const V first = V::load(lanes), step = V::all(static_cast<float>(V::kLanes));
  const V zero = V::all(0.0f), one = V::all(1.0f);
  // Number of floats to prefetch ahead: a large H is not in cache, and the hardware
  // prefetcher stops at each page.
  constexpr Index kFar = 640;
  const float *scale = p.scale.data(), *room = p.room.data();
  float *v = p.v.data();
  LaneMaximum gain;
  // Ranks rows by their violation over sqrt(s_i), the root of the gain of a step. The
  // violation is v in the direction of the label, or in the other while alpha is not 0.
  const auto see = [&](Index k, V value, V index) {
    const V w = value * V::load(scale + k);
    gain.see(max(w, min(zero - w, V::load(room + k))), index);
  };
  const auto violation = [&](Index i) {
    const float w = v[i] * p.y[p.at(i)];
    return std::max(w, std::min(-w, room[i]));
  };
  // If weights differ much, the row with the largest gain need not violate most.
  const auto widest = [&] {
    Index at = 0;
    for (Index i = 1; i < p.q; ++i)
      if (violation(i) > violation(at)) at = i;
    return at;
  };
  V index = first;
  for (Index k = 0; k < p.q; k += V::kLanes, index = index + step)
    see(k, V::load(v + k), index);
  Index last = gain.index();
  for (Index steps = 0; steps < most; ++steps) {
    Index i = gain.index();
    if (!(violation(i) > tol)) i = widest();
    if (!(violation(i) > tol) || poll(p.q)) return steps;
    const std::size_t at = p.at(i);
    // A row with negative curvature, alone or together with the last row, would make
    // steps without end.
    const double own = p.s[at], both = own * static_cast<double>(p.s[p.at(last)]);
    const double across = i == last ? 0.0 : static_cast<double>(p.row(last)[i]) + 1.0;
    refuse_negative(own, std::abs(own));
    refuse_negative(both - across * across, std::abs(both) + across * across);
    last = i;
    const double before = p.c[at];
    double after = before + static_cast<double>(v[i]) / own;
    if (after * static_cast<double>(p.y[at]) <= 0.0) after = 0.0;
    const double t = after - before;
    if (t == 0.0) return steps;
    p.c[at] = after;
    p.room[at] = after != 0.0 ? kInf : 0.0f;
    v[i] -= static_cast<float>(t * p.delta[at]);
    const float *Hi = p.row(i);
    const V by = V::all(static_cast<float>(-t));
    gain = LaneMaximum();
    index = first;
    for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
      prefetch_line(Hi + k + kFar);
      const V moved = fma(by, V::load(Hi + k) + one, V::load(v + k));
      moved.store(v + k);
      see(k, moved, index);
    }
  }
  return most;
}

}  // namespace dualgap
