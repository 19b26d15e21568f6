// Kernel values of the points of a problem: rows, rows at some columns, and products
// with coefficients.
//
//   rows    k(x_i, x_j) for some i and all j, float32
//   cross   k(x_i, x_j) for some i and some j, float32
//   times   sum_i c_i k(x_i, z_j) for all or some j, values in float32 or float64, sums
//           in float64
//
// Dense points are packed once into float32 panels, 4 d bytes each. Sparse points are
// not copied; their products with blocks of 32 queries are in sparse_meeting.hpp.
//
// A product minus two self products loses digits if points are far from the centre on
// the scale of the kernel. The values of such a point are computed in float64, or from
// differences if float64 is not accurate enough either (`Placement`).
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
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>

#include "../threads.hpp"
#include "differences.hpp"
#include "sparse_meeting.hpp"

namespace dualgap {

template <class T>
Vector<T> half_selves(const KernelMap &map, const Points &points, Team &team) {
  constexpr Index kWorth = 1000;  // points
  Vector<T> h(points.n());
  const Index parts = std::clamp<Index>(points.n() / kWorth, 1, team.shares());
  team.run(parts, points.n(), [&](Index, Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      points.half_self(i, map.scale, map.overlap(), &h[i]);
  });
  return h;
}

// A range of points, who(first), ..., who(first + count - 1), with its own sums.
struct Part {
  Index first, count;
  double *const *sums;  // [outputs]; room for targets.n() rounded up to panels
};

// Way to compute the values of a point with all others: from products in float32 or
// float64, or from differences.
enum class Way : unsigned char { kSingle, kDouble, kDifferences };
inline constexpr Way kWays[] = {Way::kSingle, Way::kDouble, Way::kDifferences};

// Distances of the points from the centre, and the way to compute the values of each.
class Placement {
 public:
  // float64 products are used if their errors are at most this. The limit is smaller
  // for dense points, for which differences cost little more.
  static constexpr double kLargestError = 1e-8, kLargestDenseError = 1e-11;

  // `targets` are the points z of the values k(x, z).
  Placement(KernelMap map, const Points &points, const Points &targets, bool dense)
      : products_(std::move(map)), differences_(products_), dense_(dense) {
    if (!products_.unit()) return;
    differences_ = products_.differences();
    // The Laplacian kernel of dense points is computed from differences anyway.
    if (dense && products_.overlap()) products_ = products_.within_single();
    Index most = points.d();
    if (dense) {
      h_ = products_.centre_on(points);
    } else {
      h_ = products_.of_entries(points, most);
      if (&targets != &points) most = std::max(most, targets.most_entries());
    }
    for (const double h : h_) largest_ = std::max(largest_, finite(h));
    single_.added = longest<float>(most);
    double_.added = longest<double>(most);
    if (!dense && !products_.overlap())
      single_.own = double_.own = ProductErrors<double>::kOwnUncentred;
    // Roundings of a distance from differences.
    apart_ = static_cast<double>(dense ? most : 2 * most) + 8.0;
    for (Index i = 0; i < points.n(); ++i)
      if (way(i, false) != Way::kDouble) of_all_ = Way::kDifferences;
  }

  const KernelMap &products() const { return products_; }
  const KernelMap &differences() const { return differences_; }
  bool dense() const { return dense_; }
  bool unit() const { return products_.unit(); }
  // Half self products.
  double h(Index i) const { return h_[i]; }
  double largest_h() const { return largest_; }
  const ProductErrors<float> &single_errors() const { return single_; }
  const ProductErrors<double> &double_errors() const { return double_; }
  // Way to compute all values in float64 alike: products if these are accurate enough.
  Way of_all() const { return of_all_; }
  // Bound on the relative error of an exponent from differences, in units of rounding.
  double apart() const { return apart_; }

  // Returns the way for point i. `single` tells whether float32 is accurate enough.
  Way way(Index i, bool single) const {
    if (!unit()) return single ? Way::kSingle : Way::kDouble;
    if (single) return Way::kSingle;
    const bool products = !(dense_ && products_.overlap());
    const bool near =
        double_.value(h(i)) <= (dense_ ? kLargestDenseError : kLargestError);
    return products && near ? Way::kDouble : Way::kDifferences;
  }

