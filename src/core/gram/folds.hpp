// Problems over the same rows that differ in the weights of these, such as the folds of
// a cross-validation, solved together for one C after another.
//
// Problem    for each fold p, in c_i = y_i alpha_i, F = K c, with costs C w_pi:
//                max sum |c_i| - 1/2 c'F,  0 <= alpha_i <= C w_pi,  sum_i c_i = 0
//            (the hinge with a free bias), or, with targets t_i and epsilon,
//                max sum (t_i c_i - epsilon |c_i|) - 1/2 c'F,  |c_i| <= C w_pi,
//                sum_i c_i = 0
//            (regression). These are the first two problems of block.hpp.
// Start      from the solutions for the two C before: c at a bound goes to the same
//            bound of the new box, the others follow the line through both solutions
//            but do not change their sign, and the sum is corrected in proportion to c
// Update     for each fold, a working set of all rows between their bounds and the rows
//            that violate most (all of these, if they are few). Pair steps solve its
//            problem to a tenth of the violation (inner_steps.hpp). Then F += sum_r
//            (change of c_r) K_r for all folds in one pass over the rows K_r.
// Guarantee  as in block.hpp
// Cost       12 n^2 bytes for the matrix of n rows in float64 and float32, which all
//            problems over these rows share; 2 m flops per fold and changed row; q^2
//            copies per working set of q rows
// Source     as in block.hpp; the start extends Chu, Ho, Tsai, Lin and Lin, KDD 2015
//
// Steps use float32 values. Once a fold seems to have reached its gap, F = K c is
// computed again from the float64 matrix, for all folds in one pass, so that no error
// is carried from one C to the next. A fold that float32 cannot bring to its gap goes
// on in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>

#include "../stop.hpp"
#include "../threads.hpp"
#include "inner_steps.hpp"
#include "proof.hpp"
#include "shared_table.hpp"

namespace dualgap {

struct FoldTuning {
  // Part of its gap that a fold aims at: the rest pays for the drift of F in float32.
  static constexpr double kClose = 0.95;
  // Part of its gap that a refreshed fold must meet: room for the rounding of the
  // proof.
  static constexpr double kMet = 0.999;
  // Violation that inner steps leave, of the one they found: another working set gains
  // more than a more exact one.
  static constexpr double kInner = 0.1;
  // Inner steps per row of a working set, of kFewest rows at least: most sets need few,
  // and a badly conditioned one must not take the whole time.
  static constexpr Index kMostSteps = 100, kFewest = 100;
  // Refreshed gradients before float64: float32 did not reach the gap so often.
  static constexpr Index kTries = 3;
  // Working sets in a row that do not lower the gap before float32 is given up.
  static constexpr Index kIdle = 8;
  // Rows of a working set: few sets below kLeast rows, and above kLargest a matrix that
  // leaves the cache. A set that lacks rows inside their bounds gains much less. So if
  // these and a third more are above kLargest, that is the limit, up to kMost.
  static constexpr Index kLeast = 256, kLargest = 2048, kMost = 8192;
  // Rows beside twice those inside their bounds: some for rows that are to enter.
  static constexpr Index kSpare = 128;
  // Columns of F that stay in the first-level cache while rows are added.
  static constexpr Index kColumns = 1024;
};

class Folds : private FoldTuning {
 public:
  // The matrix of n rows is given in both types, and kept elsewhere. Fold p has the m
  // weights from weights[p * m] on, zero for rows that it leaves out. For the hinge it
  // has rows of both labels. For a regression `targets` is not empty, and all y are 1.
  Folds(const double *values, const float *floats, Index n, const Vector<Run> &runs,
        Vector<std::int8_t> y, const double *weights, Index folds, Index threads,
        Vec targets = {}, double epsilon = 0.0)
      : table_(values, floats, n, runs),
        y_(std::move(y)),
        linear_(std::move(targets)),
        two_sided_(!linear_.empty()),
        epsilon_(epsilon),
        m_(table_.rows()),
        folds_(folds),
        team_(threads),
        rooms_(threads) {
    for (Room &room : rooms_) free_.push_back(&room);
    if (!two_sided_) linear_.assign(y_.begin(), y_.end());
    for (Index p = 0; p < folds; ++p) {
      Fold &fold = folds_[p];
      fold.weight.assign(weights + p * m_, weights + (p + 1) * m_);
      for (auto *a : {&fold.c, &fold.last, &fold.lo, &fold.hi, &fold.F, &fold.change})
        a->assign(m_, 0.0);
    }
  }
  Index rows() const { return m_; }
  Index folds() const { return folds_.size(); }

