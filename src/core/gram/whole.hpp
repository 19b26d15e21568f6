// Block solver for small problems with a free bias, in float64.
//
// Problem    the first one of block.hpp; one class, whose p is 0 and whose sum is not;
//            nu-SVC and nu-SVR, with two sums
// Update     the working set has all rows between their bounds, and all others that
//            violate the optimality conditions. Pair steps (inner_steps.hpp) lower its
//            violation, to a tenth if few steps do. Newton steps (../face.hpp) follow,
//            over the rows between their bounds. Then F = K c is computed again.
// Guarantee  as in block.hpp
// Cost       8 n^2 bytes, and as much for the largest working set, of which only rows
//            that take part are written; three passes over the working set per pair
//            step, m^3/6 per Newton step over m rows
// Source     as in block.hpp and ../face.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "../epoch.hpp"
#include "../face.hpp"
#include "../sums.hpp"
#include "box.hpp"
#include "inner_steps.hpp"
#include "kernel_rows.hpp"
#include "proof.hpp"

namespace dualgap {

// When to end: once the relative gap is at most `goal`, or at the limits. Work is
// counted in entries of kernel rows. Once the gap has met `tol` or `atol`, work may
// grow to twice as much plus `free`. It is never more than `limit`.
struct WholeSettings : Targets {
  double limit;
  Index epochs;
};

// Memory for doubles that are written before they are read.
class Buffer {
 public:
  explicit Buffer(Index size)
      : data_(AlignedAllocator<double>().allocate(size), Free{size}) {}
  double *data() const { return data_.get(); }

 private:
  struct Free {
    Index size;
    void operator()(double *p) const { AlignedAllocator<double>().deallocate(p, size); }
  };
  std::unique_ptr<double, Free> data_;
};

struct WholeTuning {
  // Violation that inner steps leave, of the one they found: another working set gains
  // more than a more exact one.
  static constexpr double kInner = 0.1;
  // Epochs in a row that do not lower the gap before the method gives up.
  static constexpr Index kIdle = 10;
  // Steps that any problem may take; larger ones may take n^2. Badly conditioned
  // problems need more, but other methods are faster there.
  static constexpr Index kSteps = 10'000;
  // Pair steps of an epoch, per row of the working set. Where they do not suffice,
  // Newton steps do more.
  static constexpr Index kPerRow = 2;
  // Newton steps may cost as much as the pair steps before them. A pair step costs this
  // much more than the entries of its rows, a multiplication in a factor this part of
  // an entry.
  static constexpr double kOfStep = 500.0, kOfEntry = 0.5;
};

// Memory that problems use one after another: a kernel matrix of n rows, a working set,
// a Newton step.
struct WholeRoom {
  // A row of K has as many entries as the largest working set.
  explicit WholeRoom(Index n) : K(n * padded(n)) {}
  Team alone{1};
  Buffer K;
  InnerOf<double> inner;
  FaceStep step;
};

class Whole : public Box, private WholeTuning {
 public:
  // Computes a row of K, when it is first used.
  using Fill = std::function<void(Index i, double *row)>;

  // Starts at 0, or at a point of the box whose sum the others have, too. With two sums
  // it starts at the first rows of each group. `floor` is a lower bound on the size of
  // the optimum that makes gaps relative.
  Whole(BlockProblem problem, double floor, const double *start, Fill fill,
        WholeRoom &room)
      : Box(std::move(problem), room.alone),
        floor_(floor),
        known_(n_, 0),
        fill_(std::move(fill)),
        room_(room),
        inner_(room.inner) {
    if (problem_.two_sums) set_alpha(Vec(n_, 0.0).data());
    for (Index i = 0; start && i < n_; ++i) {
      c_[i] = on_grid(start[i]);
      problem_.total += c_[i];
    }
  }

  const double *row(Index i) {
    const Index stride = padded(n_);
    double *values = room_.K.data() + i * stride;
    if (!std::exchange(known_[i], 1)) {
      fill_(i, values);
      std::fill(values + n_, values + stride, 0.0);
    }
    return values;
  }
  double c(Index i) const { return c_[i]; }
  double floor() const { return floor_; }
  const Vec &signs() const { return problem_.y; }
  // sums_j += sum_i c_i k_ij over the i with c_i > 0, or c_i < 0, as many terms at a
  // time as the tile adds.
  void add_terms(bool positive, double *sums) {
    constexpr int kTerms = tile::kLeastRows;
    const Vec zeros(n_, 0.0);
    double by[kTerms] = {};
    const double *from[kTerms];
    std::fill(from, from + kTerms, zeros.data());
    int count = 0;
    const auto add = [&] {
      for (Index j = 0; j < n_; ++j) {
        double sum = 0.0;
        for (int r = 0; r < kTerms; ++r) sum += by[r] * from[r][j];
        sums[j] += sum;
      }
      std::fill(by, by + kTerms, 0.0);
      count = 0;
    };
    for (Index i = 0; i < n_; ++i) {
      if (positive ? !(c(i) > 0.0) : !(c(i) < 0.0)) continue;
      by[count] = c(i);
      from[count] = row(i);
      if (++count == kTerms) add();
    }
    if (count > 0) add();
  }

