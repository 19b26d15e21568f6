// Kernel matrix on demand: whole float32 rows in a least-recently-used cache of fixed
// size, and blocks of single values in float64.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "../rows.hpp"
#include "../stop.hpp"
#include "row_cache.hpp"
#include "similarity.hpp"

namespace dualgap {

// Numbers of rows found and computed, and of values computed and copied. Values are
// copied from cached rows and from segments that pairs of classes share.
struct GramStatistics {
  Index hits = 0, misses = 0, evaluations = 0, copied = 0;
};

class Gram {
 public:
  // Caches at most `capacity` rows of 4 n bytes, at least two.
  Gram(Index n, Index capacity)
      : n_(n),
        cache_(n, n, std::min(std::max<Index>(capacity, 2), std::max<Index>(n, 2))) {}
  virtual ~Gram() = default;
  Gram(const Gram &) = delete;
  Gram &operator=(const Gram &) = delete;

  Index n() const { return n_; }
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
    const float *values = cache_.add(i, [&](float *out, Index gone) {
      if (gone >= 0) forget(gone);
      compute(i, out);
    });
    ++statistics_.misses;
    return values;
  }

  // out[q * stride + t] <- k(query(q), column(t)), q < m, t < columns. The cache is not
  // used: with its float32 values the result would depend on earlier requests.
  template <class Query, class Column>
  void block(Index m, Query &&query, Index columns, Column &&column, double *out,
             Index stride) {
    columns_.resize(columns);
    for (Index t = 0; t < columns; ++t) columns_[t] = static_cast<Order>(column(t));
    for (Index q0 = 0; q0 < m; q0 += QueryBlock::kQueries) {
      const Index some = std::min(m - q0, QueryBlock::kQueries);
      Order queries[QueryBlock::kQueries];
      for (Index q = 0; q < some; ++q) queries[q] = static_cast<Order>(query(q0 + q));
      compute_block(queries, some, columns_, out + q0 * stride, stride);
    }
    statistics_.evaluations += m * columns;
  }

  // Lock to hold, without the GIL, while rows are in use.
  std::mutex &mutex() { return mutex_; }

 protected:
  // Computes row i, and counts the evaluations.
  virtual void compute(Index i, float *out) = 0;
  // Called when row i is evicted.
  virtual void forget(Index) {}
  // Returns row i if it is cached, else null.
  const float *peek(Index i) const { return cache_.peek(i); }
  // out[q * stride + t] <- k(queries[q], columns[t]).
  virtual void compute_block(const Order *queries, Index m,
                             const Vector<Order> &columns, double *out,
                             Index stride) = 0;
  GramStatistics statistics_;

 private:
  std::mutex mutex_;
  Index n_;
  RowCache<float> cache_;
  Vector<Order> columns_;
};

// Rows of a matrix sorted by class, for the kernel matrices of pairs of classes. A row
// of such a matrix has two segments: the columns of its own class, which all pairs with
// the class share, and the columns of the other class, which no other pair needs.
class Classes {
 public:
  virtual ~Classes() = default;
  virtual Index count() const = 0;
  // Returns the matrix of class a, or of classes a and b with the rows of a first. It
  // may outlive this object.
  virtual std::unique_ptr<Gram> gram(Index a, Index b, Index capacity) = 0;
};

template <class Rows>
struct RowsOfClasses {
  // One class. The lock protects the cache of the segments for its own columns.
  struct Class {
    Class(const Rows &all, Index first, Index end, const Layout &layout,
          const KernelFunction &kernel, Index capacity)
        : begin(first),
          n(end - first),
          single(all, first, end, layout, kernel),
          cache(n, n, capacity) {}
    Index begin, n;
    SingleRow single;
    std::mutex mutex;
    RowCache<float> cache;
  };

  // Class c has the rows bounds[c] to bounds[c + 1] - 1, and caches up to capacities[c]
  // segments.
  RowsOfClasses(const Rows &all, Index stored, const KernelFunction &kernel,
                const Vector<Index> &bounds, const Vector<Index> &capacities)
      : rows(all), function(kernel), norms(all.rows()) {
    for (Index i = 0; i < rows.rows(); ++i) {
      double norm = 0.0;
      Index entries = 0;
      rows.for_each(i, [&](Index, double v) {
        norm += function.overlap ? Overlap::of(v, v) : Product::of(v, v);
        ++entries;
      });
      norms[i] = norm;
      longest = std::max(longest, entries);
    }
    Layout layout(rows, stored, function);
    for (Index c = 0; c + 1 < bounds.size(); ++c)
      classes.push_back(std::make_unique<Class>(rows, bounds[c], bounds[c + 1], layout,
                                                function, capacities[c]));
    far = std::move(layout.far);
  }

  Rows rows;
  KernelFunction function;
  Index longest = 0;  // most entries of a row
  Vec norms;
  Vector<char> far;  // see Layout
  Vector<std::unique_ptr<Class>> classes;
};

