// A kernel matrix in memory that folds share, and sums of its rows.
#pragma once

#include <type_traits>

#include "../rows.hpp"
#include "../simd.hpp"

namespace dualgap {

// F_o[j] += sum_r coef[r * outputs + o] rows[r][j] for begin <= j < end: sums of eight
// rows in the type of the values, added in float64.
template <class Value>
class Products {
 public:
  static constexpr Index kTogether = 8;

  // Adds `count` <= kTogether rows; `coef` has kTogether * outputs entries, zero for
  // missing rows, whose pointers must be valid.
  static void add(const Value *const *rows, const Value *coef, Index outputs,
                  double *const *F, Index begin, Index end) {
    for (Index o = 0; o < outputs; o += 2) {
      const bool two = o + 1 < outputs;
      const bool first = used(coef + o, outputs);
      const bool second = two && used(coef + o + 1, outputs);
      if (first && second)
        add_to<2>(rows, coef + o, outputs, F + o, begin, end);
      else if (first || second)
        add_to<1>(rows, coef + (first ? o : o + 1), outputs, F + (first ? o : o + 1),
                  begin, end);
    }
  }

 private:
  using V = simd::Pack<Value>;
  static bool used(const Value *coef, Index stride) {
    for (Index r = 0; r < kTogether; ++r)
      if (coef[r * stride] != Value(0)) return true;
    return false;
  }
  template <int kOutputs>
  static void add_to(const Value *const *rows, const Value *coef, Index stride,
                     double *const *F, Index begin, Index end) {
    constexpr int kRows = static_cast<int>(kTogether);
    V by[kOutputs][kRows];
    simd::unroll<kOutputs>([&](auto o) {
      simd::unroll<kRows>([&](auto r) { by[o][r] = V::all(coef[r * stride + o]); });
    });
    Index j = begin;
    for (; j + V::kLanes <= end; j += V::kLanes) {
      V sum[kOutputs];
      const V first = V::load(rows[0] + j);
      simd::unroll<kOutputs>([&](auto o) { sum[o] = by[o][0] * first; });
      simd::unroll<kRows - 1>([&](auto r) {
        const V value = V::load(rows[r + 1] + j);
        simd::unroll<kOutputs>(
            [&](auto o) { sum[o] = fma(by[o][r + 1], value, sum[o]); });
      });
      simd::unroll<kOutputs>([&](auto o) { sum[o].add_to(F[o] + j); });
    }
    for (; j < end; ++j)
      for (int o = 0; o < kOutputs; ++o)
        for (int r = 0; r < kRows; ++r)
          F[o][j] += static_cast<double>(coef[r * stride + o]) *
                     static_cast<double>(rows[r][j]);
  }
};

// Consecutive rows of a matrix: those from `begin` on, `count` of them.
struct Run {
  Index begin, count;
};

// Some runs of rows and columns of a matrix in float64 and in float32, in their place.
// Rows and columns are numbered through, from the first run to the last.
class SharedTable {
 public:
  // Columns of one run, and what leads from their numbers to the numbers in the matrix.
  struct Part {
    Index first, last, shift;
  };

  SharedTable(const double *values, const float *floats, Index n,
              const Vector<Run> &runs)
      : doubles_(values), floats_(floats), n_(n) {
    Index m = 0;
    for (const Run &run : runs) {
      parts_.push_back({m, m + run.count, run.begin - m});
      for (Index i = 0; i < run.count; ++i)
        place_.push_back(static_cast<Order>(run.begin + i));
      m += run.count;
    }
  }
  Index rows() const { return place_.size(); }
  const Vector<Part> &parts() const { return parts_; }
  // Returns row i, such that its entry j is the one of column j, for columns of a part.
  template <class Value>
  const Value *row(Index i, const Part &part) const {
    return whole<Value>(i) + part.shift;
  }
  double diagonal(Index i) const { return whole<double>(i)[place_[i]]; }
  // Writes the entries of row i at the rows `who`.
  template <class Value>
  void gather(Index i, const Vector<Order> &who, Value *out) const {
    const Value *row = whole<Value>(i);
    for (Index t = 0; t < who.size(); ++t) out[t] = row[place_[who[t]]];
  }

 private:
  template <class Value>
  const Value *whole(Index i) const {
    const Index row = static_cast<Index>(place_[i]) * n_;
    if constexpr (std::is_same_v<Value, float>)
      return floats_ + row;
    else
      return doubles_ + row;
  }

  const double *doubles_;
  const float *floats_;
  Index n_;
  Vector<Part> parts_;
  Vector<Order> place_;
};

}  // namespace dualgap
