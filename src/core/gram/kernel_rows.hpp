// Kernel values of the points of a problem: rows, rows at some columns, and products
// with coefficients.
//
//   rows    k(x_i, x_j) for some i and all j, float32
//   cross   k(x_i, x_j) for some i and some j, float32
//   times   sum_i c_i k(x_i, x_j) for all or some j, values and sums in float64
//   row     k(x_i, x_j) for one i and all j, float32; see single_row.hpp
//   block   k(x_i, x_j) for some i and some j, float64
//
// Dense points are packed once into float32 panels, 4 d bytes each. Sparse points are
// not copied; their products with blocks of 32 queries are in sparse_meeting.hpp.
//
// If rows are `precise`, every value is computed in float64 and then rounded to
// float32. Precise rows may also be rows of K - 1, which give the same sums while
// coefficients sum to 0. If all kernel values are near 1, float32 values of K would
// lose most of their differences.
//
// Cost: 2 d flops a value (2 nnz for sparse points), and the exponential. Threads share
// the points. One thread computes every value and sum, in an order that does not depend
// on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <tuple>

#include "among.hpp"
#include "row_source.hpp"
#include "single_row.hpp"
#include "times.hpp"

namespace dualgap {

class KernelRows final : public RowSource {
  // Cost of an entry of a point in additions of a value: float64 rows cost three times
  // as much as float32 rows, and the entries of dense points 1/25, of sparse ones 1/6.
  static constexpr double kPreciseCost = 3.0, kDensePays = 25.0, kSparsePays = 6.0;
  // Largest error of a value of `block` that is computed from products.
  static constexpr double kLargestBlockError = 1e-10;

 public:
  KernelRows(std::unique_ptr<Points> points, KernelMap map, bool dense, Index threads)
      : RowSource(threads),
        points_(std::move(points)),
        placement_(std::move(map), *points_, *points_, dense),
        map_(placement_.products()),
        dense_(dense),
        entries_(dense ? static_cast<double>(points_->d()) : points_->mean_entries()) {}

  Index n() const override { return points_->n(); }
  const Points &points() const { return *points_; }
  const KernelMap &map() const { return map_; }
  bool dense() const { return dense_; }
  const Placement &placement() const { return placement_; }
  // Whether sums of products come with bounds on their errors.
  bool bounded() const { return placement_.unit(); }
  bool precise() const { return precise_; }
  void set_precise(bool precise) { precise_ = precise; }
  // Whether precise rows of the exponential and Laplacian kernels are rows of K - 1.
  bool shifted() const { return shifted_; }
  void set_shifted(bool shifted) { shifted_ = shifted; }
  // Largest h of an exponential kernel, a measure of the spread of points on its scale.
  double largest_half_self() const { return placement_.largest_h(); }

  // Returns the way in which the row of point i is computed.
  Way way_of(Index i) const {
    const bool near = !placement_.unit() || placement_.h(i) <= KernelMap::kNear;
    return placement_.way(i, !precise_ && near);
  }
  // Returns h as used in float32 values.
  double half_self(Index i) const {
    if (!dense_) return static_cast<double>(single_h()[i]);
    return static_cast<double>(all_panels().h(i / tile::kPanel)[i % tile::kPanel]);
  }

  double cost() const override {
    return 1.0 + (precise_ ? kPreciseCost : 1.0) * entries_ /
                     (dense_ ? kDensePays : kSparsePays);
  }

  bool rows(const Order *who, Index m, float *const *out, Poll &poll) const override {
    return rows_of(who, m, nullptr, n(), out, poll);
  }

