// All pairs of classes, solved and proved one after another.
//
// Problem    for every pair of classes the hinge with a free bias, or nu-SVC
// Update     as in whole.hpp; pairs share the kernel values within a class
// Guarantee  hinge_proof and nu_proof of proof.hpp bound P and D, rounding included
// Cost       n (n + 1)/2 kernel values; memory for those within the classes, and for
//            those between one class and later ones; for a pair as in whole.hpp
// Source     as in whole.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "whole.hpp"

namespace dualgap {

// A floor is this part of the optimum of orthogonal rows, or the smallest normal.
inline constexpr double kLeastPart = 0.01, kSmallest = 0x1p-1022;

// Proofs and epochs of all pairs. The epochs of pair p end before ends[p]. `floors`:
// with nu, the least sizes of the optima in relative gaps.
struct PairProofs {
  Vector<KernelProof> proofs;
  Vec floors;
  Vector<Epoch> epochs;
  Vector<Index> ends;
};

// The problems of all pairs of classes. Class k has the rows
// bounds[k] to bounds[k + 1] - 1.
class PairsOfClasses {
 public:
  // `coef` and `scores` are tables of classes - 1 rows and n columns. In the pair (i,
  // j) the rows of class i have their coefficients y alpha and their scores sum_j c_j
  // k_ij in row j - 1 of the tables, the rows of class j in row i. `halves` has one
  // entry per pair of problems with nu: what the variables of either class add up to.
  // Without nu it is empty.
  PairsOfClasses(const KernelRows &rows, Vector<Index> bounds, const double *cost,
                 const ScoreRoundings &by, double *coef, double *scores, Vec halves)
      : rows_(rows),
        bounds_(std::move(bounds)),
        cost_(cost),
        by_(by),
        coef_(coef),
        scores_(scores),
        halves_(std::move(halves)) {}

  // Solves and proves every pair. Returns no proofs if told to stop.
  PairProofs solve(const WholeSettings &settings, const Stop &stop, Poll &poll) {
    PairProofs all;
    Index largest = 0, longest = 1;
    for (Index a = 0; a < classes(); ++a) {
      for (Index b = a + 1; b < classes(); ++b)
        largest = std::max(largest, size(a) + size(b));
      longest = std::max(longest, size(a) * stride_of_later(a));
      within_.push_back(std::make_unique<Buffer>(size(a) * tile::in_panels(size(a))));
      if (!fill(a, first(a), first(a + 1), *within_[a], poll)) return {};
    }
    across_ = std::make_unique<Buffer>(longest);
    WholeRoom room(largest);
    for (Index a = 0; a + 1 < classes(); ++a) {
      if (!fill(a, first(a + 1), rows_.n(), *across_, poll)) return {};
      for (Index b = a + 1; b < classes(); ++b) {
        const double half = halves_.empty() ? 0.0 : halves_[all.ends.size()];
        Whole problem = pair(a, b, half, room);
        const auto epochs = problem.solve(settings, stop, poll);
        if (stop.requested() || stop.expired()) return {};
        all.proofs.push_back(prove(problem, a, b, half));
        all.floors.push_back(problem.floor());
        all.epochs.insert(all.epochs.end(), epochs.begin(), epochs.end());
        all.ends.push_back(all.epochs.size());
      }
    }
    return all;
  }

 private:
  Index classes() const { return bounds_.size() - 1; }
  Index first(Index k) const { return bounds_[k]; }
  Index size(Index k) const { return first(k + 1) - first(k); }

  Index stride_of_later(Index a) const {
    return tile::in_panels(rows_.n() - first(a + 1));
  }

  // Computes kernel values of the rows of a class with the rows begin to end - 1.
  bool fill(Index a, Index begin, Index end, Buffer &values, Poll &poll) const {
    return rows_.table(first(a), first(a + 1), begin, end, values.data(),
                       tile::in_panels(end - begin), poll);
  }

  // The entries of two classes, the rows of a first.
  template <class T>
  Vector<T> both(const T *of_rows, Index a, Index b) const {
    Vector<T> all(of_rows + first(a), of_rows + first(a + 1));
    all.insert(all.end(), of_rows + first(b), of_rows + first(b + 1));
    return all;
  }

