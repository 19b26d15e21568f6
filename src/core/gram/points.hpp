// Points of a kernel from any kind of matrix, and their packing for the tile: centred
// and scaled, in strips that are broadcast, or in panels along the lanes. Also error
// bounds for kernel values computed from packed points.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "../sums.hpp"
#include "tile.hpp"

namespace dualgap {

// Stored entries of a point, in the order of the matrix.
struct Entries {
  Vector<Order> columns;
  Vec values;
};

// Some rows of a matrix. The functions are virtual. Each call moves d numbers, and the
// code that uses them is compiled once instead of once per kind of matrix.
class Points {
 public:
  explicit Points(Index d) : d_(d) {}
  virtual ~Points() = default;
  virtual Index n() const = 0;
  Index d() const { return d_; }
  // Number of stored entries of a point.
  virtual Index count(Index i) const = 0;
  // Writes all d entries, x_k <- entry k.
  virtual void read(Index i, double *x) const = 0;
  virtual void entries(Index i, Entries &out) const = 0;
  // Computes sums_tl, the sum over the stored entries v in columns k of point which[t],
  // t < m, of step(v, block[k][l]) for kPanel lanes l; v is scaled if `overlap`.
  virtual void sums(const Index *which, Index m, double scale, bool overlap,
                    const float *block, float *sums) const = 0;
  virtual void sums(const Index *which, Index m, double scale, bool overlap,
                    const double *block, double *sums) const = 0;

  // Mean number of stored entries, of some points.
  double mean_entries() const {
    const Index looked = std::min<Index>(n(), 1000);
    Index entries = 0;
    for (Index t = 0; t < looked; ++t) entries += count(n() * t / looked);
    return static_cast<double>(entries) /
           static_cast<double>(std::max<Index>(looked, 1));
  }
  // Largest number of stored entries of a point.
  Index most_entries() const {
    Index most = 0;
    for (Index i = 0; i < n(); ++i) most = std::max(most, count(i));
    return most;
  }

 private:
  Index d_;
};

namespace tile {

// |a| + |b| - |a - b|, twice the overlap of two entries. With this instead of the
// product, (s(x, x) + s(z, z) - 2 s(x, z))/2 is ||x - z||_1, and entries that are 0 in
// one of the two points add nothing.
struct Overlap {
  template <class V>
  static V step(V a, V b, V sum) {
    return sum + ((abs(a) + abs(b)) - abs(a - b));
  }
};

// Number of sums in parallel, because every addition of a chain waits for the one
// before.
template <class T>
inline constexpr int kChains = std::max(1, 8 / (kPanel / Pack<T>::kLanes));
// Number of entries passed to the vector code at a time.
inline constexpr int kGroup = 64;
// Bound on the additions that a term of a sum of m entries passes: inside a group of
// kGroup entries, and of the sums of the groups.
template <class T>
constexpr Index longest_chain(Index m) {
  return (std::min<Index>(m, kGroup) + kChains<T> - 1) / kChains<T> +
         2 * (kChains<T> - 1) + (m + kGroup - 1) / kGroup + 1;
}

// Computes sums_l (adds to it unless `first`) from step(value_t, block[column_t][l])
// over up to kGroup entries t.
template <class Step, class T, class Column>
DUALGAP_NOINLINE void gather(const T *values, const Column *columns, int m,
                             const T *block, bool first, T *sums) {
  using V = Pack<T>;
  constexpr int kPacks = kPanel / V::kLanes;
  constexpr int kWide = kChains<T>;
  V s[kWide][kPacks];
  unroll<kWide>(
      [&](auto c) { unroll<kPacks>([&](auto p) { s[c][p] = V::all(T(0)); }); });
  int t = 0;
  for (; t + kWide <= m; t += kWide)
    unroll<kWide>([&](auto c) {
      const V x = V::all(values[t + c]);
      const T *b = block + static_cast<Index>(columns[t + c]) * kPanel;
      unroll<kPacks>([&](auto p) {
        s[c][p] = Step::step(x, V::load(b + p * V::kLanes), s[c][p]);
      });
    });
  for (; t < m; ++t) {
    const V x = V::all(values[t]);
    const T *b = block + static_cast<Index>(columns[t]) * kPanel;
    unroll<kPacks>(
        [&](auto p) { s[0][p] = Step::step(x, V::load(b + p * V::kLanes), s[0][p]); });
  }
  unroll<kPacks>([&](auto p) {
    V sum = s[0][p];
    unroll<kWide - 1>([&](auto c) { sum = sum + s[c + 1][p]; });
    if (!first) sum = V::load(sums + p * V::kLanes) + sum;
    sum.store(sums + p * V::kLanes);
  });
}

}  // namespace tile

template <class Rows>
class PointsOf final : public Points {
 public:
  // All rows, or the named rows in that order.
  PointsOf(const Rows &rows, Vector<Order> named, bool all)
      : Points(rows.cols()),
        rows_(rows.with_constant(0.0)),
        named_(std::move(named)),
        all_(all) {}