  // out[i - first][j - left] <- k(x_i, x_j) for first <= i < last and left <= j < right
  // of dense points, in float64. A row of `out` has `stride` entries, at least right -
  // left rounded up to panels.
  bool table(Index first, Index last, Index left, Index right, double *out,
             Index stride, Poll &poll) const {
    Vector<Order> who, columns;
    Vector<double *> to;
    for (Index j = left; j < right; ++j) columns.push_back(static_cast<Order>(j));
    for (Index i = first; i < last; ++i) {
      who.push_back(static_cast<Order>(i));
      to.push_back(out + (i - first) * stride);
    }
    const bool products = placement_.of_all() == Way::kDouble;
    return dense_rows<double>(products ? map_ : placement_.differences(), who.data(),
                              last - first, columns.data(), right - left, to.data(),
                              poll);
  }

  // 16 bits are not possible for rows of K - 1 or precise rows.
  bool fixed() const override { return !precise_ && placement_.unit(); }
  bool rows(const Order *who, Index m, simd::Fixed *const *out,
            Poll &poll) const override {
    return rows_of(who, m, nullptr, n(), out, poll);
  }

  bool cross(const Order *who, Index m, const Order *columns, Index many,
             float *const *out, Poll &poll) const override {
    return rows_of(who, m, columns, many, out, poll);
  }

  bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                Poll &poll) const override {
    return add_rows(who, coef, m, {nullptr, n()}, sums, poll);
  }
  // Does the same at some rows j; `sums` has room for them rounded up to panels.
  bool add_rows(const Order *who, const double *coef, Index m, Some at, double *sums,
                Poll &poll) const {
    const auto way = [&](Index i) { return way_of(i); };
    const auto groups = by_ways({who, m}, coef, 1, {{0, m, &sums}}, way);
    return add_groups(groups, shift(), at, poll);
  }

  // Rows of points that are too far for float32 are computed in float64.
  void row(Index i, float *out) const override {
    const double near = dense_ ? kNearByDifferences : KernelMap::kNear;
    if (placement_.unit() && !(placement_.h(i) <= near)) {
      const auto who = static_cast<Order>(i);
      Vec values(n());
      block(&who, 1, nullptr, n(), values.data(), n());
      std::transform(values.begin(), values.end(), out,
                     [](double v) { return static_cast<float>(v); });
    } else if (dense_) {
      panel_row(map_, all_panels(), i, out);
    } else {
      std::call_once(listed_,
                     [&] { lists_ = std::make_unique<ColumnLists>(map_, *points_); });
      lists_->row(i, out);
    }
  }

  // Gaussian values of dense points come from differences; values of sparse points from
  // products, as far as these are accurate enough.
  void block(const Order *who, Index m, const Order *columns, Index many, double *out,
             Index stride) const override {
    const Stop never;
    Poll poll(never, [] {});
    if (!dense_) return sparse_block(who, m, {columns, many}, out, stride, poll);
    const KernelMap &map = placement_.differences();
    const Index whole = many / tile::kPanel * tile::kPanel;
    Vector<double *> to(m);
    for (Index t = 0; t < m; ++t) to[t] = out + t * stride;
    if (whole > 0) dense_rows<double>(map, who, m, columns, whole, to.data(), poll);
    if (whole == many) return;
    // Rows of the tile end at a panel, rows of `out` need not.
    Vector<Order> last;
    for (Index j = whole; j < many; ++j)
      last.push_back(columns ? columns[j] : static_cast<Order>(j));
    Vec rest(m * tile::kPanel);
    for (Index t = 0; t < m; ++t) to[t] = rest.data() + t * tile::kPanel;
    dense_rows<double>(map, who, m, last.data(), many - whole, to.data(), poll);
    for (Index t = 0; t < m; ++t)
      std::copy_n(to[t], many - whole, out + t * stride + whole);
  }

