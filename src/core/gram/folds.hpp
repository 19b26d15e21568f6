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
//            but do not change their sign, and the sum is corrected in proportion to
//            c; for the first C from a given c, as a fit to all rows has it. A start
//            that goes much too far is cut to the largest dual value on its way
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
#include "box.hpp"
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
  // A start is cut where D is largest, but only before this part of its way: further
  // on, rows that are at their bounds already are worth more than D.
  static constexpr double kShort = 0.1;
  // Columns of F that stay in the first-level cache while rows are added.
  static constexpr Index kColumns = 1024;
};

// One of the problems, for one C after another.
class Fold : public Box, private FoldTuning {
 public:
  // The costs of `problem` are 0 until `begin`.
  Fold(const BlockProblem &problem, Vec weight, const SharedTable &table,
       const std::int8_t *y, Team &team)
      : Box(problem, team),
        weight_(std::move(weight)),
        last_(n_, 0.0),
        change_(n_, 0.0),
        table_(table),
        y_(y) {}

  // How the fold gets on. `tries` is -1 where it has ended.
  double goal = 0.0, goal_gap = 0.0, least = kInf;
  bool open = false, precise = false, stuck = false, moved = false, fresh = true;
  Index tries = 0, rounds = 0, steps = 0, idle = 0;

  double c(Index i) const { return c_[i]; }
  double change(Index i) const { return change_[i]; }
  double *F() { return F_.data(); }
  double gap() const { return scan_.primal - scan_.dual; }
  using Box::scan;
  void forget() {
    least = kInf;
    idle = 0;
  }

  // Lets the first C begin near c, shape (n,).
  void start(const double *c) { near_.assign(c, c + n_); }

  // Sets the box and the start for a C, which goes beyond the last solution by this
  // part of the way from the one before it. The change of c goes to `change`.
  void begin(double C, double by) {
    const Vec lo = lo_, hi = hi_, old = c_;
    for (Index i = 0; i < n_; ++i) problem_.cost[i] = C * weight_[i];
    bound();
    const auto inside = [&](Index i) {
      return std::abs(c_[i]) < (c_[i] > 0.0 ? hi_[i] : -lo_[i]);
    };
    Sum sum;
    double up = 0.0, down = 0.0;  // of the variables inside the box
    for (Index i = 0; i < n_; ++i) {
      const double side = old[i] < 0.0 ? -1.0 : 1.0, a = side * old[i];
      if (!near_.empty()) {
        c_[i] = on_grid(std::clamp(near_[i], lo_[i], hi_[i]));
      } else if (a > 0.0) {
        const double most = side > 0.0 ? hi_[i] : -lo_[i];
        c_[i] = most;
        if (a < (side > 0.0 ? hi[i] : -lo[i])) {
          const double wish = a + by * (a - side * last_[i]);
          c_[i] = on_grid(std::clamp(wish, 0.0, most));
        }
        c_[i] *= side;
      }
      sum += c_[i];
      if (inside(i)) (c_[i] > 0.0 ? up : down) += std::abs(c_[i]);
    }
    near_.clear();
    const double heavy = sum.value(), most = heavy > 0.0 ? up : down;
    if (most > 0.0) {
      const double part = std::min(1.0, std::abs(heavy) / most);
      for (Index i = 0; i < n_; ++i)
        if (c_[i] * heavy > 0.0 && inside(i)) c_[i] = on_grid(c_[i] * (1.0 - part));
    }
    correct(0);
    moved = false;
    for (Index i = 0; i < n_; ++i) {
      change_[i] = c_[i] - old[i];
      moved = moved || change_[i] != 0.0;
    }
    c_ = last_ = old;
    if (moved) before_ = F_;
    precise = false;
  }

  // P and D at the best bias.
  void evaluate() {
    scan_.threshold = problem_.two_sided
                          ? tube_bias()
                          : hinge_bias(F_.data(), y_, weight_.data(), n_);
    Box::evaluate();
  }

