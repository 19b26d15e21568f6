// Interior-point iteration for a set of rows; shrinking fixes the duals of the other
// rows at a bound.
//
// Problem    min over w of  1/2 ||w||^2 - w.f + sum_i c_i l(1 - z_i) + const over the
//            rows i of the set, z_i = y_i w.x_i, through the pair with its dual
//              z_i - 1 + delta_i a_i - s_i + v_i = 0,   s_i a_i = v_i b_i = g_i mu,
//              J w = f + sum_i a_i y_i x_i,  a_i + b_i = U_i,  g_i = c_i/mean(c)
//            (so a row of cost 2 c_i is the same as two rows of cost c_i). f is the sum
//            of U_i y_i x_i over the rows fixed at U_i. J = I, with a 0 at an
//            unpenalised bias, for which the last line is the constraint
//            sum_i a_i y_i = 0.
//            Given offsets o_i, z_i = y_i w.x_i - o_i, and D has sum (1 + o_i) a_i. The
//            loss |t - w.x| - epsilon of regression takes two rows: y = 1 with
//            o = t - epsilon - 1, and y = -1 with o = -t - epsilon - 1.
// Update     with theta_i = 1/(delta_i + s_i/a_i + v_i/b_i), targets t_i, u_i of the
//            two products, r = f + sum_i a_i y_i x_i - J w and Z the rows y_i x_i
//              (J + Z' diag(theta) Z) dw = Z' (theta h) + r
//              h = 1 - z - delta a + t/a - u/b,    da = theta (h - Z dw)
//            Mehrotra's predictor has t = u = 0, Mehrotra's corrector has the
//            second-order terms and g_i sigma mu. Up to three of Gondzio's correctors
//            bring the products of a longer step back to [0.1, 10] g_i sigma mu.
//            Steps are computed over centred rows (centring.hpp).
// Guarantee  none on the number of iterations; 10 to 60 in practice, whatever C is. The
//            matrix is in float32 if rows are dense and features many, as long as the
//            recomputed residual r stays small compared with the gap.
// Cost       one Gram matrix of the rows (q^2/2 products for a row of q entries, or
//            panels and BLAS if rows are dense), d^3/6 for its factor, 2 passes over
//            the rows and 2 more per corrector. 8 d^2 bytes per thread, or 12 d^2 from
//            128 features on, and 120 a row.
// Source     Mehrotra, SIAM J. Optim. 2 (1992); Gondzio, Comput. Optim. Appl. 6 (1996);
//            the normal equations of Ferris and Munson, SIAM J. Optim. 13 (2002).
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "losses.hpp"
#include "newton_system.hpp"
#include "stop.hpp"
#include "threads.hpp"

namespace dualgap {

struct InteriorTuning {
  // Steps of the bisection for the start: 50 halvings reach float64's last digits.
  static constexpr int kHalvings = 50;
  // Iterations between which z and r are recomputed: their rounding adds up.
  static constexpr int kRefreshed = 10;
  // Growth of the ridge until the matrix has a factor: four trials from kRidge to
  // kLargestRidge.
  static constexpr double kRidgeGrowth = 100.0;
  // Most of Gondzio's correctors to a step: each costs two passes over the rows.
  static constexpr int kCorrectors = 3;
  // Length of a step that needs no corrector.
  static constexpr double kLongEnough = 0.9;
  // A corrector is kept if the step grows by 1 %, and the next one is tried if it grows
  // by 10 %: it must pay for its passes.
  static constexpr double kKept = 1.01, kPays = 1.1;
  // A corrector aims at a step that is longer by kLonger, and at products between kLow
  // and kHigh times the target (Gondzio's values).
  static constexpr double kLonger = 0.3, kLow = 0.1, kHigh = 10.0;
  // Part of the way to the boundary that a step goes. Nearer, the next step is short.
  static constexpr double kBack = 0.995;
  // 1 / the length of the longest step that is worth knowing.
  static constexpr double kShortest = 1e-3;
  // Proximal term of a dual whose loss has no curvature, relative to a typical
  // ||x_i||^2: it bounds theta, and is below the rounding of the products.
  static constexpr double kProximal = 1e-12;
  // Share of the gap that a float32 matrix may leave as an error in D.
  static constexpr double kRoundingShare = 0.03;
};

// Returns the a in (0, U) with  g + delta a - mu/a + mu/(U - a) = 0,  and U - a. There
// both products are mu at the margin 1 + g. Without an upper bound U is infinite.
inline std::pair<double, double> centred(double g, double delta, double upper,
                                         double mu) {
  if (std::isinf(upper)) {
    const double root = std::sqrt(g * g + 4.0 * delta * mu);
    return {g > 0.0 ? 2.0 * mu / (g + root) : (root - g) / (2.0 * delta), 1.0};
  }
  if (delta > 0.0) {
    double low = 0.0, high = upper;
    for (int k = 0; k < InteriorTuning::kHalvings; ++k) {
      const double a = 0.5 * (low + high);
      const double f = g + delta * a - mu / a + mu / (upper - a);
      (f > 0.0 ? high : low) = a;
    }
    g += delta * 0.5 * (low + high);
  }
  // Solve g a^2 - (g U + 2 mu) a + mu U = 0 without cancellation.
  const double e = std::abs(g) * upper;
  const double small = 2.0 * mu * upper / (e + 2.0 * mu + std::hypot(e, 2.0 * mu));
  return g > 0.0 ? std::pair{small, upper - small} : std::pair{upper - small, small};
}

struct InteriorPart : PassPart {
  Vec second;
  double ratio, cross, mu, loss, sum;