  // sums_j += sum_t coef_t k(x_who[t], x_at(j)) in float64; room as above. If `errors`
  // is not null and all kernel values are in [0, 1], errors_j becomes a bound on the
  // distance of the sum from the sum over exact kernel values. Values among points that
  // are terms and targets are then computed once for both.
  //
  // Let S be the sum of the sizes |c_t k_tj| of the terms. It is known because positive
  // and negative terms are summed separately.
  //   sums         a term passes at most m/6 + 30 roundings, its own included, or m +
  //                30 if terms are added one by one
  //   products     the error of t_tj is at most e (h_t + h_j), e from ProductErrors, so
  //                the error of the sum is at most ln 2 e (H + h_j) S, H the largest
  //                h_t; it is also at most the sum of |c_t| times the error of a value
  //                of h_t, wherever x_j is
  //   differences  the error of t is relative to t: k |t| <= T k + T 2^-T for all T
  bool times(const Order *who, const double *coef, Index m, Some at, double *sums,
             double *errors, Poll &poll) const {
    if (!errors || !placement_.unit()) {
      const auto way = [&](Index i) { return placement_.way(i, false); };
      const auto groups = by_ways({who, m}, coef, 1, {{0, m, &sums}}, way);
      return add_groups(groups, 0.0, at, poll);
    }
    const Index room = tile::in_panels(at.count);
    std::fill_n(errors, at.count, 0.0);
    // For each way, sum the positive terms and the other terms separately.
    for (const Way way : {Way::kDouble, Way::kDifferences}) {
      Vector<Order> order;
      Vec weights;
      Index rising = 0;
      SumSizes terms;
      for (const bool positive : {true, false}) {
        for (Index t = 0; t < m; ++t) {
          const double c = coef[t];
          if ((c > 0.0) != positive || placement_.way(who[t], false) != way) continue;
          order.push_back(who[t]);
          weights.push_back(c);
          terms.add(placement_, who[t], c);
        }
        if (positive) rising = order.size();
      }
      if (order.empty()) continue;
      const Index falling = order.size() - rising;
      Vec both(2 * room);
      double *up = both.data(), *down = both.data() + room;
      const auto add = [&](Some targets, double *rises, double *falls) {
        std::array<Group, 3> groups;
        const Vector<Part> parts{{0, rising, &rises}, {rising, falling, &falls}};
        groups[static_cast<std::size_t>(way)] = {order, weights, parts};
        return add_groups(groups, 0.0, targets, poll);
      };
      const bool twice = dense_ && way == Way::kDouble && meet(order, rising, at);
      const bool whole = twice ? add_among(map_, *points_, order, weights, rising, at,
                                           up, down, add, team(), poll)
                               : add(at, up, down);
      if (!whole) return false;
      terms.add_bounded(placement_, way, at, up, down, sums, errors);
    }
    return true;
  }

 private:
  static constexpr Index kLongest = 16;  // panels

  bool add_groups(const std::array<Group, 3> &groups, double shift, Some at,
                  Poll &poll) const {
    for (const Way way : kWays) {
      const Group &group = groups[static_cast<std::size_t>(way)];
      if (group.who.empty()) continue;
      KernelMap map = placement_.map(way);
      map.parameters.shift = shift;
      const Addition of{map, dense_, *points_, group, 1, *points_, at, team()};
      const bool whole = way == Way::kSingle   ? add_at<float>(of, poll)
                         : way == Way::kDouble ? add_at<double>(of, poll)
                                               : add_differences(of, poll);
      if (!whole) return false;
    }
    return true;
  }
  template <class T>
  bool add_at(const Addition &of, Poll &poll) const {
    const Postings<T> *postings = postings_of<T>();
    std::unique_ptr<const Postings<T>> some;
    if (postings && of.at.numbers) {
      some = std::make_unique<const Postings<T>>(map_, *points_, postings->features(),
                                                 of.at.numbers, of.at.count);
      postings = some.get();
    }
    return add_times<T>(of, poll, postings, stored_panels<T>(of.at.numbers));
  }

