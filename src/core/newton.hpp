// Newton step for regression with the squared epsilon-insensitive loss.
//
// Problem    min over w of  P(w) = 1/2 ||w||^2 + sum_i c_i max(0, |r_i| - epsilon)^2,
//            r_i = p_i - x_i.w
// Update     with A the rows outside the tube, |r_i| > epsilon,
//              a_i = 2 c_i (|r_i| - epsilon) sign(r_i) on A, else 0
//              g = w - sum_i a_i x_i, the gradient of P
//              H = I + 2 sum_A c_i x_i x_i', a generalised Hessian
//              H s = -g,   w <- w + t s,   t the minimiser of P along s
//            H s = -g is solved by a Cholesky factor, for centred rows (centring.hpp),
//            or by conjugate gradients preconditioned by the diagonal of H.
// Guarantee  P never rises and w -> w*. P is piecewise quadratic, so with a Cholesky
//            factor the method reaches w* in finitely many steps, in practice 3 to 10.
//            The a_i are a dual point, and P(w) - D(a) = 1/2 ||g||^2.
// Cost       three products with X, and either the Gram matrix of A (q^2/2 products for
//            a row of q entries, or panels and BLAS if rows are dense) with d^3/6 for
//            its factor, or two products with the rows of A per conjugate gradient
//            step. 32 bytes a row; with the factor 8 d^2 bytes per thread.
// Source     Mangasarian, Optim. Methods Softw. 17 (2002); Keerthi and DeCoste, JMLR 6
//            (2005); the primal problem and its Hessian: Ho and Lin, JMLR 13 (2012),
//            section 3.1.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "certify.hpp"
#include "newton_system.hpp"
#include "stop.hpp"
#include "threads.hpp"

namespace dualgap {

struct HuberNewtonTuning {
  // Ridge, relative to each entry of the diagonal, that makes up for the rounding of
  // the smallest eigenvalue; it grows by kRidgeGrowth until the matrix has a factor.
  static constexpr double kRidge = 1e-15, kLargestRidge = 1e-6, kRidgeGrowth = 1e3;
  // Fraction of the first slope that a search leaves: the next step begins as well from
  // there.
  static constexpr double kSlope = 1e-3;
};

struct NewtonData {
  const double *target, *cost;
  double epsilon;
  bool outside(Index i, double r) const {
    return cost[i] > 0.0 && std::abs(r) > epsilon;
  }
  double dual(Index i, double r) const {
    return outside(i, r) ? std::copysign(2.0 * cost[i] * (std::abs(r) - epsilon), r)
                         : 0.0;
  }
};

// w, with its residuals and gradient, and room for a step and its image.
struct NewtonPoint {
  Span<double> w, residual, gradient, step, image;
};

struct NewtonValues {
  double primal = 0, gap = 0;
  Index outside = 0;
};

inline double dot_of(const double *x, const double *y, Index n) {
  return sum_of(0, n, [&](Index k) { return x[k] * y[k]; });
}

// Residuals, gradient and values at point.w. One pass.
template <class Rows>
NewtonValues newton_point(const Rows &rows, const NewtonData &data,
                          const NewtonPoint &point, Team &threads) {
  struct Part {
    Sum loss;
    Index outside = 0;
  };
  const Index d = rows.width();
  std::fill_n(point.gradient.first, d, 0.0);
  const auto look = [&](Index begin, Index end, double *own, Part &total) {
    for (Index i = begin; i < end; ++i) {
      const double r = data.target[i] - rows.dot(i, point.w);
      point.residual[i] = r;
      if (!data.outside(i, r)) continue;
      const double excess = std::abs(r) - data.epsilon;
      total.loss += data.cost[i] * excess * excess;
      ++total.outside;
      rows.axpy(i, -data.dual(i, r), own);
    }
  };
  const auto totals = over_rows<Part>(rows, threads, point.gradient, d, look);
  for (Index j = 0; j < d; ++j) point.gradient[j] += point.w[j];
  NewtonValues values;
  Sum loss;
  for (const Part &part : totals) {
    loss += part.loss.value();
    values.outside += part.outside;
  }
  values.primal = 0.5 * squared_norm(point.w, d) + loss.value();
  values.gap = 0.5 * squared_norm(point.gradient, d);
  return values;
}

// out_i = x_i.v for all rows.
template <class Rows>
void products(const Rows &rows, const double *v, double *out, Team &threads) {
  over_rows(rows, threads, nullptr, 0, [&](Index begin, Index end, double *) {
    for (Index i = begin; i < end; ++i) out[i] = rows.dot(i, v);
  });
}

struct FactorPart : PassPart {
  void clear(Index) {}
};

// Solves H s = -g by a Cholesky factor.
class NewtonFactor : private NewtonSystem<FactorPart> {
 public:
  NewtonFactor(std::unique_ptr<RowSet> rows, Team &threads,
               const LinearAlgebra &algebra)
      : NewtonSystem({std::move(rows), {}, {}, {}, 0.0}, false, threads, algebra) {
    centre();
  }

