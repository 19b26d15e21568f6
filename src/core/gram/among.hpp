// Products of the kernel values among some dense points with coefficients. Every value
// is computed once and serves both of its points.
//
//   up_t   = sum_s c_s k(x_s, x_t) over the points s < rising
//   down_t = sum_s c_s k(x_s, x_t) over the other points
//
// Points are cut into blocks of one of the two kinds. In every round of a tournament,
// disjoint pairs of blocks meet, so threads may add to the sums of both blocks. One
// thread computes every sum, in an order that does not depend on the number of threads.
//
// Cost       m^2/2 values in float64, 2 d flops and the exponential each
// Rounding   a term passes at most m/6 + 30 roundings, as in add_times. Added to a
//            column, it passes kRows roundings with the others of its strip, and then
//            one for every further strip. Added to a row, it passes at most 256 in a
//            lane of kTogether panels, and then one for every panel at most. A block
//            has 1,536 points or more, so these are at most 8 more than a sixth of it.
#pragma once

#include <algorithm>
#include <array>

#include "differences.hpp"
#include "postings.hpp"
#include "tile.hpp"

namespace dualgap {

namespace tile {

// Adds sum_r coef[r] k_r to sums[column ...], and k_r times the coefficients of the
// columns to lanes[r].
struct AddBothTimes {
  using V = Pack<double>;
  const double *coef;        // [kRows]
  const double *of_columns;  // [kPanel]
  double *sums;              // sums of the panel
  double *lanes;             // [kRows][kLanes]

  template <class>
  struct At {
    AddTimes<double>::At<double> to_columns;
    double *lanes;
    V left, right;
    DUALGAP_INLINE void row(int r, V a, V b) {
      to_columns.row(r, a, b);
      double *lane = lanes + r * V::kLanes;
      fma(b, right, fma(a, left, V::load(lane))).store(lane);
    }
    DUALGAP_INLINE void end() { to_columns.end(); }
  };
  template <class>
  DUALGAP_INLINE At<double> at(int offset) const {
    const double *c = of_columns + offset;
    const AddTimes<double> to_columns{coef, sums};
    return {to_columns.at<double>(offset), lanes, V::load(c), V::load(c + V::kLanes)};
  }
};

}  // namespace tile

class Among {
 public:
  // The first `rising` of the m points have their sums in `up`.
  Among(const KernelMap &map, const Points &points, const Order *who,
        const double *coef, Index rising, Index m)
      : map_(map), points_(points), who_(who) {
    cut(0, rising, true);
    cut(rising, m, false);
    const Index room = blocks_.back().at + padded(blocks_.back().count);
    coef_.assign(room, 0.0);
    for (Vec &sums : sums_) sums.assign(room, 0.0);
    for (const Block &block : blocks_)
      std::copy_n(coef + block.first, block.count, coef_.data() + block.at);
  }

  // Whether there are enough points of both kinds.
  static bool pays(Index rising, Index m) {
    return std::min(rising, m - rising) >= kLeast;
  }

  // Computes the sums. Returns false if told to stop.
  bool add(double *up, double *down, Team &team, Poll &poll) {
    SharedPoll shared(poll);
    const Index n = blocks_.size(), last = n + n % 2 - 1;
    const auto share = [&](Index count, const auto &meet) {
      team.run(std::min(team.shares(), count), count,
               [&](Index, Index begin, Index end) {
                 for (Index t = begin; t < end && !shared.leave(); ++t) meet(t);
               });
    };
    share(n, [&](Index t) { meet(blocks_[t], blocks_[t], shared); });
    for (Index round = 0; round < last && !shared.leave(); ++round)
      share((last + 1) / 2, [&](Index t) {
        const Index a = t == 0 ? last : (round + t) % last;
        const Index b = (round + last - t) % last;
        if (a < n && b < n) meet(blocks_[a], blocks_[b], shared);
      });
    for (const Block &block : blocks_) {
      std::copy_n(sums_[0].data() + block.at, block.count, up + block.first);
      std::copy_n(sums_[1].data() + block.at, block.count, down + block.first);
    }
    return !shared.leave();
  }

 private:
  // Points of a block at least, so that packing points again for every pair costs
  // little; blocks of either kind at most.
  static constexpr Index kLeast = 1536, kMost = 64;
  // A whole number of strips and of panels.
  static constexpr Index kWhole = 96;
  // Panels that a strip meets before the lanes of its rows are added up.
  static constexpr Index kTogether = 16;
  static Index padded(Index count) { return (count + kWhole - 1) / kWhole * kWhole; }

  struct Block {
    Index first, count;
    Index at;  // its place among the sums
    bool rising;
  };

