// Frank-Wolfe steps on the simplex; each moves one or two vertices.
//
// Problem    min 1/2 a'Ka over a >= 0, sum a = 1;
//            K_ij = y_i y_j (k_ij + 1) + [i = j] delta_i, g = Ka, p = a'g
// Update     i = argmin g over all rows or a random sample, j = argmax g over a > 0.
//            Step lengths are exact, and clipped so that a_j does not become negative.
//   toward   a <- (1 - t) a + t e_i     t = (p - g_i)/(p - 2 g_i + K_ii)
//   away     a <- (1 + t) a - t e_j     t = (g_j - p)/(p - 2 g_j + K_jj)
//   swap     a <- a + t (e_i - e_j)     t = (g_j - g_i)/(K_ii + K_jj - 2 K_ij)
//   FW       toward
//   MFW      toward if p - g_i >= g_j - p, else away
//   SWAP     toward or swap, whichever gains more
//   SWAP-2o  as SWAP, with the j of the largest gain of the clipped swap, or of the
//            unclipped swap, (g_j - g_i)^2/(K_ii + K_jj - 2 K_ij), as in the paper
//   MDM      always swap (Mitchell, Demyanov and Malozemov 1974)
// Guarantee  p falls in every step; the distance to the optimum is at most p - min g.
//            MFW converges linearly, SWAP linearly over the swaps that are not clipped
//            (clipped ones are "drops"). A vertex that drops was added or there at the
//            start. The paper concludes that at most half of all steps drop one; that
//            holds for MFW, but a clipped swap may also add a vertex.
// Cost       with the full gradient one pass over the rows, which updates g and finds
//            the next i. With samples g is updated only where a > 0, and a step costs
//            (sample + 2) kernel values per such entry, whatever the number of rows.
// Source     Nanculef, Frandi, Sartori and Allende, Information Sciences 2014
//            (arXiv 1304.1014). The clipped ranking is specific to dualgap: if many a_j
//            are small, the ranking of the paper chooses steps that are clipped to
//            almost nothing.
#pragma once

#include <algorithm>
#include <limits>

#include "../core/gram/curvature.hpp"
#include "../core/gram/gram.hpp"
#include "../core/random.hpp"
#include "../core/stop.hpp"
#include "../core/sums.hpp"

namespace dualgap {

enum class Method { kFw, kMfw, kSwap, kSwap2o, kMdm };
enum class Ranking { kClipped, kPaper };

// The problem over m rows of a Gram matrix (all of them when `columns` is null).
struct Simplex {
  Gram *gram;
  const Order *columns;
  Index m;
  const double *y, *delta, *diagonal;  // diagonal_i = K_ii
  double *a, *g;
  Order *active;  // the `size` rows with a > 0
  Index size;
  double constant = 1.0;  // added to kernel values; 0 without a bias
  // With a linear term h'a in the objective, K_ij includes h_i + h_j. Null: none.
  const double *linear = nullptr;