  // Solves all folds for this C, larger than the ones before. A fold ends once its
  // relative gap is at most tol or its gap at most atol, after `most` working sets, or
  // where float64 allows no progress. Returns false if told to stop; the duals are not
  // to be used then.
  bool advance(double C, double tol, double atol, Index most, Poll &poll) {
    for (Fold &fold : folds_) begin(fold, C);
    before_ = std::exchange(C_, C);
    if (!apply<float>(poll)) return false;
    for (Fold &fold : folds_) {
      fold.open = true;
      fold.stuck = false;
      fold.tries = fold.rounds = fold.steps = 0;
      fold.goal = kClose * tol;
      fold.goal_gap = kClose * atol;
      forget(fold);
    }
    for (;;) {
      if (!rounds(most, poll)) return false;
      if (!refresh(poll)) return false;
      bool again = false;
      for (Fold &fold : folds_) {
        if (fold.tries < 0) continue;
        evaluate(fold);
        const double gap = fold.primal - fold.dual;
        if (gap <= kMet * tol * fold.dual || gap <= kMet * atol || fold.stuck ||
            fold.rounds >= most) {
          fold.tries = -1;
          continue;
        }
        ++fold.tries;
        fold.goal *= 0.5;
        fold.goal_gap *= 0.5;
        fold.precise = fold.precise || fold.tries > kTries;
        fold.open = again = true;
        forget(fold);
      }
      if (!again) return true;
    }
  }

  void alpha(Index p, double *out) const {
    for (Index i = 0; i < m_; ++i) out[i] = y_[i] * folds_[p].c[i] + 0.0;
  }
  const Vec &scores(Index p) const { return folds_[p].F; }

  Index sets(Index p) const { return folds_[p].rounds; }
  Index steps(Index p) const { return folds_[p].steps; }
  // Proves a fold of the hinge.
  HingeProof proof(Index p, const ScoreRoundings &by) const {
    const Fold &fold = folds_[p];
    Vec alphas(m_), cost(m_), error(m_);
    alpha(p, alphas.data());
    for (Index i = 0; i < m_; ++i) cost[i] = C_ * fold.weight[i];
    by.bound(alphas.data(), m_, error.data());
    const KernelPoint point{
        m_, y_.data(), cost.data(), alphas.data(), fold.F.data(), error.data()};
    return hinge_proof(point, by);
  }

 private:
  static constexpr double kInf = std::numeric_limits<double>::infinity();

  struct Fold {
    Vec weight, c, last, lo, hi, F, change;
    double unit = 1.0, top = 0.0, bottom = 0.0, primal = 0.0, dual = 0.0, bias = 0.0;
    double goal = 0.0, goal_gap = 0.0, least = kInf;
    bool open = false, precise = false, stuck = false, moved = false, fresh = true;
    Index tries = 0, rounds = 0, steps = 0, idle = 0;
    Vector<Order> who;
  };

  static void forget(Fold &fold) {
    fold.least = kInf;
    fold.idle = 0;
  }

  // Sets the box and the start for a C. The change of c goes to `change`.
  void begin(Fold &fold, double C) {
    const double largest = *std::max_element(fold.weight.begin(), fold.weight.end());
    const double by = C_ > before_ && before_ > 0.0 ? (C - C_) / (C_ - before_) : 0.0;
    fold.unit = largest > 0.0 ? std::ldexp(1.0, std::ilogb(C * largest) - 52) : 1.0;
    Vec start(m_, 0.0);
    Sum sum;
    double up = 0.0, down = 0.0;  // of the variables inside the box
    for (Index i = 0; i < start.size(); ++i) {
      const double bound = on_grid(fold, C * fold.weight[i]);
      const double side = fold.c[i] < 0.0 ? -1.0 : 1.0, a = side * fold.c[i];
      const double old = side > 0.0 ? fold.hi[i] : -fold.lo[i];
      if (two_sided_ || y_[i] > 0) fold.hi[i] = bound;
      if (two_sided_ || y_[i] < 0) fold.lo[i] = -bound;
      if (a == 0.0) continue;
      start[i] = bound;
      if (a < old) {
        const double wish = a + by * (a - side * fold.last[i]);
        start[i] = on_grid(fold, std::clamp(wish, 0.0, bound));
      }
      start[i] *= side;
      sum += start[i];
      if (std::abs(start[i]) < bound) (side > 0.0 ? up : down) += std::abs(start[i]);
    }
    const double heavy = sum.value(), most = heavy > 0.0 ? up : down;
    if (most > 0.0) {
      const double part = std::min(1.0, std::abs(heavy) / most);
      for (Index i = 0; i < start.size(); ++i)
        if (start[i] * heavy > 0.0 &&
            std::abs(start[i]) < (start[i] > 0.0 ? fold.hi[i] : -fold.lo[i]))
          start[i] = on_grid(fold, start[i] * (1.0 - part));
    }
    correct(start);
    fold.moved = false;
    for (Index i = 0; i < start.size(); ++i) {
      fold.change[i] = start[i] - fold.c[i];
      fold.moved = fold.moved || fold.change[i] != 0.0;
    }
    fold.last = fold.c;
    fold.precise = false;
  }
  static double on_grid(const Fold &fold, double x) {
    return std::trunc(x / fold.unit) * fold.unit;
  }
  // Lowers rows of the heavier sign until the sum is 0.
  static void correct(Vec &c) {
    for (bool moved = true; moved;) {
      Sum sum;
      for (const double x : c) sum += x;
      double off = sum.value();
      moved = false;
      for (Index i = 0; i < c.size() && off != 0.0; ++i) {
        if (c[i] * off <= 0.0) continue;
        const double t = std::copysign(std::min(std::abs(c[i]), std::abs(off)), off);
        c[i] -= t;
        off -= t;
        moved = true;
      }
    }
  }

