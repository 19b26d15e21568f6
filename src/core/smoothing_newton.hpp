// Newton's method on a smoothed loss, for a set of rows; shrinking fixes the duals of
// the other rows at a bound.
//
// Problem    min over w of  1/2 ||J w||^2 - w.f + sum_i c_i l_tau(u_i) + const over the
//            rows i of the set, u_i = 1 - z_i, z_i = y_i w.x_i, with
//              l_tau(u) = max over 0 <= b <= slope of
//                         b (u + tau/2) - (curvature + tau) b^2/2.
//            For tau = 0 this is the loss itself. For the hinge it differs from the
//            loss by at most tau/8 and is a parabola for |u| < tau/2. f, J and offsets
//            of z_i are as in interior.hpp.
// Update     a_i = c_i b_i with the b_i that attains the maximum, so that
//              r = f + sum_i a_i y_i x_i - J w  is the negative gradient,
//              H = J + sum over 0 < b_i < slope of c_i/(curvature + tau) x_i x_i'
//              H s = r,   w <- w + t s,
//            (for centred rows, centring.hpp)
//            t = 1 if the smoothed objective falls and little of its slope along s is
//            left, else roughly its minimiser along s
// Guarantee  the smoothed objective falls with every step, and the method reaches its
//            minimiser in finitely many steps. The a_i are a dual point, and
//              P(w) - D(a) = 1/2 ||r||^2 + sum_i e_i,
//            where e_i is the cost of smoothing: for the hinge
//            c_i |u_i| (1/2 - |u_i|/tau) for |u_i| < tau/2 and 0 elsewhere, so the sum
//            falls about as tau^2.
// Cost       a product with the rows and one with the rows of a_i > 0, in a single pass
//            if t = 1; the Gram matrix of the rows between the bounds, and d^3/6 for
//            its factor. 8 d^2 bytes per thread, or 12 d^2 from 128 features on, and 35
//            a row.
// Source     Lee and Mangasarian, Comput. Optim. Appl. 20 (2001), for the idea;
//            Chapelle, Neural Comput. 19 (2007), section 4, for this loss and its
//            Hessian (h there is tau/2).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "losses.hpp"
#include "newton_system.hpp"
#include "stop.hpp"
#include "threads.hpp"

namespace dualgap {

struct SmoothingTuning {
  // Part of the largest entry that a bias has on the diagonal if no row determines it:
  // a few roundings.
  static constexpr double kFloor = 1e-15;
  // Growth of the ridge until the matrix has a factor: four trials from kRidge to
  // kLargestRidge.
  static constexpr double kRidgeGrowth = 100.0;
  // Fraction of the first slope that a full step, or else a search, may leave: a full
  // step saves a pass over the rows, so it may leave more.
  static constexpr double kWhole = 0.4, kSlope = 0.1;
  // After a step of this length t = 1 is tried first; after shorter ones it rarely
  // fits.
  static constexpr double kLong = 0.6;
  // Steps after which z is recomputed, because its rounding adds up.
  static constexpr Index kRenewed = 20;
  // Least number a gap is divided by.
  static constexpr double kTiny = 1e-300;
};

// Rules of a run: how fast it smooths less, and when it is stuck.
struct NewtonRules {
  double share;         // of the target gap that smoothing may account for
  double slack;         // tau is reduced only if smoothing exceeds that by this factor
  double divisor;       // tau is divided by this at most at a time
  double rounding;      // relative gain of a step that rounding hides
  int most_idle;        // steps in a row without a visible gain
  double least_radius;  // share of the radius below which a run leaves it
};

struct NewtonRun {
  Outcome outcome = Outcome::kStepped;
  int steps = 0, sharpened = 0;     // how often tau was reduced
  Index inside = 0;                 // rows between the bounds, over all steps
  bool stuck = false, far = false;  // far: hardly any of the radius is left
};

struct SmoothingPart : PassPart {
  double loss, smoothed, sum, first_order, second_order;
  Index inside;

  void clear(Index) {
    loss = smoothed = sum = first_order = second_order = 0.0;
    inside = 0;
  }
};

class SmoothingNewton : private SmoothingTuning, private NewtonSystem<SmoothingPart> {
 public:
  SmoothingNewton(SomeRows data, const Loss &loss, bool free_bias, Team &threads,
                  const LinearAlgebra &algebra)
      : NewtonSystem(std::move(data), free_bias, threads, algebra), loss_(loss) {
    for (Vec *x : {&z_, &a_, &dz_}) x->resize(m_);
    for (Vec *x : {&w_, &r_, &s_}) x->resize(d_);
    centre();
  }

