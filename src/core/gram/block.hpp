// Block solver: exact solutions on working sets, and the gradient at all rows.
//
// Problem    in c_i = y_i alpha_i, F = K c:
//            hinge, bias b free     max sum |c_i| - 1/2 c'F,  0 <= alpha_i <= C_i,
//                                   sum_i c_i = 0
//            squared hinge, b = sum_i c_i penalised
//                                   max sum |c_i| - 1/2 (c'F + b^2)
//                                       - 1/2 sum delta_i c_i^2,  alpha_i >= 0
//            the first is the case p_i = y_i, epsilon = 0 of the general form
//            linear term, bias b free   max sum (p_i c_i - epsilon |c_i|) - 1/2 c'F,
//                                       lo_i <= c_i <= hi_i,  sum_i c_i = total:
//            regression (p the targets, -C_i <= c_i <= C_i, or the two sides of the
//            pinball loss), one class (p = 0, 0 <= c_i <= C_i, total > 0)
//            two sums               the same, but sum_i c_i = total over the variables
//                                   with y_i = 1, and -total over those with y_i = -1:
//            nu-SVC (p = 0) and, with two variables for each row, both with the kernel
//            row of that row, nu-SVR (p the targets)
// Update     the working set of q rows has the newest q - q/4 rows of the last one, and
//            the rows that violate most among the others. Its problem is solved on a
//            q x q matrix in cache (inner_steps.hpp) to a tenth of the violation. Then
//            F += sum_r (change of c_r) K_r at all n rows.
// Guarantee  D never falls. With the most violating pair in the working set,
//            decomposition converges to the optimum (Keerthi and Gilbert, Mach. Learn.
//            46, 2002; Lin, IEEE TNN 12, 2001).
// Cost       2 n d flops for each changed row whose kernel row is not cached; 2 n q
//            flops for F. 4 n bytes per cached row, 4 q^2 bytes, 40 n bytes. q doubles
//            while inner steps are cheap compared with kernel rows.
// Source     Decomposition: Joachims, 1999; large working sets in batches: Wen, Shi,
//            Li, He and Chen, JMLR 19, 2018 (ThunderSVM). Pairs: Fan, Chen and Lin
//            2005.
//
// Kernel rows are float32, so F drifts from K c by about 1e-7 sum |c_i|. When the
// solver estimates that it has converged, the caller recomputes F in float64
// (`set_gradient`) and may go on.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>
#include <variant>

#include "../random.hpp"
#include "box.hpp"
#include "inner_steps.hpp"
#include "row_cache.hpp"
#include "row_source.hpp"

