// Similarities of some points with many, in two ways.
//
// SingleRow   one point with all points, in float32, as fast as memory allows. Dense
//             rows are copied into panels of 32 rows, [panel][column][row], so that 32
//             sums advance at once. Sparse rows (less than a fifth stored) are copied
//             by column, and only the columns of the point are read. Rows whose values
//             the caller already holds may be moved to the first panels and skipped.
// QueryBlock  up to 32 points with any others, in float64, through the row accessor and
//             without copies; used for samples and small matrices.
//
// Exponentials of dense points are computed from differences. Exponentials of sparse
// points in a QueryBlock are computed from products, and from differences if products
// are not accurate enough.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "../rows.hpp"
#include "differences.hpp"
#include "function.hpp"

namespace dualgap {

// Common layout of float32 copies of rows. Dense rows are centred if only distances
// matter, which removes most of the rounding error.
struct Layout {
  bool dense;
  Vec centre;
  Vector<char> far;  // rows for which float32 is not accurate enough

  template <class Rows>
  Layout(const Rows &rows, Index stored, const KernelFunction &function)
      : dense(kSparser * static_cast<double>(stored) >=
              static_cast<double>(rows.rows()) * static_cast<double>(rows.cols())),
        centre(dense ? rows.cols() : 0, 0.0),
        far(rows.rows(), 0) {
    if (!function.exponential()) return;
    KernelMap map = KernelMap::of(
        function.overlap ? tile::Shape::kLaplacian : tile::Shape::kExponential,
        function.gamma, 0.0, 1);
    const PointsOf<Rows> points(rows, {}, true);
    const double near = dense ? kNearByDifferences : KernelMap::kNear;
    Index most = 0;
    const auto h = dense ? map.centre_on(points) : map.of_entries(points, most);
    if (!map.centre.empty()) centre = map.centre;
    for (Index i = 0; i < h.size(); ++i) far[i] = !(h[i] <= near);
  }

 private:
  // Rows with less than 1/5 of their entries stored are sparse.
  static constexpr double kSparser = 5.0;
  // At this half self product, rounding entries to float32 changes an exponent by about
  // 1e-4.
  static constexpr double kNearByDifferences = 1e5;
};

// One of the points, in the form of SingleRow.
struct Query {
  FloatVec entries;  // of a dense point
  float norm = 0.0f;
};

class SingleRow {
 public:
  // Over the rows begin to end - 1.
  template <class Rows>
  SingleRow(const Rows &rows, Index begin, Index end, const Layout &layout,
            const KernelFunction &function)
      : begin_row_(begin),
        n_(end - begin),
        d_(rows.cols()),
        function_(function),
        dense_(layout.dense) {
    if (dense_)
      fill_panels(rows, layout.centre);
    else
      fill_columns(rows);
    // With exponential kernels such a row is computed in float64 instead.
    for (const float norm : norms_)
      if (!std::isfinite(norm) && !function.exponential())
        throw std::invalid_argument(
            "X has rows whose squared norm leaves the range of float32; rescale the "
            "features");
  }

  // Whether copying k(j, i) from row j costs less than computing k(i, j).
  bool worth_copying() const { return dense_ && d_ >= kWide && n_ >= kMany; }

  // Marks row j as available: kernel_row looks its values up. Such rows are moved to
  // the first panels, which are then skipped.
  void move_first(Index j) { exchange(place_[j], first_++); }
  // Marks row j as no longer available.
  void move_back(Index j) { exchange(place_[j], --first_); }

  // Loads the j-th of these rows as a query.
  void load(Index j, Query &query) const {
    const Index place = dense_ ? static_cast<Index>(place_[j]) : j;
    query.norm = norms_[place];
    if (!dense_) return;
    query.entries.resize(d_);
    const float *own = panels_.data() + panel_entry(place);
    for (Index k = 0; k < d_; ++k) query.entries[k] = own[k * kPanel];
  }

  // out_j <- k(x_i, x_j) for all rows j, where x_i is the query. Returns how many
  // values were looked up by `known(j)`.
  template <class Rows, class Known>
  Index kernel_row(const Rows &rows, Index i, const Query &query, float *out,
                   Known &&known) const {
    const bool overlap = function_.overlap;
    if (dense_) {
      if (!function_.exponential())
        panel_row<Product>(query, out);
      else if (overlap)
        panel_row<AbsoluteDifference>(query, out);
      else
        panel_row<SquaredDifference>(query, out);
      const Index copied = first_ / kPanel * kPanel;
      for (Index t = 0; t < copied; ++t) out[order_[t]] = known(order_[t]);
      return copied;
    }
    std::fill(out, out + n_, 0.0f);
    overlap ? column_row<Overlap>(rows, i, out) : column_row<Product>(rows, i, out);
    function_.apply(out, n_, query.norm, norms_.data());
    return 0;
  }