  // Returns one entry per epoch: a working set, and the values after it. A start that
  // is optimal counts as an epoch without steps.
  Vector<Epoch> solve(const WholeSettings &settings, const Stop &stop, Poll &poll) {
    Vector<Epoch> epochs;
    Index steps = 0, idle = 0;
    double work = 0.0, allowed = settings.limit, best = kInf;
    for (;;) {
      scan();
      const double primal = scan_.primal, dual = scan_.dual;
      if (steps > 0) epochs.push_back({primal, dual, steps});
      const double gap = primal - dual;
      const double size = std::max({dual, -primal, floor_});
      if (allowed == settings.limit &&
          gap <= std::max(settings.tol * size, settings.atol))
        allowed = std::min(settings.limit, 2.0 * work + settings.free);
      idle = gap < best ? 0 : idle + 1;
      best = std::min(best, gap);
      if (gap <= settings.goal * size || !(scan_.violation > 0.0) ||
          !(work < allowed) || idle > kIdle || steps >= most_steps() ||
          epochs.size() >= settings.epochs)
        break;
      choose();
      const double q = static_cast<double>(who_.size());
      const Index left = static_cast<Index>((allowed - work) / q) + 1;
      const Index made = make_pair_steps(
          std::min({left, most_steps() - steps, kPerRow * inner_.q}), poll);
      if (made == 0 || stop.requested() || stop.expired()) break;
      steps += made;
      const double entries = static_cast<double>(made) * q;
      const double budget = entries + kOfStep * static_cast<double>(made);
      work += entries + make_newton_steps(budget);
    }
    if (epochs.empty()) epochs.push_back({scan_.primal, scan_.dual, steps});
    return epochs;
  }

 private:
  Index most_steps() const { return std::max(n_ * n_, kSteps); }

  // Computes F = K c, and scans it.
  void scan() {
    std::fill(F_.begin(), F_.end(), 0.0);
    for (Index i = 0; i < n_; ++i) {
      const double c = c_[i];
      if (c == 0.0) continue;
      const double *K = row(i);
      for (Index j = 0; j < n_; ++j) F_[j] += c * K[j];
    }
    Box::scan();
  }

  // Chooses the working set: the rows between their bounds, and the others that violate
  // the optimality conditions.
  void choose() {
    who_.clear();
    for (Index i = 0; i < n_; ++i) {
      const bool rises = may_rise(i), falls = may_fall(i);
      const int of = group(i);
      if ((rises && falls) || (rises && v(i) > scan_.bottom[of]) ||
          (falls && v(i) < scan_.top[of]))
        who_.push_back(i);
    }
    inner_.reset(who_.size());
  }

  // Makes pair steps on the working set. Returns their number.
  Index make_pair_steps(Index most, Poll &poll) {
    const Index q = who_.size();
    for (Index s = 0; s < inner_.q; ++s) inner_.s[s] = 1.0;
    for (Index s = 0; s < q; ++s) {
      load(who_[s], s, inner_);
      inner_.s[s] = problem_.diagonal[who_[s]];
      inner_.group[s] = static_cast<std::uint8_t>(group(who_[s]));
    }
    // Few rows of the matrix take part in a step; the others are not copied.
    Vector<char> copied(q, 0);
    const auto row_of = [&](Index s) {
      const double *K = row(who_[s]);
      if (q == n_) return K;
      double *H = inner_.H.data() + s * inner_.stride();
      if (!std::exchange(copied[s], 1))
        for (Index t = 0; t < q; ++t) H[t] = K[who_[t]];
      return static_cast<const double *>(H);
    };
    const double tol = kInner * scan_.violation;
    const Index made = problem_.two_sums
                           ? pair_steps<2>(inner_, unit_, tol, most, poll, row_of)
                           : pair_steps(inner_, unit_, tol, most, poll, row_of);
    for (Index s = 0; s < q; ++s) c_[who_[s]] = inner_.c[s];
    return made;
  }

  // Goes to the optimum over the rows between their bounds. A row that a step takes to
  // its bound leaves. Ends if the next step costs more than what is left of `budget`;
  // returns the cost.
  double make_newton_steps(double budget) {
    face_.clear();
    v_.clear();
    for (Index s = 0; s < who_.size(); ++s) {
      face_.push_back(who_[s]);
      v_.push_back(inner_.v[s]);
    }
    double spent = 0.0;
    for (;;) {
      keep_free();
      const Index m = face_.size();
      spent += kOfEntry * static_cast<double>(m * m * m) / 6.0;
      if (m < 2 || spent > budget ||
          !room_.step.solve(
              m, [&](Index s, Index t) { return rows_[s][face_[t]]; },
              [&](Index s) { return v_[s]; }, first_group()) ||
          !take_step())
        return spent;
    }
  }