namespace dualgap {

struct BlockTuning {
  // The matrix of a working set takes at most this part of the cache: 1/8, so that most
  // of it keeps kernel rows.
  static constexpr Index kMatrixPart = 8;
  // Rows of the smallest working set, however small the cache is.
  static constexpr Index kLeast = 64;
  // Inner steps per row of a working set, of kFewest rows at least: most sets need few,
  // and a badly conditioned one must not take the whole time.
  static constexpr Index kMostSteps = 100, kFewest = 100;
  // Part of the rows of a working set that are exchanged: 1/4, the newest rows stay.
  static constexpr Index kExchanged = 4;
  // Working sets before q may double: enough for a stable ratio of the flops.
  static constexpr Index kSetsToGrow = 64;
  // q doubles if inner steps take less than this part of the flops outside.
  static constexpr double kCheap = 0.25;
  // Columns of F of a part of an update: they stay in the first-level cache, and are
  // worth waking a thread.
  static constexpr Index kColumns = 2048;
  // Copied entries of the matrix that are worth waking a thread.
  static constexpr Index kWorth = 100'000;
  // With room for less than this part of the rows, rows are cached when they are needed
  // again: most are needed once, and adding a row without storing it takes half the
  // time. With room for less than this part of a working set no row is cached.
  static constexpr Index kFewCached = 8;
};

// Kinds of work in a step, for counting the time spent on each.
enum class Phase { kSelect, kRows, kMatrix, kInner, kUpdate, kScan, kCount };

// Wall-clock time: asking for processor time can take as long as a small step.
class PhaseClock {
 public:
  // Adds the time since the last call to `phase`.
  void add(Phase phase) {
    const Clock::time_point now = Clock::now();
    spent_[static_cast<std::size_t>(phase)] += now - last_;
    last_ = now;
  }
  void start() { last_ = Clock::now(); }
  double seconds(Phase phase) const {
    return std::chrono::duration<double>(spent_[static_cast<std::size_t>(phase)])
        .count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_;
  std::array<Clock::duration, static_cast<std::size_t>(Phase::kCount)> spent_{};
};

class BlockSolver : public Box, private BlockTuning {
 public:
  // Working sets have q rows, and may grow to `largest_q`, as far as there is room for
  // their matrix. If `fixed`, the cache holds rows in 16 bits.
  BlockSolver(RowSource &rows, BlockProblem problem, Index q, Index largest_q,
              Index cache_bytes, bool fixed, Random &random)
      : Box(std::move(problem), rows.n(), rows.stride(), rows.team()),
        rows_(rows),
        largest_q_(std::min(largest_q, largest(cache_bytes))),
        cache_bytes_(cache_bytes),
        sizes_(n_, 0.0),
        exact_(variables_, 0.0),
        order_(variables_),
        slot_(variables_, kNone) {
    Index used = 0;
    for (const double cost : problem_.cost) used += cost > 0.0;
    hold(fixed);
    largest_q_ = std::min(largest_q_, std::max<Index>(used, 1));
    q_ = std::min(q, largest_q_);
    inner_ = Inner(q_);
    std::iota(order_.begin(), order_.end(), Order{0});
    random.shuffle(order_.data(), variables_);
    scan();
  }

  Index q() const { return q_; }
  Index capacity() const {
    return std::visit([](const auto &cache) { return cache.capacity(); }, cache_);
  }
  Index held() const {
    return std::visit([](const auto &cache) { return cache.held(); }, cache_);
  }
  // Whether the cache is full, or as many rows were computed as it holds if rows are
  // cached when they are needed again.
  bool full() const { return (seen_.empty() ? held() : computed_) >= capacity(); }
  Index steps() const { return steps_; }
  Index computed() const { return computed_; }
  double seconds(Phase phase) const { return clock_of_.seconds(phase); }
  // Sum of |change of c| since F was given; multiplies error bounds of kernel rows.
  double moved() const { return moved_; }
  // The part of this sum whose kernel rows were cached. For the other part,
  // sizes()[i] is the sum of |change of c_r k(x_r, x_i)|, if all values of the kernel
  // have one sign.
  double moved_by_cached() const { return moved_by_cached_; }
  const Vec &sizes() const { return sizes_; }
  // ||c - c'|| for the c' whose F was given; multiplies typical errors of kernel rows.
  double drift() const {
    double sum = 0.0;
    for (Index i = 0; i < n_; ++i) {
      double by = c_[i] - exact_[i];
      if (paired()) by += c_[i + n_] - exact_[i + n_];
      sum += by * by;
    }
    return std::sqrt(sum);
  }

  // Sets c_i = y_i alpha_i for an alpha in the box. The caller must set F next.
  void set_alpha(const double *alpha) {
    Box::set_alpha(alpha);
    forget_block();
  }
  // Sets F = K c, n entries computed elsewhere.
  void set_gradient(const double *F) {
    std::copy(F, F + n_, F_.begin());
    exact_ = c_;
    moved_ = moved_by_cached_ = 0.0;
    std::fill(sizes_.begin(), sizes_.end(), 0.0);
    scan();
  }
  // Discards all computed kernel rows, because they become more accurate. From now on
  // the cache holds float32 rows.
  void forget_rows() {
    hold(false);
    forget_block();
  }

