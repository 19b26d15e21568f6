// Kernel matrix on demand: whole float32 rows in a least-recently-used cache of fixed
// size, and blocks of single values in float64.
#pragma once

#include <algorithm>
#include <mutex>

#include "row_cache.hpp"
#include "row_source.hpp"

namespace dualgap {

// Numbers of rows found and computed, and of values computed.
struct GramStatistics {
  Index hits = 0, misses = 0, evaluations = 0;
};

class Gram {
 public:
  // Caches at most `capacity` rows of 4 n bytes, at least two.
  Gram(const RowSource &rows, Index capacity)
      : rows_(rows),
        cache_(n(), n(),
               std::min(std::max<Index>(capacity, 2), std::max<Index>(n(), 2))) {}
  Gram(const Gram &) = delete;
  Gram &operator=(const Gram &) = delete;

  Index n() const { return rows_.n(); }
  Index capacity() const { return cache_.capacity(); }
  Index held() const { return cache_.held(); }
  bool holds(Index i) const { return cache_.peek(i) != nullptr; }
  const GramStatistics &statistics() const { return statistics_; }

  // Returns row i. It stays valid while at most one other row is requested.
  const float *row(Index i) {
    if (const float *values = cache_.find(i)) {
      ++statistics_.hits;
      return values;
    }
    const float *values = cache_.add(i, [&](float *out) { rows_.row(i, out); });
    ++statistics_.misses;
    statistics_.evaluations += n();
    return values;
  }

  // out[q * stride + t] <- k(query(q), column(t)), q < m, t < columns. The cache is not
  // used: with its float32 values the result would depend on earlier requests.
  template <class Query, class Column>
  void block(Index m, Query &&query, Index columns, Column &&column, double *out,
             Index stride) {
    queries_.resize(m);
    columns_.resize(columns);
    for (Index q = 0; q < m; ++q) queries_[q] = static_cast<Order>(query(q));
    for (Index t = 0; t < columns; ++t) columns_[t] = static_cast<Order>(column(t));
    rows_.block(queries_.data(), m, columns_.data(), columns, out, stride);
    statistics_.evaluations += m * columns;
  }

  // Lock to hold, without the GIL, while rows are in use.
  std::mutex &mutex() { return mutex_; }

 private:
  const RowSource &rows_;
  std::mutex mutex_;
  RowCache<float> cache_;
  Vector<Order> queries_, columns_;
  GramStatistics statistics_;
};

}  // namespace dualgap