  Index column(Index i) const { return columns ? static_cast<Index>(columns[i]) : i; }
  double kernel(Index i, Index j, double k) const {
    return y[i] * y[j] * (k + constant) + (linear ? linear[i] + linear[j] : 0.0) +
           (i == j ? delta[i] : 0.0);
  }
};

struct SimplexWalk {
  Index steps = 0, swaps = 0, drops = 0, aways = 0;
  Index vertex = -1;  // the next i
  double gap = 0.0;   // the last p - g_i
  double loss = 0.0;  // sampled: mean of c max(0, 1 - m)^2 over drawn rows with a = 0
  double p = 0.0;
  bool quiet = false;  // float64 leaves no step to make
};

// a <- keep a + u e_i - v e_j.
struct Move {
  double keep = 1.0, u = 0.0, v = 0.0;
  Index j = -1, at = -1;  // j = active[at]
  bool drop = false;
};

// Steps after which a is scaled to sum a = 1 again.
inline constexpr Index kRenormalise = 1024;
// p - g_i below this fraction of p is rounding.
inline constexpr double kNegligible = 1e-14;

inline double gain(double slope, double length, double bend) {
  return length * (slope - 0.5 * length * bend);
}

// Chooses the step from a. i has the gradient gi, and k(t) is K_ij for j = active[t].
template <class Entry>
Move choose(const Simplex &s, Method method, Ranking ranking, Index i, double gi,
            double p, Index worst, Entry &&k) {
  const double lead = p - gi;
  const double bend = curvature(p - 2.0 * gi + s.diagonal[i], p + s.diagonal[i]);
  const double length = std::min(1.0, lead / bend);
  Move toward{.keep = 1.0 - length, .u = length};
  if (method == Method::kFw) return toward;

  if (method == Method::kMfw) {
    const Index j = s.active[worst];
    const double slope = s.g[j] - p;
    if (lead >= slope) return toward;
    const double most = s.a[j] / (1.0 - s.a[j]);
    const double away =
        slope / curvature(p - 2.0 * s.g[j] + s.diagonal[j], p + s.diagonal[j]);
    const double t = std::min(away, most);
    return {.keep = 1.0 + t, .v = t, .j = j, .at = worst, .drop = away >= most};
  }

  Move swap;
  const bool clipped = ranking == Ranking::kClipped;
  double best = -1.0, swap_gain = 0.0;
  const Index begin = method == Method::kSwap2o ? 0 : worst;
  const Index end = method == Method::kSwap2o ? s.size : worst + 1;
  for (Index t = begin; t < end; ++t) {
    const Index j = s.active[t];
    const double slope = s.g[j] - gi;
    // Compare with the most that a clipped step can gain; this rejects most rows
    // cheaply.
    if (!(slope > 0.0) || (clipped && slope * s.a[j] <= best) || j == i) continue;
    const double size = s.diagonal[i] + s.diagonal[j];
    const double pair = curvature(size - 2.0 * k(t), size);
    const double whole = slope / pair, cut = std::min(whole, s.a[j]);
    const double gained = gain(slope, cut, pair);
    const double rank = clipped ? gained : slope * whole;
    if (rank > best) {
      best = rank;
      swap_gain = gained;
      swap = {.u = cut, .v = cut, .j = j, .at = t, .drop = whole >= s.a[j]};
    }
  }
  if (swap.j >= 0 && (method == Method::kMdm || swap_gain >= gain(lead, length, bend)))
    return swap;
  return toward;
}

// Updates a and the active rows by a move.
inline void apply(Simplex &s, const Move &move, Index i, SimplexWalk &walk) {
  if (move.keep == 0.0) {
    for (Index t = 0; t < s.size; ++t) s.a[s.active[t]] = 0.0;
    s.size = 0;
  } else if (move.keep != 1.0) {
    for (Index t = 0; t < s.size; ++t) s.a[s.active[t]] *= move.keep;
  }
  if (move.j >= 0) {
    if (move.drop) {
      s.a[move.j] = 0.0;
      s.active[move.at] = s.active[--s.size];
    } else {
      s.a[move.j] -= move.v;
    }
  }
  if (move.u > 0.0) {
    if (s.a[i] == 0.0) s.active[s.size++] = static_cast<Order>(i);
    s.a[i] += move.u;
  }
  ++walk.steps;
  walk.drops += move.drop;
  walk.swaps += move.u > 0.0 && move.j >= 0;
  walk.aways += move.u == 0.0 && move.j >= 0;
}

// Returns p = a'g, and sets `worst` to the place of the largest g among the active
// rows.
inline double look_at_active(const Simplex &s, Index &worst) {
  double p = 0.0, largest = -std::numeric_limits<double>::infinity();
  worst = -1;
  for (Index t = 0; t < s.size; ++t) {
    const Index j = s.active[t];
    p += s.a[j] * s.g[j];
    if (s.g[j] > largest) {
      largest = s.g[j];
      worst = t;
    }
  }
  if (p < 0.0) {
    double size = 0.0;
    for (Index t = 0; t < s.size; ++t)
      size += s.a[s.active[t]] * s.diagonal[s.active[t]];
    curvature(p, size);
  }
  return p;
}

// Scales a to sum a = 1, and returns the factor, which applies to g as well.
inline double off_sum(Simplex &s) {
  double sum = 0.0;
  for (Index t = 0; t < s.size; ++t) sum += s.a[s.active[t]];
  for (Index t = 0; t < s.size; ++t) s.a[s.active[t]] /= sum;
  return 1.0 / sum;
}

// Updates g <- keep g + y (u (k_i + 1) - v (k_j + 1)) at all rows, and returns the row
// of the smallest g. Eight running minima allow vector code.
template <bool kMapped, int kRows>
Index move_gradient(Simplex &s, double keep, double u, const float *ki, double v,
                    const float *kj) {
  double least[kLanes];
  Index where[kLanes];
  for (Index l = 0; l < kLanes; ++l) {
    least[l] = std::numeric_limits<double>::infinity();
    where[l] = 0;
  }
  const double shift = s.constant * (u - v);
  const auto next = [&](Index j) {
    double g = s.g[j];
    if constexpr (kRows > 0) {
      const Index c = kMapped ? static_cast<Index>(s.columns[j]) : j;
      double change = shift + u * static_cast<double>(ki[c]);
      if constexpr (kRows == 2) change -= v * static_cast<double>(kj[c]);
      g = keep * g + s.y[j] * change;
      s.g[j] = g;
    }
    return g;
  };
  const Index whole = s.m / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index l = 0; l < kLanes; ++l) {
      const double g = next(j + l);
      const bool less = g < least[l];
      least[l] = less ? g : least[l];
      where[l] = less ? j + l : where[l];
    }
  }
  for (Index j = whole; j < s.m; ++j) {
    const double g = next(j);
    if (g < least[j - whole]) {
      least[j - whole] = g;
      where[j - whole] = j;
    }
  }
  Index best = 0;
  for (Index l = 1; l < kLanes; ++l)
    if (least[l] < least[best] || (least[l] == least[best] && where[l] < where[best]))
      best = l;
  return where[best];
}