  // Computes values at some columns, or at all n if `columns` is null, each row in its
  // own way.
  template <class Value>
  bool rows_of(const Order *who, Index m, const Order *columns, Index many,
               Value *const *out, Poll &poll) const {
    for (const Way way : kWays) {
      Vector<Order> some;
      Vector<Value *> to;
      for (Index t = 0; t < m; ++t)
        if (way_of(who[t]) == way) {
          some.push_back(who[t]);
          to.push_back(out[t]);
        }
      if (some.empty()) continue;
      const auto count = some.size();
      const bool whole =
          way == Way::kSingle
              ? values_of<float>(map_, some.data(), count, columns, many, to.data(),
                                 poll)
              : precise_rows(way, some.data(), count, columns, many, to.data(), poll);
      if (!whole) return false;
    }
    return true;
  }
  // Does the same for rows that are computed in float64.
  bool precise_rows(Way way, const Order *who, Index m, const Order *columns,
                    Index many, float *const *out, Poll &poll) const {
    if (way == Way::kDouble)
      return values_of<double>(map_, who, m, columns, many, out, poll);
    if (dense_)
      return values_of<double>(placement_.differences(), who, m, columns, many, out,
                               poll);
    KernelMap map = placement_.differences();
    map.parameters.shift = shift();
    return meet_differences(
        map, *points_, {who, m}, *points_, {columns, many}, team(), poll,
        [&](Index t, Index j, double k) { out[t][j] = static_cast<float>(k); });
  }
  bool precise_rows(Way way, const Order *who, Index m, const Order *columns,
                    Index many, simd::Fixed *const *out, Poll &poll) const {
    constexpr Index kSome = 16;
    const Index room = tile::in_panels(many);
    FloatVec rows(kSome * room);
    float *to[kSome];
    for (Index t = 0; t < kSome; ++t) to[t] = rows.data() + t * room;
    for (Index first = 0; first < m; first += kSome) {
      const Index some = std::min(kSome, m - first);
      if (!precise_rows(way, who + first, some, columns, many, to, poll)) return false;
      for (Index t = 0; t < some; ++t)
        for (Index j = 0; j < room; j += simd::Pack<float>::kLanes)
          simd::Pack<float>::load(to[t] + j).store(out[first + t] + j);
    }
    return true;
  }

  template <class T, class Value>
  bool values_of(const KernelMap &map, const Order *who, Index m, const Order *columns,
                 Index many, Value *const *out, Poll &poll) const {
    return dense_ ? dense_rows<T>(map, who, m, columns, many, out, poll)
                  : sparse_rows<T>(who, m, columns, many, out, poll);
  }

  // Defined below, so that `extern template` keeps it out of other units.
  template <class T, class Value>
  bool dense_rows(const KernelMap &map, const Order *who, Index m, const Order *columns,
                  Index many, Value *const *out, Poll &poll) const;

  template <class T, class Value>
  bool sparse_rows(const Order *who, Index m, const Order *columns, Index many,
                   Value *const *out, Poll &poll) const {
    const Postings<T> *postings = postings_of<T>();
    std::unique_ptr<const Postings<T>> some;
    Vec precise;
    const T *h = nullptr;
    if constexpr (std::is_same_v<T, double>) {
      if (!postings) precise = half_selves<double>(map_, *points_, team());
      h = postings ? postings->h() : precise.data();
    } else {
      h = single_h().data();
    }
    if (postings && columns) {
      some = std::make_unique<const Postings<T>>(map_, *points_, postings->features(),
                                                 columns, many);
      postings = some.get();
    }
    SharedPoll shared(poll);
    tile::Parameters parameters = map_.parameters;
    parameters.shift = shift();
    SparseMeeting<T> meeting(map_, *points_, *points_, columns, many, h, postings);
    const Index most = meeting.most() * tile::kPanel;
    const Index panels = tile::panels(many);
    const auto queries = [&](Index first) {
      return std::clamp<Index>(m - first, 0, tile::kPanel);
    };
    for (Index start = 0; start < m && !shared.leave(); start += most) {
      meeting.clear();
      for (Index first = start; first < std::min(m, start + most);
           first += tile::kPanel)
        meeting.add(queries(first), [&](Index t) { return who[first + t]; }, h);
      const auto meet = [&](Index, Index begin, Index end) {
        meeting.meet(parameters, begin, end, shared,
                     [&](Index b, Index j, Index, const T *values) {
                       const Index first = start + b * tile::kPanel;
                       simd::transpose<tile::kPanel>(values, queries(first),
                                                     out + first, j);
                     });
      };
      const Index units = meeting.units();
      team().run(std::min(shares(std::min(most, m - start), panels), units), units,
                 meet);
    }
    return !shared.leave();
  }

