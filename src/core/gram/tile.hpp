// Register tile: kernel values of kRows points with two registers of points at a time.
//
// Layout   strip  [d][kRows]      points whose entries are broadcast one by one
//          panel  [d][kPanel]     points along the lanes
// Sums     s = x.z, ||x - z||^2 or ||x - z||_1, over the d columns in order. The sum of
//          a point with itself is exactly the result of `half_selves`, so the Gaussian
//          kernel of a point with itself or an equal point is exactly 1. float32 sums
//          restart every 128 columns, and the parts are added up, so that no term
//          passes more than 128 + d/128 roundings.
// Kernel   a function of s and half the self products h, applied in registers:
//          exponential  2^(s - h_x - h_z)     x scaled by sqrt(2 gamma log2 e)
//          differences  2^-(factor s)         the same kernel, s = ||x - z||^2
//          laplacian    2^-(factor s)         s = ||x - z||_1
//          polynomial   (s + coef0)^degree    x scaled by sqrt(gamma)
//          sigmoid      tanh(s + coef0)       x scaled by sqrt(gamma)
//          linear       s
// Then     StoreRows writes the values as float32, or in 16 bits if they are in [0, 1].
//          AddTimes adds their products with coefficients to float64 sums and stores no
//          value.
// Cost     2 d flops a value (3 d for distances) and about 12 for the exponential. With
//          AVX-512 a 12 x 32 tile of floats has 24 accumulators and leaves 8 registers.
#pragma once

#include <algorithm>

#include "../simd.hpp"

namespace dualgap::tile {

using simd::Pack;
using simd::unroll;

inline constexpr int kPanel = 32;
// Panels of n points, and the points that these have room for.
inline constexpr Index panels(Index n) { return (n + kPanel - 1) / kPanel; }
inline constexpr Index in_panels(Index n) { return panels(n) * kPanel; }
#if defined(__AVX512F__)
inline constexpr int kRows = 12;
#else
inline constexpr int kRows = 6;
#endif

// Factor of |t| for which 2^x is exp(-2 |t|).
inline constexpr double kMinusTwoLog2E = -2.8853900817779268;
// Smallest kRows of all levels.
inline constexpr int kLeastRows = 6;

enum class Shape {
  kLinear,
  kExponential,
  kDifferences,
  kLaplacian,
  kPolynomial,
  kSigmoid
};

struct Parameters {
  double coef0 = 0.0;
  int degree = 1;
  // Subtracted from float64 values of the exponential and the Laplacian kernel.
  double shift = 0.0;
  // Factor of distances.
  double factor = 1.0;
};

struct Dot {
  template <class V>
  static V step(V a, V b, V sum) {
    return fma(a, b, sum);
  }
};

struct Squares {
  template <class V>
  static V step(V a, V b, V sum) {
    const V apart = a - b;
    return fma(apart, apart, sum);
  }
};

struct Manhattan {
  template <class V>
  static V step(V a, V b, V sum) {
    return sum + abs(a - b);
  }
};

template <Shape kShape, class T>
class Kernel {
 public:
  using V = Pack<T>;
  using Step = std::conditional_t<
      kShape == Shape::kLaplacian, Manhattan,
      std::conditional_t<kShape == Shape::kDifferences, Squares, Dot>>;
  // Whether all values are in [0, 1].
  static constexpr bool kBounded = kShape == Shape::kExponential ||
                                   kShape == Shape::kDifferences ||
                                   kShape == Shape::kLaplacian;

  explicit Kernel(const Parameters &p)
      : coef0_(static_cast<T>(p.coef0)),
        factor_(static_cast<T>(p.factor)),
        shift_(p.shift),
        degree_(p.degree) {}

  DUALGAP_INLINE V value(V s, V h_row, V h_column) const {
    if constexpr (kShape == Shape::kExponential)
      return shifted(simd::exp2_negative((s - h_row) - h_column));
    if constexpr (kShape == Shape::kDifferences || kShape == Shape::kLaplacian)
      return shifted(simd::exp2_negative(V::all(-factor_) * s));
    if constexpr (kShape == Shape::kPolynomial) return power(s + V::all(coef0_));
    if constexpr (kShape == Shape::kSigmoid) return tanh(s + V::all(coef0_));
    return s;
  }

 private:
  DUALGAP_INLINE V shifted(V k) const {
    if constexpr (std::is_same_v<T, double>) return k - V::all(shift_);
    return k;
  }
  DUALGAP_INLINE V power(V base) const {
    V out = degree_ & 1 ? base : V::all(T(1));
    for (int left = degree_ >> 1; left; left >>= 1) {
      base = base * base;
      if (left & 1) out = out * base;
    }
    return out;
  }
  // tanh(t) = -sign(t) e/(2 + e) with e = exp(-2 |t|) - 1.
  DUALGAP_INLINE static V tanh(V t) {
    const V zero = V::all(T(0));
    const V e = simd::exp2_less_one(abs(t) * V::all(T(kMinusTwoLog2E)));
    const V size = (zero - e) / (V::all(T(2)) + e);
    return where_greater(zero, t, zero - size, size);
  }
  T coef0_, factor_;
  double shift_;
  int degree_;
};

// The following classes process the two registers of values of row r at once, because
// waiting would spill them to memory. `end` is called after the last row.

// Writes row r of the tile to rows[r][column ...].
template <class Value>
struct StoreRows {
  Value *const *rows;
  Index column;