  Index n() const override { return all_ ? rows_.rows() : named_.size(); }
  Index count(Index i) const override { return rows_.count(row(i)); }
  void read(Index i, double *x) const override {
    std::fill(x, x + d(), 0.0);
    rows_.for_each(row(i), [&](Index k, double v) { x[k] = v; });
  }
  void entries(Index i, Entries &out) const override {
    out.columns.resize(count(i));
    out.values.resize(count(i));
    Index e = 0;
    rows_.for_each(row(i), [&](Index k, double v) {
      out.columns[e] = static_cast<Order>(k);
      out.values[e++] = v;
    });
  }
  void sums(const Index *which, Index m, double scale, bool overlap, const float *block,
            float *sums) const override {
    overlap ? add_all<tile::Overlap>(which, m, scale, block, sums)
            : add_all<tile::Dot>(which, m, scale, block, sums);
  }
  void sums(const Index *which, Index m, double scale, bool overlap,
            const double *block, double *sums) const override {
    overlap ? add_all<tile::Overlap>(which, m, scale, block, sums)
            : add_all<tile::Dot>(which, m, scale, block, sums);
  }

 private:
  Index row(Index i) const { return all_ ? i : named_[i]; }
  template <class Step, class T>
  void add_all(const Index *which, Index m, double scale, const T *block,
               T *sums) const {
    for (Index t = 0; t < m; ++t, sums += tile::kPanel)
      add<Step>(which[t], scale, block, sums);
  }
  template <class Step, class T>
  void add(Index i, double scale, const T *block, T *sums) const {
    constexpr bool kProduct = std::is_same_v<Step, tile::Dot>;
    T values[tile::kGroup];
    Index columns[tile::kGroup];
    int m = 0;
    bool first = true;
    const auto flush = [&] {
      tile::gather<Step>(values, columns, m, block, first, sums);
      first = false;
      m = 0;
    };
    rows_.for_each(row(i), [&](Index k, double v) {
      values[m] = static_cast<T>(kProduct ? v : scale * v);
      columns[m] = k;
      if (++m == tile::kGroup) flush();
    });
    if (m > 0 || first) flush();
  }

  Rows rows_;
  Vector<Order> named_;
  bool all_;
};

// A kernel function, and the transformation of points for the tile.
struct KernelMap {
  tile::Shape shape = tile::Shape::kLinear;
  tile::Parameters parameters;
  double scale = 1.0;
  double gamma = 1.0;
  Vec centre;  // empty: the origin

  static KernelMap of(tile::Shape shape, double gamma, double coef0, int degree) {
    KernelMap map{shape, {coef0, degree}, 1.0, gamma, {}};
    if (shape == tile::Shape::kExponential)
      map.scale = std::sqrt(2.0 * kLog2E) * std::sqrt(gamma);
    if (shape == tile::Shape::kLaplacian) map.scale = gamma * kLog2E;
    if (shape == tile::Shape::kPolynomial || shape == tile::Shape::kSigmoid)
      map.scale = std::sqrt(gamma);
    return map;
  }