  // Queries are scattered into one block that is kept, because features may be many.
  void sparse_block(const Order *who, Index m, Some at, double *out, Index stride,
                    Poll &poll) const {
    const std::lock_guard lock(scattered_mutex_);
    if (!scattered_) {
      scattered_h_ = half_selves<double>(map_, *points_, team());
      scattered_ = std::make_unique<ScatteredBlock<double>>(map_, *points_);
    }
    const double *h = scattered_h_.data();
    double values[tile::kPanel * tile::kPanel];
    for (Index first = 0; first < m; first += tile::kPanel) {
      const Index some = std::min<Index>(tile::kPanel, m - first);
      scattered_->set(some, [&](Index q) { return who[first + q]; }, h);
      for (Index j = 0; j < at.count; j += tile::kPanel) {
        const Index count = std::min<Index>(tile::kPanel, at.count - j);
        scattered_->kernels(
            map_.parameters, *points_, [&](Index t) { return at(j + t); }, count, h,
            values);
        for (Index q = 0; q < some; ++q)
          for (Index t = 0; t < count; ++t)
            out[(first + q) * stride + j + t] = values[t * tile::kPanel + q];
      }
    }
    for (Index q = 0; q < m; ++q)
      if (placement_.unit() && !(placement_.double_errors().value(
                                     placement_.h(who[q])) <= kLargestBlockError))
        meet_differences(placement_.differences(), *points_, {who + q, 1}, *points_, at,
                         team(), poll,
                         [&](Index, Index j, double k) { out[q * stride + j] = k; });
  }

  // Returns the number of parts for these queries and panels. Each part is worth waking
  // a thread.
  Index shares(Index queries, Index panels) const {
    constexpr double kWorth = 2e5;  // values times their cost
    const double work = static_cast<double>(queries * panels * tile::kPanel) * cost();
    return std::clamp<Index>(static_cast<Index>(work / kWorth), 1,
                             std::min(team().shares(), panels));
  }

  // Returns the postings of all points, made on first use; null if features are few.
  template <class T>
  const Postings<T> *postings_of() const {
    if (dense_ || !SparseMeeting<T>::by_postings(*points_)) return nullptr;
    std::call_once(features_made_,
                   [&] { features_ = std::make_shared<const Ranking>(*points_); });
    Made<T> &made = std::get<Made<T>>(postings_);
    std::call_once(made.once, [&] {
      made.postings =
          std::make_unique<const Postings<T>>(map_, *points_, features_, nullptr, n());
    });
    return made.postings.get();
  }

  // Data of float32 values, made on first use: all points in panels, or half their self
  // sums.
  template <class T>
  const Panels<T> *stored_panels(const Order *columns) const {
    if constexpr (std::is_same_v<T, float>)
      return dense_ && !columns ? &all_panels() : nullptr;
    return nullptr;
  }
  const Panels<float> &all_panels() const {
    std::call_once(packed_, [&] {
      FloatVec row;
      pack(map_, *points_, n(), [](Index t) { return t; }, panels_, row);
    });
    return panels_;
  }
  const FloatVec &single_h() const {
    std::call_once(packed_, [&] {
      if (const auto *postings = postings_of<float>())
        h_.assign(postings->h(), postings->h() + n());
      else
        h_ = half_selves<float>(map_, *points_, team());
    });
    return h_;
  }

  // Subtracted from the values of rows.
  double shift() const { return shifted_ ? 1.0 : 0.0; }