// Adds the linear term's share of a move to g, before g is scaled by `keep`.
inline void move_linear(Simplex &s, double keep, double u, Index i, double v, Index j) {
  if (!s.linear) return;
  const double both = (u - v) / keep;
  const double same = (u * s.linear[i] - (j >= 0 ? v * s.linear[j] : 0.0)) / keep;
  for (Index r = 0; r < s.m; ++r) s.g[r] += both * s.linear[r] + same;
}

// Updates g for a move, diagonal included. If only one row is added or removed, it is
// passed first.
template <bool kMapped>
Index move_gradient(Simplex &s, const Move &move, Index i, const float *ki,
                    const float *kj) {
  // Update the diagonal first, so that the pass includes it.
  const double ui = move.u * s.y[i];
  if (move.u > 0.0)
    s.g[i] += move.u * s.delta[i] / (move.keep != 0.0 ? move.keep : 1.0);
  if (move.j < 0) {
    if (move.keep == 0.0) {
      std::fill(s.g, s.g + s.m, 0.0);
      s.g[i] = move.u * s.delta[i];
      move_linear(s, 1.0, move.u, i, 0.0, -1);
      return move_gradient<kMapped, 1>(s, 1.0, ui, ki, 0.0, nullptr);
    }
    move_linear(s, move.keep, move.u, i, 0.0, -1);
    return move_gradient<kMapped, 1>(s, move.keep, ui, ki, 0.0, nullptr);
  }
  const double vj = move.v * s.y[move.j];
  s.g[move.j] -= move.v * s.delta[move.j] / move.keep;
  move_linear(s, move.keep, move.u, i, move.v, move.j);
  if (move.u == 0.0)
    return move_gradient<kMapped, 1>(s, move.keep, -vj, kj, 0.0, nullptr);
  return move_gradient<kMapped, 2>(s, move.keep, ui, ki, vj, kj);
}

