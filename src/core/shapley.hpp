// Sums over support vectors and background rows in exact Shapley values.
//
// Problem    phi_j = sum over background rows z of (A_j - B_j)
//            int_0^1 prod_{l != j} (t A_l + (1 - t) B_l) dt, for every support vector,
//            with A_j = k_j(x_j, s_j) and B_j = k_j(z_j, s_j)
// Update     quadrature with given nodes t and weights; the product without j is the
//            product before j times the product after j
// Guarantee  none here; models/explanations.py bounds the errors
// Cost       d nodes for every background row and support vector, in lanes
// Source     models/explanations.py
#pragma once

#include <algorithm>

#include "sums.hpp"

namespace dualgap {

// Factors of one row, (d, vectors), and of background rows, (d, rows, vectors).
struct ShapleyFactors {
  const double *A, *B;
  Index d, rows, vectors;
};

// Nodes and weights of a quadrature on [0, 1].
struct Quadrature {
  const double *nodes, *weights;
  Index count;
};

// sums = phi_j of every support vector, summed over the background, (d, vectors).
inline void shapley_sums(const ShapleyFactors &of, const Quadrature &rule,
                         double *sums) {
  constexpr Index kWide = 4 * kLanes;  // support vectors at a time: products are chains
  struct Lanes {
    double at[kWide];
  };
  Vector<Lanes> own(of.d), apart(of.d), mixed(of.d), before(of.d), inner(of.d);
  std::fill_n(sums, of.d * of.vectors, 0.0);
  for (Index v = 0; v < of.vectors; v += kWide) {
    const Index wide = std::min(kWide, of.vectors - v);
    for (Index r = 0; r < of.rows; ++r) {
      for (Index j = 0; j < of.d; ++j) {
        const double *a = of.A + j * of.vectors + v;
        const double *b = of.B + (j * of.rows + r) * of.vectors + v;
        for (Index l = 0; l < kWide; ++l) {
          own[j].at[l] = l < wide ? b[l] : 0.0;
          apart[j].at[l] = l < wide ? a[l] - b[l] : 0.0;
          inner[j].at[l] = 0.0;
        }
      }
      for (Index m = 0; m < rule.count; ++m) {
        const double t = rule.nodes[m];
        Lanes product, after;
        for (Index l = 0; l < kWide; ++l) {
          product.at[l] = 1.0;
          after.at[l] = rule.weights[m];
        }
        for (Index j = 0; j < of.d; ++j)
          for (Index l = 0; l < kWide; ++l) {
            before[j].at[l] = product.at[l];
            mixed[j].at[l] = own[j].at[l] + t * apart[j].at[l];
            product.at[l] *= mixed[j].at[l];
          }
        for (Index j = of.d; j-- > 0;)
          for (Index l = 0; l < kWide; ++l) {
            inner[j].at[l] += before[j].at[l] * after.at[l];
            after.at[l] *= mixed[j].at[l];
          }
      }
      for (Index j = 0; j < of.d; ++j)
        for (Index l = 0; l < wide; ++l)
          sums[j * of.vectors + v + l] += apart[j].at[l] * inner[j].at[l];
    }
  }
}

}  // namespace dualgap