 private:
  static constexpr Index kPanel = 32;
  // Sizes from which computing costs more than moving rows and looking values up
  // (measured).
  static constexpr Index kWide = 512, kMany = 8192;

  template <class Rows>
  void fill_panels(const Rows &rows, const Vec &mean) {
    const Index panels = (n_ + kPanel - 1) / kPanel;
    panels_.assign(panels * d_ * kPanel, 0.0f);
    norms_.assign(panels * kPanel, 0.0f);
    order_.resize(n_);
    std::iota(order_.begin(), order_.end(), Order{0});
    place_ = order_;
    for (Index i = 0; i < n_; ++i) {
      float *x = panels_.data() + panel_entry(i);
      for (Index k = 0; k < d_; ++k) x[k * kPanel] = static_cast<float>(-mean[k]);
      rows.for_each(begin_row_ + i, [&](Index k, double v) {
        x[k * kPanel] = static_cast<float>(v - mean[k]);
      });
      double norm = 0.0;
      for (Index k = 0; k < d_; ++k) norm += self(static_cast<double>(x[k * kPanel]));
      norms_[i] = static_cast<float>(norm);
    }
  }

  template <class Rows>
  void fill_columns(const Rows &rows) {
    begin_.assign(d_ + 1, 0);
    norms_.assign(n_, 0.0f);
    for (Index i = 0; i < n_; ++i)
      rows.for_each(begin_row_ + i, [&](Index k, double) { ++begin_[k + 1]; });
    for (Index k = 0; k < d_; ++k) begin_[k + 1] += begin_[k];
    members_.resize(begin_[d_]);
    values_.resize(members_.size());
    Vector<Index> next(begin_.begin(), begin_.end() - 1);
    for (Index i = 0; i < n_; ++i) {
      double norm = 0.0;
      rows.for_each(begin_row_ + i, [&](Index k, double v) {
        const Index t = next[k]++;
        members_[t] = static_cast<Order>(i);
        values_[t] = static_cast<float>(v);
        norm += self(static_cast<double>(values_[t]));
      });
      norms_[i] = static_cast<float>(norm);
    }
  }

  double self(double v) const {
    return function_.overlap ? Overlap::of(v, v) : Product::of(v, v);
  }
  Index panel_entry(Index i) const { return i / kPanel * d_ * kPanel + i % kPanel; }

  void exchange(Index s, Index t) {
    if (s == t) return;
    moved_ = true;
    float *a = panels_.data() + panel_entry(s), *b = panels_.data() + panel_entry(t);
    for (Index k = 0; k < d_; ++k) std::swap(a[k * kPanel], b[k * kPanel]);
    std::swap(norms_[s], norms_[t]);
    std::swap(order_[s], order_[t]);
    place_[order_[s]] = static_cast<Order>(s);
    place_[order_[t]] = static_cast<Order>(t);
  }

  // The kernel function is applied to whole panels, so that the bits of a value do not
  // depend on its place in a panel.
  template <class Op>
  void panel_row(const Query &query, float *out) const {
    const Index begin = first_ / kPanel;
    const float *panel = panels_.data() + begin * d_ * kPanel;
    for (Index j = begin * kPanel; j < n_; j += kPanel, panel += d_ * kPanel) {
      float sum[kPanel] = {};
      for (Index k = 0; k < d_; ++k) {
        const float x = query.entries[k];
        for (Index l = 0; l < kPanel; ++l) sum[l] += Op::of(x, panel[k * kPanel + l]);
      }
      if (function_.exponential())
        function_.of_distances(sum, kPanel);
      else
        function_.apply(sum, kPanel, query.norm, norms_.data() + j);
      const Index m = std::min(kPanel, n_ - j);
      if (moved_)
        for (Index l = 0; l < m; ++l) out[order_[j + l]] = sum[l];
      else
        std::copy(sum, sum + m, out + j);
    }
  }

  template <class Op, class Rows>
  void column_row(const Rows &rows, Index i, float *out) const {
    rows.for_each(i, [&](Index k, double value) {
      const auto x = static_cast<float>(value);
      const Order *member = members_.data();
      const float *v = values_.data();
      const Index end = begin_[k + 1];
      for (Index t = begin_[k]; t < end; ++t) out[member[t]] += Op::of(x, v[t]);
    });
  }