  template <class T>
  struct At {
    const StoreRows &then;
    Index column;
    DUALGAP_INLINE void row(int r, Pack<T> first, Pack<T> second) {
      Value *out = then.rows[r] + column;
      if constexpr (std::is_same_v<Value, float>) {
        first.store_float(out);
        second.store_float(out + Pack<T>::kLanes);
      } else {
        first.store(out);
        second.store(out + Pack<T>::kLanes);
      }
    }
    DUALGAP_INLINE void end() {}
  };
  template <class T>
  DUALGAP_INLINE At<T> at(int offset) const {
    return {*this, column + offset};
  }
};

// Adds sum_r coef[r] k_r to sums[column ...].
template <class T>
struct AddTimes {
  const T *coef;  // [kRows]
  double *sums;   // sums of the panel

  template <class>
  struct At {
    const T *coef;
    double *out;
    Pack<T> first, second;
    DUALGAP_INLINE void row(int r, Pack<T> a, Pack<T> b) {
      const Pack<T> weight = Pack<T>::all(coef[r]);
      first = fma(weight, a, first);
      second = fma(weight, b, second);
    }
    DUALGAP_INLINE void end() {
      first.add_to(out);
      second.add_to(out + Pack<T>::kLanes);
    }
  };
  template <class>
  DUALGAP_INLINE At<T> at(int offset) const {
    return {coef, sums + offset, Pack<T>::all(T(0)), Pack<T>::all(T(0))};
  }
};

// Adds sum_r coef[o][r] k_r to sums[o][column ...] for several outputs o.
template <class T>
struct AddManyTimes {
  const T *coef;  // [outputs][kRows]
  Index outputs;
  double *const *sums;
  Index column;