 private:
  static double finite(double h) {
    return h < std::numeric_limits<double>::infinity()
               ? h
               : std::numeric_limits<double>::max();
  }
  // Bound on the additions that a term of a product passes. For sparse points it holds
  // with and without postings, so that columns without entries change nothing.
  template <class T>
  double longest(Index most) const {
    const Index added =
        dense_ ? tile::longest_sum<T>(most) : Postings<T>::longest_chain(most);
    return static_cast<double>(added + 1);
  }
  KernelMap products_, differences_;
  bool dense_;
  Way of_all_ = Way::kDouble;
  Vec h_;
  double largest_ = 0.0, apart_ = 0.0;
  ProductErrors<float> single_{};
  ProductErrors<double> double_{};
};

// Returns the coefficients of some of m points in groups of `width` points,
// [group][output][point]. The last group is padded with zeros.
template <class T>
Vector<T> grouped(const double *coef, Index m, Index first, Index count, Index outputs,
                  Index width) {
  const Index groups = (count + width - 1) / width;
  Vector<T> out(groups * outputs * width, T(0));
  for (Index o = 0; o < outputs; ++o)
    for (Index t = 0; t < count; ++t)
      out[(t / width * outputs + o) * width + t % width] =
          static_cast<T>(coef[o * m + first + t]);
  return out;
}

// Computes sums[o][j] += sum_i coef[o * m + i] k(x_who(i), z_at(j)) for every part of
// the m points `who`, with values of type T. `postings` are the postings of these z, if
// known. Returns false if told to stop; the sums are incomplete then.
template <class T>
bool add_times(const KernelMap &map, bool dense, const Points &points, Some who,
               const double *coef, Index outputs, const Vector<Part> &parts,
               const Points &targets, Some at, Team &team, Poll &poll,
               const Postings<T> *postings = nullptr) {
  const Index m = who.count, n = at.count, d = targets.d();
  const Index panels = (n + tile::kPanel - 1) / tile::kPanel;
  const Index width = dense ? tile::kRows : tile::kPanel;
  // Bytes of points packed at a time; targets are packed again for the next points.
  constexpr Index kBytes = 64 << 20;
  const Index bytes = static_cast<Index>(sizeof(T)) * std::max<Index>(d, 1);
  const Index chunk =
      dense ? std::max<Index>(1, kBytes / (bytes * width)) * width : tile::kPanel;

  struct Piece {
    Index first, count;
    double *const *sums;
    Vector<T> coef;  // [group][output][width]
    Strips<T> strips;
  };
  Vector<Piece> pieces;
  SharedPoll shared(poll);
  Vector<T> h, rows;
  std::unique_ptr<const Postings<T>> own;
  if (!dense && !postings && SparseMeeting<T>::by_postings(targets)) {
    const auto features = std::make_shared<const Ranking>(targets);
    own = std::make_unique<const Postings<T>>(map, targets, features, at.numbers, n);
    postings = own.get();
  }
  if (!dense && !postings) h = half_selves<T>(map, targets, team);
  SparseMeeting<T> meeting(map, points, targets, at.numbers, n, h.data(), postings);

  // Process the gathered pieces with all targets. A strip is used with as many panels
  // as fit in cache.
  constexpr Index kNear = 1024 << 10;
  const Index together = std::max<Index>(1, kNear / (bytes * tile::kPanel));
  const auto meet_dense = [&](Index, Index begin, Index end) {
    Panels<T> near;
    Vector<T> buffer;
    for (Index p = begin; p < end; p += together) {
      const Index first = p * tile::kPanel;
      const Index last = std::min(std::min(p + together, end) * tile::kPanel, n);
      pack(
          map, targets, last - first, [&](Index t) { return at(first + t); }, near,
          buffer);
      Index met = 0;
      tile::with_kernel<T>(map.shape, map.parameters, [&](const auto &kernel) {
        for (const Piece &piece : pieces) {
          const auto pass = [&](const auto &then_of) {
            for (Index s = 0; s < piece.strips.groups(); ++s)
              for (Index g = 0; g < near.groups(); ++g)
                tile::compute(piece.strips.values(s), near.values(g), d, kernel,
                              piece.strips.h(s), near.h(g),
                              then_of(piece.coef.data() + s * outputs * width,
                                      first + g * tile::kPanel));
          };
          if (outputs == 1)
            pass([&](const T *of, Index j) {
              return tile::AddTimes<T>{of, piece.sums[0] + j};
            });
          else
            pass([&](const T *of, Index j) {
              return tile::AddManyTimes<T>{of, outputs, piece.sums, j};
            });
          met += piece.count;
        }
      });
      if (shared(met * (d + 16) * near.groups())) return;
    }
  };
  const auto meet_sparse = [&](Index, Index begin, Index end) {
    tile::with_kernel<T>(map.sparse_shape(), map.parameters, [&](const auto &kernel) {
      meeting.meet(kernel, begin, end, shared,
                   [&](Index b, Index j, Index count, const T *values) {
                     const Piece &piece = pieces[b];
                     for (Index o = 0; o < outputs; ++o)
                       for (Index t = 0; t < count; ++t)
                         piece.sums[o][j + t] += tile::dot(
                             piece.coef.data() + o * width, values + t * tile::kPanel);
                   });
    });
  };
  Index gathered = 0;
  const auto meet = [&] {
    const Index units = dense ? panels : meeting.units();
    const Index shares = std::max<Index>(1, std::min(team.shares(), units));
    if (dense)
      team.run(shares, units, meet_dense);
    else
      team.run(shares, units, meet_sparse);
    pieces.clear();
    meeting.clear();
    gathered = 0;
  };
  for (const Part &part : parts) {
    for (Index first = 0; first < part.count && !shared.leave(); first += chunk) {
      Piece piece{
          part.first + first, std::min(chunk, part.count - first), part.sums, {}, {}};
      const auto of = [&](Index t) { return who(piece.first + t); };
      piece.coef = grouped<T>(coef, m, piece.first, piece.count, outputs, width);
      if (dense) {
        pack(map, points, piece.count, of, piece.strips, rows);
      } else {
        meeting.add(piece.count, of);
      }
      gathered += piece.count;
      pieces.push_back(std::move(piece));
      if (dense ? gathered >= chunk : meeting.blocks() == meeting.most()) meet();
    }
  }
  if (!pieces.empty() && !shared.leave()) meet();
  return !shared.leave();
}

// Points whose values are computed in the same way, and their coefficients.
struct Group {
  Vector<Order> who;
  Vec coef;  // [outputs][who]
  Vector<Part> parts;