  // Returns false if told to stop, or if H has no factor.
  bool solve(const NewtonData &data, const NewtonPoint &point, double *s, Poll &poll,
             const Stop &stop) {
    using Tuning = HuberNewtonTuning;
    const auto add = [&](FactorPart &part, const RowBlock &rows, Index begin,
                         Index end) {
      for (Index i = begin; i < end; ++i)
        part.p[i - begin] =
            data.outside(i, point.residual[i]) ? 2.0 * data.cost[i] : 0.0;
      add_gram(part, rows, begin, end, part.p, false);
    };
    for (ridge_ = Tuning::kRidge; ridge_ <= Tuning::kLargestRidge;
         ridge_ *= Tuning::kRidgeGrowth) {
      clear_gram();
      if (!read(gram_cost, poll, stop, add)) return false;
      sum_gram();
      if (!factor()) continue;
      Vec step(d_);
      for (Index j = 0; j < d_; ++j) step[j] = -point.gradient[j];
      centring_.pull(step);
      backsolve(step);
      centring_.leave(step);
      std::copy(step.begin(), step.end(), s);
      return true;
    }
    return false;
  }
};

// Solves H s = -g by conjugate gradients, given H's diagonal less 1, until
// ||H s + g|| <= accuracy ||g||. add(v, out) writes (H - I) v, which counts as `work`
// for the poll. Returns the number of iterations. If told to stop, s is the present
// iterate, along which P falls too.
inline Index conjugate_gradients(const double *gradient, Vec diagonal,
                                 const std::function<void(const Vec &, Vec &)> &add,
                                 double *s, double accuracy, Index most, Index work,
                                 Poll &poll) {
  const Index d = diagonal.size();
  Vec left(d), scaled(d), along(d), image(d);
  for (Index j = 0; j < d; ++j) {
    s[j] = 0.0;
    left[j] = -gradient[j];
    along[j] = scaled[j] = left[j] / (diagonal[j] += 1.0);
  }
  const double goal = accuracy * accuracy * squared_norm(left.data(), d);
  double product = dot_of(left.data(), scaled.data(), d);
  Index k = 0;
  while (k < most && product > 0.0 && squared_norm(left.data(), d) > goal) {
    add(along, image);
    for (Index j = 0; j < d; ++j) image[j] += along[j];
    const double step = product / dot_of(along.data(), image.data(), d);
    for (Index j = 0; j < d; ++j) {
      s[j] += step * along[j];
      left[j] -= step * image[j];
      scaled[j] = left[j] / diagonal[j];
    }
    const double next = dot_of(left.data(), scaled.data(), d);
    const double beta = next / product;
    product = next;
    for (Index j = 0; j < d; ++j) along[j] = scaled[j] + beta * along[j];
    ++k;
    if (poll(work)) break;
  }
  return k;
}

// Does so for these rows, of which `entries` are stored.
template <class Rows>
Index newton_conjugate(const Rows &rows, const NewtonData &data,
                       const NewtonPoint &point, double *s, double accuracy, Index most,
                       Index entries, Team &threads, Poll &poll) {
  const Index d = rows.width();
  // out <- sum of body(i, 2 c_i, out) over the rows outside the tube.
  const auto add = [&](Vec &out, const auto &body) {
    std::fill(out.begin(), out.end(), 0.0);
    over_rows(rows, threads, out.data(), d, [&](Index begin, Index end, double *own) {
      for (Index i = begin; i < end; ++i)
        if (data.outside(i, point.residual[i])) body(i, 2.0 * data.cost[i], own);
    });
  };
  Vec diagonal(d);
  add(diagonal, [&](Index i, double c, double *own) {
    rows.for_each(i, [&](Index j, double x) { own[j] += c * x * x; });
  });
  const auto product = [&](const Vec &v, Vec &out) {
    add(out, [&](Index i, double c, double *own) {
      rows.axpy(i, c * rows.dot(i, v.data()), own);
    });
  };
  return conjugate_gradients(point.gradient, std::move(diagonal), product, s, accuracy,
                             most, 8 * d + rows.rows() + 2 * entries, poll);
}

// Returns the t > 0 that minimises P(w + t s), up to kSlope of the slope at 0.
inline double newton_length(const NewtonData &data, const double *residual,
                            const double *image, Index n, double along, double square) {
  const auto at = [&](double t) {
    const auto [slope, bend] = sums_of<2>(0, n, [&](Index i, double *term) {
      const double r = residual[i] - t * image[i];
      const double excess = std::abs(r) - data.epsilon;
      const double c = excess > 0.0 ? 2.0 * data.cost[i] * image[i] : 0.0;
      term[0] = c * std::copysign(excess, r);
      term[1] = c * image[i];
    });
    return std::pair(along + t * square - slope, square + bend);
  };
  const auto [first, bend] = at(0.0);
  if (!(first < 0.0)) return 0.0;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  return search_along(-first / bend, kFar, HuberNewtonTuning::kSlope * -first, at);
}

}  // namespace dualgap