  template <class>
  struct At {
    const AddManyTimes &then;
    Index column;
    Pack<T> values[kRows][2];
    DUALGAP_INLINE void row(int r, Pack<T> first, Pack<T> second) {
      values[r][0] = first;
      values[r][1] = second;
    }
    DUALGAP_INLINE void end() {
      for (Index o = 0; o < then.outputs; ++o) {
        const T *c = then.coef + o * kRows;
        Pack<T> first = Pack<T>::all(T(0)), second = first;
        unroll<kRows>([&](auto r) {
          first = fma(Pack<T>::all(c[r]), values[r][0], first);
          second = fma(Pack<T>::all(c[r]), values[r][1], second);
        });
        first.add_to(then.sums[o] + column);
        second.add_to(then.sums[o] + column + Pack<T>::kLanes);
      }
    }
  };
  template <class>
  DUALGAP_INLINE At<T> at(int offset) const {
    return {*this, column + offset, {}};
  }
};

// Number of columns after which sums restart.
template <class T>
inline constexpr Index kSpan = std::is_same_v<T, float> ? 128 : Index{1} << 40;
// Bound on the roundings of a term of a sum over d columns, its own included.
template <class T>
constexpr Index longest_sum(Index d) {
  return std::min(d, kSpan<T>) + d / kSpan<T> + 1;
}

// Computes the sums of a strip with two registers of a panel in sums[r][..], or adds to
// them unless `first`.
template <class T, class Step>
DUALGAP_NOINLINE void add_span(const T *a, const T *b, Index d, bool first, T *sums) {
  using V = Pack<T>;
  V s[kRows][2];
  unroll<kRows>([&](auto r) { s[r][0] = s[r][1] = V::all(T(0)); });
  for (Index k = 0; k < d; ++k, a += kRows, b += kPanel) {
    const V left = V::load(b), right = V::load(b + V::kLanes);
    unroll<kRows>([&](auto r) {
      const V x = V::all(a[r]);
      s[r][0] = Step::step(x, left, s[r][0]);
      s[r][1] = Step::step(x, right, s[r][1]);
    });
  }
  unroll<kRows>([&](auto r) {
    T *to = sums + r * 2 * V::kLanes;
    if (!first) {
      s[r][0] = V::load(to) + s[r][0];
      s[r][1] = V::load(to + V::kLanes) + s[r][1];
    }
    s[r][0].store(to);
    s[r][1].store(to + V::kLanes);
  });
}

// Processes one strip with one panel. It is not inlined, because the compiler would
// then spill the accumulators.
template <class T, class Kernel, class Then>
DUALGAP_NOINLINE void compute(const T *strip, const T *panel, Index d,
                              const Kernel &kernel, const T *h_rows, const T *h_columns,
                              const Then &then) {
  using V = Pack<T>;
  constexpr int kWidth = 2 * V::kLanes;
  T sums[kRows * kWidth];
  for (int offset = 0; offset < kPanel; offset += kWidth) {
    V s[kRows][2];
    unroll<kRows>([&](auto r) { s[r][0] = s[r][1] = V::all(T(0)); });
    const T *a = strip;
    const T *b = panel + offset;
    Index left = d;
    for (; left > kSpan<T>; left -= kSpan<T>) {
      add_span<T, typename Kernel::Step>(a, b, kSpan<T>, left == d, sums);
      a += kSpan<T> * kRows;
      b += kSpan<T> * kPanel;
    }
    for (Index k = 0; k < left; ++k, a += kRows, b += kPanel) {
      const V first = V::load(b), second = V::load(b + V::kLanes);
      unroll<kRows>([&](auto r) {
        const V x = V::all(a[r]);
        s[r][0] = Kernel::Step::step(x, first, s[r][0]);
        s[r][1] = Kernel::Step::step(x, second, s[r][1]);
      });
    }
    if (left < d)
      unroll<kRows>([&](auto r) {
        const T *before = sums + r * kWidth;
        s[r][0] = V::load(before) + s[r][0];
        s[r][1] = V::load(before + V::kLanes) + s[r][1];
      });
    const V h0 = V::load(h_columns + offset);
    const V h1 = V::load(h_columns + offset + V::kLanes);
    auto to = then.template at<T>(offset);
    unroll<kRows>([&](auto r) {
      const V h = V::all(h_rows[r]);
      to.row(r, kernel.value(s[r][0], h, h0), kernel.value(s[r][1], h, h1));
    });
    to.end();
  }
}

// Returns sum_l a_l b_l over a panel.
template <class T>
double dot(const T *a, const T *b) {
  using V = Pack<T>;
  V sum = V::load(a) * V::load(b);
  for (int l = V::kLanes; l < kPanel; l += V::kLanes)
    sum = fma(V::load(a + l), V::load(b + l), sum);
  T lanes[V::kLanes];
  sum.store(lanes);
  double total = 0.0;
  for (int l = 0; l < V::kLanes; ++l) total += static_cast<double>(lanes[l]);
  return total;
}

// Computes h_t = x_t.x_t/2 of m points in rows of d entries. Products are added in the
// order of the tile, several chains at a time, because each chain waits for its own
// sum.
template <class T>
void half_selves(const T *x, Index m, Index d, T *h) {
  constexpr int kChains = 8;
  for (Index first = 0; first < m; first += kChains) {
    const T *at[kChains];
    for (int c = 0; c < kChains; ++c) at[c] = x + std::min(first + c, m - 1) * d;
    Pack<T> sum[kChains], whole[kChains];
    unroll<kChains>([&](auto c) { sum[c] = whole[c] = Pack<T>::all(T(0)); });
    for (Index k = 0; k < d; ++k) {
      if (k > 0 && k % kSpan<T> == 0)
        unroll<kChains>([&](auto c) {
          whole[c] = whole[c] + sum[c];
          sum[c] = Pack<T>::all(T(0));
        });
      unroll<kChains>([&](auto c) {
        const Pack<T> a = Pack<T>::all(at[c][k]);
        sum[c] = fma(a, a, sum[c]);
      });
    }
    unroll<kChains>([&](auto c) { sum[c] = whole[c] + sum[c]; });
    for (int c = 0; c < kChains && first + c < m; ++c) {
      T lanes[Pack<T>::kLanes];
      sum[c].store(lanes);
      h[first + c] = T(0.5) * lanes[0];
    }
  }
}

// Calls f(kernel) with the kernel of this shape.
template <class T, class F>
void with_kernel(Shape shape, const Parameters &parameters, F &&f) {
  switch (shape) {
    case Shape::kLinear:
      return f(Kernel<Shape::kLinear, T>(parameters));
    case Shape::kExponential:
      return f(Kernel<Shape::kExponential, T>(parameters));
    case Shape::kDifferences:  // never in float32: see Placement
      if constexpr (std::is_same_v<T, double>)
        return f(Kernel<Shape::kDifferences, T>(parameters));
      return;
    case Shape::kLaplacian:
      return f(Kernel<Shape::kLaplacian, T>(parameters));
    case Shape::kPolynomial:
      return f(Kernel<Shape::kPolynomial, T>(parameters));
    case Shape::kSigmoid:
      return f(Kernel<Shape::kSigmoid, T>(parameters));
  }
}

// Replaces other sums (of sparse rows) by kernel values: s[r][j] for m points r and the
// kPanel points of a block.
template <class T>
DUALGAP_NOINLINE void values(Shape shape, const Parameters &parameters, T *s, Index m,
                             const T *h_rows, const T *h_columns) {
  using V = Pack<T>;
  with_kernel<T>(shape, parameters, [&](const auto &kernel) {
    for (Index r = 0; r < m; ++r, s += kPanel) {
      const V h = V::all(h_rows[r]);
      for (int j = 0; j < kPanel; j += V::kLanes)
        kernel.value(V::load(s + j), h, V::load(h_columns + j)).store(s + j);
    }
  });
}

}  // namespace dualgap::tile
