// Points with few of very many features, and their products with blocks of queries.
//
// Common   a feature of at least a 16th of the points. A block of 32 queries has a row
//          of 32 entries for it, and every point with the feature is multiplied with
//          this row.
// Rare     every other feature. Points are listed by feature, and an entry of a query
//          is multiplied only with points that have the feature too.
// Sums     over the common features of the point, several chains at a time, and then
//          over the rare features of the query, each in the order of the matrix. Sums
//          restart after some terms, so that no term passes many roundings. The sum of
//          a point with itself is exactly the result of `self_sum`.
// Cost     32 multiplications for a common entry of a point and a block; one for each
//          rare feature that a point and a query share. 8 bytes per entry (12 for
//          float64), and 4 per feature for every 2,048 points (1,024 for float64), or
//          for a 64th of the points.
// Source   postings: Zobel and Moffat, ACM Computing Surveys 38, 2006
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "points.hpp"

namespace dualgap {

// Ranks of the features that occur, the most frequent ones first.
class Ranking {
 public:
  explicit Ranking(const Points &points) : rank_(points.d()) {
    Entries entries;
    for (Index i = 0; i < points.n(); ++i) {
      points.entries(i, entries);
      for (const Order k : entries.columns) ++rank_[k];
    }
    Vector<Order> occur;
    for (Index k = 0; k < rank_.size(); ++k)
      if (rank_[k] > 0) occur.push_back(static_cast<Order>(k));
    std::stable_sort(occur.begin(), occur.end(),
                     [&](Order a, Order b) { return rank_[a] > rank_[b]; });
    for (const Order k : occur) {
      common_ += kPart * static_cast<Index>(rank_[k]) >= points.n();
      rank_[k] = ++last_;
    }
  }
  // Common features have the ranks 1, ..., common(), rare features the next rare()
  // ranks.
  Order common() const { return common_; }
  Order rare() const { return last_ - common_; }
  // Rank of a feature, from 1 on; 0 if it does not occur.
  Order rank(Order k) const { return rank_[k]; }