  // Returns the same kernel as a function of differences of untransformed points. The
  // difference of near points is exact, so nothing cancels. An infinite factor would
  // make k(x, x) NaN.
  KernelMap differences() const {
    KernelMap map = *this;
    map.centre.clear();
    map.scale = 1.0;
    map.parameters.factor =
        std::min(kLog2E * gamma, std::numeric_limits<double>::max());
    if (shape == tile::Shape::kExponential) map.shape = tile::Shape::kDifferences;
    return map;
  }
  // Returns the Laplacian kernel of dense points for float32, whose range is small.
  // Points are scaled by a power of two, which changes no bits of their mantissas.
  KernelMap within_single() const {
    KernelMap map = differences();
    int exponent = 0;
    map.parameters.factor = kLog2E * std::frexp(gamma, &exponent);
    map.scale = std::ldexp(1.0, exponent);
    return map;
  }

  // Whether all values are in [0, 1], as for kernels of a distance.
  bool unit() const {
    return shape == tile::Shape::kExponential || shape == tile::Shape::kDifferences ||
           shape == tile::Shape::kLaplacian;
  }
  // Whether sparse points use the overlap: the Laplacian kernel is its exponential.
  bool overlap() const { return shape == tile::Shape::kLaplacian; }
  double block_scale() const { return overlap() ? scale : scale * scale; }
  // An entry of a point that meets a block, which has the other scale of a product.
  template <class T>
  T entry(double v) const {
    return static_cast<T>(overlap() ? scale * v : v);
  }
  tile::Shape sparse_shape() const {
    return overlap() ? tile::Shape::kExponential : shape;
  }

  // Moves the origin among the points. Distances do not change, and rounding errors
  // become smaller. The centre is the mean of the points. If some points are then far
  // away, the median of each column is tried, which few far points do not move. Returns
  // half the self product of each point in float64, or ||x||_1 for the Laplacian
  // kernel.
  Vec centre_on(const Points &points) {
    if (shape != tile::Shape::kExponential) return half_selves(points);
    const auto d = points.d();
    Vec x(d);
    centre.assign(d, 0.0);
    for (Index i = 0; i < points.n(); ++i) {
      points.read(i, x.data());
      for (Index k = 0; k < d; ++k) centre[k] += x[k];
    }
    for (auto &mean : centre)
      mean /= static_cast<double>(std::max<Index>(points.n(), 1));
    Vec h = half_selves(points);
    const auto far = [](const Vec &of) {
      return std::count_if(of.begin(), of.end(),
                           [](double v) { return !(v <= kNear); });
    };
    if (const auto many = far(h); many > 0) {
      Vec mean = medians(points);
      std::swap(centre, mean);
      Vec other = half_selves(points);
      if (far(other) < many) return other;
      std::swap(centre, mean);
    }
    return h;
  }

  // Returns the same without centring.
  Vec of_entries(const Points &points) const {
    Vec h(points.n(), 0.0);
    Entries entries;
    const double factor = block_scale() * (overlap() ? 1.0 : 0.5);
    for (Index i = 0; i < points.n(); ++i) {
      points.entries(i, entries);
      for (const double v : entries.values) h[i] += overlap() ? std::abs(v) : v * v;
      h[i] *= factor;
    }
    return h;
  }

  // Writes the transformed point. `x` has room for d doubles.
  template <class T>
  void read(const Points &points, Index i, double *x, T *out) const {
    points.read(i, x);
    const Index d = points.d();
    const double *mean = centre.data();
    if (centre.empty())
      for (Index k = 0; k < d; ++k) out[k] = static_cast<T>(scale * x[k]);
    else
      for (Index k = 0; k < d; ++k) out[k] = static_cast<T>(scale * (x[k] - mean[k]));
  }