  void clear(Index d) {
    second.assign(d, 0.0);
    ratio = cross = mu = loss = sum = 0.0;
  }
};

class Interior : private InteriorTuning, private NewtonSystem<InteriorPart> {
 public:
  // `scale` is a typical ||x_i||^2.
  Interior(SomeRows data, const Loss &loss, double scale, bool free_bias, Team &threads,
           const LinearAlgebra &algebra)
      : NewtonSystem(std::move(data), free_bias, threads, algebra),
        loss_(loss),
        scale_(scale),
        bounded_(!std::isinf(loss.slope)),
        bound_(bounded_ ? 1.0 : 0.0) {
    for (Vec *x : {&a_, &b_, &s_, &v_, &z_, &theta_, &t_, &u_, &dz_, &t2_, &u2_, &dz2_})
      x->resize(m_);
    for (Vec *x : {&w_, &seen_, &r_, &dw_, &dw2_, &first_, &second_, &third_})
      x->resize(d_);
    delta_.resize(m_);
    for (Index i = 0; i < m_; ++i) delta_[i] = loss.diagonal(data_.cost[i]);
    weight_ = data_.cost;
    double sum = 0;
    for (const double c : data_.cost) sum += c;
    for (double &weight : weight_) weight *= static_cast<double>(m_) / sum;
    centre();
    if (centring_.any()) scale_ = centring_.square();
  }

  using NewtonSystem::rows;
  using NewtonSystem::width;
  const Vec &w() const { return w_; }
  const Vec &alpha() const { return a_; }
  double mu() const { return mu_; }
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double step() const { return step_; }
  int correctors() const { return correctors_; }
  bool single() const { return single_; }

  // Starts at w, with every product at mu times its weight. mu = 0 chooses a point far
  // inside for w = 0. Returns false if told to stop.
  bool start(const double *w, double mu, Poll &poll, const Stop &stop) {
    std::copy_n(w, d_, w_.begin());
    seen_ = seen_of(w_);
    if (!margins(poll, stop)) return false;
    if (mu == 0.0) {
      for (const double c : data_.cost) mu += c / static_cast<double>(m_);
      mu *= bounded_ ? 2.0 / 3.0 * loss_.slope : 2.0 / loss_.curvature;
      if (!data_.offset.empty()) {
        double far = 0;
        for (const double z : z_) far += std::abs(z - 1.0) / static_cast<double>(m_);
        mu *= far > 0.0 ? far : 1.0;
      }
    }
    for (Index i = 0; i < m_; ++i) {
      const double upper = loss_.upper(data_.cost[i]);
      const double product = mu * weight_[i];
      std::tie(a_[i], b_[i]) = centred(z_[i] - 1.0, delta_[i], upper, product);
      s_[i] = product / a_[i];
      v_[i] = product / b_[i];
    }
    iterations_ = 0;
    ridge_ = kRidge;
    single_ = d_ >= kWorthSingle;
    return residual(poll, stop);
  }

  // Recomputes z, r, P and D from a and w, without the rounding of the steps. Returns
  // false if told to stop; the state is then no worse than before.
  bool refresh(Poll &poll, const Stop &stop) {
    return margins(poll, stop) && residual(poll, stop);
  }