  using NewtonSystem::rows;
  using NewtonSystem::width;
  const Vec &w() const { return w_; }
  const Vec &alpha() const { return a_; }
  const Vec &margins() const { return z_; }
  double tau() const { return tau_; }
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double smoothing() const { return smoothing_; }  // the sum of the e_i
  double moved() const { return moved_; }          // norm of the last step
  // 1/2 r.s of the last step: about the decrease of the smoothed objective.
  double decrement() const { return decrement_; }
  Index inside() const { return inside_; }  // rows between the bounds

  // Starts at w with the smoothing tau. Returns false if told to stop.
  bool start(const double *w, double tau, Poll &poll, const Stop &stop) {
    std::copy_n(w, d_, w_.begin());
    seen_ = seen_of(w_);
    start_ = w_;
    steps_ = 0;
    idle_ = 0;
    moved_ = decrement_ = 0.0;
    length_ = 1.0;
    tau_ = bounded() ? tau : 0.0;
    return evaluate(Margins::kOfW, poll, stop);
  }

  // Changes tau at the same w. Returns false if told to stop.
  bool smooth(double tau, Poll &poll, const Stop &stop) {
    tau_ = bounded() ? tau : 0.0;
    return evaluate(Margins::kKept, poll, stop);
  }

  // One step, which moves w by at most `limit`. If told to stop, w has not moved, or
  // the point reached is not evaluated yet.
  Outcome iterate(double limit, Poll &poll, const Stop &stop) {
    ridge_ = kRidge;
    bool single = d_ >= kWorthSingle;
    while (true) {
      if (!normal_matrix(single, poll, stop)) return Outcome::kLeft;
      if (factor(kFloor)) break;
      if (!single) ridge_ *= kRidgeGrowth;
      single = false;
      if (ridge_ > kLargestRidge) return Outcome::kSingular;
    }
    Vec pulled = r_;
    centring_.pull(pulled);
    seen_step_ = pulled;
    backsolve(seen_step_);
    s_ = point_of(seen_step_);
    const Vec seen = seen_, r = r_;
    const double slope = dot(pulled, seen_step_), length = std::sqrt(dot(s_, s_)),
                 high = objective_;
    decrement_ = 0.5 * slope;
    ++steps_;
    const bool renew = steps_ % kRenewed == 0;
    // After a long step try t = 1 first. One pass then gives x.s and evaluates the end
    // point.
    if (length <= limit && length_ >= kLong && !renew) {
      move(1.0);
      if (!evaluate(Margins::kStepped, poll, stop)) return Outcome::kLeft;
      if (objective_ < high && std::abs(dot(r_, s_)) <= kWhole * std::abs(slope)) {
        add(1.0, dz_, z_);
        length_ = 1.0;
        moved_ = length;
        return Outcome::kStepped;
      }
      seen_ = seen;
      w_ = point_of(seen_);
      r_ = r;
    } else if (!read(
                   one_product, poll, stop,
                   [&](SmoothingPart &, const RowBlock &rows, Index begin, Index end) {
                     outputs(rows, begin, end, seen_step_, &dz_[begin]);
                   })) {
      return Outcome::kLeft;
    }
    length_ = search(length > limit ? limit / length : kFar);
    move(length_);
    add(length_, dz_, z_);
    moved_ = length_ * length;
    const auto margins = renew ? Margins::kOfW : Margins::kKept;
    return evaluate(margins, poll, stop) ? Outcome::kStepped : Outcome::kLeft;
  }

  // Makes up to `most` steps, until the relative gap is at most `goal` or w has moved
  // by `radius` from where it started. If `whole`, that gap is to be proved, and is not
  // only what a step over a sample should gain.
  NewtonRun run(double goal, bool whole, double radius, int most,
                const NewtonRules &rules, Poll &poll, const Stop &stop) {
    NewtonRun run;
    double room = room_of(radius);
    while (run.steps < most && run.outcome == Outcome::kStepped) {
      const double before = tau_;
      if (!sharpen(rules.share * goal * std::abs(primal_), whole, rules, poll, stop)) {
        run.outcome = Outcome::kLeft;
        break;
      }
      run.sharpened += tau_ < before;
      run.outcome = iterate(room, poll, stop);
      if (run.outcome == Outcome::kLeft) break;
      ++run.steps;
      run.inside += inside_;
      const bool still = decrement_ <= rules.rounding * std::abs(primal_);
      idle_ = still ? idle_ + 1 : 0;
      const double gap = (primal_ - dual_) / std::max(std::abs(primal_), kTiny);
      run.stuck = run.outcome == Outcome::kSingular || idle_ >= rules.most_idle ||
                  !std::isfinite(gap);
      room = room_of(radius);
      run.far = std::isfinite(room) && room <= rules.least_radius * radius;
      if (run.stuck || gap <= goal || run.far) break;
    }
    return run;
  }