  std::unique_ptr<Points> points_;
  Placement placement_;
  const KernelMap &map_;  // map of products
  bool dense_;
  double entries_;  // entries of a point; for sparse points the mean of stored entries
  bool precise_ = false, shifted_ = false;
  mutable std::once_flag packed_;
  mutable Panels<float> panels_;
  mutable FloatVec h_;  // of points with few entries
  mutable std::once_flag listed_;
  mutable std::unique_ptr<const ColumnLists> lists_;
  mutable std::mutex scattered_mutex_;
  mutable std::unique_ptr<ScatteredBlock<double>> scattered_;
  mutable Vec scattered_h_;
  template <class T>
  struct Made {
    std::once_flag once;
    std::unique_ptr<const Postings<T>> postings;
  };
  mutable std::once_flag features_made_;
  mutable std::shared_ptr<const Ranking> features_;
  mutable std::tuple<Made<float>, Made<double>> postings_;
};

template <class T, class Value>
bool KernelRows::dense_rows(const KernelMap &map, const Order *who, Index m,
                            const Order *columns, Index many, Value *const *out,
                            Poll &poll) const {
  constexpr Index kWidth = tile::kRows;
  const Index d = points_->d();
  const Index panels = tile::panels(many);
  const Panels<T> *stored = stored_panels<T>(columns);
  const Index one = static_cast<Index>(sizeof(T)) * std::max<Index>(d, 1);
  // Bytes of packed queries. They leave room for a panel in the second-level cache.
  // If panels are packed again for every chunk, chunks are larger.
  const Index most = stored ? 384 << 10 : 16 << 20;
  const Index chunk = std::max<Index>(1, most / (one * kWidth)) * kWidth;
  // Number of panels that a strip processes in turn, so that rows are written in long
  // stretches: for small d, memory is slower than the tile.
  constexpr Index kNear = 64 << 10;
  const Index together = std::clamp<Index>(kNear / (one * tile::kPanel), 1, kLongest);
  Strips<T> strips;
  Vector<T> row;
  Vector<Value> nowhere(panels * tile::kPanel);
  SharedPoll shared(poll);
  tile::Parameters parameters = map.parameters;
  parameters.shift = shift();
  for (Index first = 0; first < m && !shared.leave(); first += chunk) {
    const Index some = std::min(chunk, m - first);
    pack(map, *points_, some, [&](Index t) { return who[first + t]; }, strips, row);
    const auto meet = [&](Index, Index begin, Index end) {
      Panels<T> own;
      Vector<T> buffer;
      Value *to[kWidth];
      for (Index p = begin; p < end; p += together) {
        const Index last = std::min(p + together, end);
        const T *panel[kLongest], *h[kLongest];
        if (!stored)
          pack(
              map, *points_, std::min(last * tile::kPanel, many) - p * tile::kPanel,
              [&](Index t) {
                const Index j = p * tile::kPanel + t;
                return columns ? columns[j] : j;
              },
              own, buffer);
        const Panels<T> &from = stored ? *stored : own;
        for (Index g = p; g < last; ++g) {
          panel[g - p] = from.values(stored ? g : g - p);
          h[g - p] = from.h(stored ? g : g - p);
        }
        tile::with_kernel<T>(map.shape, parameters, [&](const auto &kernel) {
          if constexpr (!std::is_same_v<Value, simd::Fixed> ||
                        std::decay_t<decltype(kernel)>::kBounded)
            for (Index s = 0; s < strips.groups(); ++s) {
              for (Index r = 0; r < kWidth; ++r) {
                const Index t = s * kWidth + r;
                to[r] = t < some ? out[first + t] : nowhere.data();
              }
              for (Index g = p; g < last; ++g)
                tile::compute(strips.values(s), panel[g - p], d, kernel, strips.h(s),
                              h[g - p], tile::StoreRows<Value>{to, g * tile::kPanel});
            }
        });
        if (shared(some * (d + 16) * (last - p))) return;
      }
    };
    team().run(shares(some, panels), panels, meet);
  }
  return !shared.leave();
}

}  // namespace dualgap
