// Kernel values of one point with all points, in float32, as fast as memory allows.
//
// Dense    from the panels of all points. Gaussian values come from differences, so
//          float64 is needed only for points that are very far apart.
// Sparse   from a copy of the entries by column; only the columns of the point are read
// Bits     k(x, z) and k(z, x) are equal
// Cost     2 d flops a value (3 d for distances), or one for each entry that the point
//          shares with another; the blocks of kernel_rows.hpp pay from some 6 points on
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "postings.hpp"

namespace dualgap {

namespace tile {

// Computes out_l = k(x_l, z) for the points x of adjacent panels and one query z of d
// entries, with the sums and the roundings of `compute`.
template <int kPanels, class T, class Kernel>
DUALGAP_NOINLINE void compute_one(const T *query, const T *panel, Index d,
                                  const Kernel &kernel, T h_query, const T *h_panel,
                                  T *out) {
  using V = Pack<T>;
  constexpr int kPacks = kPanel / V::kLanes;
  const Index next = d * kPanel;
  V sums[kPanels * kPacks];
  Index k = 0;
  do {
    const bool first = k == 0;
    const Index end = std::min(d, k + kSpan<T>);
    V s[kPanels * kPacks];
    unroll<kPanels * kPacks>([&](auto p) { s[p] = V::all(T(0)); });
    for (; k < end; ++k, panel += kPanel) {
      const V z = V::all(query[k]);
      unroll<kPanels * kPacks>([&](auto p) {
        const T *x = panel + p / kPacks * next + p % kPacks * V::kLanes;
        s[p] = Kernel::Step::step(V::load(x), z, s[p]);
      });
    }
    unroll<kPanels * kPacks>([&](auto p) { sums[p] = first ? s[p] : sums[p] + s[p]; });
  } while (k < d);
  const V h = V::all(h_query);
  unroll<kPanels * kPacks>([&](auto p) {
    kernel.value(sums[p], V::load(h_panel + p * V::kLanes), h)
        .store(out + p * V::kLanes);
  });
}

}  // namespace tile

// Half self product up to which float32 entries of dense points are accurate enough:
// rounding them changes an exponent by about 1e-4.
inline constexpr double kNearByDifferences = 1e5;

// out_j <- k(x_i, x_j) for all points of the panels.
inline void panel_row(const KernelMap &map, const Panels<float> &panels, Index i,
                      float *out) {
  constexpr int kTogether = tile::kChains<float>;
  constexpr double kHalf = 0.5;  // an exponent is half a squared distance of points
  const Index d = panels.d(), n = panels.n();
  const Index group = i / tile::kPanel, lane = i % tile::kPanel;
  const float h = panels.h(group)[lane];
  FloatVec query(d);
  for (Index k = 0; k < d; ++k)
    query[k] = panels.values(group)[k * tile::kPanel + lane];
  const auto pass = [&](const auto &kernel) {
    float values[kTogether * tile::kPanel];
    const auto meet = [&](auto together, Index g) {
      const Index j = g * tile::kPanel;
      const Index count = std::min<Index>(n - j, together * tile::kPanel);
      float *to = count == together * tile::kPanel ? out + j : values;
      tile::compute_one<together>(query.data(), panels.values(g), d, kernel, h,
                                  panels.h(g), to);
      if (to == values) std::copy_n(values, count, out + j);
    };
    Index g = 0;
    for (; g + kTogether <= panels.groups(); g += kTogether)
      meet(std::integral_constant<int, kTogether>{}, g);
    for (; g < panels.groups(); ++g) meet(std::integral_constant<int, 1>{}, g);
  };
  if (map.shape == tile::Shape::kExponential)
    pass(tile::Kernel<tile::Shape::kDifferences, float>({.factor = kHalf}));
  else
    tile::with_kernel<float>(map.shape, map.parameters, pass);
}

// Entries of sparse points by column, scaled and rounded to float32.
class ColumnLists {
 public:
  ColumnLists(const KernelMap &map, const Points &points)
      : map_(map), points_(points), begin_(points.d() + 1, 0) {
    const Index n = points.n();
    h_.assign(tile::in_panels(n), 0.0f);
    Entries entries;
    for (Index i = 0; i < n; ++i) {
      points.entries(i, entries);
      for (const Order k : entries.columns) ++begin_[k + 1];
    }
    for (Index k = 0; k < points.d(); ++k) begin_[k + 1] += begin_[k];
    rows_.resize(begin_.back());
    values_.resize(begin_.back());
    Vector<Index> next(begin_.begin(), begin_.end() - 1);
    for (Index i = 0; i < n; ++i) {
      points.entries(i, entries);
      double h = 0.0;
      for (Index e = 0; e < entries.columns.size(); ++e) {
        const Index t = next[entries.columns[e]]++;
        rows_[t] = static_cast<Order>(i);
        values_[t] = scaled(entries.values[e]);
        const auto v = static_cast<double>(values_[t]);
        h += map.overlap() ? std::abs(v) : 0.5 * v * v;
      }
      h_[i] = static_cast<float>(h);
    }
  }

  // out_j <- k(x_i, x_j) for all points.
  void row(Index i, float *out) const {
    using V = simd::Pack<float>;
    const Index n = points_.n();
    Entries entries;
    points_.entries(i, entries);
    std::fill_n(out, n, 0.0f);
    for (Index e = 0; e < entries.columns.size(); ++e) {
      const float x = scaled(entries.values[e]);
      const Index column = entries.columns[e];
      map_.overlap() ? add<true>(x, column, out) : add<false>(x, column, out);
    }
    tile::with_kernel<float>(
        map_.sparse_shape(), map_.parameters, [&](const auto &kernel) {
          const V own = V::all(h_[i]), none = V::all(0.0f);
          float last[V::kLanes] = {};
          for (Index j = 0; j < n; j += V::kLanes) {
            const bool whole = j + V::kLanes <= n;
            if (!whole) std::copy(out + j, out + n, last);
            float *s = whole ? out + j : last;
            // Adding both h first makes the value of two points symmetric.
            kernel.value(V::load(s), own + V::load(h_.data() + j), none).store(s);
            if (!whole) std::copy_n(last, n - j, out + j);
          }
        });
    // Next to the diagonal cancellation is worst, and k(x, x) is known.
    if (map_.unit()) out[i] = 1.0f;
  }

 private:
  float scaled(double v) const { return static_cast<float>(map_.scale * v); }
  template <bool kOverlap>
  void add(float x, Index column, float *out) const {
    for (Index t = begin_[column]; t < begin_[column + 1]; ++t) {
      float &sum = out[rows_[t]];
      sum = add_one(kOverlap, x, values_[t], sum);
    }
  }

  const KernelMap &map_;
  const Points &points_;
  Vector<Index> begin_;  // of the list of a column
  Vector<Order> rows_;
  FloatVec values_, h_;
};

}  // namespace dualgap