  // Beyond this half self product the error of a float32 value may exceed about 1e-4.
  static constexpr double kNear = 800.0;

 private:
  static constexpr double kLog2E = 1.4426950408889634;

  Vec half_selves(const Points &points) const {
    constexpr Index kSums = 8;
    const bool absolute = shape == tile::Shape::kLaplacian;
    const auto d = points.d();
    Vec x(d), a(d), h(points.n());
    for (Index i = 0; i < points.n(); ++i) {
      read(points, i, x.data(), a.data());
      double lanes[kSums] = {};
      const auto add = [&](Index l, double v) {
        lanes[l] += absolute ? std::abs(v) : v * v;
      };
      Index k = 0;
      for (; k + kSums <= d; k += kSums)
        for (Index l = 0; l < kSums; ++l) add(l, a[k + l]);
      for (; k < d; ++k) add(0, a[k]);
      for (Index l = 1; l < kSums; ++l) lanes[0] += lanes[l];
      h[i] = absolute ? parameters.factor * lanes[0] : 0.5 * lanes[0];
    }
    return h;
  }
  // Returns the median of each column over a sample of the points.
  static Vec medians(const Points &points) {
    constexpr Index kSample = 255;
    const auto d = points.d(), some = std::min(points.n(), kSample);
    Vec rows(some * d), column(some), out(d);
    for (Index t = 0; t < some; ++t)
      points.read(points.n() * t / some, rows.data() + t * d);
    for (Index k = 0; k < d; ++k) {
      for (Index t = 0; t < some; ++t) column[t] = rows[t * d + k];
      const auto middle = column.begin() + static_cast<std::ptrdiff_t>((some - 1) / 2);
      std::nth_element(column.begin(), middle, column.end());
      out[k] = *middle;
    }
    return out;
  }
};

// Computes sums_l from step(value_t, block[column_t][l]) over m entries t, in groups.
template <class T>
void gather(bool overlap, const T *values, const Order *columns, Index m,
            const T *block, T *sums) {
  Index from = 0;
  do {
    const auto some = static_cast<int>(std::min<Index>(m - from, tile::kGroup));
    overlap ? tile::gather<tile::Overlap>(values + from, columns + from, some, block,
                                          from == 0, sums)
            : tile::gather<tile::Dot>(values + from, columns + from, some, block,
                                      from == 0, sums);
    from += some;
  } while (from < m);
}

// Returns the sum of a point with itself, given its stored entries, with the bits of
// sums of `Points`.
template <class T>
T self_sum(const KernelMap &map, const Vec &entries) {
  const Index m = entries.size();
  Vector<T> values(m), block(m * tile::kPanel, T(0));
  Vector<Order> columns(m);
  for (Index t = 0; t < m; ++t) {
    values[t] = map.entry<T>(entries[t]);
    block[t * tile::kPanel] = static_cast<T>(map.block_scale() * entries[t]);
    columns[t] = static_cast<Order>(t);
  }
  T sums[tile::kPanel];
  gather(map.overlap(), values.data(), columns.data(), m, block.data(), sums);
  return sums[0];
}

// Error bounds of values of an exponential kernel that are computed from products, in
// units of rounding u of T.
//
// Let h be half the self product of the scaled point a, b another point, r = ||a - b||,
// and k = 2^t. t = -r^2/2 is computed as s - h_a - h_b. `added` bounds the roundings of
// a term of s. Then the error of t is at most u (2 added + own) (h_a + h_b): `added`
// for s and for the h each, as |a.b| <= h_a + h_b. `own` counts 3 for the two
// subtractions, about 7 for the rounding of the scale, of entries and of products
// without FMA, and 12 for points that are centred and scaled first, which moves each by
// 3 u of its length. For the overlap of the Laplacian kernel the same holds with h =
// ||a||_1.
template <class T>
struct ProductErrors {
  // `own` of points that are centred, and of others, rounded up.
  static constexpr double kOwn = 24.0, kOwnUncentred = 10.0;
  // Largest r k and |t| k over all distances r.
  static constexpr double kLargestRk = 0.73, kLargestTk = 0.54;
  double added, own = kOwn;