  // A hundredth of the size of the optimum for orthogonal rows that all have a loss:
  // orthogonal_optimum of problems/one_class.py.
  static double floor(const BlockProblem &problem) {
    double total[2] = {}, squares[2] = {};
    const Index n = problem.y.size();
    for (Index i = 0; i < n; ++i) {
      const double cost = problem.cost[i];
      total[problem.y[i] < 0.0] += cost;
      squares[problem.y[i] < 0.0] += cost * cost * problem.diagonal[i];
    }
    double all = 0.0;
    for (int g = 0; g < 2; ++g) {
      const double share = problem.total / total[g];
      const double size = kLeastPart * 0.5 * share * share * squares[g];
      all += std::isfinite(size) ? std::max(size, kSmallest) : kSmallest;
    }
    return all;
  }

  Whole pair(Index a, Index b, double half, WholeRoom &room) const {
    const Index m = size(a), more = size(b);
    // With two classes the second one is positive.
    BlockProblem problem;
    problem.y.assign(m, classes() > 2 ? 1.0 : -1.0);
    problem.y.resize(m + more, -problem.y.front());
    problem.p = problem.y;
    if (half > 0.0) {
      problem.p.assign(m + more, 0.0);
      problem.two_sums = true;
      problem.total = half;
    }
    problem.cost = both(cost_, a, b);
    const Index of_a = tile::in_panels(m), of_b = tile::in_panels(more);
    const Index stride = stride_of_later(a);
    const double *own = within_[a]->data(), *second = within_[b]->data();
    const double *across = across_->data() + first(b) - first(a + 1);
    Vec &diagonal = problem.diagonal;
    for (Index s = 0; s < m; ++s) diagonal.push_back(own[s * of_a + s]);
    for (Index s = 0; s < more; ++s) diagonal.push_back(second[s * of_b + s]);
    const auto fill = [=](Index i, double *row) {
      if (i < m) {
        std::copy_n(own + i * of_a, m, row);
        std::copy_n(across + i * stride, more, row + m);
      } else {
        for (Index t = 0; t < m; ++t) row[t] = across[t * stride + i - m];
        std::copy_n(second + (i - m) * of_b, more, row + m);
      }
    };
    const double least = half > 0.0 ? floor(problem) : 0.0;
    return {std::move(problem), least, nullptr, fill, room};
  }

  // Proves a solution, and writes its model into the tables.
  KernelProof prove(Whole &problem, Index a, Index b, double half) {
    const Index n = problem.n(), m = size(a);
    Vec up(n), down(n), scores(n), errors(n);
    const Vec alpha = problem.alpha();
    Vector<std::int8_t> y;
    problem.add_terms(true, up.data());
    problem.add_terms(false, down.data());
    for (const double sign : problem.signs())
      y.push_back(static_cast<std::int8_t>(sign));
    const auto lengths = both(by_.lengths, a, b), cost = both(cost_, a, b);
    ScoreRoundings by = by_;
    by.lengths = lengths.data();
    if (rows_.bounded()) {
      SumSizes terms;
      Vector<Order> who;
      for (Index s = 0; s < n; ++s) {
        who.push_back(static_cast<Order>(s < m ? first(a) + s : first(b) + s - m));
        if (problem.c(s) != 0.0) terms.add(rows_.placement(), who.back(), problem.c(s));
      }
      terms.add_bounded(rows_.placement(), rows_.placement().of_all(), {who.data(), n},
                        up.data(), down.data(), scores.data(), errors.data());
    } else {
      for (Index s = 0; s < n; ++s) scores[s] = up[s] + down[s];
      by.bound(alpha.data(), n, errors.data());
    }
    const KernelPoint point{
        n, y.data(), cost.data(), alpha.data(), scores.data(), errors.data()};
    const auto found = half > 0.0 ? nu_proof(point, by, half) : hinge_proof(point, by);
    for (Index s = 0; s < n; ++s) {
      const Index place =
          s < m ? (b - 1) * rows_.n() + first(a) + s : a * rows_.n() + first(b) + s - m;
      coef_[place] = problem.c(s) / found.rho + 0.0;
      scores_[place] = scores[s] / found.rho;
    }
    return found;
  }

  const KernelRows &rows_;
  Vector<Index> bounds_;
  const double *cost_;
  ScoreRoundings by_;
  double *coef_, *scores_;
  Vec halves_;
  // Kernel values within each class, and of the first class of a pair with later ones.
  Vector<std::unique_ptr<Buffer>> within_;
  std::unique_ptr<Buffer> across_;
};

}  // namespace dualgap