  // Solves one working set. Returns the number of inner steps; 0 also if told to stop.
  Index step(double inner_tolerance, Poll &poll) {
    clock_of_.start();
    if (!(scan_.violation > 0.0) || !choose(poll)) return 0;
    const Index m = who_.size();
    for (Index s = 0; s < m; ++s) load(s);
    for (Index s = m; s < inner_.q; ++s) idle(s);
    Vec before(inner_.c.begin(), inner_.c.begin() + m);
    // The numbers that decide are of the size of the violation, which float32 resolves
    // to seven digits.
    const double tolerance = inner_tolerance * scan_.violation;
    const Index most = kMostSteps * std::max(q_, kFewest);
    const Index steps =
        problem_.squared    ? coordinate_steps(inner_, tolerance, most, poll)
        : problem_.two_sums ? pair_steps<2>(inner_, unit_, tolerance, most, poll)
                            : pair_steps(inner_, unit_, tolerance, most, poll);
    clock_of_.add(Phase::kInner);
    if (steps == 0) return 0;
    if (!apply(before, poll)) return 0;
    clock_of_.add(Phase::kUpdate);
    scan();
    clock_of_.add(Phase::kScan);
    steps_ += steps;
    grow(steps);
    return steps;
  }

 private:
  // Returns the largest working set whose matrix fits into its part of the cache.
  static Index largest(Index bytes) {
    const double part = std::sqrt(static_cast<double>(bytes / kMatrixPart) / 4.0);
    return std::max(static_cast<Index>(part) - kPadding, kLeast);
  }
  // Creates an empty cache in the rest of the memory, for at most all rows.
  void hold(bool fixed) {
    const Index left = cache_bytes_ - cache_bytes_ / kMatrixPart;
    const Index one = (fixed ? 2 : 4) * rows_.stride();
    Index room = std::min(n_, std::max<Index>(left / one, 2));
    const bool few = room < n_ / kFewCached;
    if (few && room < largest_q_ / kFewCached) room = 0;
    if (fixed)
      cache_.emplace<RowCache<simd::Fixed>>(n_, rows_.stride(), room);
    else
      cache_.emplace<RowCache<float>>(n_, rows_.stride(), room);
    seen_.assign(few ? n_ : 0, 0);
  }
  static constexpr std::int32_t kNone = -1;
  // A row that violates the optimality conditions, and by how much.
  struct Candidate {
    double score;
    Order row;
    bool operator<(const Candidate &other) const { return score > other.score; }
  };

  // Chooses the next working set and computes its matrix. Returns false if told to
  // stop.
  bool choose(Poll &poll) {
    const Index have = who_.size();
    const Index wanted = have < q_ ? q_ - have : std::max<Index>(q_ / kExchanged, 2);
    struct Sides {
      Vector<Candidate> rising, falling;
    };
    using Groups = std::array<Sides, 2>;
    const auto violating = [&](Index begin, Index end) {
      Groups groups;
      for (Index t = begin; t < end; ++t) {
        // At first whole classes violate equally, so a random order decides.
        const Order row = have == 0 ? order_[t] : static_cast<Order>(t);
        const auto i = static_cast<Index>(row);
        if (slot_[row] != kNone || !(problem_.cost[row] > 0.0)) continue;
        const double rise = v_rising(i) - threshold(i);
        const double fall = v_falling(i) - threshold(i);
        const double weight =
            problem_.squared ? 1.0 / std::sqrt(problem_.diagonal[row] + 1.0 + delta(i))
                             : 1.0;
        Sides &of = groups[group(i)];
        if (rise > 0.0 && may_rise(i)) of.rising.push_back({rise * weight, row});
        if (fall < 0.0 && may_fall(i)) of.falling.push_back({-fall * weight, row});
      }
      return groups;
    };
    Groups all;
    for (const Groups &groups : by_pieces<Groups>(violating))
      for (int g = 0; g < 2; ++g) {
        const Sides &of = groups[g];
        all[g].rising.insert(all[g].rising.end(), of.rising.begin(), of.rising.end());
        all[g].falling.insert(all[g].falling.end(), of.falling.begin(),
                              of.falling.end());
      }
    Vector<Order> enter;
    for (int g = 0; g <= problem_.two_sums; ++g) {
      // Pairs are of one group, so each group has its share of the places.
      const Index places = g < problem_.two_sums ? wanted / 2 : wanted - enter.size();
      const Index rising = all[g].rising.size(), falling = all[g].falling.size();
      Index up = std::min(rising, places / 2);
      const Index down = std::min(falling, places - up);
      up = std::min(rising, places - down);
      keep_first(all[g].rising, up);
      keep_first(all[g].falling, down);
      for (const auto *side : {&all[g].rising, &all[g].falling})
        for (const Candidate &candidate : *side) enter.push_back(candidate.row);
    }
    return replace(enter, poll);
  }