  // Return v = p - F of a row that may rise or fall, with the derivative of
  // -epsilon |c| on that side.
  double v_rising(const Fold &fold, Index i) const {
    return linear_[i] - fold.F[i] + (fold.c[i] < 0.0 ? epsilon_ : -epsilon_);
  }
  double v_falling(const Fold &fold, Index i) const {
    return linear_[i] - fold.F[i] + (fold.c[i] > 0.0 ? -epsilon_ : epsilon_);
  }

  // Computes the largest v that may rise, the least that may fall, and P and D at the
  // bias between them.
  void scan(Fold &fold) const {
    double top = -kInf, bottom = kInf;
    for (Index i = 0; i < y_.size(); ++i) {
      if (fold.c[i] < fold.hi[i]) top = std::max(top, v_rising(fold, i));
      if (fold.c[i] > fold.lo[i]) bottom = std::min(bottom, v_falling(fold, i));
    }
    fold.top = top;
    fold.bottom = bottom;
    fold.bias = 0.5 * (top + bottom);
    sums(fold);
  }
  void sums(Fold &fold) const {
    double norm = 0.0, sum = 0.0, loss = 0.0;
    for (Index i = 0; i < y_.size(); ++i) {
      norm += fold.c[i] * fold.F[i];
      sum += linear_[i] * fold.c[i] - epsilon_ * std::abs(fold.c[i]);
      const double r = linear_[i] - (fold.F[i] + fold.bias);
      const double least = two_sided_ ? std::abs(r) - epsilon_ : y_[i] * r;
      loss += fold.weight[i] * std::max(0.0, least);
    }
    fold.primal = 0.5 * norm + C_ * loss;
    fold.dual = sum - 0.5 * norm;
  }
  // P and D at the best bias.
  void evaluate(Fold &fold) const {
    fold.bias = two_sided_
                    ? tube_bias(fold)
                    : hinge_bias(fold.F.data(), y_.data(), fold.weight.data(), m_);
    sums(fold);
  }
  double tube_bias(const Fold &fold) const {
    Vec kinks, costs;
    double total = 0.0;
    for (Index i = 0; i < y_.size(); ++i) {
      if (!(fold.weight[i] > 0.0)) continue;
      const double r = linear_[i] - fold.F[i];
      kinks.insert(kinks.end(), {r - epsilon_, r + epsilon_});
      costs.insert(costs.end(), 2, fold.weight[i]);
      total += fold.weight[i];
    }
    return weighted_quantile(kinks.data(), costs.data(), kinks.size(), total);
  }

