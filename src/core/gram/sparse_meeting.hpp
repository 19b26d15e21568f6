// Products of blocks of 32 sparse queries with sparse points (targets).
//
// Few features    queries are scattered into a block [d][32], and every entry of a
//                 target is multiplied with a row of the block
// Very many       such a block would not fit in the second-level cache; see
//                 postings.hpp
#pragma once

#include <algorithm>
#include <functional>

#include "../stop.hpp"
#include "postings.hpp"

namespace dualgap {

// Up to 32 sparse points, scattered into [d][32].
template <class T>
class ScatteredBlock {
 public:
  // Number of features whose rows take half of the second-level cache.
  static constexpr Index kFeatures =
      (512 << 10) / (static_cast<Index>(sizeof(T)) * tile::kPanel);

  ScatteredBlock(const KernelMap &map, const Points &points)
      : map_(map), points_(points), block_(points.d() * tile::kPanel, T(0)) {}
  // Number of blocks that process the same targets in turn and together fit in cache.
  static Index together(const Points &points) {
    constexpr Index kMost = 64;
    return std::clamp<Index>(kFeatures / std::max<Index>(points.d(), 1), 1, kMost);
  }
  // Panels of targets processed together; each of these blocks reads them again.
  static constexpr Index kTargets = 16;

  // Sets the points who(0), ..., who(m - 1). `h` holds the h of all points if known.
  template <class Who>
  void set(Index m, const Who &who, const T *h = nullptr) {
    for (const Order k : columns_) std::fill_n(at(k), tile::kPanel, T(0));
    columns_.clear();
    std::fill(h_, h_ + tile::kPanel, T(0));
    for (Index t = 0; t < m; ++t) {
      const Index i = who(t);
      points_.entries(i, entries_);
      h_[t] = h ? h[i] : T(0.5) * self_sum<T>(map_, entries_.values);
      for (Index e = 0; e < entries_.columns.size(); ++e) {
        const Order k = entries_.columns[e];
        at(k)[t] = static_cast<T>(map_.block_scale() * entries_.values[e]);
        columns_.push_back(k);
      }
    }
  }
  // out[t][l] <- k(point l of the block, z_which(t)) for all 32 points l and t < m <=
  // 32, given the h of all z.
  template <class Which>
  void kernels(const tile::Parameters &parameters, const Points &targets,
               const Which &which, Index m, const T *h, T *out) const {
    T own[tile::kPanel];
    Index rows[tile::kPanel];
    for (Index t = 0; t < m; ++t) {
      rows[t] = which(t);
      own[t] = h[rows[t]];
    }
    targets.sums(rows, m, map_.scale, map_.overlap(), block_.data(), out);
    tile::values(map_.sparse_shape(), parameters, out, m, own, h_);
  }

 private:
  T *at(Index k) { return block_.data() + k * tile::kPanel; }

  const KernelMap &map_;
  const Points &points_;
  Entries entries_;
  Vector<Order> columns_;  // that are not 0
  Vector<T> block_;        // [d][kPanel]
  T h_[tile::kPanel] = {};
};

// Kernel values of blocks of 32 sparse queries with the targets.
template <class T>
class SparseMeeting {
 public:
  static bool by_postings(const Points &points) {
    return points.d() > ScatteredBlock<T>::kFeatures;
  }
  // The targets are the points of `postings`. If it is null, they are `many` points:
  // those with the numbers in `columns`, or all. `h` holds half the self sums of all
  // points.
  SparseMeeting(const KernelMap &map, const Points &queries, const Points &targets,
                const Order *columns, Index many, const T *h,
                const Postings<T> *postings)
      : map_(map),
        queries_(queries),
        targets_(targets),
        columns_(columns),
        many_(many),
        h_(h),
        postings_(postings) {}

  // Number of blocks that process the targets together and fit in cache.
  Index most() const {
    constexpr Index kPosted = 16;
    return postings_ ? kPosted : ScatteredBlock<T>::together(queries_);
  }
  // Number of units of work for threads.
  Index units() const { return postings_ ? postings_->chunks() : tile::panels(many_); }
  Index blocks() const { return blocks_; }
  void clear() { blocks_ = 0; }
  // Adds a block of the points who(0), ..., who(m - 1).
  template <class Who>
  void add(Index m, const Who &who, const T *h = nullptr) {
    const auto b = blocks_++;
    if (postings_) {
      if (b == posted_.size()) posted_.emplace_back(map_, queries_);
      posted_[b].set(m, who, *postings_->features(), h);
    } else {
      if (b == scattered_.size()) scattered_.emplace_back(map_, queries_);
      scattered_[b].set(m, who, h);
    }
  }
  // Calls then(b, j, count, values) with the values[t][l] of the targets j, ...,
  // j + count - 1 and the queries l of block b.
  using Then = std::function<void(Index b, Index j, Index count, const T *values)>;
  void meet(const tile::Parameters &parameters, Index begin, Index end,
            SharedPoll &shared, const Then &then) const {
    if (postings_)
      meet_postings(parameters, begin, end, shared, then);
    else
      meet_entries(parameters, begin, end, shared, then);
  }

 private:
  static constexpr Index kWork = 64;  // work per value for a poll

  Index target(Index j) const { return columns_ ? columns_[j] : j; }
  void meet_entries(const tile::Parameters &parameters, Index begin, Index end,
                    SharedPoll &shared, const Then &then) const {
    constexpr Index kTogether = ScatteredBlock<T>::kTargets;
    T values[tile::kPanel * tile::kPanel] = {};
    for (Index from = begin; from < end; from += kTogether) {
      const Index to = std::min(from + kTogether, end);
      for (Index b = 0; b < blocks_; ++b) {
        for (Index p = from; p < to; ++p) {
          const Index j = p * tile::kPanel;
          const Index count = std::min<Index>(tile::kPanel, many_ - j);
          scattered_[b].kernels(
              parameters, targets_, [&](Index t) { return target(j + t); }, count, h_,
              values);
          then(b, j, count, values);
        }
        if (shared((to - from) * tile::kPanel * kWork)) return;
      }
    }
  }
  void meet_postings(const tile::Parameters &parameters, Index begin, Index end,
                     SharedPoll &shared, const Then &then) const {
    const Index room = tile::panels(postings_->largest());
    Vector<T> strip;
    Vector<T> sums(room * tile::kPanel * tile::kPanel);
    for (Index c = begin; c < end; ++c)
      for (Index b = 0; b < blocks_; ++b) {
        const auto &block = posted_[b];
        block.sums(*postings_, c, strip, sums.data());
        const Index first = postings_->first(c), rows = postings_->rows(c);
        for (Index t = 0; t < rows; t += tile::kPanel) {
          const Index count = std::min<Index>(tile::kPanel, rows - t);
          T *values = sums.data() + t * tile::kPanel;
          tile::values(map_.sparse_shape(), parameters, values, count,
                       postings_->h() + first + t, block.h());
          std::fill(values + count * tile::kPanel, values + tile::kPanel * tile::kPanel,
                    T(0));
          then(b, first + t, count, values);
        }
        if (shared(rows * kWork)) return;
      }
  }

  const KernelMap &map_;
  const Points &queries_, &targets_;
  const Order *columns_;
  Index many_;
  const T *h_;
  const Postings<T> *postings_;
  Index blocks_ = 0;
  Vector<ScatteredBlock<T>> scattered_;
  Vector<PostedBlock<T>> posted_;
};

}  // namespace dualgap