  Some some() const { return {who.data(), who.size()}; }
};

// Groups the points of all parts by `way_of(point)`, in the order of kWays.
template <class WayOf>
std::array<Group, 3> by_ways(Some who, const double *coef, Index outputs,
                             const Vector<Part> &parts, const WayOf &way_of) {
  std::array<Group, 3> groups;
  std::array<Vector<Index>, 3> places;
  for (const Part &part : parts) {
    for (auto &group : groups) group.parts.push_back({group.who.size(), 0, part.sums});
    for (Index t = part.first; t < part.first + part.count; ++t) {
      const auto g = static_cast<std::size_t>(way_of(who(t)));
      groups[g].who.push_back(static_cast<Order>(who(t)));
      places[g].push_back(t);
      ++groups[g].parts.back().count;
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (Index o = 0; o < outputs; ++o)
      for (const Index t : places[g]) groups[g].coef.push_back(coef[o * who.count + t]);
  return groups;
}

// Does the same as add_times, from differences.
inline bool add_differences(const Placement &placement, const tile::Parameters &shift,
                            const Points &points, const Group &group, Index outputs,
                            const Points &targets, Some at, Team &team, Poll &poll) {
  KernelMap map = placement.differences();
  map.parameters.shift = shift.shift;
  if (placement.dense())
    return add_times<double>(map, true, points, group.some(), group.coef.data(),
                             outputs, group.parts, targets, at, team, poll);
  const auto m = group.who.size();
  for (const Part &part : group.parts) {
    const double *coef = group.coef.data() + part.first;
    const auto add = [&](Index t, Index j, double value) {
      for (Index o = 0; o < outputs; ++o) part.sums[o][j] += coef[o * m + t] * value;
    };
    const Some who{group.who.data() + part.first, part.count};
    if (!meet_differences(map, points, who, targets, at, team, poll, add)) return false;
  }
  return true;
}

// Groups all points of the parts by the way to compute their values. The error of
// values from 0 to 1 is at most Placement::kLargestError, or kSingle if they need not
// be `precise`. A point uses float64 if float32 values would not be accurate enough.
// All points use float64 if coefficients are outside the range of float32.
inline std::array<Group, 3> by_placement(const Placement &placement, bool precise,
                                         const Points &points, const double *coef,
                                         Index outputs, const Vector<Part> &parts) {
  constexpr double kSingle = 1e-4, kLeast = 0x1p-90, kLargest = 0x1p90;
  double largest = 0.0;
  for (Index t = 0; t < outputs * points.n(); ++t)
    largest = std::max(largest, std::abs(coef[t]));
  precise = precise || !(kLeast <= largest && largest <= kLargest);
  const auto way_of = [&](Index i) {
    const bool near =
        !placement.unit() || placement.single_errors().value(placement.h(i)) <= kSingle;
    return placement.way(i, !precise && near);
  };
  return by_ways({nullptr, points.n()}, coef, outputs, parts, way_of);
}

// Does the same as add_times, over all points and targets, with the accuracy of
// by_placement.
inline bool add_placed(KernelMap map, bool dense, bool precise, const Points &points,
                       const double *coef, Index outputs, const Vector<Part> &parts,
                       const Points &targets, Team &team, Poll &poll) {
  const Placement placement(std::move(map), points, targets, dense);
  const auto groups = by_placement(placement, precise, points, coef, outputs, parts);
  const Some all{nullptr, targets.n()};
  const auto add = [&]<class T>(const Group &group) {
    return add_times<T>(placement.products(), dense, points, group.some(),
                        group.coef.data(), outputs, group.parts, targets, all, team,
                        poll);
  };
  for (const Way way : kWays) {
    const Group &group = groups[static_cast<std::size_t>(way)];
    if (group.who.empty()) continue;
    const bool whole = way == Way::kSingle ? add.template operator()<float>(group)
                       : way == Way::kDouble
                           ? add.template operator()<double>(group)
                           : add_differences(placement, {}, points, group, outputs,
                                             targets, all, team, poll);
    if (!whole) return false;
  }
  return true;
}

// Base of the sources of kernel rows.
class RowSource {
 public:
  explicit RowSource(Index threads) : team_(std::max<Index>(threads, 1)) {}
  virtual ~RowSource() = default;
  virtual Index n() const = 0;
  // Entries of a row, rounded up to whole panels.
  Index stride() const {
    return (n() + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
  }
  // Threads that share the work on rows.
  Team &team() const { return team_; }
  // Cost of computing a value, relative to adding a cached value.
  virtual double cost() const = 0;
  // out[t][j] <- k(x_who[t], x_j), t < m, j < n; out[t] has stride() entries. Returns
  // false if told to stop; the rows are incomplete then.
  virtual bool rows(const Order *who, Index m, float *const *out, Poll &poll) const = 0;
  // Whether rows in 16 bits are possible: all values are in [0, 1].
  virtual bool fixed() const { return false; }
  virtual bool rows(const Order *, Index, simd::Fixed *const *, Poll &) const {
    throw std::logic_error("rows that are not from 0 to 1");
  }
  // out[t][s] <- k(x_who[t], x_columns[s]), s < many, with the same bits as `rows`.
  // out[t] has room for `many` rounded up to panels.
  virtual bool cross(const Order *who, Index m, const Order *columns, Index many,
                     float *const *out, Poll &poll) const = 0;
  // sums_j += sum_t coef_t k(x_who[t], x_j). No row is stored.
  virtual bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                        Poll &poll) const = 0;

 private:
  mutable Team team_;
};

class KernelRows final : public RowSource {
  // Cost of an entry of a point in additions of a value: float64 rows cost three times
  // as much as float32 rows, and the entries of dense points 1/25, of sparse ones 1/6.
  static constexpr double kPreciseCost = 3.0, kDensePays = 25.0, kSparsePays = 6.0;

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
    return add_groups(groups, row_parameters(), at, poll);
  }

  // sums_j += sum_t coef_t k(x_who[t], x_at(j)) in float64; room as above. If `errors`
  // is not null and all kernel values are in [0, 1], errors_j becomes a bound on the
  // distance of the sum from the sum over exact kernel values.
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
      return add_groups(groups, map_.parameters, at, poll);
    }
    const Index room = (at.count + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
    std::fill_n(errors, at.count, 0.0);
    // For each way, sum the positive terms and the other terms separately.
    for (const Way way : {Way::kDouble, Way::kDifferences}) {
      Vector<Order> order;
      Vec weights;
      Index rising = 0;
      Terms terms;
      for (const bool positive : {true, false}) {
        for (Index t = 0; t < m; ++t) {
          const double c = coef[t];
          if ((c > 0.0) != positive || placement_.way(who[t], false) != way) continue;
          order.push_back(who[t]);
          weights.push_back(c);
          note(terms, who[t], c);
        }
        if (positive) rising = order.size();
      }
      if (order.empty()) continue;
      const auto all = order.size();
      Vec both(2 * room);
      double *up = both.data(), *down = both.data() + room;
      std::array<Group, 3> groups;
      groups[static_cast<std::size_t>(way)] = {
          order, weights, {{0, rising, &up}, {rising, all - rising, &down}}};
      if (!add_groups(groups, map_.parameters, at, poll)) return false;
      add_bounded(terms, way, at, up, down, sums, errors);
    }
    return true;
  }

  // What the bounds on the errors of a sum depend on: the number of terms, the sum of
  // |c_t|, the largest h_t, and the sum of |c_t| times the error of a value of h_t.
  struct Terms {
    Index count = 0;
    double reach = 0.0, far = 0.0, known = 0.0;
  };
  void note(Terms &terms, Order who, double c) const {
    ++terms.count;
    terms.reach += std::abs(c);
    terms.far = std::max(terms.far, placement_.h(who));
    terms.known += std::abs(c) * placement_.double_errors().value(placement_.h(who));
  }
  // sums_j += up_j + down_j, the sums of the positive and of the other terms, which
  // were computed in this way; adds the bounds of `times` to the errors.
  void add_bounded(const Terms &terms, Way way, Some at, const double *up,
                   const double *down, double *sums, double *errors) const {
    constexpr double kAboveLn2 = 0.7, kReach = 64.0;
    constexpr double kFew = 30.0;  // roundings of a sum besides one per group
    const bool one_by_one = way == Way::kDifferences && !dense_;
    const Index all = terms.count;
    const double added =
        kRounding<double> *
        (static_cast<double>(one_by_one ? all : all / tile::kLeastRows) + kFew);
    // Error of exponentials next to 0, and T 2^-T.
    const double tiny = terms.reach * 0x1p-1000;
    const double rest = terms.reach * kReach * 0x1p-64;
    for (Index j = 0; j < at.count; ++j) {
      const double size = up[j] - down[j];
      double off = added * size + tiny;
      if (way == Way::kDifferences)
        off +=
            kAboveLn2 * kRounding<double> * placement_.apart() * (kReach * size + rest);
      else
        off += std::min(terms.known, kAboveLn2 * placement_.double_errors().rate() *
                                         (terms.far + placement_.h(at(j))) * size);
      sums[j] += up[j] + down[j];
      errors[j] += kSlack * off;
    }
  }

  // Writes errors_i, a bound on |k - k(x_i, x_j)| for the value k of `rows` and any j,
  // plus the error of adding products of these values to a sum. Infinity if no bound is
  // known. `fixed` is for values in 16 bits.
  //
  // Let A = ||a|| = sqrt(2 h) for the scaled point a, b another point, r = ||a - b||
  // and u = 2^-24. k = 2^t, t = -r^2/2, is computed as 2^(s - h_a - h_b). Errors:
  //   s    at most u (sum_k |s_k| + 3 A B), for its partial sums s_k and the rounding
  //        of its entries and, without FMA, of products. |s_k| is at most the product
  //        of the norms of the first k entries, so sum_k |s_k| <= d p_a p_b A B, where
  //        d p_a^2 A^2 is the sum of the squares of these norms. For sparse points the
  //        additions that a term passes replace d p_a p_b.
  //   h    the difference from the same sum in float64
  //   t    u (2 |t| + max(h_a, h_b)) more, from two subtractions
  // B <= A + r, and k compensates for r: r k <= kLargestRk, |t| k <= kLargestTk. If a
  // is far away and the points b are not, the bound of b is the better one.
  void errors(bool fixed, double *errors) const {
    constexpr double kHalfPlace = 0.51;
    using Bounds = ProductErrors<float>;
    // Errors of 2^t itself, and of products, sums of up to 12 or 32 products, and the
    // final sum.
    constexpr double kPower = 3.0, kDense = 16.0, kSparse = 40.0;
    const double adding = (dense_ ? kDense : kSparse) * kRounding<float>;
    if (map_.shape != tile::Shape::kExponential) {
      std::fill_n(errors, n(), std::numeric_limits<double>::infinity());
      return;
    }
    // Values computed in float64 are rounded once.
    const double least = kRounding<float> + adding + 2.0 * Placement::kLargestError;
    std::fill_n(errors, n(), least);
    const Vec spread = spreads();
    double widest = 0.0, off = 0.0, far = -1.0;
    for (Index i = 0; i < n(); ++i) {
      if (way_of(i) != Way::kSingle) continue;
      widest = std::max(widest, spread[i]);
      off = std::max(off, std::abs(half_self(i) - placement_.h(i)));
      far = std::max(far, placement_.h(i));
    }
    if (far < 0.0) return;  // no point uses float32
    const double of_others = placement_.single_errors().value(far) + adding;
    for (Index i = 0; i < n(); ++i) {
      const double h = placement_.h(i), own = spread[i];
      const double longest = placement_.single_errors().added;
      const double added = 3.0 + (dense_ ? std::min(own * widest, longest) : own);
      const double more = Bounds::kLargestRk * std::sqrt(2.0 * h);
      const double exponent = kRounding<float> * (added * (2.0 * h + more) + h + more +
                                                  3.0 * Bounds::kLargestTk) +
                              std::abs(half_self(i) - h) + off;
      // 2^x - 1 <= 0.74 x up to x = 0.18. `exponent` is k times the error x of t. If it
      // is at most kLargestExponent, x is small too, unless k is next to 0.
      constexpr double kLargestExponent = 0.02, kSlope = 0.74;
      double error = of_others;
      if (exponent <= kLargestExponent)
        error = std::min(error, kSlope * exponent + kPower * kRounding<float> + adding);
      errors[i] = std::max(least, error);
      if (fixed) errors[i] += kHalfPlace / static_cast<double>(simd::kFixed);
    }
  }

 private:
  static constexpr Index kLongest = 16;  // panels

  // Returns the way in which the row of point i is computed.
  Way way_of(Index i) const {
    const bool near = !placement_.unit() || placement_.h(i) <= KernelMap::kNear;
    return placement_.way(i, !precise_ && near);
  }

  bool add_groups(const std::array<Group, 3> &groups,
                  const tile::Parameters &parameters, Some at, Poll &poll) const {
    KernelMap map = map_;
    map.parameters = parameters;
    for (const Way way : kWays) {
      const Group &group = groups[static_cast<std::size_t>(way)];
      if (group.who.empty()) continue;
      const bool whole = way == Way::kSingle ? add_at<float>(map, group, at, poll)
                         : way == Way::kDouble
                             ? add_at<double>(map, group, at, poll)
                             : add_differences(placement_, parameters, *points_, group,
                                               1, *points_, at, team(), poll);
      if (!whole) return false;
    }
    return true;
  }
  template <class T>
  bool add_at(const KernelMap &map, const Group &group, Some at, Poll &poll) const {
    const Postings<T> *postings = postings_of<T>();
    std::unique_ptr<const Postings<T>> some;
    if (postings && at.numbers) {
      some = std::make_unique<const Postings<T>>(map, *points_, postings->features(),
                                                 at.numbers, at.count);
      postings = some.get();
    }
    return add_times<T>(map, dense_, *points_, group.some(), group.coef.data(), 1,
                        group.parts, *points_, at, team(), poll, postings);
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
    map.parameters.shift = row_parameters().shift;
    return meet_differences(
        map, *points_, {who, m}, *points_, {columns, many}, team(), poll,
        [&](Index t, Index j, double k) { out[t][j] = static_cast<float>(k); });
  }
  bool precise_rows(Way way, const Order *who, Index m, const Order *columns,
                    Index many, simd::Fixed *const *out, Poll &poll) const {
    constexpr Index kSome = 16;
    const Index room = (many + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
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

  template <class T, class Value>
  bool dense_rows(const KernelMap &map, const Order *who, Index m, const Order *columns,
                  Index many, Value *const *out, Poll &poll) const {
    constexpr Index kWidth = tile::kRows;
    const Index d = points_->d();
    const Index panels = (many + tile::kPanel - 1) / tile::kPanel;
    // Bytes of packed queries. They leave room for a panel in the second-level cache.
    // If panels are packed again for every chunk, chunks are larger.
    const bool stored = std::is_same_v<T, float> && !columns;
    const Index most = stored ? 384 << 10 : 16 << 20;
    const Index bytes = static_cast<Index>(sizeof(T)) * kWidth * std::max<Index>(d, 1);
    const Index chunk = std::max<Index>(1, most / bytes) * kWidth;
    // Number of panels that a strip processes in turn, so that rows are written in long
    // stretches: for small d, memory is slower than the tile.
    constexpr Index kNear = 64 << 10;
    const Index together = std::clamp<Index>(
        kNear / (static_cast<Index>(sizeof(T)) * tile::kPanel * std::max<Index>(d, 1)),
        1, kLongest);
    Strips<T> strips;
    Vector<T> row;
    Vector<Value> nowhere(panels * tile::kPanel);
    SharedPoll shared(poll);
    tile::Parameters parameters = map.parameters;
    parameters.shift = row_parameters().shift;
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
          for (Index g = p; g < last; ++g) {
            if constexpr (std::is_same_v<T, float>) {
              panel[g - p] = stored ? all_panels().values(g) : own.values(g - p);
              h[g - p] = stored ? all_panels().h(g) : own.h(g - p);
            } else {
              panel[g - p] = own.values(g - p);
              h[g - p] = own.h(g - p);
            }
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
    const tile::Parameters parameters = row_parameters();
    SparseMeeting<T> meeting(map_, *points_, *points_, columns, many, h, postings);
    const Index most = meeting.most() * tile::kPanel;
    const Index panels = (many + tile::kPanel - 1) / tile::kPanel;
    const auto queries = [&](Index first) {
      return std::clamp<Index>(m - first, 0, tile::kPanel);
    };
    for (Index start = 0; start < m && !shared.leave(); start += most) {
      meeting.clear();
      for (Index first = start; first < std::min(m, start + most);
           first += tile::kPanel)
        meeting.add(queries(first), [&](Index t) { return who[first + t]; }, h);
      const auto meet = [&](Index, Index begin, Index end) {
        tile::with_kernel<T>(map_.sparse_shape(), parameters, [&](const auto &kernel) {
          meeting.meet(kernel, begin, end, shared,
                       [&](Index b, Index j, Index, const T *values) {
                         const Index first = start + b * tile::kPanel;
                         simd::transpose<tile::kPanel>(values, queries(first),
                                                       out + first, j);
                       });
        });
      };
      const Index units = meeting.units();
      team().run(std::min(shares(std::min(most, m - start), panels), units), units,
                 meet);
    }
    return !shared.leave();
  }

  // Returns h as used in float32 values.
  double half_self(Index i) const {
    if (!dense_) return static_cast<double>(single_h()[i]);
    return static_cast<double>(all_panels().h(i / tile::kPanel)[i % tile::kPanel]);
  }
  // Returns sqrt(d) p of each point, or for sparse points the additions; see `errors`.
  Vec spreads() const {
    Vec spread(n());
    if (!dense_) {
      Entries entries;
      for (Index i = 0; i < n(); ++i) {
        points_->entries(i, entries);
        const Index m = entries.columns.size();
        const bool posted = SparseMeeting<float>::by_postings(*points_);
        const Index longest =
            posted ? Postings<float>::longest_chain(m) : tile::longest_chain<float>(m);
        spread[i] = static_cast<double>(longest);
      }
      return spread;
    }
    const auto d = points_->d();
    Vec room(d), x(d);
    for (Index i = 0; i < n(); ++i) {
      map_.read(*points_, i, room.data(), x.data());
      double sum = 0.0, sums = 0.0;
      for (const double v : x) {
        sum += v * v;
        sums += sum;
      }
      spread[i] = sum > 0.0 ? std::sqrt(sums / sum) : 0.0;
    }
    return spread;
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

  tile::Parameters row_parameters() const {
    tile::Parameters parameters = map_.parameters;
    if (shifted_) parameters.shift = 1.0;
    return parameters;
  }

  std::unique_ptr<Points> points_;
  Placement placement_;
  const KernelMap &map_;  // map of products
  bool dense_;
  double entries_;  // entries of a point; for sparse points the mean of stored entries
  bool precise_ = false, shifted_ = false;
  mutable std::once_flag packed_;
  mutable Panels<float> panels_;
  mutable FloatVec h_;  // of points with few entries
  template <class T>
  struct Made {
    std::once_flag once;
    std::unique_ptr<const Postings<T>> postings;
  };
  mutable std::once_flag features_made_;
  mutable std::shared_ptr<const Ranking> features_;
  mutable std::tuple<Made<float>, Made<double>> postings_;
};

}  // namespace dualgap
