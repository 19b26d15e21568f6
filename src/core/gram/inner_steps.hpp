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
//     If the variables of each group have a sum of their own, i and j are of one group,
//     the one where the gain is larger, and v is relative to its threshold.
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
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../rows.hpp"
#include "../simd.hpp"
#include "../stop.hpp"
#include "aligned.hpp"
#include "curvature.hpp"

namespace dualgap {

// Least curvature of a pair, relative to its diagonal: a few roundings. Least curvature
// of all, for points that are 0.
template <class T>
inline constexpr T kBend = std::is_same_v<T, float> ? T(5e-7) : T(1e-15);
template <class T>
inline constexpr T kZeroBend = T(1e-30);
// Number of floats to prefetch ahead: a large H is not in cache, and the hardware
// prefetcher stops at each page.
inline constexpr Index kPrefetched = 640;

// Maximum over packs and its index, the first among equal values.
template <class T>
class LaneMaximum {
 public:
  using V = simd::Pack<T>;
  DUALGAP_INLINE void see(V value, V index) {
    index_ = where_greater(value, value_, index, index_);
    value_ = max(value, value_);
  }
  Index index() const {
    T value[V::kLanes], index[V::kLanes];
    value_.store(value);
    index_.store(index);
    int best = 0;
    for (int l = 1; l < V::kLanes; ++l)
      if (value[l] > value[best] || (value[l] == value[best] && index[l] < index[best]))
        best = l;
    return static_cast<Index>(index[best]);
  }
  T value() const {
    T value[V::kLanes];
    value_.store(value);
    return *std::max_element(value, value + V::kLanes);
  }

 private:
  V value_ = V::all(-std::numeric_limits<T>::infinity());
  V index_ = V::all(T(0));
};

// Maximum of a^2/b over packs, b > 0, and its index. Doubles are compared by products,
// because their divisions would take most of the time of a step.
template <class T>
class LaneGain {
 public:
  using V = simd::Pack<T>;
  DUALGAP_INLINE void see(V a, V b, V index) {
    if constexpr (std::is_same_v<T, float>) {
      largest_.see(a * a / b, index);
    } else {
      const V top = a * a, more = top * b_, less = top_ * b;
      index_ = where_greater(more, less, index, index_);
      top_ = where_greater(more, less, top, top_);
      b_ = where_greater(more, less, b, b_);
    }
  }
  Index index() const {
    if constexpr (!std::is_same_v<T, float>) {
      LaneMaximum<T> largest;
      largest.see(top_ / b_, index_);
      return largest.index();
    }
    return largest_.index();
  }

 private:
  LaneMaximum<T> largest_;
  V top_ = V::all(T(-1)), b_ = V::all(T(1)), index_ = V::all(T(0));
};

// The size of a working set, rounded up to whole vectors.
inline constexpr Index kPadding = 16;
inline Index padded(Index size) { return (size + kPadding - 1) / kPadding * kPadding; }

// Variables of the problem of a working set. q is a multiple of kPadding; the variables
// beyond the working set are idle.
template <class T>
struct InnerOf {
  Index q = 0;
  using Floats = Vector<T, AlignedAllocator<T>>;
  Floats H;     // [q][stride()]
  Floats v, s;  // s: diagonal of K; for the squared hinge s_i
  // Hinge: the number to add to v if c may rise (fall), which is 0 without epsilon;
  // -inf (+inf) if it may not, or is of the other group.
  std::array<Floats, 2> up, low;
  Vector<std::uint8_t> group;  // with several sums
  // Squared hinge: the label; inf if alpha_i > 0, else 0; y_i / sqrt(s_i).
  Floats y, room, scale;
  Vec c, lo, hi, delta, shift;
  double epsilon = 0.0;

