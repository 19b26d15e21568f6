// The interior-point iteration for a set of rows, the others frozen at a bound.
//
// Problem    min over w of  1/2 ||w||^2 - w.f + sum_i c_i l(1 - z_i) + const over the
//            rows i of the set, z_i = y_i w.x_i, through the pair with its dual
//              z_i - 1 + delta_i a_i - s_i + v_i = 0,   s_i a_i = v_i b_i = g_i mu,
//              J w = f + sum_i a_i y_i x_i,  a_i + b_i = U_i,  g_i = c_i/mean(c)
//            (a row of cost 2 c_i is then the same as two rows of cost c_i),
//            where f = sum of U_i y_i x_i over the rows frozen at U_i. J = I; a bias
//            that is not penalised has a 0 there, and the last line of the sum is the
//            constraint sum_i a_i y_i = 0.
// Update     with theta_i = 1/(delta_i + s_i/a_i + v_i/b_i), targets t_i, u_i of the
//            two products, r = f + sum_i a_i y_i x_i - J w and Z the rows y_i x_i
//              (J + Z' diag(theta) Z) dw = Z' (theta h) + r
//              h = 1 - z - delta a + t/a - u/b,    da = theta (h - Z dw)
//            Mehrotra's predictor has t = u = 0, his corrector the second-order terms
//            and g_i sigma mu; up to three of Gondzio's bring the products of a longer
//            step back to [0.1, 10] g_i sigma mu.
// Guarantee  none on the number of iterations; 10 to 60 in practice, whatever C is.
//            The matrix is in float32 where rows are dense and features many, while
//            the residual r that this leaves, computed anew, is little beside the gap.
// Cost       one Gram matrix of the rows (q^2/2 products for a row of q entries, or
//            panels and BLAS where rows are dense), d^3/6 for its factor, 2 passes over
//            the rows and 2 more per corrector; 8 d^2 bytes per thread, or 12 from 128
//            features on, and 120 a row.
// Source     Mehrotra, SIAM J. Optim. 2 (1992); Gondzio, Comput. Optim. Appl. 6 (1996);
//            the normal equations of Ferris and Munson, SIAM J. Optim. 13 (2002).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "certify.hpp"
#include "losses.hpp"
#include "row_blocks.hpp"
#include "rows.hpp"
#include "stop.hpp"
#include "threads.hpp"

// The arrays of a pass do not overlap: that many are more than compilers check for.
#if defined(__clang__)
#define DUALGAP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define DUALGAP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DUALGAP_INDEPENDENT __pragma(loop(ivdep))
#endif