  // Removes the rows at a bound from the face.
  void keep_free() {
    Index m = 0;
    rows_.clear();
    for (Index s = 0; s < face_.size(); ++s) {
      const Index i = face_[s];
      if (!(c_[i] > lo_[i] && c_[i] < hi_[i])) continue;
      rows_.push_back(row(i));
      v_[m] = v_[s];
      face_[m++] = i;
    }
    face_.resize(m);
    v_.resize(m);
  }

  // The rows of the face in its first group: the rows of a group are next to each
  // other.
  Index first_group() const {
    Index s = 1;
    while (s < face_.size() && group(face_[s]) == group(face_[0])) ++s;
    return s;
  }

  // Makes the step, or the part of it that ends at the first bound. Returns whether
  // it ended at a bound.
  bool take_step() {
    const auto &step = room_.step;
    const Index m = face_.size();
    double length = 1.0;
    Index leaves = m;
    for (Index s = 0; s < m; ++s) {
      const Index i = face_[s];
      const double wall = (step[s] > 0.0 ? hi_[i] : lo_[i]) - c_[i];
      if (!(step[s] / wall * length > 1.0)) continue;
      length = wall / step[s];
      leaves = s;
    }
    moves_.resize(m);
    const Index first = first_group();
    if (!round_moves(0, first, length, leaves) ||
        !round_moves(first, m, length, leaves))
      return false;
    for (Index s = 0; s < m; ++s) c_[face_[s]] += moves_[s];
    if (leaves == m) return false;
    for (Index s = 0; s < m; ++s)
      for (Index t = 0; t < m; ++t) v_[t] -= moves_[s] * rows_[s][face_[t]];
    return true;
  }

  // Rounds the moves of a group to the grid; the row `leaves` goes to its bound. The
  // row with the most room takes what this leaves of the sum. Returns whether it can.
  bool round_moves(Index begin, Index end, double length, Index leaves) {
    Index roomy = end;
    double most = -1.0;
    Sum sum;  // a plain sum of many moves has fewer digits than the grid
    for (Index s = begin; s < end; ++s) {
      const Index i = face_[s];
      const double step = room_.step[s];
      double to = c_[i] + std::nearbyint(length * step / unit_) * unit_;
      if (s == leaves) to = step > 0.0 ? hi_[i] : lo_[i];
      moves_[s] = std::clamp(to, lo_[i], hi_[i]) - c_[i];
      sum += moves_[s];
      const double room = std::min(hi_[i] - to, to - lo_[i]);
      if (room > most) {
        most = room;
        roomy = s;
      }
    }
    const double off = sum.value();
    if (begin == end) return true;
    if (roomy == end || std::abs(off) > most) return false;
    moves_[roomy] -= off;
    return true;
  }

  double floor_;
  Vector<char> known_;  // rows of K that are filled
  Fill fill_;
  WholeRoom &room_;
  InnerOf<double> &inner_;
  Vector<Index> who_, face_;
  Vector<const double *> rows_;  // rows of K of the face
  Vec v_, moves_;
};

// Solves a problem over all rows of a kernel, without its diagonal. With two sums each
// row has two variables, first all with y = 1, and `c` gets their sums. Otherwise `c`
// has the start on entry. Returns no epochs if told to stop.
inline Vector<Epoch> solve_whole(const KernelRows &rows, BlockProblem problem,
                                 double floor, const WholeSettings &settings, double *c,
                                 const Stop &stop, Poll &poll) {
  const Index n = rows.n(), variables = problem.y.size();
  const Index stride = tile::in_panels(n);
  const Buffer values(std::max<Index>(n * stride, 1));
  const double *K = values.data();
  if (!rows.table(0, n, 0, n, values.data(), stride, poll)) return {};
  for (Index i = 0; i < variables; ++i)
    problem.diagonal.push_back(K[i % n * stride + i % n]);
  WholeRoom room(variables);
  const auto fill = [=](Index i, double *row) {
    for (Index at = 0; at < variables; at += n)
      std::copy_n(K + i % n * stride, n, row + at);
  };
  const double *start = problem.two_sums ? nullptr : c;
  Whole whole(std::move(problem), floor, start, fill, room);
  auto epochs = whole.solve(settings, stop, poll);
  if (stop.requested() || stop.expired()) return {};
  for (Index i = 0; i < n; ++i)
    c[i] = variables > n ? whole.c(i) + whole.c(i + n) : whole.c(i);
  return epochs;
}

}  // namespace dualgap