 private:
  using Part = SmoothingPart;
  // Source of z: the stored values, a product with w, or z + x.s.
  enum class Margins { kKept, kOfW, kStepped };
  static constexpr double kFar = std::numeric_limits<double>::infinity();

  bool bounded() const { return !std::isinf(loss_.slope); }
  double bend() const { return 1.0 / (loss_.curvature + tau_); }
  double shift() const { return 0.5 * tau_; }

  static double dot(const Vec &a, const Vec &b) {
    double sum = 0;
    for (Index j = 0; j < a.size(); ++j) sum += a[j] * b[j];
    return sum;
  }
  static void add(double t, const Vec &x, Vec &sum) {
    for (Index j = 0; j < x.size(); ++j) sum[j] += t * x[j];
  }

  // Moves w by `length` along the step.
  void move(double length) {
    add(length, seen_step_, seen_);
    w_ = point_of(seen_);
  }

  // Returns how far w may move if it stays within `radius` of where it started.
  double room_of(double radius) const {
    if (std::isinf(radius)) return kFar;
    double moved = 0;
    for (Index j = 0; j < w_.size(); ++j)
      moved += (w_[j] - start_[j]) * (w_[j] - start_[j]);
    return std::max(radius - std::sqrt(moved), 0.0);
  }

  // Smooths less if smoothing is more than `most`, and most of the gap. Returns false
  // if told to stop.
  bool sharpen(double most, bool whole, const NewtonRules &rules, Poll &poll,
               const Stop &stop) {
    // The gap itself has to be closed, or only the step has to be small.
    const double left = whole ? primal_ - dual_ - smoothing_ : decrement_;
    const bool much = smoothing_ > std::max(rules.slack * most, left);
    if (!much || !(tau_ > 0.0) || !(moved_ > 0.0)) return true;
    const double factor = std::max(std::sqrt(most / smoothing_), 1.0 / rules.divisor);
    return smooth(tau_ * factor, poll, stop);
  }