namespace dualgap {

// The a in (0, U) with  g + delta a - mu/a + mu/(U - a) = 0,  and U - a: where both
// products are mu at a margin of 1 + g. Without an upper bound, U is infinite.
inline std::pair<double, double> centred(double g, double delta, double upper,
                                         double mu) {
  if (std::isinf(upper)) {
    const double root = std::sqrt(g * g + 4.0 * delta * mu);
    return {g > 0.0 ? 2.0 * mu / (g + root) : (root - g) / (2.0 * delta), 1.0};
  }
  if (delta > 0.0) {
    double low = 0.0, high = upper;
    for (int k = 0; k < 50; ++k) {
      const double a = 0.5 * (low + high);
      const double f = g + delta * a - mu / a + mu / (upper - a);
      (f > 0.0 ? high : low) = a;
    }
    g += delta * 0.5 * (low + high);
  }
  // g a^2 - (g U + 2 mu) a + mu U = 0, in the form that does not cancel.
  const double e = std::abs(g) * upper;
  const double small = 2.0 * mu * upper / (e + 2.0 * mu + std::hypot(e, 2.0 * mu));
  return g > 0.0 ? std::pair{small, upper - small} : std::pair{upper - small, small};
}

// Sums and the like of up to kBlock numbers, in lanes: the compiler may not reorder
// them by itself.
template <class Combine>
double reduce(const double *x, Index n, const Combine &combine) {
  constexpr Index kLanes = 8;
  double lane[kLanes] = {};
  Index k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (Index l = 0; l < kLanes; ++l) lane[l] = combine(lane[l], x[k + l]);
  for (Index l = 0; k < n; ++k, ++l) lane[l] = combine(lane[l], x[k]);
  for (Index half = kLanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  return lane[0];
}
inline double total(const double *x, Index n) {
  return reduce(x, n, [](double a, double b) { return a + b; });
}
inline double largest(const double *x, Index n) {  // 0 if none is positive
  return reduce(x, n, [](double a, double b) { return a > b ? a : b; });
}

class Interior {
 public:
  enum class Outcome { kStepped, kLeft, kSingular };

  struct Data {
    std::unique_ptr<RowSet> rows;
    std::vector<std::int8_t> y;
    Vec cost;         // all positive
    Vec fixed;        // f
    double constant;  // of the objective: sum of U_i - delta_i U_i^2/2 at a bound
    double scale;     // a typical ||x_i||^2
  };

  Interior(Data data, const Loss &loss, bool free_bias, Team &threads,
           const LinearAlgebra &algebra)
      : data_(std::move(data)),
        loss_(loss),
        free_bias_(free_bias),
        bounded_(!std::isinf(loss.slope)),
        bound_(bounded_ ? 1.0 : 0.0),
        algebra_(algebra),
        m_(data_.rows->rows()),
        d_(data_.rows->width()),
        parts_(static_cast<std::size_t>(threads.size())),
        team_(threads) {
    for (Vec *x : {&a_, &b_, &s_, &v_, &z_, &theta_, &t_, &u_, &dz_, &t2_, &u2_, &dz2_})
      x->resize(size(m_));
    for (Vec *x : {&w_, &r_, &dw_, &dw2_, &first_, &second_, &third_})
      x->resize(size(d_));
    delta_.resize(size(m_));
    for (Index i = 0; i < m_; ++i) delta_[size(i)] = loss.diagonal(data_.cost[size(i)]);
    weight_ = data_.cost;
    double sum = 0;
    for (const double c : data_.cost) sum += c;
    for (double &weight : weight_) weight *= static_cast<double>(m_) / sum;
  }

  Index width() const { return d_; }
  Index rows() const { return m_; }
  const Vec &w() const { return w_; }
  const Vec &alpha() const { return a_; }
  double mu() const { return mu_; }
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double step() const { return step_; }
  int correctors() const { return correctors_; }
  bool single() const { return single_; }

  // Starts at w, every product at mu times its weight; mu = 0: a point far inside for
  // w = 0. False: told to leave.
  bool start(const double *w, double mu, Poll &poll, const Stop &stop) {
    std::copy_n(w, d_, w_.begin());
    if (mu == 0.0) {
      for (const double c : data_.cost) mu += c / static_cast<double>(m_);
      mu *= bounded_ ? 2.0 / 3.0 * loss_.slope : 2.0 / loss_.curvature;
    }
    if (!margins(poll, stop)) return false;
    for (std::size_t i = 0; i < size(m_); ++i) {
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

  // z, r, P and D from a and w, free of the rounding of the steps. False: told to
  // leave, and nothing is worse than it was.
  bool refresh(Poll &poll, const Stop &stop) {
    return margins(poll, stop) && residual(poll, stop);
  }

  // One iteration; nothing has moved unless the outcome is kStepped.
  Outcome iterate(Poll &poll, const Stop &stop) {
    if (iterations_ > 0 && iterations_ % 10 == 0 && !refresh(poll, stop))
      return Outcome::kLeft;
    while (true) {
      if (!normal_equations(poll, stop)) return Outcome::kLeft;
      if (factor()) break;
      if (!single_) ridge_ *= 100.0;
      single_ = false;
      if (ridge_ > kLargestRidge) return Outcome::kSingular;
    }
    for (std::size_t j = 0; j < size(d_); ++j) dw_[j] = first_[j] + r_[j];
    backsolve(dw_);
    double ratio = 0, cross = 0;
    if (!predict(ratio, cross, poll, stop)) return Outcome::kLeft;
    const double far = 1.0 / std::max(1.0, ratio);
    const double after = (1.0 - far) * mu_ + far * far * cross / products();
    const double fall = std::clamp(after / mu_, 0.0, 1.0);
    const double target = fall * fall * fall * mu_;

    for (std::size_t j = 0; j < size(d_); ++j)
      dw_[j] = first_[j] + r_[j] + target * second_[j] - third_[j];
    backsolve(dw_);
    const double target_u = bound_ * target;
    for (std::size_t i = 0; i < size(m_); ++i) {
      t_[i] = target * weight_[i] - t_[i];
      u_[i] = target_u * weight_[i] - u_[i];
    }
    double length = 0;
    if (!direction(dw_, t_, u_, dz_, length, poll, stop)) return Outcome::kLeft;
    correctors_ = 0;
    while (correctors_ < kCorrectors && length < 0.9) {
      if (!correct(length, target, poll, stop)) return Outcome::kLeft;
      ++correctors_;
      double longer = 0;
      if (!direction(dw2_, t2_, u2_, dz2_, longer, poll, stop)) return Outcome::kLeft;
      if (longer < 1.01 * length) break;
      const bool last = longer < 1.1 * length;
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

 private:
  static constexpr int kCorrectors = 3;
  static constexpr double kBack = 0.995;
  static constexpr double kRidge = 1e-13, kLargestRidge = 1e-6;
  static constexpr double kProximal = 1e-12;
  static constexpr Index kWorthThreads = 400'000;  // a tenth of a millisecond
  // Features from which the matrix is most of the cost; rows added up in float32 before
  // float64 takes over the sum; share of the gap that its rounding may leave in D.
  static constexpr Index kWorthSingle = 128, kSingleRows = 4096;
  static constexpr double kRoundingShare = 0.03;

  // What one thread needs, and what it leaves.
  struct Part {
    double p[kBlock], q[kBlock];
    Vec first, second, gram, room;
    FloatVec single, single_room;
    Index single_rows = 0;
    double ratio, cross, mu, loss, sum;
    bool left;
  };

  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }
  double products() const { return static_cast<double>(m_) * (bounded_ ? 2.0 : 1.0); }
  Index penalised() const { return d_ - free_bias_; }

  // body(part, begin, end) over stretches of the rows from `first` to `last`, in as
  // many parts as pay for `work` multiply-adds. False: told to leave.
  template <class Body>
  bool share(Index first, Index last, Index work, Poll *poll, const Stop *stop,
             const Body &body) {
    const Index blocks = (last - first + kBlock - 1) / kBlock;
    const Index most = work < kWorthThreads ? 1 : static_cast<Index>(parts_.size());
    const Index used = std::min(most, std::max<Index>(blocks, 1));
    const Index per_row = work / std::max<Index>(last - first, 1);
    team_.run(used, blocks, [&](Index number, Index from, Index to) {
      Part &part = parts_[size(number)];
      std::optional<Poll> own;
      if (poll && number > 0) own.emplace(*stop, [] {});
      Poll *mine = own ? &*own : poll;
      for (Index k = from; k < to && !part.left; ++k) {
        const Index begin = first + k * kBlock, end = std::min(last, begin + kBlock);
        body(part, begin, end);
        part.left = mine && (*mine)(per_row * (end - begin));
      }
    });
    return std::none_of(parts_.begin(), parts_.end(),
                        [](const Part &part) { return part.left; });
  }

  void clear_parts() {
    for (Part &part : parts_) {
      part.first.assign(size(d_), 0.0);
      part.second.assign(size(d_), 0.0);
      part.ratio = part.cross = part.mu = part.loss = part.sum = 0.0;
      part.left = false;
    }
  }

  // body(part, block, begin, end) over all rows, which takes `work(block)`
  // multiply-adds.
  template <class Work, class Body>
  bool read(const Work &work, Poll &poll, const Stop &stop, const Body &body) {
    clear_parts();
    bool stays = true;
    data_.rows->visit([&](const RowBlock &rows) {
      stays = share(
          rows.begin(), rows.end(), work(rows), &poll, &stop,
          [&](Part &part, Index begin, Index end) { body(part, rows, begin, end); });
      return stays;
    });
    return stays;
  }
  static Index one_product(const RowBlock &rows) { return rows.entries(); }
  static Index two_products(const RowBlock &rows) { return 2 * rows.entries(); }

  // body(part, begin, end) over the variables of all rows.
  template <class Body>
  void each(Index per_row, const Body &body) {
    clear_parts();
    share(0, m_, per_row * m_, nullptr, nullptr, body);
  }

  void collect(Vec Part::*sum, Vec &out) const {
    out = parts_[0].*sum;
    for (std::size_t p = 1; p < parts_.size(); ++p)
      for (std::size_t j = 0; j < out.size(); ++j) out[j] += (parts_[p].*sum)[j];
  }

  bool margins(Poll &poll, const Stop &stop) {
    return read(one_product, poll, stop,
                [&](Part &, const RowBlock &rows, Index begin, Index end) {
                  outputs(rows, begin, end, w_, &z_[size(begin)]);
                });
  }

  // r, P and D from z, a and w.
  bool residual(Poll &poll, const Stop &stop) {
    const auto weigh = [&](Part &part, const RowBlock &rows, Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        part.p[i - begin] = data_.y[size(i)] * a_[size(i)];
      rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
    };
    if (!read(one_product, poll, stop, weigh)) return false;
    collect(&Part::first, r_);
    for (Index j = 0; j < d_; ++j)
      r_[size(j)] += data_.fixed[size(j)] - (j < penalised() ? w_[size(j)] : 0.0);
    summarise();
    return true;
  }

  void outputs(const RowBlock &rows, Index begin, Index end, const Vec &w,
               double *out) const {
    rows.dots(begin, end, w.data(), out);
    const std::int8_t *y = &data_.y[size(begin)];
    for (Index k = 0; k < end - begin; ++k) out[k] *= y[k];
  }
  // p <- y p, that sums() of the rows x_i are sums of y_i x_i.
  void sign(Index begin, Index end, double *p) const {
    const std::int8_t *y = &data_.y[size(begin)];
    for (Index k = 0; k < end - begin; ++k) p[k] *= y[k];
  }

  // theta, the matrix, Z'(theta (1 - z - delta a)) and Z'(theta (1/a - 1/b)).
  bool normal_equations(Poll &poll, const Stop &stop) {
    // The smooth losses have a delta of their own, and it may be smaller.
    const double proximal = loss_.curvature > 0.0 ? 0.0 : kProximal * data_.scale;
    for (Part &part : parts_) part.gram.clear(), part.single.clear();
    const auto cost = [](const RowBlock &rows) { return rows.gram_cost(); };
    if (!read(cost, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                if (part.gram.empty()) part.gram.assign(size(d_ * d_), 0.0);
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double theta =
                      1.0 / (delta_[k] + s_[k] * ra + v_[k] * rb + proximal);
                  theta_[k] = theta;
                  part.p[i - begin] = theta * (1.0 - z_[k] - delta_[k] * a_[k]);
                  part.q[i - begin] = theta * weight_[k] * (ra - rb);
                }
                sign(begin, end, part.p);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.p, part.first.data(), part.q,
                          part.second.data());
                const double *theta = &theta_[size(begin)];
                if (single_ && rows.panels())
                  single_gram(part, rows, begin, end, theta);
                else
                  rows.gram(begin, end, theta, part.gram.data(), part.room, algebra_);
              }))
      return false;
    for (Part &part : parts_) take_over(part);
    collect(&Part::first, first_);
    collect(&Part::second, second_);
    Vec &gram = parts_[0].gram;
    if (gram.empty()) gram.assign(size(d_ * d_), 0.0);
    for (std::size_t p = 1; p < parts_.size(); ++p) {
      const Vec &other = parts_[p].gram;
      for (std::size_t j = 0; j < other.size(); ++j) gram[j] += other[j];
    }
    return true;
  }

  void single_gram(Part &part, const RowBlock &rows, Index begin, Index end,
                   const double *theta) {
    if (part.single.empty())
      part.single.assign(size(d_ * d_), 0.0F), part.single_rows = 0;
    rows.gram(begin, end, theta, part.single.data(), part.single_room, algebra_);
    part.single_rows += end - begin;
    if (part.single_rows >= kSingleRows) take_over(part);
  }

  // What was added up in float32 goes to the sum in float64.
  void take_over(Part &part) const {
    if (part.single.empty() || part.single_rows == 0) return;
    for (Index i = 0; i < d_; ++i) {
      double *sum = &part.gram[size(i * d_)];
      float *more = &part.single[size(i * d_)];
      for (Index j = i; j < d_; ++j) {
        sum[j] += static_cast<double>(more[j]);
        more[j] = 0.0F;
      }
    }
    part.single_rows = 0;
  }

  // r as it is, after a step by a matrix in float32; what that added to it must be
  // little beside the gap, else the next matrices are in float64.
  void look_at_rounding(Poll &poll, const Stop &stop) {
    const Vec expected = r_;
    if (!residual(poll, stop)) return;
    double along = 0, norm = 0;
    for (std::size_t j = 0; j < size(d_); ++j) {
      const double off = r_[j] - expected[j];
      if (j < size(penalised())) {
        along += off * (w_[j] + expected[j]);
        norm += off * off;
      } else {
        norm += 2.0 * std::abs(off) * (1.0 + std::abs(w_[j]));
      }
    }
    single_ = std::abs(along) + 0.5 * norm <= kRoundingShare * (primal_ - dual_);
  }

  // Cholesky; false: not positive definite.
  bool factor() {
    Vec &gram = parts_[0].gram;
    double most = 0;
    for (Index j = 0; j < d_; ++j) {
      double &entry = gram[size(j * d_ + j)];
      entry += j < penalised() ? 1.0 : 0.0;
      most = std::max(most, entry);
    }
    for (Index j = 0; j < d_; ++j) gram[size(j * d_ + j)] *= 1.0 + ridge_;
    char lower = 'L';
    int n = static_cast<int>(d_), info = 0;
    if (!std::isfinite(most)) return false;
    algebra_.dpotrf(&lower, &n, gram.data(), &n, &info);
    return info == 0;
  }

  void backsolve(Vec &x) {
    char lower = 'L';
    int n = static_cast<int>(d_), one = 1, info = 0;
    algebra_.dpotrs(&lower, &n, &one, parts_[0].gram.data(), &n, x.data(), &n, &info);
  }

  // Along dw without targets: how far each variable can go (as a ratio), the sum of
  // the second-order terms, these terms in t and u, and Z' theta of what they cause.
  bool predict(double &ratio, double &cross, Poll &poll, const Stop &stop) {
    if (!read(two_products, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                const Index n = end - begin;
                outputs(rows, begin, end, dw_, &dz_[size(begin)]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double h = 1.0 - z_[k] - delta_[k] * a_[k];
                  const double da = theta_[k] * (h - dz_[k]), db = -f * da;
                  const double ds = -s_[k] - s_[k] * da * ra,
                               dv = -v_[k] - v_[k] * db * rb;
                  t_[k] = da * ds;
                  u_[k] = db * dv;
                  // -da/a and -ds/s = 1 + da/a, the same for b and v: the largest.
                  const double low = std::abs(da * ra + 0.5),
                               high = std::abs(db * rb + 0.5);
                  part.p[i - begin] = 0.5 + (low > high ? low : high);
                }
                part.ratio = std::max(part.ratio, largest(part.p, n));
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  part.p[i - begin] = t_[k] + u_[k];
                  part.q[i - begin] = theta_[k] * (t_[k] / a_[k] - u_[k] / b_[k]);
                }
                part.cross += total(part.p, n);
                sign(begin, end, part.q);
                rows.sums(begin, end, part.q, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, third_);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      ratio = std::max(ratio, parts_[p].ratio);
      cross += parts_[p].cross;
    }
    return true;
  }

  // dz = Z dw, and the longest step that keeps all variables at 0 or above.
  bool direction(const Vec &dw, const Vec &t, const Vec &u, Vec &dz, double &length,
                 Poll &poll, const Stop &stop) {
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                outputs(rows, begin, end, dw, &dz[size(begin)]);
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double ra = 1.0 / a_[k], rb = f / b_[k];
                  const double h =
                      1.0 - z_[k] - delta_[k] * a_[k] + t[k] * ra - u[k] * rb;
                  const double x = theta_[k] * (h - dz[k]) * ra;
                  const double y = -theta_[k] * (h - dz[k]) * rb;
                  const double p = t[k] * ra / s_[k];
                  const double q = u[k] * rb / v_[k];
                  const double low = -x > 1.0 + x - p ? -x : 1.0 + x - p;
                  const double high = f * (-y > 1.0 + y - q ? -y : 1.0 + y - q);
                  part.p[i - begin] = low > high ? low : high;
                }
                part.ratio = std::max(part.ratio, largest(part.p, end - begin));
              }))
      return false;
    double ratio = 1e-3;
    for (std::size_t p = 0; p < parts_.size(); ++p)
      ratio = std::max(ratio, parts_[p].ratio);
    length = 1.0 / ratio;
    return true;
  }

  // The steps of the row variables for the present dw.
  struct Steps {
    double da, db, ds, dv;
  };
  Steps steps(std::size_t k) const {
    const double f = bound_;
    const double ra = 1.0 / a_[k], rb = f / b_[k];
    const double h = 1.0 - z_[k] - delta_[k] * a_[k] + t_[k] * ra - u_[k] * rb;
    const double da = theta_[k] * (h - dz_[k]), db = -f * da;
    return {da, db, t_[k] * ra - s_[k] - s_[k] * da * ra,
            f * (u_[k] * rb - v_[k] - v_[k] * db * rb)};
  }

  // One of Gondzio's correctors: t2, u2 and dw2 for a step 0.3 longer.
  bool correct(double length, double target, Poll &poll, const Stop &stop) {
    const double trial = std::min(1.0, length + 0.3);
    const double low = 0.1 * target, high = 10.0 * target;
    const auto change = [=](double product, double weight) {
      const double aim = std::min(std::max(product, low * weight), high * weight);
      return std::max(aim - product, -high * weight);
    };
    if (!read(one_product, poll, stop,
              [&](Part &part, const RowBlock &rows, Index begin, Index end) {
                const double f = bound_;
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const Steps step = steps(k);
                  part.p[i - begin] =
                      (a_[k] + trial * step.da) * (s_[k] + trial * step.ds);
                  part.q[i - begin] =
                      (b_[k] + trial * step.db) * (v_[k] + trial * step.dv);
                }
                DUALGAP_INDEPENDENT
                for (Index i = begin; i < end; ++i) {
                  const std::size_t k = size(i);
                  const double t = change(part.p[i - begin], weight_[k]);
                  const double u = f * change(part.q[i - begin], weight_[k]);
                  t2_[k] = t_[k] + t;
                  u2_[k] = u_[k] + u;
                  part.p[i - begin] = theta_[k] * (t / a_[k] - u / b_[k]);
                }
                sign(begin, end, part.p);
                rows.sums(begin, end, part.p, part.first.data(), nullptr, nullptr);
              }))
      return false;
    collect(&Part::first, dw2_);
    backsolve(dw2_);
    for (std::size_t j = 0; j < size(d_); ++j) dw2_[j] += dw_[j];
    return true;
  }

  void move() {
    for (std::size_t j = 0; j < size(d_); ++j) {
      w_[j] += step_ * dw_[j];
      r_[j] *= 1.0 - step_;
    }
    each(16, [&](Part &, Index begin, Index end) {
      DUALGAP_INDEPENDENT
      for (std::size_t k = size(begin); k < size(end); ++k) {
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

  // mu, P and D; exact for the rows of the set if z and r are.
  void summarise() {
    // l(u) = b u - curvature b^2/2 at the best b.
    const double slope = loss_.slope, curvature = loss_.curvature;
    const bool kink = curvature == 0.0;
    const double inverse = kink ? 0.0 : 1.0 / curvature;
    each(8, [&](Part &part, Index begin, Index end) {
      const double f = bound_;
      const Index n = end - begin;
      const auto at = [&](const Vec &x) { return &x[size(begin)]; };
      const double *a = at(a_), *b = at(b_), *s = at(s_), *v = at(v_), *z = at(z_);
      const double *c = at(data_.cost), *delta = at(delta_);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        part.p[k] = a[k] * s[k] + f * b[k] * v[k];
        part.q[k] = a[k] - 0.5 * delta[k] * a[k] * a[k];
      }
      part.mu += total(part.p, n);
      part.sum += total(part.q, n);
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        const double u = z[k] < 1.0 ? 1.0 - z[k] : 0.0;
        const double near = u * inverse < slope ? u * inverse : slope;
        const double best = kink ? slope : near;
        part.p[k] = c[k] * (best * u - 0.5 * curvature * best * best);
      }
      part.loss += total(part.p, n);
    });
    double loss = 0, sum = 0, norm = 0, linear = 0, dual = 0;
    mu_ = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      mu_ += parts_[p].mu;
      loss += parts_[p].loss;
      sum += parts_[p].sum;
    }
    mu_ /= products();
    for (std::size_t j = 0; j < size(d_); ++j) linear += w_[j] * data_.fixed[j];
    for (std::size_t j = 0; j < size(penalised()); ++j) {
      norm += w_[j] * w_[j];
      dual += (w_[j] + r_[j]) * (w_[j] + r_[j]);
    }
    primal_ = 0.5 * norm - linear + loss + data_.constant;
    dual_ = sum - 0.5 * dual + data_.constant;
    // What an unbalanced sum of the a_i y_i costs.
    if (free_bias_) dual_ -= std::abs(r_.back()) * (1.0 + std::abs(w_.back()));
  }

  Data data_;
  Loss loss_;
  bool free_bias_, bounded_, single_ = false;
  double bound_;  // 1; 0 where there is no upper bound, and b = 1, v stand idle
  LinearAlgebra algebra_;
  Index m_, d_;
  std::vector<Part> parts_;
  Team &team_;
  Vec delta_, weight_, a_, b_, s_, v_, z_, theta_;
  Vec t_, u_, dz_, t2_, u2_, dz2_;
  Vec w_, r_, dw_, dw2_, first_, second_, third_;
  double mu_ = 0, primal_ = 0, dual_ = 0, step_ = 0, ridge_ = kRidge;
  int iterations_ = 0, correctors_ = 0;
};

}  // namespace dualgap