  Index begin_row_, n_, d_;
  KernelFunction function_;
  bool dense_;
  FloatVec norms_;
  FloatVec panels_;
  Vector<Order> order_, place_;  // row at a place of the panels, place of a row
  Index first_ = 0;              // rows moved to the first places
  bool moved_ = false;
  Vector<Index> begin_;
  Vector<Order> members_;
  FloatVec values_;
};

class QueryBlock {
 public:
  static constexpr Index kQueries = 32;

  // `longest` is the largest number of entries of a row.
  QueryBlock(Index d, Index longest, const KernelFunction &function)
      : function_(function),
        rate_(0x1p-53 * (2.0 * static_cast<double>(longest) + kOwn)),
        entries_(d * kQueries, 0.0) {}

  // `row(q)` is the q-th of m <= kQueries points.
  template <class Rows, class Row>
  void set(const Rows &rows, Index m, const double *norms, Row &&row) {
    // Clear only the entries of the points before, as rows may be short and d large.
    for (Index q = 0; q < m_; ++q)
      rows.for_each(rows_[q], [&](Index k, double) { entries_[at(k, q)] = 0.0; });
    m_ = m;
    width_ = m <= kFew ? kFew : kQueries;
    for (Index q = 0; q < m; ++q) {
      rows_[q] = static_cast<Index>(row(q));
      norms_[q] = norms[rows_[q]];
      rows.for_each(rows_[q], [&](Index k, double v) { entries_[at(k, q)] = v; });
    }
    std::fill(norms_ + m, norms_ + kQueries, 0.0);
  }

  // out_q <- k(query q, x_j) for q < m; the other entries of `out` are undefined.
  template <class Rows>
  void kernels(const Rows &rows, Index j, double norm, double *out) const {
    width_ == kFew ? kernels_of<kFew>(rows, j, norm, out)
                   : kernels_of<kQueries>(rows, j, norm, out);
  }

 private:
  // ProductErrors::own, and two roundings of the norms.
  static constexpr double kOwn = ProductErrors<double>::kOwn + 2.0;
  static constexpr Index kFew = 8;  // queries that need not fill a block
  Index at(Index k, Index q) const { return k * width_ + q; }

  template <Index kWidth, class Rows>
  void kernels_of(const Rows &rows, Index j, double norm, double *out) const {
    if constexpr (is_dense<Rows>::value) {
      if (function_.exponential()) {
        function_.overlap ? sum<AbsoluteDifference, kWidth>(rows, j, out)
                          : sum<SquaredDifference, kWidth>(rows, j, out);
        function_.of_distances(out, kWidth);
        return;
      }
    }
    function_.overlap ? sum<Overlap, kWidth>(rows, j, out)
                      : sum<Product, kWidth>(rows, j, out);
    double products[kWidth];
    std::copy(out, out + kWidth, products);
    function_.apply(out, kWidth, norm, norms_);
    if (function_.exponential()) refine(rows, j, norm, products, out);
  }

  // Recomputes values for which products may be too inaccurate: the error bound of the
  // exponent (see ProductErrors) is not small, and k need not be next to 0.
  template <class Rows>
  void refine(const Rows &rows, Index j, double norm, const double *products,
              double *out) const {
    constexpr double kMost = 1e-9, kVanishes = 750.0;
    const double gamma = function_.gamma;
    for (Index q = 0; q < m_; ++q) {
      const double off = gamma * rate_ * (norm + norms_[q]);
      if (off <= kMost) continue;
      const double exponent = gamma * (norm + norms_[q] - 2.0 * products[q]);
      if (exponent - off >= kVanishes) continue;
      entries_of(rows, rows_[q], own_);
      entries_of(rows, j, other_);
      out[q] = distance(own_, other_, 1.0, function_.overlap);
      function_.of_distances(out + q, 1);
    }
  }
  template <class Rows>
  static void entries_of(const Rows &rows, Index i, Entries &out) {
    out.columns.clear();
    out.values.clear();
    rows.for_each(i, [&](Index k, double v) {
      out.columns.push_back(static_cast<Order>(k));
      out.values.push_back(v);
    });
    sort_entries(out);
  }

  template <class Op, Index kWidth, class Rows>
  void sum(const Rows &rows, Index j, double *out) const {
    double sums[kWidth] = {};
    const double *entries = entries_.data();
    rows.for_each(j, [&](Index k, double v) {
      const double *column = entries + k * kWidth;
      for (Index q = 0; q < kWidth; ++q) sums[q] += Op::of(v, column[q]);
    });
    std::copy(sums, sums + kWidth, out);
  }

  KernelFunction function_;
  double rate_;  // as in ProductErrors
  Vec entries_;  // [column][query], width_ queries to a column
  double norms_[kQueries] = {};
  Index rows_[kQueries] = {};
  Index m_ = 0, width_ = kQueries;
  mutable Entries own_, other_;
};

}  // namespace dualgap
