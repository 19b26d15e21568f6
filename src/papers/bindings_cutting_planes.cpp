#include "../core/bindings.hpp"
#include "cutting_planes.hpp"

namespace dualgap {

namespace {

using Set = Array<const std::uint8_t>;

Index bytes(Index n) { return (n + 7) / 8; }

}  // namespace

void bind_cutting_planes(nb::module_ &m) {
  m.def(
      "outputs",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> w,
         Array<double> out, TeamOrCount threads, Stop &stop) {
        const auto *labels = sized(y, rows.n(), "y");
        const auto *point = sized(w, rows.width(), "w");
        double *result = sized(out, rows.n(), "out");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          return outputs(x, labels, point, result, threads, poll, stop);
        });
      },
      "rows"_a, "y"_a, "w"_a, "out"_a, "threads"_a, "stop"_a,
      "out_i <- y_i w.x_i. Returns the rows done.");

  m.def(
      "change_plane",
      [](const Examples &examples, Set from, Set to, Array<double> a, double b,
         TeamOrCount threads, Stop &stop) {
        const Index n = examples.n;
        const auto *before = sized(from, bytes(n), "from_");
        const auto *after = sized(to, bytes(n), "to");
        double *sum = sized(a, examples.width(), "a");
        const Plane plane =
            pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
              return change_plane(x, examples.y.data(), examples.cost.data(), before,
                                  after, sum, b, threads, poll, stop);
            });
        return std::make_tuple(plane.done, plane.b);
      },
      "examples"_a, "from_"_a, "to"_a, "a"_a, "b"_a, "threads"_a, "stop"_a,
      "Turns (a, b) of one set of rows into (a, b) of another. Returns (rows done, "
      "b).");

  m.def(
      "solve_master",
      [](Table<const double> gram, Array<const double> b, Array<double> beta,
         double tol, Stop &stop) {
        const auto size = beta.length();
        const auto stride = gram.columns();
        const auto *heights = sized(b, size, "b");
        if (size < 1 || size > stride || size > gram.length())
          throw std::invalid_argument("beta does not fit gram");
        return without_gil(stop, [&](Poll &poll) {
          Master master(gram.data(), stride, size, heights, beta.data());
          const double gap = master.solve(tol, poll);
          close_simplex(beta.data(), size);
          return gap;
        });
      },
      "gram"_a, "b"_a, "beta"_a, "tol"_a, "stop"_a,
      "Raise beta.b - 1/2 beta.H beta over the simplex from beta. Returns the gap.");

  m.def(
      "line_search",
      [](Array<const double> cost, Array<const double> from, Array<const double> to,
         double slope, double curvature) {
        const auto n = cost.length();
        const auto *start = sized(from, n, "from_");
        const auto *end = sized(to, n, "to");
        nb::gil_scoped_release released;
        return line_search(cost.data(), start, end, n, slope, curvature);
      },
      "cost"_a, "from_"_a, "to"_a, "slope"_a, "curvature"_a,
      "The t >= 0 that minimises P on the line between two points.");

  m.def(
      "move_outputs",
      [](Array<const double> cost, Array<double> from, Array<const double> to, double t,
         double cut, Array<std::uint8_t> set) {
        const auto n = cost.length();
        double *start = sized(from, n, "from_");
        const auto *end = sized(to, n, "to");
        auto *members = sized(set, bytes(n), "set");
        nb::gil_scoped_release released;
        return move_outputs(cost.data(), start, end, n, t, cut, members);
      },
      "cost"_a, "from_"_a, "to"_a, "t"_a, "cut"_a, "set"_a,
      "from <- from + t (to - from), and the set of the next plane. Returns the loss.");

  m.def(
      "add_rows",
      [](Set set, double beta, Array<double> share) {
        const auto n = share.length();
        add_rows(sized(set, bytes(n), "set"), beta, n, share.data());
      },
      "set"_a, "beta"_a, "share"_a,
      "share_i <- share_i + beta for the rows of the set.");
}

}  // namespace dualgap