  // Makes working sets for all open folds until they are near their goals.
  bool rounds(Index most, Poll &poll) {
    for (;;) {
      Vector<Fold *> open;
      for (Fold &fold : folds_) {
        if (!fold.open) continue;
        scan(fold);
        const double gap = fold.primal - fold.dual;
        fold.idle = gap < fold.least ? 0 : fold.idle + 1;
        fold.least = std::min(fold.least, gap);
        const bool met = gap <= fold.goal * fold.dual || gap <= fold.goal_gap;
        if (met || !(fold.top > fold.bottom) || fold.rounds >= most ||
            fold.idle > kIdle) {
          fold.stuck = !met && fold.precise;
          fold.precise = fold.precise || !met;
          fold.open = false;
        } else {
          open.push_back(&fold);
        }
      }
      if (open.empty()) return true;
      SharedPoll shared(poll);
      const auto many = open.size();
      const Index parts = team_.size() == 1 ? 1 : many;
      team_.run(parts, many, [&](Index, Index first, Index last) {
        const Lease lease(*this);
        Room &room = lease.room();
        for (Index k = first; k < last && !shared.leave(); ++k) {
          Fold &fold = *open[k];
          if (fold.precise)
            work(fold, room.doubles, shared);
          else
            work(fold, room.floats, shared);
        }
      });
      if (shared.leave()) return false;
      if (!apply<float>(poll) || !apply<double>(poll)) return false;
    }
  }

  // Chooses the working set of a fold.
  void choose(Fold &fold) const {
    struct Candidate {
      double score;
      Order row;
    };
    Vector<Candidate> rising, falling;
    fold.who.clear();
    Index free = 0;
    for (Index i = 0; i < y_.size(); ++i) {
      const bool rises = fold.c[i]<fold.hi[i], falls = fold.c[i]> fold.lo[i];
      const double up = v_rising(fold, i) - fold.bias;
      const double down = v_falling(fold, i) - fold.bias;
      if (rises && falls && fold.c[i] != 0.0) {
        ++free;
        fold.who.push_back(static_cast<Order>(i));
      } else if (rises && up > 0.0) {
        rising.push_back({up, static_cast<Order>(i)});
      } else if (falls && down < 0.0) {
        falling.push_back({-down, static_cast<Order>(i)});
      }
    }
    const Index most = std::clamp(free + free / 3 + 1, kLargest, kMost);
    const Index q = std::clamp(2 * free + kSpare, kLeast, most);
    const auto keep = [](Vector<Candidate> &side, Index count) {
      const auto more = [](const Candidate &a, const Candidate &b) {
        return std::pair(-a.score, a.row) < std::pair(-b.score, b.row);
      };
      if (count >= side.size()) return;
      std::nth_element(side.begin(), side.begin() + count, side.end(), more);
      side.resize(count);
    };
    if (free > 3 * q / 4) {
      // Too many: keep those that violate most.
      for (const Order row : std::exchange(fold.who, {})) {
        const double v = v_rising(fold, row) - fold.bias;
        (v > 0.0 ? rising : falling).push_back({std::abs(v), row});
      }
      free = 0;
    }
    const Index room = q - free;
    const Index up = rising.size();
    const Index down = falling.size();
    const Index first = std::min(up, std::max(room / 2, room - down));
    keep(rising, first);
    keep(falling, room - first);
    for (const auto *side : {&rising, &falling})
      for (const Candidate &candidate : *side) fold.who.push_back(candidate.row);
    std::sort(fold.who.begin(), fold.who.end());
  }

  // Solves a working set. The change of c goes to `change`.
  template <class T, class Leave>
  void work(Fold &fold, InnerOf<T> &inner, Leave &leave) const {
    choose(fold);
    const Index q = fold.who.size();
    inner.reset(q);
    inner.epsilon = epsilon_;
    for (Index s = 0; s < inner.q; ++s) inner.s[s] = T(1);
    for (Index s = 0; s < q; ++s) {
      const Index i = fold.who[s];
      inner.s[s] = static_cast<T>(table_.diagonal(i));
      inner.c[s] = fold.c[i];
      inner.lo[s] = fold.lo[i];
      inner.hi[s] = fold.hi[i];
      const double lead = linear_[i] - fold.F[i] - fold.bias;
      const bool above = fold.c[i] > 0.0 || (fold.c[i] == 0.0 && lead > 0.0);
      inner.shift[s] = above ? -epsilon_ : epsilon_;
      inner.v[s] = static_cast<T>(lead + inner.shift[s]);
    }
    // Few rows of the matrix take part in a step; the others are not copied.
    Vector<char> copied(q, 0);
    const auto row = [&](Index s) {
      T *H = inner.H.data() + s * inner.stride();
      if (!std::exchange(copied[s], 1))
        table_.template gather<T>(fold.who[s], fold.who, H);
      return static_cast<const T *>(H);
    };
    const Index made = pair_steps(inner, fold.unit, kInner * (fold.top - fold.bottom),
                                  kMostSteps * std::max(q, kFewest), leave, row);
    ++fold.rounds;
    fold.steps += made;
    fold.moved = made > 0;
    if (made == 0) fold.idle = kIdle;  // nothing changes any more
    for (Index s = 0; s < q; ++s) {
      const Index i = fold.who[s];
      fold.change[i] = inner.c[s] - fold.c[i];
    }
  }