// Makes at most `steps` steps with the full gradient; g is up to date at all rows.
template <bool kMapped>
SimplexWalk full_steps(Simplex &s, Method method, Ranking ranking, Index steps,
                       Poll &poll) {
  SimplexWalk walk;
  Index i = move_gradient<kMapped, 0>(s, 1.0, 0.0, nullptr, 0.0, nullptr);
  while (true) {
    Index worst;
    walk.p = look_at_active(s, worst);
    walk.vertex = i;
    walk.gap = walk.p - s.g[i];
    walk.quiet = !(walk.gap > kNegligible * walk.p);
    if (walk.quiet || walk.steps == steps || poll(s.m)) return walk;

    // Only swaps need row i to choose j and the step length.
    const bool swaps = method != Method::kFw && method != Method::kMfw;
    const float *ki = swaps ? s.gram->row(s.column(i)) : nullptr;
    const Move move =
        choose(s, method, ranking, i, s.g[i], walk.p, worst, [&](Index t) {
          const Index j = s.active[t];
          return s.kernel(i, j, static_cast<double>(ki[s.column(j)]));
        });
    // The vertex may be so far away that the step length is 0 in float64.
    walk.quiet = move.u == 0.0 && move.j < 0;
    if (walk.quiet) return walk;
    if (move.u > 0.0 && !ki) ki = s.gram->row(s.column(i));
    const float *kj = move.j >= 0 ? s.gram->row(s.column(move.j)) : nullptr;
    apply(s, move, i, walk);
    i = move_gradient<kMapped>(s, move, i, ki, kj);
    if (walk.steps % kRenormalise == 0) {
      const double scale = off_sum(s);
      for (Index j = 0; j < s.m; ++j) s.g[j] *= scale;
    }
  }
}

// Random sample of rows: alternately from order[..split) and order[split..), or,
// without a split, from all rows.
struct Sample {
  Index count;
  const Order *order;
  Index split;

  Index draw(Index t, Index m, Random &random) const {
    if (split == 0 || split == m)
      return static_cast<Index>(random.below(static_cast<std::uint32_t>(m)));
    const bool first = t % 2 == 0;
    const Index from = first ? 0 : split, many = first ? split : m - split;
    return static_cast<Index>(
        order[from + random.below(static_cast<std::uint32_t>(many))]);
  }
};