  // Solves a working set. The change of c goes to `change`.
  template <class T, class Leave>
  void work(InnerOf<T> &inner, Leave &leave) {
    choose();
    const Index q = who_.size();
    inner.reset(q);
    for (Index s = 0; s < inner.q; ++s) inner.s[s] = T(1);
    for (Index s = 0; s < q; ++s) {
      load(who_[s], s, inner);
      inner.s[s] = static_cast<T>(table_.diagonal(who_[s]));
    }
    // Few rows of the matrix take part in a step; the others are not copied.
    Vector<char> copied(q, 0);
    const auto row = [&](Index s) {
      T *H = inner.H.data() + s * inner.stride();
      if (!std::exchange(copied[s], 1)) table_.template gather<T>(who_[s], who_, H);
      return static_cast<const T *>(H);
    };
    const Index made = pair_steps(inner, unit_, kInner * scan_.violation,
                                  kMostSteps * std::max(q, kFewest), leave, row);
    ++rounds;
    steps += made;
    moved = made > 0;
    if (made == 0) idle = kIdle;  // nothing changes any more
    for (Index s = 0; s < q; ++s) change_[who_[s]] = inner.c[s] - c_[who_[s]];
  }

  // Adds the change to c, once F has it.
  void apply() {
    if (!before_.empty()) cut();
    for (Index i = 0; i < n_; ++i) {
      c_[i] += change_[i];
      change_[i] = 0.0;
    }
    moved = fresh = false;
  }

  // Proves a fold of the hinge.
  KernelProof proof(const ScoreRoundings &by) const {
    const Vec alphas = alpha();
    Vec error(n_);
    by.bound(alphas.data(), n_, error.data());
    return hinge_proof(
        {n_, y_, problem_.cost.data(), alphas.data(), F_.data(), error.data()}, by);
  }

 private:
  // Cuts the change of `begin`, which F has, to the part with the largest D if that is
  // short.
  void cut() {
    double slope = 0.0, bend = 0.0;
    for (Index i = 0; i < n_; ++i) {
      slope += change_[i] * (problem_.p[i] - before_[i]) -
               problem_.epsilon * (std::abs(c_[i] + change_[i]) - std::abs(c_[i]));
      bend += change_[i] * (F_[i] - before_[i]);
    }
    if (slope < kShort * bend) {
      const double part = slope > 0.0 ? slope / bend : 0.0;
      for (Index i = 0; i < n_; ++i) {
        F_[i] = before_[i] + part * (F_[i] - before_[i]);
        c_[i] = on_grid(c_[i] + part * change_[i]);
        change_[i] = 0.0;
      }
      correct(0);
    }
    before_.clear();
  }