  static void keep_first(Vector<Candidate> &side, Index count) {
    if (count < side.size())
      std::nth_element(side.begin(), side.begin() + count, side.end());
    side.resize(count);
  }

  // Puts rows into free places, then into the places of the oldest rows.
  bool replace(const Vector<Order> &enter, Poll &poll) {
    Vector<Index> places;
    for (Index s = who_.size(); s < q_ && places.size() < enter.size(); ++s)
      places.push_back(s);
    const Index old = enter.size() - places.size();
    Vector<Index> oldest(who_.size());
    std::iota(oldest.begin(), oldest.end(), Index{0});
    if (old < oldest.size())
      std::nth_element(oldest.begin(), oldest.begin() + old, oldest.end(),
                       [&](Index a, Index b) {
                         return std::pair(entered_[a], a) < std::pair(entered_[b], b);
                       });
    places.insert(places.end(), oldest.begin(), oldest.begin() + old);

    for (Index e = 0; e < enter.size(); ++e) {
      const Index s = places[e];
      if (s < who_.size()) {
        slot_[who_[s]] = kNone;
        who_[s] = enter[e];
        entered_[s] = clock_;
      } else {
        who_.push_back(enter[e]);
        entered_.push_back(clock_);
      }
      slot_[enter[e]] = static_cast<std::int32_t>(s);
    }
    ++clock_;
    clock_of_.add(Phase::kSelect);
    const bool whole = fill_matrix(places, poll);
    if (!whole) forget_block();
    clock_of_.add(Phase::kMatrix);
    return whole;
  }

  // Fills the rows and columns `places` of the matrix. Columns are copied from these
  // rows, a cache line at a time.
  bool fill_matrix(Vector<Index> places, Poll &poll) {
    std::sort(places.begin(), places.end());
    const Index m = who_.size(), stride = inner_.stride();
    float *H = inner_.H.data();
    Vector<Order> rows, columns(m);
    Vector<float *> to;
    for (Index s = 0; s < m; ++s) columns[s] = static_cast<Order>(at(who_[s]));
    for (const Index s : places) {
      rows.push_back(columns[s]);
      to.push_back(H + s * stride);
    }
    if (!rows_.cross(rows.data(), rows.size(), columns.data(), m, to.data(), poll))
      return false;
    Vector<char> fresh(m, 0);
    for (const Index s : places) fresh[s] = 1;
    const auto copy = [&](Index begin, Index end, bool which) {
      constexpr Index kFew = 16;  // floats of a cache line
      for (Index e = 0; e < places.size(); e += kFew) {
        const Index last = std::min(e + kFew, places.size());
        for (Index t = begin; t < end; ++t)
          if ((fresh[t] != 0) == which)
            for (Index u = e; u < last; ++u)
              H[t * stride + places[u]] = H[places[u] * stride + t];
      }
    };
    copy(0, m, true);  // read and written, so not shared by threads
    const Index parts = m * places.size() / kWorth;
    rows_.team().run(std::clamp<Index>(parts, 1, rows_.team().shares()), m,
                     [&](Index, Index begin, Index end) { copy(begin, end, false); });
    return true;
  }

  void load(Index s) {
    const Index i = who_[s];
    Box::load(i, s, inner_);
    inner_.group[s] = static_cast<std::uint8_t>(group(i));
    inner_.y[s] = static_cast<float>(problem_.y[i]);
    inner_.s[s] = inner_.row(s)[s];
    if (problem_.squared) {
      inner_.delta[s] = delta(i);
      inner_.s[s] += 1.0f + static_cast<float>(delta(i));
    }
  }
  void idle(Index s) {
    inner_.v[s] = inner_.y[s] = 0.0f;
    inner_.s[s] = 1.0f;
    inner_.c[s] = inner_.lo[s] = inner_.hi[s] = inner_.delta[s] = 0.0;
    inner_.shift[s] = 0.0;
    inner_.group[s] = 0;
  }