  explicit InnerOf(Index size = 0) { reset(size); }
  // Begins another problem. The columns of H beyond `size` must stay finite.
  void reset(Index size) {
    q = padded(size);
    const auto n = q;
    const Index entries = n * stride();
    if (H.size() < entries) H.assign(entries, T(0));
    for (auto *a : {&v, &s, &y, &room, &scale}) a->assign(n, T(0));
    constexpr T kInf = std::numeric_limits<T>::infinity();
    for (Floats &a : up) a.assign(n, -kInf);
    for (Floats &a : low) a.assign(n, kInf);
    group.assign(n, 0);
    for (auto *a : {&c, &lo, &hi, &delta, &shift}) a->assign(n, 0.0);
  }
  // Not a power of two, because then all entries of a column would compete for the same
  // cache set.
  Index stride() const { return q + kPadding; }
  const T *row(Index i) const { return H.data() + i * stride(); }
};
using Inner = InnerOf<float>;

// Makes steps until no pair violates by more than tol. `unit` is the grid of c. `poll`
// is a Poll or a SharedPoll. `row(i)` returns row i of H. kGroups: 1 or 2.
template <int kGroups = 1, class T, class AnyPoll, class Row>
Index pair_steps(InnerOf<T> &p, double unit, double tol, Index most, AnyPoll &poll,
                 const Row &row) {
  using V = simd::Pack<T>;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const auto mark = [&](Index i) {
    const double c = p.c[i], shift = p.shift[i];
    const double rising = (c < 0.0 ? p.epsilon : -p.epsilon) - shift;
    const double falling = (c > 0.0 ? -p.epsilon : p.epsilon) - shift;
    const int group = kGroups > 1 ? p.group[i] : 0;
    p.up[group][i] = c < p.hi[i] ? static_cast<T>(rising) : -kInf;
    p.low[group][i] = c > p.lo[i] ? static_cast<T>(falling) : kInf;
  };
  for (Index i = 0; i < p.q; ++i) {
    mark(i);
    if constexpr (kGroups > 1) {  // a place may have had a row of the other group
      p.up[1 - p.group[i]][i] = -kInf;
      p.low[1 - p.group[i]][i] = kInf;
    }
  }
  T lanes[V::kLanes];
  for (int l = 0; l < V::kLanes; ++l) lanes[l] = static_cast<T>(l);
  const V first = V::load(lanes), step = V::all(static_cast<T>(V::kLanes));
  const T *s = p.s.data();
  T *v = p.v.data();

  std::array<LaneMaximum<T>, kGroups> top;
  const auto see = [&](Index k, V value, V index) {
    for (int g = 0; g < kGroups; ++g)
      top[g].see(value + V::load(p.up[g].data() + k), index);
  };
  V index = first;
  for (Index k = 0; k < p.q; k += V::kLanes, index = index + step)
    see(k, V::load(v + k), index);

  for (Index steps = 0; steps < most; ++steps) {
    std::array<Index, kGroups> tops;
    bool some = false;
    V widest = V::all(T(0));
    LaneGain<T> gain;
    for (int g = 0; g < kGroups; ++g) {
      const Index i = tops[g] = top[g].index();
      if (!(top[g].value() > -kInf)) continue;
      some = true;
      const T *Hi = row(i), *low = p.low[g].data();
      const V vi = V::all(v[i] + p.up[g][i]), si = V::all(s[i]);
      index = first;
      for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
        const V lead = max(vi - (V::load(v + k) + V::load(low + k)), V::all(T(0)));
        const V sum = si + V::load(s + k);
        const V Hk = V::load(Hi + k);
        // Keep s_ij away from 0, as rounding may make it tiny or negative.
        const V bend =
            max(sum - (Hk + Hk), sum * V::all(kBend<T>) + V::all(kZeroBend<T>));
        gain.see(lead, bend, index);
        widest = max(widest, lead);
      }
    }
    if (!some || poll(p.q)) return steps;
    T lead[V::kLanes];
    widest.store(lead);
    if (!(*std::max_element(lead, lead + V::kLanes) > tol)) return steps;
    const Index j = gain.index();
    const int of = kGroups > 1 ? p.group[j] : 0;
    const Index i = tops[of];
    const T *Hi = row(i), *up = p.up[of].data(), *low = p.low[of].data();
    const T sum = s[i] + s[j];
    refuse_negative(sum - T(2) * Hi[j], std::abs(sum) + T(2) * std::abs(Hi[j]));
    const double bend = std::max(sum - T(2) * Hi[j], sum * kBend<T> + kZeroBend<T>);
    const double ci = p.c[i], cj = p.c[j];
    const double most_up = (ci < 0.0 ? 0.0 : p.hi[i]) - ci;
    const double most_down = cj - (cj > 0.0 ? 0.0 : p.lo[j]);
    const double high = static_cast<double>(v[i]) + static_cast<double>(up[i]);
    const double wish =
        (high - static_cast<double>(v[j]) - static_cast<double>(low[j])) / bend;
    double t = std::min(most_up, most_down);
    if (wish < t) t = std::nearbyint(wish / unit) * unit;
    if (!(t > 0.0)) return steps;  // below the grid, so nothing more to gain
    p.c[i] += t;
    p.c[j] -= t;
    mark(i);
    mark(j);
    const T *Hj = row(j);
    const V by = V::all(static_cast<T>(-t));
    top = {};
    index = first;
    for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
      const V moved = fma(by, V::load(Hi + k) - V::load(Hj + k), V::load(v + k));
      moved.store(v + k);
      see(k, moved, index);
    }
  }
  return most;
}