  // Computes a, r, P and D at w, with the margins z or, if ahead, z + x.s; z itself
  // then stays as it is.
  bool evaluate(Margins margins, Poll &poll, const Stop &stop) {
    const double bend = this->bend(), shift = this->shift(), slope = loss_.slope;
    const double curvature = loss_.curvature;
    const RowLoss loss_of(loss_);
    const bool ahead = margins == Margins::kStepped, kept = margins == Margins::kKept;
    if (!read(kept ? one_product : two_products, poll, stop,
              [&](SmoothingPart &part, const RowBlock &rows, Index begin, Index end) {
                const Index n = end - begin;
                double *z = &z_[begin], *a = &a_[begin];
                const double *c = &data_.cost[begin];
                double there[kBlock], smoothed[kBlock];
                if (ahead) {
                  double *dz = &dz_[begin];
                  outputs(rows, begin, end, seen_step_, dz);
                  for (Index k = 0; k < n; ++k) there[k] = z[k] + dz[k];
                  z = there;
                } else if (!kept) {
                  margins_at(rows, begin, end, seen_, z);
                }
                Index inside = 0;
                DUALGAP_INDEPENDENT
                for (Index k = 0; k < n; ++k) {
                  const double u = 1.0 - z[k];
                  const double b = (u + shift) * bend;
                  const double low = b > 0.0 ? b : 0.0;
                  const double at = low < slope ? low : slope;
                  a[k] = c[k] * at;
                  part.q[k] = c[k] * (at - 0.5 * curvature * at * at);
                  smoothed[k] = a[k] * (u + shift - 0.5 * at / bend);
                  inside += b > 0.0 && b < slope;
                  part.p[k] = c[k] * loss_of.value(u);
                }
                add_offsets(begin, end, a, part.q);
                part.loss += total(part.p, n);
                part.sum += total(part.q, n);
                part.smoothed += total(smoothed, n);
                part.inside += inside;
                std::copy_n(a, n, part.p);
                sign(begin, end, part.p);
                rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, r_);
    centring_.push(r_);
    double loss = 0, smoothed = 0, sum = 0, norm = 0, linear = 0, dual = 0;
    inside_ = 0;
    for (const Part &part : parts_) {
      loss += part.loss;
      smoothed += part.smoothed;
      sum += part.sum;
      inside_ += part.inside;
    }
    double residual = 0;
    for (Index j = 0; j < d_; ++j) {
      const double own = j < penalised() ? w_[j] : 0.0;
      const double v = r_[j] += data_.fixed[j];  // sum of all a_i y_i x_i
      r_[j] -= own;
      if (j < penalised()) {
        dual += v * v;
        residual += 0.5 * r_[j] * r_[j];
      } else {
        residual -= r_[j] * w_[j];
      }
      norm += own * own;
      linear += w_[j] * data_.fixed[j];
    }
    primal_ = 0.5 * norm - linear + loss + data_.constant;
    objective_ = 0.5 * norm - linear + smoothed + data_.constant;
    dual_ = sum - 0.5 * dual + data_.constant;
    smoothing_ = primal_ - dual_ - residual;
    // Lower D for a sum of the a_i y_i that is not 0.
    if (free_bias_) dual_ -= std::abs(r_.back()) * (1.0 + std::abs(w_.back()));
    return true;
  }

  // Sums theta_i x_i x_i' over the rows between the bounds.
  bool normal_matrix(bool single, Poll &poll, const Stop &stop) {
    clear_gram();
    const double bend = this->bend(), slope = loss_.slope;
    if (!read(gram_cost, poll, stop,
              [&](SmoothingPart &part, const RowBlock &rows, Index begin, Index end) {
                bool any = false;
                for (Index i = begin; i < end; ++i) {
                  const double c = data_.cost[i], a = a_[i];
                  const bool inside = a > 0.0 && a < slope * c;
                  part.p[i - begin] = inside ? c * bend : 0.0;
                  any |= inside;
                }
                if (any) add_gram(part, rows, begin, end, part.p, single);
              }))
      return false;
    sum_gram();
    return true;
  }

  // Returns the t up to `most` that minimises the smoothed objective along s, to a
  // tenth of the slope at 0.
  double search(double most) {
    double along = 0, square = 0, first = 0;
    for (Index j = 0; j < d_; ++j) {
      first -= r_[j] * s_[j];
      along -= data_.fixed[j] * s_[j];
      if (j >= penalised()) continue;
      along += w_[j] * s_[j];
      square += s_[j] * s_[j];
    }
    const double enough = kSlope * std::abs(first);
    return search_along(std::min(1.0, most), most, enough, [&](double t) {
      const auto [slope, curve] = along_step(t);
      return std::pair(along + t * square - slope, square + curve);
    });
  }

  // Returns the sums of a_i dz_i and of theta_i dz_i^2 at w + t s.
  std::pair<double, double> along_step(double t) {
    const double bend = this->bend(), shift = this->shift(), slope = loss_.slope;
    each(6, [&](SmoothingPart &part, Index begin, Index end) {
      const Index n = end - begin;
      const double *z = &z_[begin], *c = &data_.cost[begin];
      const double *dz = &dz_[begin];
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        const double b = (1.0 - z[k] - t * dz[k] + shift) * bend;
        const double low = b > 0.0 ? b : 0.0;
        const double at = low < slope ? low : slope;
        const double weight = c[k] * dz[k];
        part.p[k] = weight * at;
        part.q[k] = b == at ? weight * dz[k] * bend : 0.0;
      }
      part.first_order += total(part.p, n);
      part.second_order += total(part.q, n);
    });
    std::pair<double, double> sums{0.0, 0.0};
    for (const Part &part : parts_) {
      sums.first += part.first_order;
      sums.second += part.second_order;
    }
    return sums;
  }

  Loss loss_;
  double tau_ = 0, primal_ = 0, dual_ = 0, smoothing_ = 0, moved_ = 0, decrement_ = 0;
  double objective_ = 0;  // with the smoothed loss
  double length_ = 1.0;   // t of the last step
  Index inside_ = 0, steps_ = 0;
  int idle_ = 0;  // steps in a row without a visible gain
  Vec start_, z_, a_, dz_, w_, r_, s_;
  Vec seen_, seen_step_;  // u of w and s
};

}  // namespace dualgap
