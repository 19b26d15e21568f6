// Values of the exponential kernels from differences, for sparse points. Nothing
// cancels, so every value is as accurate as the entries, wherever the points are.
//
//   k(x, z) = 2^-(factor s),   s = sum_k (x_k - z_k)^2 or sum_k |x_k - z_k|
//
// Cost   the entries of both points, one by one: many times the cost in a block of
//        queries, so it is used for few points only
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "../stop.hpp"
#include "../threads.hpp"
#include "points.hpp"

namespace dualgap {

// The `count` points with these numbers, or the first `count` points if `numbers` is
// null.
struct Some {
  const Order *numbers;
  Index count;
  Index operator()(Index j) const { return numbers ? numbers[j] : j; }
};

// Sorts entries by column.
inline void sort_entries(Entries &entries) {
  if (std::is_sorted(entries.columns.begin(), entries.columns.end())) return;
  Vector<std::pair<Order, double>> pairs;
  for (Index e = 0; e < entries.columns.size(); ++e)
    pairs.emplace_back(entries.columns[e], entries.values[e]);
  std::sort(pairs.begin(), pairs.end());
  for (Index e = 0; e < pairs.size(); ++e)
    std::tie(entries.columns[e], entries.values[e]) = pairs[e];
}

inline void sorted_entries(const Points &points, Index i, Entries &out) {
  points.entries(i, out);
  sort_entries(out);
}

// Returns the sum over all columns of the squared (or absolute) scaled differences.
inline double distance(const Entries &a, const Entries &b, double scale,
                       bool absolute) {
  double sum = 0.0;
  const auto add = [&](double apart) {
    sum += absolute ? std::abs(apart) : apart * apart;
  };
  Index s = 0, t = 0;
  const Index m = a.columns.size(), n = b.columns.size();
  while (s < m && t < n) {
    if (a.columns[s] < b.columns[t]) {
      add(scale * a.values[s++]);
    } else if (b.columns[t] < a.columns[s]) {
      add(scale * b.values[t++]);
    } else {
      add(scale * a.values[s++] - scale * b.values[t++]);
    }
  }
  while (s < m) add(scale * a.values[s++]);
  while (t < n) add(scale * b.values[t++]);
  return sum;
}

// Calls then(t, j, k(x_who(t), z_at(j))) for all t and j, given the map of differences.
// One thread handles all t of a j, in order. Returns false if told to stop.
template <class Then>
bool meet_differences(const KernelMap &map, const Points &points, Some who,
                      const Points &targets, Some at, Team &team, Poll &poll,
                      const Then &then) {
  constexpr Index kTogether = 64, kWorth = 64;  // points per pass; targets per thread
  const bool absolute = map.shape == tile::Shape::kLaplacian;
  const double factor = map.parameters.factor, shift = map.parameters.shift;
  SharedPoll shared(poll);
  Vector<Entries> near(kTogether);
  for (Index first = 0; first < who.count && !shared.leave(); first += kTogether) {
    const Index some = std::min(kTogether, who.count - first);
    for (Index t = 0; t < some; ++t) sorted_entries(points, who(first + t), near[t]);
    const Index shares =
        std::clamp<Index>(at.count / kWorth, 1, std::max<Index>(1, team.shares()));
    team.run(shares, at.count, [&](Index, Index begin, Index end) {
      Entries target;
      for (Index j = begin; j < end; ++j) {
        sorted_entries(targets, at(j), target);
        for (Index t = 0; t < some; ++t) {
          const Entries &own = near[t];
          const double s = distance(own, target, map.scale, absolute);
          then(first + t, j, std::exp2(-(factor * s)) - shift);
        }
        if (shared(some * static_cast<Index>(target.columns.size() + 8))) return;
      }
    });
  }
  return !shared.leave();
}

}  // namespace dualgap
