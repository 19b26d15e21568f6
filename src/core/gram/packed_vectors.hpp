// Support vectors packed once, for the sums of few queries at a time.
//
// Problem   sums[o][j] = sum_i coef[o, i] k(x_i, z_j) of every part of the points, with
//           the bits of add_placed
// Layout    the points lie along the lanes of panels, and one query is broadcast. A
//           strip of queries or a panel of them would be filled up with zeros.
// Memory    one copy of the points in the type of their values, and the coefficients
// Cost      2 d flops a value. add_placed packs the points at every call, which costs
//           as much as some 30 queries.
#pragma once

#include "single_row.hpp"
#include "times.hpp"

namespace dualgap {

namespace tile {

// Adds the sums of the strips, sum_r coef[s][o][r] values[s][r], one after another.
template <class T>
DUALGAP_NOINLINE void add_strips(const T *coef, const T *values, Index strips,
                                 Index outputs, Index o, double *sum) {
  using V = Pack<T>;
  double lanes[V::kLanes];
  std::fill_n(lanes, V::kLanes, *sum);
  coef += o * kRows;
  for (Index s = 0; s < strips; ++s, coef += outputs * kRows, values += kRows) {
    V part = V::all(T(0));
    unroll<kRows>(
        [&](auto r) { part = fma(V::all(coef[r]), V::all(values[r]), part); });
    part.add_to(lanes);
  }
  *sum = lanes[0];
}

}  // namespace tile

class PackedVectors {
 public:
  // `ends` are the ends of the parts of the points.
  PackedVectors(KernelMap map, bool precise, const Points &points, const double *coef,
                Index outputs, const Vector<Index> &ends)
      : d_(points.d()), outputs_(outputs), parts_(ends.size()) {
    const Placement placement(std::move(map), points, points, true);
    Vector<Part> parts;
    for (Index first = 0; const Index end : ends) {
      parts.push_back({first, end - first, nullptr});
      first = end;
    }
    auto groups = by_placement(placement, precise, points, coef, outputs, parts);
    single_ = Packing<float>(placement.products(), points, groups[0], outputs);
    double_ = Packing<double>(placement.products(), points, groups[1], outputs);
    apart_ = Packing<double>(placement.differences(), points, groups[2], outputs);
  }

  Index d() const { return d_; }
  // Number of sums of a query.
  Index sums() const { return parts_ * outputs_; }

  // out[p outputs + o][j] <- sum over part p for every query j.
  void times(const Points &queries, double *out) const {
    std::fill_n(out, sums() * queries.n(), 0.0);
    single_.add(queries, outputs_, out);
    double_.add(queries, outputs_, out);
    apart_.add(queries, outputs_, out);
  }

 private:
  // Points whose values have one type, and are computed in one way.
  template <class T>
  class Packing {
   public:
    Packing() = default;
    Packing(const KernelMap &map, const Points &points, const Group &group,
            Index outputs)
        : map_(map) {
      Vector<T> rows;
      const auto m = group.who.size();
      Index p = 0;
      for (const Part &part : group.parts) {
        const Index number = p++;
        if (part.count == 0) continue;
        Run run{number,
                {},
                grouped<T>(group.coef.data(), m, part.first, part.count, outputs,
                           tile::kRows)};
        const auto who = [&](Index t) {
          return static_cast<Index>(group.who[part.first + t]);
        };
        pack(map, points, part.count, who, run.panels, rows);
        runs_.push_back(std::move(run));
      }
    }

    void add(const Points &queries, Index outputs, double *out) const {
      if (runs_.empty()) return;
      const Index n = queries.n(), d = queries.d();
      Vec room(d);
      Vector<T> z(n * d);
      Vector<T> h(n);
      for (Index j = 0; j < n; ++j)
        map_.read(queries, j, room.data(), z.data() + j * d);
      tile::half_selves(z.data(), n, d, h.data());
      Vector<T> values;
      tile::with_kernel<T>(map_.shape, map_.parameters, [&](const auto &kernel) {
        for (const Run &run : runs_) {
          // A strip may end after the last panel.
          const Index width = run.panels.groups() * tile::kPanel + tile::kRows;
          values.assign(n * width, T(0));
          for (Index g = 0; g < run.panels.groups(); ++g)
            for (Index j = 0; j < n; ++j)
              tile::compute_one<1>(z.data() + j * d, run.panels.values(g), d, kernel,
                                   h[j], run.panels.h(g),
                                   values.data() + j * width + g * tile::kPanel);
          for (Index o = 0; o < outputs; ++o)
            for (Index j = 0; j < n; ++j)
              tile::add_strips(run.coef.data(), values.data() + j * width,
                               (run.panels.n() + tile::kRows - 1) / tile::kRows,
                               outputs, o, out + (run.part * outputs + o) * n + j);
        }
      });
    }

   private:
    struct Run {
      Index part;
      Panels<T> panels;
      Vector<T> coef;  // [strip][output][kRows]
    };
    KernelMap map_;
    Vector<Run> runs_;
  };

  Index d_, outputs_, parts_;
  Packing<float> single_;
  Packing<double> double_, apart_;
};

}  // namespace dualgap