  // One iteration. The point moves only if the outcome is kStepped.
  Outcome iterate(Poll &poll, const Stop &stop) {
    if (iterations_ > 0 && iterations_ % kRefreshed == 0 && !refresh(poll, stop))
      return Outcome::kLeft;
    while (true) {
      if (!normal_equations(poll, stop)) return Outcome::kLeft;
      if (factor()) break;
      if (!single_) ridge_ *= kRidgeGrowth;
      single_ = false;
      if (ridge_ > kLargestRidge) return Outcome::kSingular;
    }
    Vec r = r_;
    centring_.pull(r);
    for (Index j = 0; j < d_; ++j) dw_[j] = first_[j] + r[j];
    backsolve(dw_);
    double ratio = 0, cross = 0;
    if (!predict(ratio, cross, poll, stop)) return Outcome::kLeft;
    const double far = 1.0 / std::max(1.0, ratio);
    const double after = (1.0 - far) * mu_ + far * far * cross / products();
    const double fall = std::clamp(after / mu_, 0.0, 1.0);
    const double target = fall * fall * fall * mu_;

    for (Index j = 0; j < d_; ++j)
      dw_[j] = first_[j] + r[j] + target * second_[j] - third_[j];
    backsolve(dw_);
    const double target_u = bound_ * target;
    for (Index i = 0; i < m_; ++i) {
      t_[i] = target * weight_[i] - t_[i];
      u_[i] = target_u * weight_[i] - u_[i];
    }
    double length = 0;
    if (!direction(dw_, t_, u_, dz_, length, poll, stop)) return Outcome::kLeft;
    correctors_ = 0;
    while (correctors_ < kCorrectors && length < kLongEnough) {
      if (!correct(length, target, poll, stop)) return Outcome::kLeft;
      ++correctors_;
      double longer = 0;
      if (!direction(dw2_, t2_, u2_, dz2_, longer, poll, stop)) return Outcome::kLeft;
      if (longer < kKept * length) break;
      const bool last = longer < kPays * length;
      dw_.swap(dw2_), dz_.swap(dz2_), t_.swap(t2_), u_.swap(u2_);
      length = longer;
      if (last) break;
    }
    step_ = std::min(1.0, kBack * length);
    move();
    ++iterations_;
    if (single_) look_at_rounding(poll, stop);
    return Outcome::kStepped;
  }

  // Iterates until the relative gap is at most `goal`, `most` times at most. Returns
  // the last outcome, the number of steps and of their correctors.
  std::tuple<Outcome, int, int> run(double goal, int most, Poll &poll,
                                    const Stop &stop) {
    int steps = 0, correctors = 0;
    for (; steps < most; ++steps) {
      const Outcome outcome = iterate(poll, stop);
      if (outcome != Outcome::kStepped) return {outcome, steps, correctors};
      correctors += correctors_;
      if (!(primal_ - dual_ > goal * std::abs(primal_)))
        return {outcome, steps + 1, correctors};
    }
    return {Outcome::kStepped, steps, correctors};
  }

 private:
  using Part = InteriorPart;

  double products() const { return static_cast<double>(m_) * (bounded_ ? 2.0 : 1.0); }

  bool margins(Poll &poll, const Stop &stop) {
    return read(one_product, poll, stop,
                [&](Part &, const RowBlock &rows, Index begin, Index end) {
                  margins_at(rows, begin, end, seen_, &z_[begin]);
                });
  }

  // Computes r, P and D from z, a and w.
  bool residual(Poll &poll, const Stop &stop) {
    const auto weigh = [&](Part &part, const RowBlock &rows, Index begin, Index end) {
      for (Index i = begin; i < end; ++i) part.p[i - begin] = data_.y[i] * a_[i];
      rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
    };
    if (!read(one_product, poll, stop, weigh)) return false;
    collect(&Part::first, r_);
    centring_.push(r_);
    for (Index j = 0; j < d_; ++j)
      r_[j] += data_.fixed[j] - (j < penalised() ? w_[j] : 0.0);
    summarise();
    return true;
  }