// Makes at most `steps` steps that look for i in samples; g is up to date where a > 0.
// If `vertex` is a row, the first step uses it instead of a sample. A sample with
// 2 (p - g_i) <= eps ends the steps, as in the paper; -infinity never does. No sample,
// no gap: `walk.gap` is then infinite.
inline SimplexWalk sampled_steps(Simplex &s, Method method, Ranking ranking,
                                 Index steps, const Sample &sample, Index vertex,
                                 double eps, Random &random, Poll &poll) {
  SimplexWalk walk;
  walk.gap = std::numeric_limits<double>::infinity();
  Vector<Index> drawn(sample.count);
  Vec block, kj;
  const auto column = [&](Index t) { return s.column(s.active[t]); };
  double loss = 0.0;
  Index seen = 0;
  while (true) {
    Index worst;
    walk.p = look_at_active(s, worst);
    if (walk.steps == steps || poll(s.size * sample.count)) break;
    Index m = sample.count;
    for (Index t = 0; t < m; ++t) drawn[t] = sample.draw(t, s.m, random);
    if (vertex >= 0) {
      drawn[0] = vertex;
      m = 1;
    }
    const Index stride = s.size;
    block.resize(m * stride);
    s.gram->block(
        m, [&](Index q) { return s.column(drawn[q]); }, stride, column, block.data(),
        stride);
    Index i = -1, row = 0;
    double gi = std::numeric_limits<double>::infinity();
    for (Index q = 0; q < m; ++q) {
      const Index c = drawn[q];
      double sum = 0.0;
      for (Index t = 0; t < stride; ++t)
        sum += s.a[s.active[t]] * s.kernel(c, s.active[t], block[q * stride + t]);
      if (s.a[c] == 0.0 && s.delta[c] > 0.0) {
        const double slack = std::max(0.0, 1.0 - sum / walk.p);
        loss += 0.5 / s.delta[c] * slack * slack;
        ++seen;
      }
      if (sum < gi) {
        gi = sum;
        i = c;
        row = q;
      }
    }
    vertex = -1;
    if (walk.steps == steps / 2) loss = 0.0, seen = 0;  // rows change as p falls
    walk.gap = walk.p - gi;
    if (2.0 * walk.gap <= eps) break;
    if (!(walk.gap > kNegligible * walk.p)) {
      ++walk.steps;  // a sample without progress counts as a step
      continue;
    }
    double *ki = block.data() + row * stride;
    const Move move = choose(s, method, ranking, i, gi, walk.p, worst,
                             [&](Index t) { return s.kernel(i, s.active[t], ki[t]); });
    // Compute k_j where a > 0, and at i.
    double kij = 0.0;
    kj.resize(stride);
    if (move.j >= 0) {
      const Index j = s.column(move.j);
      s.gram->block(1, [&](Index) { return j; }, stride, column, kj.data(), stride);
      kij = ki[move.at];
    }
    if (s.a[i] == 0.0) s.g[i] = gi;
    for (Index t = 0; t < stride; ++t) {
      const Index r = s.active[t];
      double g = move.keep * s.g[r];
      if (move.u > 0.0) g += move.u * s.kernel(i, r, ki[t]);
      if (move.j >= 0) g -= move.v * s.kernel(move.j, r, kj[t]);
      s.g[r] = g;
    }
    if (s.a[i] == 0.0) {
      s.g[i] = move.keep * gi + move.u * s.diagonal[i];
      if (move.j >= 0) s.g[i] -= move.v * s.kernel(move.j, i, kij);
    }
    apply(s, move, i, walk);
    if (walk.steps % kRenormalise == 0) {
      const double scale = off_sum(s);
      for (Index t = 0; t < s.size; ++t) s.g[s.active[t]] *= scale;
    }
  }
  walk.loss = loss / static_cast<double>(std::max<Index>(seen, 1));
  return walk;
}

// Minimises 1/2 a'Ha over the simplex until max over a_j > 0 of g_j - min g <= tol a'g,
// by SWAP-2o steps with clipped ranking. H is a full q x q matrix with rows `stride`
// apart, g = Ha. Returns the number of steps.
inline Index solve_small(const float *H, Index stride, Index q, double *a, double *g,
                         double tol, Index steps, Poll &poll) {
  for (Index step = 0; step < steps; ++step) {
    Index i = 0;
    double p = 0.0, largest = -std::numeric_limits<double>::infinity();
    for (Index r = 0; r < q; ++r) {
      p += a[r] * g[r];
      if (g[r] < g[i]) i = r;
      if (a[r] > 0.0) largest = std::max(largest, g[r]);
    }
    if (p < 0.0) curvature(p, static_cast<double>(H[i * stride + i]));
    if (!(largest - g[i] > tol * p) || poll(q)) return step;
    const float *hi = H + i * stride;
    const auto hii = static_cast<double>(hi[i]);
    Index j = -1;
    double best = 0.0, length = 0.0;
    bool drop = false;
    for (Index r = 0; r < q; ++r) {
      const double slope = g[r] - g[i];
      if (!(a[r] > 0.0) || !(slope > 0.0)) continue;
      const double size = hii + static_cast<double>(H[r * stride + r]);
      const double pair = curvature(size - 2.0 * static_cast<double>(hi[r]), size);
      const double whole = slope / pair, cut = std::min(whole, a[r]);
      const double gained = gain(slope, cut, pair);
      if (gained > best) {
        best = gained;
        j = r;
        length = cut;
        drop = whole >= a[r];
      }
    }
    if (j < 0) return step;
    const float *hj = H + j * stride;
    a[i] += length;
    a[j] = drop ? 0.0 : a[j] - length;
    for (Index r = 0; r < q; ++r)
      g[r] += length * (static_cast<double>(hi[r]) - static_cast<double>(hj[r]));
  }
  return steps;
}

}  // namespace dualgap