  // Adds the changes of c, and of F, for the folds whose values have this type.
  template <class Value>
  bool apply(Poll &poll) {
    Vector<Fold *> folds;
    for (Fold &fold : folds_)
      if (fold.moved && fold.precise == std::is_same_v<Value, double>)
        folds.push_back(&fold);
    if (!add<Value>(folds, [](const Fold &f, Index i) { return f.change[i]; }, poll))
      return false;
    for (Fold *fold : folds) {
      for (Index i = 0; i < y_.size(); ++i) {
        fold->c[i] += fold->change[i];
        fold->change[i] = 0.0;
      }
      fold->moved = fold->fresh = false;
    }
    return true;
  }

  // Computes F = K c in float64 where c has changed since.
  bool refresh(Poll &poll) {
    Vector<Fold *> folds;
    for (Fold &fold : folds_)
      if (!fold.fresh) folds.push_back(&fold);
    for (Fold *fold : folds) std::fill(fold->F.begin(), fold->F.end(), 0.0);
    if (!add<double>(folds, [](const Fold &f, Index i) { return f.c[i]; }, poll))
      return false;
    for (Fold *fold : folds) fold->fresh = true;
    return true;
  }

  // F += sum_i coef(fold, i) K_i for some folds.
  template <class Value, class Coef>
  bool add(const Vector<Fold *> &folds, const Coef &coef, Poll &poll) {
    constexpr Index kTogether = Products<Value>::kTogether;
    const Index outputs = folds.size();
    if (outputs == 0) return true;
    Vector<Index> rows;
    Vector<Value> by;
    for (Index i = 0; i < y_.size(); ++i) {
      bool some = false;
      for (const Fold *fold : folds) some = some || coef(*fold, i) != 0.0;
      if (!some) continue;
      rows.push_back(i);
      for (const Fold *fold : folds) by.push_back(static_cast<Value>(coef(*fold, i)));
    }
    const Index many = rows.size();
    if (many == 0) return true;
    const Index groups = (many + kTogether - 1) / kTogether;
    by.resize(groups * kTogether * outputs, Value(0));
    rows.resize(groups * kTogether, rows.back());
    Vector<double *> F;
    for (Fold *fold : folds) F.push_back(fold->F.data());
    struct Block {
      Index begin, end;
      const SharedTable::Part *part;
    };
    Vector<Block> columns;
    for (const auto &part : table_.parts())
      for (Index begin = part.first; begin < part.last; begin += kColumns)
        columns.push_back({begin, std::min(begin + kColumns, part.last), &part});
    const auto blocks = columns.size();
    SharedPoll shared(poll);
    team_.run(std::min(team_.shares(), blocks), blocks, [&](Index, Index b, Index e) {
      const Value *from[kTogether];
      for (; b < e; ++b) {
        const auto [begin, end, part] = columns[b];
        for (Index g = 0; g < groups; ++g) {
          for (Index r = 0; r < kTogether; ++r)
            from[r] = table_.row<Value>(rows[g * kTogether + r], *part);
          Products<Value>::add(from, by.data() + g * kTogether * outputs, outputs,
                               F.data(), begin, end);
          if (shared(kTogether * (end - begin))) return;
        }
      }
    });
    return !shared.leave();
  }

  struct Room {
    InnerOf<float> floats;
    InnerOf<double> doubles;
  };
  // Memory for working sets, while a thread uses it.
  class Lease {
   public:
    explicit Lease(Folds &all) : all_(all) {
      const std::lock_guard lock(all.mutex_);
      room_ = all.free_.back();
      all.free_.pop_back();
    }
    ~Lease() {
      const std::lock_guard lock(all_.mutex_);
      all_.free_.push_back(room_);
    }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    Room &room() const { return *room_; }

   private:
    Folds &all_;
    Room *room_;
  };

  SharedTable table_;
  Vector<std::int8_t> y_;
  Vec linear_;  // the labels or targets
  bool two_sided_;
  double epsilon_;
  Index m_;
  Vector<Fold> folds_;
  double C_ = 0.0, before_ = 0.0;
  Team team_;
  Vector<Room> rooms_;  // one for each thread
  Vector<Room *> free_;
  std::mutex mutex_;
};

}  // namespace dualgap
