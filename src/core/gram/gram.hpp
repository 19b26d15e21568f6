// The kernel matrix on demand: whole float32 rows in a cache of fixed size, the least
// recently used one forgotten first, and blocks of single values in float64.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "../rows.hpp"
#include "../stop.hpp"
#include "similarity.hpp"

namespace dualgap {

struct GramStatistics {
  Index hits = 0, misses = 0, evaluations = 0;
};

class Gram {
 public:
  // Holds at most `capacity` rows, two or more, of 4 n bytes.
  Gram(Index n, Index capacity)
      : n_(n),
        capacity_(std::min(std::max<Index>(capacity, 2), std::max<Index>(n, 2))),
        slot_(static_cast<std::size_t>(n), kNone) {}
  virtual ~Gram() = default;
  Gram(const Gram &) = delete;
  Gram &operator=(const Gram &) = delete;

  Index n() const { return n_; }
  Index capacity() const { return capacity_; }
  Index held() const { return static_cast<Index>(slots_.size()); }
  bool holds(Index i) const { return slot_[static_cast<std::size_t>(i)] != kNone; }
  const GramStatistics &statistics() const { return statistics_; }

  // Row i; stays where it is until another row but one has been asked for.
  const float *row(Index i) {
    Slot &own = slot_[static_cast<std::size_t>(i)];
    if (own != kNone) {
      ++statistics_.hits;
      unlink(own);
      link_newest(own);
      return at(own).values.get();
    }
    Slot slot;
    if (held() < capacity_) {
      slot = static_cast<Slot>(held());
      slots_.push_back(
          {std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(n_)),
           kNobody, kNone, kNone});
    } else {
      slot = oldest_;
      unlink(slot);
      if (at(slot).row != kNobody)
        slot_[static_cast<std::size_t>(at(slot).row)] = kNone;
      at(slot).row = kNobody;
    }
    link_oldest(slot);  // whole even if compute throws
    compute(i, at(slot).values.get());
    ++statistics_.misses;
    statistics_.evaluations += n_;
    unlink(slot);
    link_newest(slot);
    at(slot).row = i;
    own = slot;
    return at(slot).values.get();
  }

  // out[q * stride + t] <- k(query(q), column(t)), q < m, t < columns. The cache is not
  // looked at: its float32 values would make the result depend on what was asked
  // before.
  template <class Query, class Column>
  void block(Index m, Query &&query, Index columns, Column &&column, double *out,
             Index stride) {
    columns_.resize(static_cast<std::size_t>(columns));
    for (Index t = 0; t < columns; ++t)
      columns_[static_cast<std::size_t>(t)] = static_cast<Order>(column(t));
    for (Index q0 = 0; q0 < m; q0 += QueryBlock::kQueries) {
      const Index some = std::min(m - q0, QueryBlock::kQueries);
      Order queries[QueryBlock::kQueries];
      for (Index q = 0; q < some; ++q) queries[q] = static_cast<Order>(query(q0 + q));
      compute_block(queries, some, columns_, out + q0 * stride, stride);
    }
    statistics_.evaluations += m * columns;
  }

  // out_t += sum_j c_j k(x_rows[j], x_columns[t]), t < count, all in float64; without
  // columns for all rows.
  virtual void add_times(const Order *rows, const double *c, Index m,
                         const Order *columns, Index count, double *out,
                         Poll &poll) = 0;

  // To be held, without the GIL, while rows are in use.
  std::mutex &mutex() { return mutex_; }

 protected:
  virtual void compute(Index i, float *out) = 0;
  // out[q * stride + t] <- k(queries[q], columns[t]).
  virtual void compute_block(const Order *queries, Index m,
                             const std::vector<Order> &columns, double *out,
                             Index stride) = 0;
  GramStatistics statistics_;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = static_cast<Slot>(-1);
  static constexpr Index kNobody = -1;
  struct Entry {
    std::unique_ptr<float[]> values;
    Index row;
    Slot older, newer;
  };
  Entry &at(Slot slot) { return slots_[slot]; }