template <int kGroups = 1, class T>
Index pair_steps(InnerOf<T> &p, double unit, double tol, Index most, Poll &poll) {
  const auto row = [&](Index i) { return p.row(i); };
  return pair_steps<kGroups>(p, unit, tol, most, poll, row);
}

// Makes steps until no row that can move has |v_i| above tol.
inline Index coordinate_steps(Inner &p, double tol, Index most, Poll &poll) {
  using V = simd::Pack<float>;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // y_i / sqrt(s_i), the only number besides v and room needed to rank a row. Idle rows
  // have y = 0.
  for (Index i = 0; i < p.q; ++i) {
    p.scale[i] = p.y[i] / std::sqrt(p.s[i]);
    p.room[i] = p.c[i] != 0.0 ? kInf : 0.0f;
  }
  float lanes[V::kLanes];
  for (int l = 0; l < V::kLanes; ++l) lanes[l] = static_cast<float>(l);
  const V first = V::load(lanes), step = V::all(static_cast<float>(V::kLanes));
  const V zero = V::all(0.0f), one = V::all(1.0f);
  const float *scale = p.scale.data(), *room = p.room.data();
  float *v = p.v.data();
  LaneMaximum<float> gain;
  // Ranks rows by their violation over sqrt(s_i), the root of the gain of a step. The
  // violation is v in the direction of the label, or in the other while alpha is not 0.
  const auto see = [&](Index k, V value, V index) {
    const V w = value * V::load(scale + k);
    gain.see(max(w, min(zero - w, V::load(room + k))), index);
  };
  const auto violation = [&](Index i) {
    const float w = v[i] * p.y[i];
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
    // A row with negative curvature, alone or together with the last row, would make
    // steps without end.
    const double own = p.s[i], both = own * static_cast<double>(p.s[last]);
    const double across = i == last ? 0.0 : static_cast<double>(p.row(last)[i]) + 1.0;
    refuse_negative(own, std::abs(own));
    refuse_negative(both - across * across, std::abs(both) + across * across);
    last = i;
    const double before = p.c[i];
    double after = before + static_cast<double>(v[i]) / own;
    if (after * static_cast<double>(p.y[i]) <= 0.0) after = 0.0;
    const double t = after - before;
    if (t == 0.0) return steps;
    p.c[i] = after;
    p.room[i] = after != 0.0 ? kInf : 0.0f;
    v[i] -= static_cast<float>(t * p.delta[i]);
    const float *Hi = p.row(i);
    const V by = V::all(static_cast<float>(-t));
    gain = LaneMaximum<float>();
    index = first;
    for (Index k = 0; k < p.q; k += V::kLanes, index = index + step) {
      prefetch_line(Hi + k + kPrefetched);
      const V moved = fma(by, V::load(Hi + k) + one, V::load(v + k));
      moved.store(v + k);
      see(k, moved, index);
    }
  }
  return most;
}

}  // namespace dualgap