 private:
  static constexpr Index kPart = 16;
  Vector<Order> rank_;
  Order common_ = 0, last_ = 0;
};

// Adds the term of an entry of a query and an entry of a point to a sum, in the same
// way for `self_sum` and `PostedBlock`.
template <class T>
DUALGAP_INLINE T add_one(bool overlap, T a, T b, T sum) {
  if (overlap) return sum + ((std::abs(a) + std::abs(b)) - std::abs(a - b));
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// Some points, divided into common and rare entries.
template <class T>
class Postings {
 public:
  struct List {
    const Order *rows;  // rows of the chunk
    const T *values;
    Index count;
  };

  // All points, or the `named` ones.
  Postings(const KernelMap &map, const Points &points,
           std::shared_ptr<const Ranking> features, const Order *named, Index n)
      : n_(n),
        rare_(features->rare()),
        chunk_(chunk_of(n)),
        overlap_(map.overlap()),
        features_(std::move(features)) {
    const Index all = chunks();
    const Order common = features_->common();
    start_.assign(all * (rare_ + 1), 0);
    base_.assign(all + 1, 0);
    common_start_.assign(n_ + 1, 0);
    h_.resize(n_);
    const auto point = [&](Index t) {
      return named ? static_cast<Index>(named[t]) : t;
    };
    Entries entries;
    for (Index c = 0; c < all; ++c) {
      std::uint32_t *start = start_.data() + c * (rare_ + 1);
      for (Index t = first(c); t < first(c) + rows(c); ++t) {
        points.entries(point(t), entries);
        Index many = 0;
        for (const Order k : entries.columns)
          if (const Order rank = features_->rank(k); rank <= common)
            ++many;
          else
            ++start[rank - common];
        common_start_[t + 1] = common_start_[t] + many;
      }
      for (Index k = 0; k < rare_; ++k) start[k + 1] += start[k];
      base_[c + 1] = base_[c] + start[rare_];
    }
    common_rows_.resize(common_start_.back());
    common_values_.resize(common_start_.back());
    rare_rows_.resize(base_.back());
    rare_values_.resize(base_.back());
    Vector<std::uint32_t> next(rare_);
    for (Index c = 0; c < all; ++c) {
      std::copy_n(start_.data() + c * (rare_ + 1), rare_, next.begin());
      for (Index t = first(c); t < first(c) + rows(c); ++t) {
        points.entries(point(t), entries);
        Index at = common_start_[t];
        for (Index e = 0; e < entries.columns.size(); ++e) {
          const Order rank = features_->rank(entries.columns[e]);
          const T value = map.entry<T>(entries.values[e]);
          if (rank <= common) {
            common_rows_[at] = rank - 1;
            common_values_[at++] = value;
          } else {
            const Index to = base_[c] + next[rank - common - 1]++;
            rare_rows_[to] = static_cast<Order>(t - first(c));
            rare_values_[to] = value;
          }
        }
        h_[t] = T(0.5) * self_sum(map, *features_, entries);
      }
    }
  }

  const std::shared_ptr<const Ranking> &features() const { return features_; }
  const T *h() const { return h_.data(); }  // half the self sum of each point
  bool overlap() const { return overlap_; }
  Index chunks() const { return (n_ + chunk_ - 1) / chunk_; }
  Index first(Index chunk) const { return chunk * chunk_; }
  Index rows(Index chunk) const { return std::min(chunk_, n_ - first(chunk)); }
  Index largest() const { return std::min(chunk_, n_); }

  // Returns the rows of the block and the values of the common entries of a point.
  List common(Index t) const {
    const auto at = common_start_[t];
    return {common_rows_.data() + at, common_values_.data() + at,
            common_start_[t + 1] - at};
  }
  // Returns the points of a chunk with the k-th rare feature.
  List rare(Index chunk, Order k) const {
    const std::uint32_t *start = start_.data() + chunk * (rare_ + 1) + k;
    const auto at = base_[chunk] + start[0];
    return {rare_rows_.data() + at, rare_values_.data() + at, (start[1] - start[0])};
  }

  // Returns the sum of a point with itself.
  static T self_sum(const KernelMap &map, const Ranking &features,
                    const Entries &entries) {
    const bool overlap = map.overlap();
    Vec common;
    T sum = T(0), before = T(0);
    Index many = 0;
    for (Index e = 0; e < entries.columns.size(); ++e) {
      const Order rank = features.rank(entries.columns[e]);
      const double v = entries.values[e];
      if (rank > 0 && rank <= features.common()) {
        common.push_back(v);
        continue;
      }
      if (many > 0 && many % kSpan == 0) before += std::exchange(sum, T(0));
      ++many;
      sum =
          add_one(overlap, map.entry<T>(v), static_cast<T>(map.block_scale() * v), sum);
    }
    return dualgap::self_sum<T>(map, common) + (before + sum);
  }
  // Number of rare features of a query after which their float32 sum restarts.
  static constexpr Index kSpan = std::is_same_v<T, float> ? 32 : Index{1} << 40;
  // Bound on the additions that a term of a sum of m entries passes.
  static Index longest_chain(Index m) {
    return tile::longest_chain<T>(m) + std::min(m, kSpan) + m / kSpan + 2;
  }

 private:
  // Number of points whose sums with a block of queries fit in the second-level cache.
  static Index chunk_of(Index n) {
    constexpr Index kBytes = 256 << 10;
    constexpr Index kMost = kBytes / (static_cast<Index>(sizeof(T)) * tile::kPanel);
    constexpr Index kChunks = 64;
    const Index part = (n + kChunks - 1) / kChunks;
    return tile::in_panels(std::max(part, kMost));
  }

  Index n_, rare_, chunk_;
  bool overlap_;
  std::shared_ptr<const Ranking> features_;
  Vector<std::uint32_t> start_;  // [chunk][rare + 1], from base_[chunk] on
  Vector<Index> base_, common_start_;
  Vector<Order> common_rows_, rare_rows_;
  Vector<T> common_values_, rare_values_, h_;
};

// Up to 32 queries.
template <class T>
class PostedBlock {
 public:
  PostedBlock(const KernelMap &map, const Points &points)
      : map_(map), points_(points) {}

  // Sets the points who(0), ..., who(m - 1). `h` holds the h of all points if known.
  template <class Who>
  void set(Index m, const Who &who, const Ranking &features, const T *h) {
    common_.assign(features.common() * tile::kPanel, T(0));
    rare_.clear();
    std::fill(h_, h_ + tile::kPanel, T(0));
    std::fill(lane_start_, lane_start_ + tile::kPanel + 1, Index{0});
    for (Index t = 0; t < m; ++t) {
      const Index i = who(t);
      points_.entries(i, entries_);
      for (Index e = 0; e < entries_.columns.size(); ++e) {
        const Order rank = features.rank(entries_.columns[e]);
        const T value = static_cast<T>(map_.block_scale() * entries_.values[e]);
        if (rank > features.common())
          rare_.push_back({rank - features.common() - 1, value});
        else if (rank > 0)
          common_[(rank - 1) * tile::kPanel + t] = value;
      }
      lane_start_[t + 1] = rare_.size();
      h_[t] = h ? h[i] : T(0.5) * Postings<T>::self_sum(map_, features, entries_);
    }
    std::fill(lane_start_ + m + 1, lane_start_ + tile::kPanel + 1, rare_.size());
  }
  const T *h() const { return h_; }

  // Computes sums[t][l] of the points of a chunk with the 32 queries. `strip` is a
  // reusable buffer.
  void sums(const Postings<T> &targets, Index chunk, Vector<T> &strip, T *sums) const {
    const Index first = targets.first(chunk);
    for (Index t = 0; t < targets.rows(chunk); ++t) {
      const auto list = targets.common(first + t);
      gather(targets.overlap(), list.values, list.rows, list.count, common_.data(),
             sums + t * tile::kPanel);
    }
    // Work on a few contiguous lanes at a time, because points are accessed at random.
    const Index rows = targets.rows(chunk), stride = targets.largest() + kLanes;
    // The sums of a lane from before a restart are stored after all lanes.
    strip.resize(2 * kLanes * stride);
    T *const whole = strip.data() + kLanes * stride;
    for (Index l = 0; l < tile::kPanel; l += kLanes) {
      std::fill(strip.begin(), strip.end(), T(0));
      for (Index lane = l; lane < l + kLanes; ++lane) {
        T *to = strip.data() + (lane - l) * stride, *before = to + kLanes * stride;
        for (Index e = lane_start_[lane]; e < lane_start_[lane + 1]; ++e) {
          const auto many = static_cast<Index>(e - lane_start_[lane]);
          if (many > 0 && many % Postings<T>::kSpan == 0)
            for (Index t = 0; t < rows; ++t) {
              before[t] += to[t];
              to[t] = T(0);
            }
          const auto list = targets.rare(chunk, rare_[e].feature);
          for (Index t = 0; t < list.count; ++t) {
            T &sum = to[list.rows[t]];
            sum = add_one(targets.overlap(), list.values[t], rare_[e].value, sum);
          }
        }
      }
      for (Index t = 0; t < rows; t += kLanes) {
        T side[kLanes][kLanes];
        for (Index r = 0; r < kLanes; ++r)
          for (Index c = 0; c < kLanes; ++c)
            side[r][c] = whole[c * stride + t + r] + strip[c * stride + t + r];
        for (Index r = 0; r < std::min<Index>(kLanes, rows - t); ++r)
          for (Index c = 0; c < kLanes; ++c)
            sums[(t + r) * tile::kPanel + l + c] += side[r][c];
      }
    }
  }

 private:
  static constexpr Index kLanes = 8;
  struct Rare {
    Order feature;
    T value;
  };
  const KernelMap &map_;
  const Points &points_;
  Entries entries_;
  Vector<T> common_;   // [rank - 1][kPanel]
  Vector<Rare> rare_;  // by lane
  Index lane_start_[tile::kPanel + 1] = {};
  T h_[tile::kPanel] = {};
};

}  // namespace dualgap
