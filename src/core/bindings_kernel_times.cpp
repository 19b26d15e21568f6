#include "bindings_kernel.hpp"
#include "gram/packed_vectors.hpp"
#include "gram/times.hpp"

namespace dualgap {

template bool add_times(const Addition &, Poll &, const Postings<float> *,
                        const Panels<float> *);
template bool add_times(const Addition &, Poll &, const Postings<double> *,
                        const Panels<double> *);

namespace {

// Returns the ends of parts of n rows that follow each other.
Vector<Index> checked_ends(const Array<const std::int64_t> &ends, Index n) {
  const Vector<Index> of(ends.data(), ends.data() + ends.length());
  if (of.empty() || of.front() < 0 || of.back() > n ||
      !std::is_sorted(of.begin(), of.end()))
    throw std::invalid_argument("ends");
  return of;
}

// How to compute products: from dense packed rows, and all in float64.
struct ProductSettings {
  bool dense, precise;
  Index threads;
};

}  // namespace

void bind_kernel_times(nb::module_ &m) {
  m.def(
      "class_weights",
      [](const AnyRows &rows, Table<const double> coef, Array<const std::int64_t> ends,
         Table<double> out) {
        const auto outputs = coef.length();
        const auto n = coef.columns();
        check_length(n, rows.n(), "coef");
        const Vector<Index> last = checked_ends(ends, n);
        check_shape(out, last.size() * outputs, rows.width(), "out");
        Index first = 0;
        rows.visit([&](const auto &x) {
          for (Index k = 0; k < last.size(); ++k)
            for (; first < last[k]; ++first)
              for (Index o = 0; o < outputs; ++o) {
                const double c = coef.data()[o * n + first];
                if (c == 0.0) continue;
                x.axpy(first, c, out.data() + (k * outputs + o) * rows.width());
              }
        });
      },
      "rows"_a, "coef"_a, "ends"_a, "out"_a,
      "out[k outputs + o] += sum_i coef[o, i] x_i over the rows i of class k, those up "
      "to ends[k] that no class before it has.");

  nb::class_<ProductSettings>(m, "ProductSettings",
                              "Whether to pack the rows as dense ones, whether to "
                              "compute in float64, and the threads.")
      .def(nb::init<bool, bool, Index>(), "dense"_a, "precise"_a, "threads"_a);
  m.def(
      "kernel_times",
      [](const KernelMap &kernel, const AnyRows &rows, Table<const double> coef,
         Array<const std::int64_t> ends, const AnyRows &targets, Table<double> out,
         const ProductSettings &settings, Stop &stop) {
        KernelMap map = kernel;
        const auto points = points_of(rows);
        const auto to = points_of(targets);
        const auto outputs = coef.length();
        const Index n = to->n(), vectors = points->n();
        check_length(to->d(), points->d(), "a row");
        check_length(coef.columns(), vectors, "coef");
        const Vector<Index> last = checked_ends(ends, vectors);
        const Index many = last.size();
        check_shape(out, many * outputs, n, "out");
        const Index room = tile::in_panels(n);
        Vec sums(room * many * outputs);
        Vector<double *> each(many * outputs);
        for (Index o = 0; o < each.size(); ++o) each[o] = sums.data() + o * room;
        Vector<Part> parts;
        Index first = 0;
        for (Index g = 0; g < many; ++g) {
          const Index end = last[g];
          parts.push_back({first, end - first, each.data() + g * outputs});
          first = end;
        }
        const bool whole = without_gil(stop, [&](Poll &poll) {
          Team team(settings.threads);
          return add_placed(std::move(map), settings.dense, settings.precise, *points,
                            coef.data(), outputs, parts, *to, team, poll);
        });
        for (Index o = 0; o < each.size(); ++o)
          std::copy(each[o], each[o] + n, out.data() + o * n);
        return whole;
      },
      "kernel"_a, "rows"_a, "coef"_a, "ends"_a, "targets"_a, "out"_a, "settings"_a,
      "stop"_a,
      "For every part p of the rows, those up to ends[p] that no part before it has: "
      "out[p outputs + o, j] <- sum_i coef[o, i] k(x_i, z_j), sums in float64. Values "
      "are off by 1e-8 at most where they are from 0 to 1; by 1e-4, in float32, unless "
      "`precise`. False if told to leave.");

  nb::class_<PackedVectors>(
      m, "PackedVectors",
      "Dense copies of the rows and the coefficients of kernel_times, for few targets.")
      .def(
          "__init__",
          [](PackedVectors *self, const KernelMap &kernel, const AnyRows &rows,
             Table<const double> coef, Array<const std::int64_t> ends, bool precise) {
            const auto points = points_of(rows);
            check_length(coef.columns(), points->n(), "coef");
            const Vector<Index> of = checked_ends(ends, points->n());
            nb::gil_scoped_release released;
            new (self)
                PackedVectors(kernel, precise, *points, coef.data(), coef.length(), of);
          },
          "kernel"_a, "rows"_a, "coef"_a, "ends"_a, "precise"_a)
      .def(
          "times",
          [](const PackedVectors &self, const AnyRows &targets, Table<double> out) {
            const auto to = points_of(targets);
            check_length(to->d(), self.d(), "a row");
            check_shape(out, self.sums(), to->n(), "out");
            nb::gil_scoped_release released;
            self.times(*to, out.data());
          },
          "targets"_a, "out"_a, "Writes what kernel_times writes, with the same bits.");
}

}  // namespace dualgap
