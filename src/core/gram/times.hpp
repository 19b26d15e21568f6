// Products of kernel values with coefficients, sum_i c_i k(x_i, z_j), values in float32
// or float64, sums in float64. No value is stored.
//
// Cost: 2 d flops a value (2 nnz for sparse points), and the exponential. Threads share
// the targets. One thread computes every sum, in an order that does not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "differences.hpp"
#include "placement.hpp"
#include "sparse_meeting.hpp"

namespace dualgap {

// A range of points, who(first), ..., who(first + count - 1), with its own sums.
struct Part {
  Index first, count;
  double *const *sums;  // [outputs]; room for targets.n() rounded up to panels
};

// Returns the coefficients of some of m points in groups of `width` points,
// [group][output][point]. The last group is padded with zeros.
template <class T>
Vector<T> grouped(const double *coef, Index m, Index first, Index count, Index outputs,
                  Index width) {
  const Index groups = (count + width - 1) / width;
  Vector<T> out(groups * outputs * width, T(0));
  for (Index o = 0; o < outputs; ++o)
    for (Index t = 0; t < count; ++t)
      out[(t / width * outputs + o) * width + t % width] =
          static_cast<T>(coef[o * m + first + t]);
  return out;
}

// Points whose values are computed in the same way, and their coefficients.
struct Group {
  Vector<Order> who;
  Vec coef;  // [outputs][who]
  Vector<Part> parts;
};

// What to add to the sums of every part of a group: sum_i coef[o, i] k(x_who[i],
// z_at(j)) to sums[o][j].
struct Addition {
  const KernelMap &map;
  bool dense;
  const Points &points;
  const Group &group;
  Index outputs;
  const Points &targets;
  Some at;
  Team &team;
};

// Adds with values of type T. `postings` are the postings of these z, or `packed` the z
// in panels, if known. Returns false if told to stop; the sums are incomplete then.
template <class T>
bool add_times(const Addition &of, Poll &poll, const Postings<T> *postings = nullptr,
               const Panels<T> *packed = nullptr) {
  const KernelMap &map = of.map;
  const Points &targets = of.targets;
  const bool dense = of.dense;
  const Index n = of.at.count, d = targets.d(), outputs = of.outputs;
  const Index panels = tile::panels(n);
  const Index width = dense ? tile::kRows : tile::kPanel;
  // Bytes of points packed at a time; targets are packed again for the next points.
  constexpr Index kBytes = 64 << 20;
  const Index bytes = static_cast<Index>(sizeof(T)) * std::max<Index>(d, 1);
  const Index chunk =
      dense ? std::max<Index>(1, kBytes / (bytes * width)) * width : tile::kPanel;

  struct Piece {
    Index first, count;
    double *const *sums;
    Vector<T> coef;  // [group][output][width]
    Strips<T> strips;
  };
  Vector<Piece> pieces;
  SharedPoll shared(poll);
  Vector<T> h, rows;
  std::unique_ptr<const Postings<T>> own;
  if (!dense && !postings && SparseMeeting<T>::by_postings(targets)) {
    const auto features = std::make_shared<const Ranking>(targets);
    own = std::make_unique<const Postings<T>>(map, targets, features, of.at.numbers, n);
    postings = own.get();
  }
  if (!dense && !postings) h = half_selves<T>(map, targets, of.team);
  SparseMeeting<T> meeting(map, of.points, targets, of.at.numbers, n, h.data(),
                           postings);

  // Process the gathered pieces with all targets. A strip is used with as many panels
  // as fit in cache.
  constexpr Index kNear = 1024 << 10;
  const Index together = std::max<Index>(1, kNear / (bytes * tile::kPanel));
  const auto meet_dense = [&](Index, Index begin, Index end) {
    Panels<T> near;
    Vector<T> buffer;
    for (Index p = begin; p < end; p += together) {
      const Index first = p * tile::kPanel;
      const Index last = std::min(std::min(p + together, end) * tile::kPanel, n);
      const Index groups = tile::panels(last - first);
      if (!packed)
        pack(
            map, targets, last - first, [&](Index t) { return of.at(first + t); }, near,
            buffer);
      const Panels<T> &panels_of = packed ? *packed : near;
      const Index skipped = packed ? p : 0;
      Index met = 0;
      tile::with_kernel<T>(map.shape, map.parameters, [&](const auto &kernel) {
        for (const Piece &piece : pieces) {
          const auto pass = [&](const auto &then_of) {
            for (Index s = 0; s < piece.strips.groups(); ++s)
              for (Index g = 0; g < groups; ++g)
                tile::compute(piece.strips.values(s), panels_of.values(skipped + g), d,
                              kernel, piece.strips.h(s), panels_of.h(skipped + g),
                              then_of(piece.coef.data() + s * outputs * width,
                                      first + g * tile::kPanel));
          };
          if (outputs == 1)
            pass([&](const T *coef, Index j) {
              return tile::AddTimes<T>{coef, piece.sums[0] + j};
            });
          else
            pass([&](const T *coef, Index j) {
              return tile::AddManyTimes<T>{coef, outputs, piece.sums, j};
            });
          met += piece.count;
        }
      });
      if (shared(met * (d + 16) * groups)) return;
    }
  };
  const auto meet_sparse = [&](Index, Index begin, Index end) {
    meeting.meet(map.parameters, begin, end, shared,
                 [&](Index b, Index j, Index count, const T *values) {
                   const Piece &piece = pieces[b];
                   for (Index o = 0; o < outputs; ++o)
                     for (Index t = 0; t < count; ++t)
                       piece.sums[o][j + t] += tile::dot(piece.coef.data() + o * width,
                                                         values + t * tile::kPanel);
                 });
  };
  Index gathered = 0;
  const auto meet = [&] {
    const Index units = dense ? panels : meeting.units();
    const Index shares = std::max<Index>(1, std::min(of.team.shares(), units));
    if (dense)
      of.team.run(shares, units, meet_dense);
    else
      of.team.run(shares, units, meet_sparse);
    pieces.clear();
    meeting.clear();
    gathered = 0;
  };
  for (const Part &part : of.group.parts) {
    for (Index first = 0; first < part.count && !shared.leave(); first += chunk) {
      Piece piece{
          part.first + first, std::min(chunk, part.count - first), part.sums, {}, {}};
      const Order *who = of.group.who.data() + piece.first;
      const auto point = [&](Index t) { return static_cast<Index>(who[t]); };
      piece.coef = grouped<T>(of.group.coef.data(), of.group.who.size(), piece.first,
                              piece.count, outputs, width);
      if (dense) {
        pack(map, of.points, piece.count, point, piece.strips, rows);
      } else {
        meeting.add(piece.count, point);
      }
      gathered += piece.count;
      pieces.push_back(std::move(piece));
      if (dense ? gathered >= chunk : meeting.blocks() == meeting.most()) meet();
    }
  }
  if (!pieces.empty() && !shared.leave()) meet();
  return !shared.leave();
}

// Groups the points of all parts by `way_of(point)`, in the order of kWays.
template <class WayOf>
std::array<Group, 3> by_ways(Some who, const double *coef, Index outputs,
                             const Vector<Part> &parts, const WayOf &way_of) {
  std::array<Group, 3> groups;
  std::array<Vector<Index>, 3> places;
  for (const Part &part : parts) {
    for (auto &group : groups) group.parts.push_back({group.who.size(), 0, part.sums});
    for (Index t = part.first; t < part.first + part.count; ++t) {
      const auto g = static_cast<std::size_t>(way_of(who(t)));
      groups[g].who.push_back(static_cast<Order>(who(t)));
      places[g].push_back(t);
      ++groups[g].parts.back().count;
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (Index o = 0; o < outputs; ++o)
      for (const Index t : places[g]) groups[g].coef.push_back(coef[o * who.count + t]);
  return groups;
}

// Does the same from differences, given their map.
inline bool add_differences(const Addition &of, Poll &poll) {
  if (of.dense) return add_times<double>(of, poll);
  const Group &group = of.group;
  const auto m = group.who.size();
  for (const Part &part : group.parts) {
    const double *coef = group.coef.data() + part.first;
    const auto add = [&](Index t, Index j, double value) {
      for (Index o = 0; o < of.outputs; ++o) part.sums[o][j] += coef[o * m + t] * value;
    };
    const Some who{group.who.data() + part.first, part.count};
    if (!meet_differences(of.map, of.points, who, of.targets, of.at, of.team, poll,
                          add))
      return false;
  }
  return true;
}

// Groups all points of the parts by the way to compute their values. The error of
// values from 0 to 1 is at most Placement::kLargestError, or kSingle if they need not
// be `precise`. A point uses float64 if float32 values would not be accurate enough.
// All points use float64 if coefficients are outside the range of float32.
inline std::array<Group, 3> by_placement(const Placement &placement, bool precise,
                                         const Points &points, const double *coef,
                                         Index outputs, const Vector<Part> &parts) {
  constexpr double kSingle = 1e-4, kLeast = 0x1p-90, kLargest = 0x1p90;
  double largest = 0.0;
  for (Index t = 0; t < outputs * points.n(); ++t)
    largest = std::max(largest, std::abs(coef[t]));
  precise = precise || !(kLeast <= largest && largest <= kLargest);
  const auto way_of = [&](Index i) {
    const bool near =
        !placement.unit() || placement.single_errors().value(placement.h(i)) <= kSingle;
    return placement.way(i, !precise && near);
  };
  return by_ways({nullptr, points.n()}, coef, outputs, parts, way_of);
}

// Adds over all points and targets, with the accuracy of by_placement.
inline bool add_placed(KernelMap map, bool dense, bool precise, const Points &points,
                       const double *coef, Index outputs, const Vector<Part> &parts,
                       const Points &targets, Team &team, Poll &poll) {
  const Placement placement(std::move(map), points, targets, dense);
  const auto groups = by_placement(placement, precise, points, coef, outputs, parts);
  for (const Way way : kWays) {
    const Group &group = groups[static_cast<std::size_t>(way)];
    if (group.who.empty()) continue;
    const Addition of{placement.map(way),     dense, points, group, outputs, targets,
                      {nullptr, targets.n()}, team};
    const bool whole = way == Way::kSingle   ? add_times<float>(of, poll)
                       : way == Way::kDouble ? add_times<double>(of, poll)
                                             : add_differences(of, poll);
    if (!whole) return false;
  }
  return true;
}

// What the bounds on the errors of a sum depend on: the number of terms, the sum of
// |c_t|, the largest h_t, and the sum of |c_t| times the error of a value of h_t.
struct SumSizes {
  Index count = 0;
  double reach = 0.0, far = 0.0, known = 0.0;

  void add(const Placement &placement, Order who, double c) {
    ++count;
    reach += std::abs(c);
    far = std::max(far, placement.h(who));
    known += std::abs(c) * placement.double_errors().value(placement.h(who));
  }
  // sums_j += up_j + down_j, the sums of the positive and of the other terms, which
  // were computed in this way; adds the bounds of `times` to the errors.
  void add_bounded(const Placement &placement, Way way, Some at, const double *up,
                   const double *down, double *sums, double *errors) const {
    constexpr double kAboveLn2 = 0.7, kReach = 64.0;
    constexpr double kFew = 30.0;  // roundings of a sum besides one per group
    const bool one_by_one = way == Way::kDifferences && !placement.dense();
    const double added =
        kRounding<double> *
        (static_cast<double>(one_by_one ? count : count / tile::kLeastRows) + kFew);
    // Error of exponentials next to 0, and T 2^-T.
    const double tiny = reach * 0x1p-1000;
    const double rest = reach * kReach * 0x1p-64;
    for (Index j = 0; j < at.count; ++j) {
      const double size = up[j] - down[j];
      double off = added * size + tiny;
      if (way == Way::kDifferences)
        off +=
            kAboveLn2 * kRounding<double> * placement.apart() * (kReach * size + rest);
      else
        off += std::min(known, kAboveLn2 * placement.double_errors().rate() *
                                   (far + placement.h(at(j))) * size);
      sums[j] += up[j] + down[j];
      errors[j] += kSlack * off;
    }
  }
};

}  // namespace dualgap