  void cut(Index begin, Index end, bool rising) {
    const Index count = end - begin, parts = std::min(count / kLeast, kMost);
    for (Index part = 0, first = 0; part < parts; ++part) {
      const Index next =
          part + 1 == parts ? count : count * (part + 1) / parts / kWhole * kWhole;
      const Index at =
          blocks_.empty() ? 0 : blocks_.back().at + padded(blocks_.back().count);
      blocks_.push_back({begin + first, next - first, at, rising});
      first = next;
    }
  }

  template <int kWidth>
  void pack_block(const Block &block, Packed<double, kWidth> &out) const {
    Vec rows;
    pack(
        map_, points_, block.count, [&](Index t) { return who_[block.first + t]; }, out,
        rows);
  }

  // Adds the values of the points of two blocks to the sums of both, or of the one.
  void meet(const Block &a, const Block &b, SharedPoll &shared) {
    constexpr int kRows = tile::kRows, kPanel = tile::kPanel;
    constexpr int kWide = tile::Pack<double>::kLanes;
    Strips<double> strips;
    Panels<double> panels;
    pack_block(a, strips);
    pack_block(b, panels);
    const Index d = points_.d();
    // Panels that stay in the second-level cache.
    constexpr Index kNear = 512 << 10;
    const Index bytes = static_cast<Index>(sizeof(double)) * kPanel * (d + 1);
    const Index together = std::clamp<Index>(kNear / bytes, 1, kTogether);
    double *to_columns = sums_[a.rising ? 0 : 1].data() + b.at;
    double *to_rows = sums_[b.rising ? 0 : 1].data() + a.at;
    const double *of_rows = coef_.data() + a.at, *of_columns = coef_.data() + b.at;
    tile::with_kernel<double>(map_.shape, map_.parameters, [&](const auto &kernel) {
      for (Index p = 0; p < panels.groups(); p += together) {
        const Index end = std::min(p + together, panels.groups());
        for (Index s = 0; s < strips.groups(); ++s) {
          const auto each = [&](const auto &then_of) {
            for (Index g = p; g < end; ++g)
              tile::compute(strips.values(s), panels.values(g), d, kernel, strips.h(s),
                            panels.h(g), then_of(g * kPanel));
          };
          if (&a == &b) {
            each([&](Index j) {
              return tile::AddTimes<double>{of_rows + s * kRows, to_columns + j};
            });
            continue;
          }
          double lanes[kRows * kWide] = {};
          each([&](Index j) {
            return tile::AddBothTimes{of_rows + s * kRows, of_columns + j,
                                      to_columns + j, lanes};
          });
          for (Index r = 0; r < kRows; ++r) {
            double sum = 0.0;
            for (int l = 0; l < kWide; ++l) sum += lanes[r * kWide + l];
            to_rows[s * kRows + r] += sum;
          }
        }
        if (shared(strips.groups() * kRows * (d + 16) * (end - p))) return;
      }
    });
  }

  const KernelMap &map_;
  const Points &points_;
  const Order *who_;
  Vector<Block> blocks_;
  Vec coef_;
  std::array<Vec, 2> sums_;
};

// Whether the values among these points are worth computing once: all of them are
// targets, which come in order.
inline bool meet(Vector<Order> who, Index rising, Some at) {
  if (!Among::pays(rising, who.size())) return false;
  if (!at.numbers) return true;
  std::sort(who.begin(), who.end());
  return std::includes(at.numbers, at.numbers + at.count, who.begin(), who.end());
}

// Computes up_j, the sum over the first `rising` points, and down_j, the sum over the
// others, for the targets j that meet these points. `add(others, up, down)` does so for
// targets that are not among the points.
template <class Add>
bool add_among(const KernelMap &map, const Points &points, const Vector<Order> &who,
               const Vec &coef, Index rising, Some at, double *up, double *down,
               const Add &add, Team &team, Poll &poll) {
  const Index m = who.size();
  Vec own(2 * m);
  Among among(map, points, who.data(), coef.data(), rising, m);
  if (!among.add(own.data(), own.data() + m, team, poll)) return false;
  Vector<Index> term(points.n(), m);  // the number of each point among these, or m
  for (Index t = 0; t < m; ++t) term[who[t]] = t;
  Vector<Order> others;
  for (Index j = 0; j < at.count; ++j)
    if (term[at(j)] == m) others.push_back(static_cast<Order>(at(j)));
  const Index room = tile::in_panels(others.size());
  Vec rest(2 * room);
  if (!others.empty() &&
      !add(Some{others.data(), others.size()}, rest.data(), rest.data() + room))
    return false;
  for (Index j = 0, other = 0; j < at.count; ++j) {
    const Index t = term[at(j)];
    up[j] = t < m ? own[t] : rest[other];
    down[j] = t < m ? own[m + t] : rest[room + other];
    other += t == m;
  }
  return true;
}

}  // namespace dualgap
