// Way in which the values of each point are computed.
//
// A product minus two self products loses digits if points are far from the centre on
// the scale of the kernel. The values of such a point are computed in float64, or from
// differences if float64 is not accurate enough either.
#pragma once

#include <algorithm>
#include <limits>

#include "../threads.hpp"
#include "postings.hpp"

namespace dualgap {

template <class T>
Vector<T> half_selves(const KernelMap &map, const Points &points, Team &team) {
  constexpr Index kWorth = 1000;  // points
  Vector<T> h(points.n());
  const Index parts = std::clamp<Index>(points.n() / kWorth, 1, team.shares());
  team.run(parts, points.n(), [&](Index, Index begin, Index end) {
    Entries entries;
    for (Index i = begin; i < end; ++i) {
      points.entries(i, entries);
      h[i] = T(0.5) * self_sum<T>(map, entries.values);
    }
  });
  return h;
}

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
      h_ = products_.of_entries(points);
      most = std::max(points.most_entries(), targets.most_entries());
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
  // The map for values that are computed in this way.
  const KernelMap &map(Way way) const {
    return way == Way::kDifferences ? differences_ : products_;
  }
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

}  // namespace dualgap