  // Applies the change of the working set to F at all rows. Only kernel rows of changed
  // variables are needed. Cached rows are used, other rows are computed into the cache
  // as far as there is room, and the rest is added without being stored. Returns false
  // if told to stop; alpha and F are as before then.
  bool apply(const Vec &before, Poll &poll) {
    return std::visit([&](auto &cache) { return apply(before, cache, poll); }, cache_);
  }
  template <class Value>
  bool apply(const Vec &before, RowCache<Value> &cache, Poll &poll) {
    // Scale of the cached values.
    constexpr double kScale = std::is_same_v<Value, float> ? 1.0 : 1.0 / simd::kFixed;
    // The other variable of a row is in the working set at this place, if it is.
    const auto other = [&](Index s) {
      const Index i = who_[s];
      return paired() ? slot_[i < n_ ? i + n_ : i - n_] : kNone;
    };
    const auto row_of = [&](Index s) { return static_cast<Order>(at(who_[s])); };
    const auto change_of = [&](Index s) { return inner_.c[s] - before[s]; };
    // The kernel row of two variables is added once, at the first of their places.
    const auto by = [&](Index s) {
      return change_of(s) + (other(s) == kNone ? 0.0 : change_of(other(s)));
    };
    Vector<Index> moved;
    for (Index s = 0; s < before.size(); ++s) {
      const bool again = other(s) != kNone && static_cast<Index>(other(s)) < s;
      if (by(s) != 0.0 && !again) moved.push_back(s);
    }
    // Rows that entered the working set last stay in it longest, so they are cached
    // first.
    std::stable_sort(moved.begin(), moved.end(),
                     [&](Index a, Index b) { return entered_[a] > entered_[b]; });
    Vector<const Value *> rows;
    FloatVec change;
    Vector<Index> absent, passing;
    for (const Index s : moved)
      if (const Value *row = cache.find(row_of(s))) {
        rows.push_back(row);
        change.push_back(static_cast<float>(kScale * by(s)));
      } else {
        const bool cached = seen_.empty() || std::exchange(seen_[row_of(s)], 1) != 0;
        (cached ? absent : passing).push_back(s);
      }
    const Index room = std::min(absent.size(), cache.capacity() - rows.size());
    passing.insert(passing.end(), absent.begin() + room, absent.end());
    absent.resize(room);
    Vector<Order> missing;
    Vector<Value *> to;
    for (const Index s : absent) {
      missing.push_back(row_of(s));
      to.push_back(cache.claim(missing.back()));
      rows.push_back(to.back());
      change.push_back(static_cast<float>(kScale * by(s)));
    }
    if (!rows_.rows(missing.data(), room, to.data(), poll)) {
      for (const Order row : missing) cache.drop(row);
      return false;
    }
    for (const bool rising : {true, false})
      if (!pass(passing, row_of, by, rising, poll)) return false;
    computed_ += room + passing.size();
    clock_of_.add(Phase::kRows);
    for (const Index s : moved) moved_ += std::abs(by(s));
    for (const float c : change) moved_by_cached_ += std::abs(c) / kScale;
    for (Index s = 0; s < before.size(); ++s) c_[who_[s]] = inner_.c[s];
    for (const Vec &sums : sums_)
      for (Index j = 0; j < std::min(n_, sums.size()); ++j) {
        F_[j] += sums[j];
        sizes_[j] += std::abs(sums[j]);
      }
    spent_outside_ += static_cast<double>(n_) *
                      (static_cast<double>(moved.size()) +
                       rows_.cost() * static_cast<double>(room + passing.size()));
    const Index blocks = (rows_.stride() + kColumns - 1) / kColumns;
    rows_.team().run(std::min(rows_.team().shares(), blocks), blocks,
                     [&](Index, Index begin, Index end) {
                       for (Index b = begin; b < end; ++b)
                         add_rows(rows, change, b * kColumns,
                                  std::min((b + 1) * kColumns, rows_.stride()));
                     });
    return true;
  }