  // Chooses the working set.
  void choose() {
    struct Candidate {
      double score;
      Order row;
    };
    Vector<Candidate> rising, falling;
    who_.clear();
    Index free = 0;
    for (Index i = 0; i < n_; ++i) {
      const bool rises = may_rise(i), falls = may_fall(i);
      const double up = v_rising(i) - scan_.threshold;
      const double down = v_falling(i) - scan_.threshold;
      if (rises && falls && c_[i] != 0.0) {
        ++free;
        who_.push_back(static_cast<Order>(i));
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
      for (const Order row : std::exchange(who_, {})) {
        const double v = v_rising(row) - scan_.threshold;
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
      for (const Candidate &candidate : *side) who_.push_back(candidate.row);
    std::sort(who_.begin(), who_.end());
  }

  double tube_bias() const {
    Vec kinks, costs;
    double total = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (!(weight_[i] > 0.0)) continue;
      const double r = problem_.p[i] - F_[i];
      kinks.insert(kinks.end(), {r - problem_.epsilon, r + problem_.epsilon});
      costs.insert(costs.end(), 2, weight_[i]);
      total += weight_[i];
    }
    return weighted_quantile(kinks.data(), costs.data(), kinks.size(), total);
  }

  Vec weight_, last_, change_, near_, before_;  // before_: F before a start
  const SharedTable &table_;
  const std::int8_t *y_;
  Vector<Order> who_;
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
        m_(table_.rows()),
        team_(threads),
        rooms_(threads) {
    for (Room &room : rooms_) free_.push_back(&room);
    BlockProblem problem;
    problem.y.assign(y_.begin(), y_.end());
    problem.cost.assign(m_, 0.0);
    problem.epsilon = epsilon;
    problem.two_sided = !targets.empty();
    problem.p = problem.two_sided ? std::move(targets) : problem.y;
    folds_.reserve(static_cast<std::size_t>(folds));
    for (Index p = 0; p < folds; ++p)
      folds_.emplace_back(problem, Vec(weights + p * m_, weights + (p + 1) * m_),
                          table_, y_.data(), team_);
  }
  void start(const double *c) {
    for (Fold &fold : folds_) fold.start(c);
  }
  Index rows() const { return m_; }
  Index folds() const { return folds_.size(); }

  // Solves all folds for this C, larger than the ones before. A fold ends once its
  // relative gap is at most tol or its gap at most atol, after `most` working sets, or
  // where float64 allows no progress. Returns false if told to stop; the duals are not
  // to be used then.
  bool advance(double C, double tol, double atol, Index most, Poll &poll) {
    const double by = C_ > before_ && before_ > 0.0 ? (C - C_) / (C_ - before_) : 0.0;
    for (Fold &fold : folds_) fold.begin(C, by);
    before_ = std::exchange(C_, C);
    if (!apply<float>(poll)) return false;
    for (Fold &fold : folds_) {
      fold.open = true;
      fold.stuck = false;
      fold.tries = fold.rounds = fold.steps = 0;
      fold.goal = kClose * tol;
      fold.goal_gap = kClose * atol;
      fold.forget();
    }
    for (;;) {
      if (!rounds(most, poll)) return false;
      if (!refresh(poll)) return false;
      bool again = false;
      for (Fold &fold : folds_) {
        if (fold.tries < 0) continue;
        fold.evaluate();
        const double gap = fold.gap(), dual = fold.last_scan().dual;
        if (gap <= kMet * tol * dual || gap <= kMet * atol || fold.stuck ||
            fold.rounds >= most) {
          fold.tries = -1;
          continue;
        }
        ++fold.tries;
        fold.goal *= 0.5;
        fold.goal_gap *= 0.5;
        fold.precise = fold.precise || fold.tries > kTries;
        fold.open = again = true;
        fold.forget();
      }
      if (!again) return true;
    }
  }

  Vec alpha(Index p) const { return folds_[p].alpha(); }
  const Vec &scores(Index p) const { return folds_[p].gradient(); }

  KernelProof proof(Index p, const ScoreRoundings &by) const {
    return folds_[p].proof(by);
  }
  Index sets(Index p) const { return folds_[p].rounds; }
  Index steps(Index p) const { return folds_[p].steps; }

 private:
  // Makes working sets for all open folds until they are near their goals.
  bool rounds(Index most, Poll &poll) {
    for (;;) {
      Vector<Fold *> open;
      for (Fold &fold : folds_) {
        if (!fold.open) continue;
        fold.scan();
        const double gap = fold.gap();
        fold.idle = gap < fold.least ? 0 : fold.idle + 1;
        fold.least = std::min(fold.least, gap);
        const BlockScan &seen = fold.last_scan();
        const bool met = gap <= fold.goal * seen.dual || gap <= fold.goal_gap;
        if (met || !(seen.violation > 0.0) || fold.rounds >= most ||
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
            fold.work(room.doubles, shared);
          else
            fold.work(room.floats, shared);
        }
      });
      if (shared.leave()) return false;
      if (!apply<float>(poll) || !apply<double>(poll)) return false;
    }
  }

  // Adds the changes of c, and of F, for the folds whose values have this type.
  template <class Value>
  bool apply(Poll &poll) {
    Vector<Fold *> folds;
    for (Fold &fold : folds_)
      if (fold.moved && fold.precise == std::is_same_v<Value, double>)
        folds.push_back(&fold);
    const auto change = [](const Fold &f, Index i) { return f.change(i); };
    if (!add<Value>(folds, change, poll)) return false;
    for (Fold *fold : folds) fold->apply();
    return true;
  }

  // Computes F = K c in float64 where c has changed since.
  bool refresh(Poll &poll) {
    Vector<Fold *> folds;
    for (Fold &fold : folds_)
      if (!fold.fresh) folds.push_back(&fold);
    for (Fold *fold : folds) std::fill_n(fold->F(), m_, 0.0);
    if (!add<double>(folds, [](const Fold &f, Index i) { return f.c(i); }, poll))
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
    for (Fold *fold : folds) F.push_back(fold->F());
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
  Index m_;
  Vector<Fold> folds_;
  double C_ = 0.0, before_ = 0.0;
  Team team_;
  Vector<Room> rooms_;  // one for each thread
  Vector<Room *> free_;
  std::mutex mutex_;
};

}  // namespace dualgap