  void unlink(Slot slot) {
    const Entry &entry = at(slot);
    (entry.older != kNone ? at(entry.older).newer : oldest_) = entry.newer;
    (entry.newer != kNone ? at(entry.newer).older : newest_) = entry.older;
  }
  void link_newest(Slot slot) {
    at(slot).older = newest_;
    at(slot).newer = kNone;
    (newest_ != kNone ? at(newest_).newer : oldest_) = slot;
    newest_ = slot;
  }
  void link_oldest(Slot slot) {
    at(slot).newer = oldest_;
    at(slot).older = kNone;
    (oldest_ != kNone ? at(oldest_).older : newest_) = slot;
    oldest_ = slot;
  }

  std::mutex mutex_;
  Index n_, capacity_;
  std::vector<Slot> slot_;  // of a row, or kNone
  std::vector<Entry> slots_;
  Slot oldest_ = kNone, newest_ = kNone;
  std::vector<Order> columns_;
};

// The kernel of the rows of a matrix.
template <class Rows>
class RowsGram final : public Gram {
 public:
  RowsGram(const Rows &rows, Index stored, const KernelFunction &function,
           Index capacity)
      : Gram(rows.rows(), capacity),
        rows_(rows),
        function_(function),
        single_(rows, stored, function),
        queries_(rows.cols(), function),
        norms_(static_cast<std::size_t>(rows.rows())) {
    for (Index i = 0; i < rows.rows(); ++i) {
      double norm = 0.0;
      rows.for_each(i, [&](Index, double v) {
        norm += function.overlap ? Overlap::of(v, v) : Product::of(v, v);
      });
      norms_[static_cast<std::size_t>(i)] = norm;
    }
  }

  void add_times(const Order *rows, const double *c, Index m, const Order *columns,
                 Index count, double *out, Poll &poll) override {
    constexpr Index kQueries = QueryBlock::kQueries;
    double values[kQueries] = {}, weights[kQueries];
    for (Index q0 = 0; q0 < m; q0 += kQueries) {
      const Index some = std::min(m - q0, kQueries);
      queries_.set(rows_, some, norms_.data(), [&](Index q) { return rows[q0 + q]; });
      for (Index q = 0; q < kQueries; ++q) weights[q] = q < some ? c[q0 + q] : 0.0;
      for (Index t = 0; t < count; ++t) {
        const Index i = columns ? static_cast<Index>(columns[t]) : t;
        queries_.kernels(rows_, i, norms_[static_cast<std::size_t>(i)], values);
        double lanes[8] = {};
        for (Index q = 0; q < kQueries; q += 8)
          for (Index l = 0; l < 8; ++l) lanes[l] += weights[q + l] * values[q + l];
        for (Index l = 1; l < 8; ++l) lanes[0] += lanes[l];
        out[t] += lanes[0];
      }
      statistics_.evaluations += some * count;
      if (poll(count * (kQueries + some))) break;
    }
  }

 protected:
  void compute(Index i, float *out) override {
    single_.kernel_row(rows_, i, out);
    // Here the terms of a distance cancel most.
    const double norm = norms_[static_cast<std::size_t>(i)];
    double own = norm;
    function_.apply(&own, 1, norm, &norm);
    out[i] = static_cast<float>(own);
  }

  void compute_block(const Order *queries, Index m, const std::vector<Order> &columns,
                     double *out, Index stride) override {
    double values[QueryBlock::kQueries];
    queries_.set(rows_, m, norms_.data(), [&](Index q) { return queries[q]; });
    for (std::size_t t = 0; t < columns.size(); ++t) {
      queries_.kernels(rows_, columns[t], norms_[columns[t]], values);
      for (Index q = 0; q < m; ++q) out[q * stride + static_cast<Index>(t)] = values[q];
    }
  }

 private:
  Rows rows_;
  KernelFunction function_;
  SingleRow single_;
  QueryBlock queries_;
  std::vector<double> norms_;
};

}  // namespace dualgap