  // Computes the sums of the kernel rows of these places whose change is positive, or
  // of the others, without storing rows. Nothing else changes, so it may be stopped.
  template <class RowOf, class By>
  bool pass(const Vector<Index> &places, const RowOf &row_of, const By &by, bool rising,
            Poll &poll) {
    Vector<Order> rows;
    Vec coef;
    for (const Index s : places)
      if ((by(s) > 0.0) == rising) {
        rows.push_back(row_of(s));
        coef.push_back(by(s));
      }
    Vec &sums = sums_[rising ? 0 : 1];
    sums.assign(rows.empty() ? 0 : F_.size(), 0.0);
    return rows.empty() ||
           rows_.add_rows(rows.data(), coef.data(), rows.size(), sums.data(), poll);
  }

  // Doubles q if inner steps are cheap compared with kernel rows. Larger working sets
  // compute and add fewer rows again.
  void grow(Index steps) {
    spent_inside_ += 2.0 * static_cast<double>(steps) * static_cast<double>(q_);
    if (++sets_ < kSetsToGrow || q_ == largest_q_) return;
    const bool cheap = spent_inside_ < kCheap * spent_outside_;
    sets_ = 0;
    spent_inside_ = spent_outside_ = 0.0;
    if (!cheap) return;
    const Index larger = std::min(2 * q_, largest_q_);
    Inner inner(larger);
    for (Index s = 0; s < q_; ++s)
      std::copy_n(inner_.row(s), q_, inner.H.data() + s * inner.stride());
    inner_ = std::move(inner);
    q_ = larger;
  }

  // F += sum_r change_r K_r over some columns: sums of eight rows in float32, added in
  // float64.
  template <class Value>
  void add_rows(const Vector<const Value *> &rows, const FloatVec &change, Index begin,
                Index end) {
    using V = simd::Pack<float>;
    constexpr Index kTogether = 8;
    Index r = 0;
    for (; r + kTogether <= rows.size(); r += kTogether) {
      const Value *const *k = rows.data() + r;
      V by[kTogether];
      simd::unroll<kTogether>([&](auto t) { by[t] = V::all(change[r + t]); });
      for (Index j = begin; j < end; j += V::kLanes) {
        V sum = by[0] * V::load(k[0] + j);
        simd::unroll<kTogether - 1>(
            [&](auto t) { sum = fma(by[t + 1], V::load(k[t + 1] + j), sum); });
        sum.add_to(F_.data() + j);
      }
    }
    for (; r < rows.size(); ++r)
      for (Index j = begin; j < end; j += V::kLanes)
        (V::all(change[r]) * V::load(rows[r] + j)).add_to(F_.data() + j);
  }

  void forget_block() {
    for (const Order row : who_) slot_[row] = kNone;
    who_.clear();
    entered_.clear();
  }

  RowSource &rows_;
  Index q_ = 0, largest_q_;
  Index cache_bytes_;
  std::variant<RowCache<float>, RowCache<simd::Fixed>> cache_{RowCache<float>(0, 0, 0)};
  double moved_ = 0.0, moved_by_cached_ = 0.0;
  std::array<Vec, 2> sums_;  // of the rows that a step adds without storing them
  Vec sizes_;
  Vector<char> seen_;    // whether a row was needed before; empty if all are cached
  Vec exact_;            // the c whose F was given
  Vector<Order> order_;  // a random order of the rows
  Vector<std::int32_t> slot_;  // place in the working set
  Vector<Order> who_;          // the working set
  Vector<Index> entered_;      // time at which each row entered it
  Inner inner_;
  Index clock_ = 0, steps_ = 0, computed_ = 0, sets_ = 0;
  double spent_inside_ = 0.0, spent_outside_ = 0.0;  // flops since q was last checked
  PhaseClock clock_of_;
};

}  // namespace dualgap
