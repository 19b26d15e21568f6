// Columns whose values hardly differ, measured from a reference column.
//
// Problem    a column of Julian days, years or map northings is a large multiple of the
//            constant feature, up to a small spread: M of 2e6 and a spread of 10, say.
//            The normal matrix of both columns is then singular to rounding, although
//            its entries and the problem are harmless.
// Update     Such a column j is replaced by x_j - rho_j x_p, p the constant feature or
//            else the column of the smallest relative spread, and rho_j = M_j / M_p.
//            For T u = u - e_p rho.u the outputs are
//              w.x = u.(x - rho x_p),   w = T u,
//            so a gradient g of w is T'g for u, a sum over the rows is T^-T times the
//            sum over the centred rows, and ||w||^2 is u'T'T u.
// Guarantee  none; the constants only choose the columns
// Cost       a sample of kSample rows, once; a product per entry that is read
// Source     centring as in regression; this package's own otherwise
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "index.hpp"

namespace dualgap {

class Centring {
 public:
  static constexpr Index kSample = 128;  // rows
  // A column is centred if its median is more than this many times its spread, and this
  // many times the reference. Half of the rows are within the spread of the median.
  static constexpr double kLarge = 32.0;
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  // Chooses the columns by a sample of `count` rows, `width` values each. The last
  // column is the constant feature if `constant`.
  void choose(const Vec &sample, Index count, Index width, bool constant) {
    const auto d = width;
    Vec median(d), spread(d, kNone), values(count);
    // Beside a constant feature, only a column with mostly large values can be centred:
    // the medians of the others take longer than a step of a small fit.
    const double beside = constant ? kLarge * std::abs(sample[d - 1]) : 0.0;
    Vector<Index> large(d, constant ? 0 : count);
    for (Index k = 0; constant && k < count; ++k)
      for (Index j = 0; j < d; ++j) large[j] += std::abs(sample[k * d + j]) > beside;
    if (constant) large[d - 1] = count;
    for (Index j = 0; j < d; ++j) {
      if (2 * large[j] < count) continue;
      for (Index k = 0; k < count; ++k) values[k] = sample[k * d + j];
      median[j] = middle(values);
      const double most = std::abs(median[j]) / kLarge;
      Index within = 0;
      for (double &x : values) {
        x = std::abs(x - median[j]);
        within += x < most;
      }
      if (2 * within > count) spread[j] = middle(values);
    }
    const auto steady = [&](Index j) { return spread[j] < kNone; };
    Index p = d - 1;
    for (Index j = 0; !constant && j < d; ++j)
      if (steady(j) && (!steady(p) || spread[j] / std::abs(median[j]) <
                                          spread[p] / std::abs(median[p])))
        p = j;
    if (!steady(p)) return;
    const double least = constant ? beside : kLarge;
    Vec ratio(d, 0.0);
    for (Index j = 0; j < d; ++j)
      if (j != p && steady(j) && std::abs(median[j]) > least) {
        ratio[j] = median[j] / median[p];
        columns_.push_back(j);
      }
    if (columns_.empty()) return;
    ratio_ = std::move(ratio);
    reference_ = static_cast<Index>(p);
    for (Index k = 0; k < values.size(); ++k) {
      const double *row = &sample[k * d];
      double sum = 0;
      for (Index j = 0; j < d; ++j) {
        const double x = row[j] - ratio_[j] * row[p];
        const double share = ratio_[j] != 0.0 ? x / ratio_[j] : x;
        sum += share * share;
      }
      values[k] = sum;
    }
    square_ = middle(values);
  }

  bool any() const { return !columns_.empty(); }
  // A typical squared norm of a centred row, with the centred columns in the units in
  // which T'T is of size 1.
  double square() const { return square_; }
  Index reference() const { return reference_; }
  const Vector<Index> &columns() const { return columns_; }
  double ratio(Index j) const { return ratio_[j]; }

  // u of w, in place.
  void enter(Vec &w) const { shift(w, 1.0); }
  // w of u, in place.
  void leave(Vec &u) const { shift(u, -1.0); }
  // T'g of a gradient g, in place.
  void pull(Vec &g) const { spread(g, -1.0); }
  // The sum over the rows of a sum over the centred rows, in place.
  void push(Vec &sum) const { spread(sum, 1.0); }

  // Adds T'T - I to the entries (i, j), i <= j, of a matrix. Nothing if none is
  // centred.
  void add_penalty(Vec &matrix) const {
    const Index d = ratio_.size();
    const auto p = reference_;
    for (const Index column : columns_) {
      const auto j = column;
      matrix[std::min(j, p) * d + std::max(j, p)] -= ratio_[j];
      for (Index k = j; k < d; ++k) matrix[j * d + k] += ratio_[j] * ratio_[k];
    }
  }

 private:
  static double middle(Vec values) {
    if (values.empty()) return 0.0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }
  double &at_reference(Vec &x) const { return x[reference_]; }
  void shift(Vec &x, double sign) const {
    if (!any()) return;
    double sum = 0;
    for (const Index j : columns_) sum += ratio(j) * x[j];
    at_reference(x) += sign * sum;
  }
  void spread(Vec &x, double sign) const {
    if (!any()) return;
    const double by = sign * at_reference(x);
    for (const Index j : columns_) x[j] += by * ratio(j);
  }

  Vec ratio_;
  Vector<Index> columns_;
  Index reference_ = 0;
  double square_ = 0;
};

}  // namespace dualgap
