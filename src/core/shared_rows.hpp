// Loops over rows that threads share: with a poll for each thread, or with sums and a
// result for each part.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "rows.hpp"
#include "stop.hpp"
#include "threads.hpp"

namespace dualgap {

// Calls body(part, begin, end, poll) for parts of a loop. Every thread looks by itself
// whether to stop; only this one handles signals.
inline void polled_parts(
    Team &team, Index parts, Index n, Poll &poll, const Stop &stop,
    const std::function<void(Index part, Index begin, Index end, Poll &)> &body) {
  team.run(parts, n, [&](Index part, Index begin, Index end) {
    if (part == 0) return body(part, begin, end, poll);
    Poll own(stop, [] {});
    body(part, begin, end, own);
  });
}

// Number of stored entries to read from which another thread pays.
inline constexpr Index kWorthThread = 500'000;

template <class Rows>
Index worth_threads(const Rows &rows, Index threads) {
  const Index sample = std::max<Index>(rows.rows() / 64, 1);
  Index seen = 0, stored = 0;
  for (Index i = 0; i < rows.rows(); i += sample, ++seen) stored += rows.count(i) + 1;
  const Index work = seen ? stored * (rows.rows() / seen) : 0;
  return std::clamp<Index>(work / kWorthThread, 1, threads);
}

// A sum of vectors. Every part but the first has its own vector; they are added in the
// order of the parts.
class PartSums {
 public:
  PartSums(double *first, Index size, Index parts)
      : first_(first), size_(size), own_(first ? (parts - 1) * size : 0) {}
  double *of(Index part) {
    return part == 0 || !first_ ? first_ : own_.data() + (part - 1) * size_;
  }
  void add_up() {
    for (Index k = 0; k < own_.size(); ++k) first_[k % size_] += own_[k];
  }

 private:
  double *first_;
  Index size_;
  Vec own_;
};

// Calls body(begin, end, own, result) for parts of the rows, as many as are worth their
// threads. `own` is a vector of `size` sums, which are added to `sum` in the order of
// the parts; null if `sum` is. Returns the results of the parts.
template <class Result, class Rows, class Body>
Vector<Result> over_rows(const Rows &rows, Team &team, double *sum, Index size,
                         const Body &body) {
  const Index parts = worth_threads(rows, team.size());
  PartSums sums(sum, size, parts);
  Vector<Result> results(parts);
  team.run(parts, rows.rows(), [&](Index part, Index begin, Index end) {
    Result own{};
    body(begin, end, sums.of(part), own);
    results[part] = std::move(own);
  });
  sums.add_up();
  return results;
}
template <class Rows, class Body>
void over_rows(const Rows &rows, Team &team, double *sum, Index size,
               const Body &body) {
  struct Nothing {};
  over_rows<Nothing>(
      rows, team, sum, size,
      [&](Index begin, Index end, double *own, Nothing &) { body(begin, end, own); });
}

}  // namespace dualgap