  // Computes theta, the matrix, Z'(theta (1 - z - delta a)) and Z'(theta (1/a - 1/b)).
  bool normal_equations(Poll &poll, const Stop &stop) {
    // Smooth losses need no proximal term: they have a delta, which may be smaller.
    const double proximal = loss_.curvature > 0.0 ? 0.0 : kProximal * scale_;
    clear_gram();
    if (!read(gram_cost, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const double ra = 1.0 / a_[i], rb = f / b_[i];
                  const double theta =
                      1.0 / (delta_[i] + s_[i] * ra + v_[i] * rb + proximal);
                  theta_[i] = theta;
                  part.p[i - begin] = theta * (1.0 - z_[i] - delta_[i] * a_[i]);
                  part.q[i - begin] = theta * weight_[i] * (ra - rb);
                }
                sign(begin, end, part.p);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.p, part.first.data(), part.q,
                          part.second.data());
                add_gram(part, rows, begin, end, &theta_[begin], single_);
              }))
      return false;
    sum_gram();
    collect(&Part::first, first_);
    collect(&Part::second, second_);
    return true;
  }

  // Recomputes r after a step with a float32 matrix. If the error of r is not small
  // compared with the gap, the next matrices are in float64.
  void look_at_rounding(Poll &poll, const Stop &stop) {
    const Vec expected = r_;
    if (!residual(poll, stop)) return;
    double along = 0, norm = 0;
    for (Index j = 0; j < d_; ++j) {
      const double off = r_[j] - expected[j];
      if (j < penalised()) {
        along += off * (w_[j] + expected[j]);
        norm += off * off;
      } else {
        norm += 2.0 * std::abs(off) * (1.0 + std::abs(w_[j]));
      }
    }
    single_ = std::abs(along) + 0.5 * norm <= kRoundingShare * (primal_ - dual_);
  }

  // Along dw without targets, computes the largest ratio of a decrease to its variable,
  // the sum of the second-order terms, these terms (in t and u), and their contribution
  // to the right-hand side.
  bool predict(double &ratio, double &cross, Poll &poll, const Stop &stop) {
    if (!read(two_products, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                const Index n = end - begin;
                outputs(rows, begin, end, dw_, &dz_[begin]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const double ra = 1.0 / a_[i], rb = f / b_[i];
                  const double h = 1.0 - z_[i] - delta_[i] * a_[i];
                  const double da = theta_[i] * (h - dz_[i]), db = -f * da;
                  const double ds = -s_[i] - s_[i] * da * ra,
                               dv = -v_[i] - v_[i] * db * rb;
                  t_[i] = da * ds;
                  u_[i] = db * dv;
                  // The largest of -da/a and -ds/s = 1 + da/a, likewise for b and v.
                  const double low = std::abs(da * ra + 0.5),
                               high = std::abs(db * rb + 0.5);
                  part.p[i - begin] = 0.5 + (low > high ? low : high);
                }
                part.ratio = std::max(part.ratio, largest(part.p, n));
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  part.p[i - begin] = t_[i] + u_[i];
                  part.q[i - begin] = theta_[i] * (t_[i] / a_[i] - u_[i] / b_[i]);
                }
                part.cross += total(part.p, n);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.q, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, third_);
    for (Index p = 0; p < parts_.size(); ++p) {
      ratio = std::max(ratio, parts_[p].ratio);
      cross += parts_[p].cross;
    }
    return true;
  }

  // Computes dz = Z dw, and the longest step that keeps all variables at 0 or above.
  bool direction(const Vec &dw, const Vec &t, const Vec &u, Vec &dz, double &length,
                 Poll &poll, const Stop &stop) {
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                outputs(rows, begin, end, dw, &dz[begin]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const double ra = 1.0 / a_[i], rb = f / b_[i];
                  const double h =
                      1.0 - z_[i] - delta_[i] * a_[i] + t[i] * ra - u[i] * rb;
                  const double x = theta_[i] * (h - dz[i]) * ra;
                  const double y = -theta_[i] * (h - dz[i]) * rb;
                  const double p = t[i] * ra / s_[i];
                  const double q = u[i] * rb / v_[i];
                  const double low = -x > 1.0 + x - p ? -x : 1.0 + x - p;
                  const double high = f * (-y > 1.0 + y - q ? -y : 1.0 + y - q);
                  part.p[i - begin] = low > high ? low : high;
                }
                part.ratio = std::max(part.ratio, largest(part.p, end - begin));
              }))
      return false;
    double ratio = kShortest;
    for (Index p = 0; p < parts_.size(); ++p) ratio = std::max(ratio, parts_[p].ratio);
    length = 1.0 / ratio;
    return true;
  }

  // Steps of the row variables for the present dw.
  struct Steps {
    double da, db, ds, dv;
  };
  Steps steps(Index k) const {
    const double f = bound_;
    const double ra = 1.0 / a_[k], rb = f / b_[k];
    const double h = 1.0 - z_[k] - delta_[k] * a_[k] + t_[k] * ra - u_[k] * rb;
    const double da = theta_[k] * (h - dz_[k]), db = -f * da;
    return {da, db, t_[k] * ra - s_[k] - s_[k] * da * ra,
            f * (u_[k] * rb - v_[k] - v_[k] * db * rb)};
  }

  // One of Gondzio's correctors: computes t2, u2 and dw2 for a longer step.
  bool correct(double length, double target, Poll &poll, const Stop &stop) {
    const double trial = std::min(1.0, length + kLonger);
    const double low = kLow * target, high = kHigh * target;
    const auto change = [=](double product, double weight) {
      const double aim = std::min(std::max(product, low * weight), high * weight);
      return std::max(aim - product, -high * weight);
    };
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const Steps step = steps(i);
                  part.p[i - begin] =
                      (a_[i] + trial * step.da) * (s_[i] + trial * step.ds);
                  part.q[i - begin] =
                      (b_[i] + trial * step.db) * (v_[i] + trial * step.dv);
                }
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const double t = change(part.p[i - begin], weight_[i]);
                  const double u = f * change(part.q[i - begin], weight_[i]);
                  t2_[i] = t_[i] + t;
                  u2_[i] = u_[i] + u;
                  part.p[i - begin] = theta_[i] * (t / a_[i] - u / b_[i]);
                }
                sign(begin, end, part.p);
                rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, dw2_);
    backsolve(dw2_);
    for (Index j = 0; j < d_; ++j) dw2_[j] += dw_[j];
    return true;
  }

  void move() {
    for (Index j = 0; j < d_; ++j) {
      seen_[j] += step_ * dw_[j];
      r_[j] *= 1.0 - step_;
    }
    w_ = point_of(seen_);
    each(16, [&](Part &, Index begin, Index end) {
      DUALGAP_INDEPENDENT
      for (Index k = begin; k < end; ++k) {
        const Steps step = steps(k);
        a_[k] += step_ * step.da;
        b_[k] += step_ * step.db;
        s_[k] += step_ * step.ds;
        v_[k] += step_ * step.dv;
        z_[k] += step_ * dz_[k];
      }
    });
    summarise();
  }

  // Computes mu, P and D. They are exact for the rows of the set if z and r are.
  void summarise() {
    const RowLoss loss_of(loss_);
    each(8, [&](Part &part, Index begin, Index end) {
      const double f = bound_;
      const Index n = end - begin;
      const auto at = [&](const Vec &x) { return &x[begin]; };
      const double *a = at(a_), *b = at(b_), *s = at(s_), *v = at(v_), *z = at(z_);
      const double *c = at(data_.cost), *delta = at(delta_);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        part.p[k] = a[k] * s[k] + f * b[k] * v[k];
        part.q[k] = a[k] - 0.5 * delta[k] * a[k] * a[k];
      }
      add_offsets(begin, end, a, part.q);
      part.mu += total(part.p, n);
      part.sum += total(part.q, n);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) part.p[k] = c[k] * loss_of.value(1.0 - z[k]);
      part.loss += total(part.p, n);
    });
    double loss = 0, sum = 0, norm = 0, linear = 0, dual = 0;
    mu_ = 0;
    for (Index p = 0; p < parts_.size(); ++p) {
      mu_ += parts_[p].mu;
      loss += parts_[p].loss;
      sum += parts_[p].sum;
    }
    mu_ /= products();
    for (Index j = 0; j < d_; ++j) linear += w_[j] * data_.fixed[j];
    for (Index j = 0; j < penalised(); ++j) {
      norm += w_[j] * w_[j];
      dual += (w_[j] + r_[j]) * (w_[j] + r_[j]);
    }
    primal_ = 0.5 * norm - linear + loss + data_.constant;
    dual_ = sum - 0.5 * dual + data_.constant;
    // Lower D for a sum of the a_i y_i that is not 0.
    if (free_bias_) dual_ -= std::abs(r_.back()) * (1.0 + std::abs(w_.back()));
  }

  Loss loss_;
  double scale_;
  bool bounded_, single_ = false;
  double bound_;  // 1; 0 without an upper bound, and b = 1 and v are not used then
  Vec delta_, weight_, a_, b_, s_, v_, z_, theta_;
  Vec t_, u_, dz_, t2_, u2_, dz2_;
  // w and its residual r; u, and steps and sums for it.
  Vec w_, r_, seen_, dw_, dw2_, first_, second_, third_;
  double mu_ = 0, primal_ = 0, dual_ = 0, step_ = 0;
  int iterations_ = 0, correctors_ = 0;
};

}  // namespace dualgap