// Kernel matrix of the rows of one or two classes.
template <class Rows>
class RowsGram final : public Gram {
 public:
  using Data = RowsOfClasses<Rows>;

  // Without a second class b is negative.
  RowsGram(std::shared_ptr<Data> data, Index a, Index b, Index capacity)
      : Gram(size(*data, a) + size(*data, b), capacity),
        data_(std::move(data)),
        queries_(data_->rows.cols(), data_->longest, data_->function) {
    for (const Index c : {a, b})
      if (c >= 0) parts_.push_back(data_->classes[c].get());
    // Pairs share the order of the rows, so only a single class may change it.
    symmetric_ = data_->classes.size() == 1 && parts_[0]->single.worth_copying();
  }

 protected:
  void compute(Index i, float *out) override {
    const bool second = i >= parts_[0]->n;
    auto &own = *parts_[second];
    const Index place = second ? parts_[0]->n : 0, local = i - place;
    if (far(i)) {
      const auto query = static_cast<Order>(i);
      double values[QueryBlock::kQueries];
      set_queries(&query, 1);
      for (Index j = 0; j < n(); ++j) {
        kernels(j, values);
        out[j] = static_cast<float>(values[0]);
      }
      statistics_.evaluations += n();
      return;
    }
    own.single.load(local, query_);
    for (auto *part : parts_) {
      const Index begin = part == parts_[0] ? 0 : parts_[0]->n;
      if (part == &own && copy_segment(own, local, out + begin)) continue;
      const Index copied =
          part->single.kernel_row(data_->rows, row_of(i), query_, out + begin,
                                  [&](Index j) { return peek(j)[i]; });
      statistics_.copied += copied;
      statistics_.evaluations += part->n - copied;
      if (part != &own) continue;
      // The diagonal value is computed in float64, because there cancellation is worst.
      const double norm = data_->norms[row_of(i)];
      double self = norm;
      data_->function.apply(&self, 1, norm, &norm);
      out[i] = static_cast<float>(self);
      keep_segment(own, local, out + begin);
    }
    if (symmetric_) own.single.move_first(local);
  }
  void forget(Index i) override {
    if (symmetric_ && !far(i)) parts_[0]->single.move_back(i);
  }

  void compute_block(const Order *queries, Index m, const Vector<Order> &columns,
                     double *out, Index stride) override {
    double values[QueryBlock::kQueries];
    set_queries(queries, m);
    for (Index t = 0; t < columns.size(); ++t) {
      kernels(static_cast<Index>(columns[t]), values);
      for (Index q = 0; q < m; ++q) out[q * stride + t] = values[q];
    }
  }

 private:
  using Class = typename Data::Class;

  static Index size(const Data &data, Index c) {
    return c >= 0 ? data.classes[c]->n : 0;
  }
  // Whether a row is computed in float64. Other rows do not copy from such a row,
  // because their bits would depend on which row was requested first.
  bool far(Index i) const { return data_->far[row_of(i)]; }
  Index row_of(Index i) const {
    const Index first = parts_[0]->n;
    return i < first ? parts_[0]->begin + i : parts_[1]->begin + i - first;
  }
  void set_queries(const Order *queries, Index m) {
    queries_.set(data_->rows, m, data_->norms.data(),
                 [&](Index q) { return row_of(static_cast<Index>(queries[q])); });
  }
  void kernels(Index j, double *values) const {
    const Index row = row_of(j);
    queries_.kernels(data_->rows, row, data_->norms[row], values);
  }

  // The lock is held to copy a segment, never to compute one. Two threads may compute
  // the same segment, with the same bits.
  bool copy_segment(Class &own, Index local, float *out) {
    if (own.cache.capacity() == 0) return false;
    const std::lock_guard lock(own.mutex);
    const float *values = own.cache.find(local);
    if (!values) return false;
    std::copy_n(values, own.n, out);
    statistics_.copied += own.n;
    return true;
  }
  void keep_segment(Class &own, Index local, const float *values) {
    if (own.cache.capacity() == 0) return;
    const std::lock_guard lock(own.mutex);
    if (!own.cache.find(local))
      own.cache.add(local, [&](float *to, Index) { std::copy_n(values, own.n, to); });
  }

  std::shared_ptr<Data> data_;
  Vector<Class *> parts_;
  bool symmetric_;  // whether values are copied from cached rows
  Query query_;
  QueryBlock queries_;
};

template <class Rows>
class ClassesOf final : public Classes {
 public:
  explicit ClassesOf(std::shared_ptr<RowsOfClasses<Rows>> data)
      : data_(std::move(data)) {}
  Index count() const override { return data_->classes.size(); }
  std::unique_ptr<Gram> gram(Index a, Index b, Index capacity) override {
    return std::make_unique<RowsGram<Rows>>(data_, a, b, capacity);
  }

 private:
  std::shared_ptr<RowsOfClasses<Rows>> data_;
};

}  // namespace dualgap
