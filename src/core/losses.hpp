// One record describes the three hinge losses. With u = 1 - m and the margin m = y w.x:
//
//   l(u) = max over 0 <= b <= slope of  b u - curvature b^2 / 2
//
//   hinge            slope 1    curvature 0      max(0, u)
//   smoothed hinge   slope 1    curvature gamma  u^2/(2 gamma), then u - gamma/2
//   squared hinge    slope inf  curvature 1/2    max(0, u)^2
//
// With b = alpha / c this is the conjugate form, so the dual of
//   P(w) = 1/2 ||w||^2 + sum_i c_i l(1 - y_i w.x_i)
// is
//   D(a) = sum_i a_i - 1/2 ||sum_i a_i y_i x_i||^2 - 1/2 sum_i delta_i a_i^2,
//   0 <= a_i <= U_i,   U_i = slope c_i,  delta_i = curvature / c_i
// Source: Hsieh et al. 2008, eq. 4, for hinge and squared hinge; Shalev-Shwartz and
// Zhang 2013, section 5.2, for the smoothed hinge, on the scale lambda = 1/(nC).
#pragma once

#include <algorithm>
#include <cmath>

namespace dualgap {

struct Loss {
  double slope;
  double curvature;

  // Uses max and select, because a branch on the sign of u would be unpredictable.
  double value(double u) const {
    u = std::max(u, 0.0);
    if (curvature == 0.0) return u;
    const double knee = slope * curvature;
    return u < knee ? u * u / (2 * curvature) : slope * (u - knee / 2);
  }
  // Returns the b that attains the maximum; 0 at the kink of the hinge.
  double derivative(double u) const {
    if (!(u > 0)) return 0.0;
    return curvature == 0.0 ? slope : std::min(u / curvature, slope);
  }
  double upper(double c) const { return c > 0 ? slope * c : 0.0; }
  double diagonal(double c) const {
    return curvature == 0.0 || !(c > 0) ? 0.0 : curvature / c;
  }
};

// The same loss without branches, for loops that the compiler vectorises. Without
// curvature b is infinite, or NaN for u = 0, and so never below the slope.
struct RowLoss {
  double slope, inverse, half_knee;

  explicit RowLoss(const Loss &loss)
      : slope(loss.slope),
        inverse(1.0 / loss.curvature),
        half_knee(0.5 * loss.slope * loss.curvature) {}
  double value(double u) const {
    u = u > 0.0 ? u : 0.0;
    const double b = u * inverse, near = 0.5 * u * b, far = slope * (u - half_knee);
    return b < slope ? near : far;
  }
  double derivative(double u) const {
    const double b = u * inverse, most = b < slope ? b : slope;
    return u > 0.0 ? most : 0.0;
  }
};

// Returns the exact maximiser of D over one alpha, with the others fixed: a projected
// Newton step on the gradient G = m - 1 + delta a with second derivative q + delta
// (Hsieh et al. 2008, eq. 9; on SDCA's scale, section 5 of Shalev-Shwartz and Zhang
// 2013). A zero row with the hinge has no curvature: G = -1, so a = U.
inline double dual_step(double a, double margin, double q, double upper, double delta) {
  const double gradient = margin - 1.0 + delta * a;
  const double curvature = q + delta;
  if (curvature == 0.0) return gradient < 0 ? upper : 0.0;
  return std::clamp(a - gradient / curvature, 0.0, upper);
}

inline double dual_step(const Loss &loss, double a, double margin, double q, double c) {
  return dual_step(a, margin, q, loss.upper(c), loss.diagonal(c));
}

// Logistic loss log(1 + exp(-m)). Its conjugate is the negative entropy, so the dual is
//   D(a) = sum_i c_i H(a_i/c_i) - 1/2 ||sum_i a_i y_i x_i||^2,   0 <= a_i <= c_i,
//   H(b) = -b log b - (1 - b) log(1 - b)
struct LogisticLoss {
  static constexpr int kMostSteps = 60;
  static constexpr double kNear = 1e-5;  // such a step leaves an error of its square

  static double probability(double t) { return 1.0 / (1.0 + std::exp(-t)); }
};

// Returns the maximiser of D over one alpha: a = c s(t) with s(t) = 1/(1 + exp(-t)),
// where t is the root of the increasing function t + m + q (c s(t) - a). Newton's
// method begins at the t of the margin, and bisection keeps it between bounds (Yu,
// Huang and Lin, Machine Learning 85, 2011, section 4, over log-odds instead of alpha).
inline double dual_step(const LogisticLoss &loss, double a, double margin, double q,
                        double c) {
  if (!(c > 0)) return 0.0;
  const double base = margin - q * a, steep = q * c;
  double low = -base - steep, high = -base;
  double t = std::clamp(-margin, low, high), p = 0, bent = 0, step = 0;
  for (int k = 0; k < loss.kMostSteps; ++k) {
    p = loss.probability(t);
    bent = p * (1.0 - p);
    const double value = t + base + steep * p;
    (value > 0 ? high : low) = t;
    step = -value / (1.0 + steep * bent);
    if (std::abs(step) <= loss.kNear) break;
    const double next = t + step;
    t = next > low && next < high ? next : 0.5 * (low + high);
    step = 0;
  }
  return c * (p + bent * step);
}

// Loss of the residual r = y - w.x: l(|r| - epsilon), times `above` where r > 0 and
// times `below` elsewhere. These are 1, or for the pinball loss q and 1 - q: it is q r
// above and (q - 1) r below. The dual variable a of a row with cost c is in the box
// -below U(c) <= a <= above U(c).
struct ResidualLoss {
  Loss form;
  double epsilon;
  double above = 1.0, below = 1.0;

  double weight(double r) const { return r > 0.0 ? above : below; }
  double largest() const { return std::max(above, below); }
};

// Returns one row's share of P - D when w = sum_i a_i y_i x_i. It is never negative
// (Fenchel's inequality).
inline double gap_share(const Loss &loss, double a, double margin, double c) {
  return c * loss.value(1.0 - margin) + a * (margin - 1.0) +
         0.5 * loss.diagonal(c) * a * a;
}

inline double gap_share(const LogisticLoss &, double a, double margin, double c) {
  if (!(c > 0)) return 0.0;
  const double b = a / c, size = std::abs(margin);
  const double loss = std::max(-margin, 0.0) + std::log1p(std::exp(-size));
  const double lost = b > 0 && b < 1 ? b * std::log(b) + (1 - b) * std::log1p(-b) : 0.0;
  return c * (loss + lost) + a * margin;
}

}  // namespace dualgap