  static constexpr double kPower = 4.0;  // error of 2^t itself
  double rate() const { return kRounding<T> * (2.0 * added + own); }

  // Returns a bound on |computed k - k| for a point of this h and any other point. The
  // other h is at most h + sqrt(2 h) r + r^2/2, and k compensates for r: r k <=
  // kLargestRk and |t| k <= kLargestTk. 2^x - 1 <= 0.71 x up to x = 0.05. If k x is at
  // most kLargestExponent, x is that small unless k is next to 0. Infinity if no bound
  // is known.
  double value(double h) const {
    constexpr double kLargestExponent = 0.002, kSlope = 0.71, kLargestRate = 1e-3;
    const double exponent =
        rate() * (2.0 * h + kLargestRk * std::sqrt(2.0 * h) + kLargestTk);
    return rate() <= kLargestRate && exponent <= kLargestExponent
               ? kSlope * exponent + kPower * kRounding<T>
               : std::numeric_limits<double>::infinity();
  }
};

// Points packed in groups of kWidth, [group][d][kWidth], with their h. The last group
// is padded with zeros.
template <class T, int kWidth>
class Packed {
 public:
  Packed() = default;
  Packed(Index n, Index d) { resize(n, d); }

  void resize(Index n, Index d) {
    if (n == n_ && d == d_) return;  // everything is overwritten anyway
    n_ = n;
    d_ = d;
    values_.assign(groups() * d * kWidth, T(0));
    h_.assign(groups() * kWidth, T(0));
  }
  Index n() const { return n_; }
  Index d() const { return d_; }
  Index groups() const { return (n_ + kWidth - 1) / kWidth; }
  Index count(Index group) const {
    return std::min<Index>(kWidth, n_ - group * kWidth);
  }
  const T *values(Index group) const { return values_.data() + group * d_ * kWidth; }
  const T *h(Index group) const { return h_.data() + group * kWidth; }

  // Sets the points of a group to the rows of x, `count` rows of d entries. Works on a
  // cache line of entries at a time, so that the output stays in the first-level cache.
  void set(Index group, const T *x) {
    constexpr Index kEntries = kLine / sizeof(T);
    T *to = values_.data() + group * d_ * kWidth;
    const Index m = count(group);
    for (Index k0 = 0; k0 < d_; k0 += kEntries) {
      const Index k1 = std::min(k0 + kEntries, d_);
      for (Index t = 0; t < m; ++t)
        for (Index k = k0; k < k1; ++k) to[k * kWidth + t] = x[t * d_ + k];
    }
    tile::half_selves(x, m, d_, h_.data() + group * kWidth);
  }

 private:
  Index n_ = 0, d_ = 0;
  Vector<T> values_, h_;
};

template <class T>
using Strips = Packed<T, tile::kRows>;
template <class T>
using Panels = Packed<T, tile::kPanel>;

// Packs the points who(0), ..., who(m - 1). `rows` is a reusable buffer.
template <class T, int kWidth>
void pack(const KernelMap &map, const Points &points, Index m,
          const std::function<Index(Index)> &who, Packed<T, kWidth> &out,
          Vector<T> &rows) {
  const Index d = points.d();
  Vec x(d);
  rows.resize(d * kWidth);
  out.resize(m, d);
  for (Index group = 0; group < out.groups(); ++group) {
    for (Index t = 0; t < out.count(group); ++t)
      map.read(points, who(group * kWidth + t), x.data(), rows.data() + t * d);
    out.set(group, rows.data());
  }
}

}  // namespace dualgap
