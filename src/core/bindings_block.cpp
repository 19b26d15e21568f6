#include "bindings.hpp"
#include "gram/block.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>

namespace dualgap {

namespace {

// A problem of the block solver, as Python holds it.
struct BoxProblem {
  Array<const double> y, cost, diagonal;
  ResidualLoss loss;
  Array<const double> linear;
  double total;
  bool two_sided, two_sums;

  BlockProblem taken(Index n) const {
    if (two_sums && two_sided) n *= 2;  // two variables for each row
    const auto take = [&](const Array<const double> &a, const char *name) {
      const double *data = sized(a, n, name);
      return Vec(data, data + n);
    };
    BlockProblem problem;
    problem.squared = !std::isfinite(loss.form.slope);
    problem.epsilon = loss.epsilon;
    problem.total = total;
    problem.two_sided = two_sided && !two_sums;
    problem.two_sums = two_sums;
    problem.above = loss.above;
    problem.below = loss.below;
    problem.y = take(y, "y");
    problem.cost = take(cost, "cost");
    problem.diagonal = take(diagonal, "diagonal");
    problem.p = take(linear, "linear");
    return problem;
  }
};

// A number that the last scan found.
template <double BlockScan::*kNumber>
double of_scan(const BlockSolver &self) {
  return self.last_scan().*kNumber;
}

Inner small_problem(const Table<const float> &H, Index m) {
  check_shape(H, m, m, "H");
  Inner inner(m);
  for (Index i = 0; i < m; ++i)
    std::copy_n(H.data() + i * m, m, inner.H.data() + i * inner.stride());
  for (Index i = m; i < inner.q; ++i) inner.s[i] = 1.0f;
  return inner;
}

}  // namespace

void bind_block(nb::module_ &m) {
  nb::class_<BoxProblem>(
      m, "BlockProblem",
      "Labels, costs and k(x_i, x_i); the loss; the linear term, the sum of "
      "the variables, and whether they have both signs. With two sums it is the sum "
      "for y = 1, and the negative of the other; a row with both signs then has two "
      "variables, first all with y = 1.")
      .def(nb::init<Array<const double>, Array<const double>, Array<const double>,
                    const ResidualLoss &, Array<const double>, double, bool, bool>(),
           "y"_a, "cost"_a, "diagonal"_a, "loss"_a, "linear"_a, "total"_a,
           "two_sided"_a, "two_sums"_a = false);
  nb::class_<BlockSolver>(m, "BlockSolver", "State of the block solver.")
      .def(
          "__init__",
          [](BlockSolver *self, RowSource &rows, const BoxProblem &problem, Index q,
             Index largest_q, Index cache_bytes, bool fixed, Random &random) {
            if (q < 1 || largest_q < 1)
              throw std::invalid_argument("q must be positive");
            new (self) BlockSolver(rows, problem.taken(rows.n()), q, largest_q,
                                   cache_bytes, fixed, random);
          },
          "rows"_a, "problem"_a, "q"_a, "largest_q"_a, "cache_bytes"_a, "fixed"_a,
          "random"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("n", &BlockSolver::n, "rows")
      .def_prop_ro("q", &BlockSolver::q, "rows of a working set")
      .def_prop_ro("steps", &BlockSolver::steps, "inner steps so far")
      .def_prop_ro("computed", &BlockSolver::computed, "kernel rows computed so far")
      .def_prop_ro(
          "seconds",
          [](const BlockSolver &self) {
            return std::map<std::string, double>{
                {"select", self.seconds(Phase::kSelect)},
                {"rows", self.seconds(Phase::kRows)},
                {"matrix", self.seconds(Phase::kMatrix)},
                {"inner", self.seconds(Phase::kInner)},
                {"update", self.seconds(Phase::kUpdate)},
                {"scan", self.seconds(Phase::kScan)}};
          },
          "seconds of the steps so far, by what they were spent on")
      .def_prop_ro("capacity", &BlockSolver::capacity, "rows that the cache may hold")
      .def_prop_ro("held", &BlockSolver::held)
      .def_prop_ro("full", &BlockSolver::full)
      .def_prop_ro("moved", &BlockSolver::moved,
                   "sum of what alpha has moved by since set_gradient, step by step")
      .def_prop_ro("moved_by_cached", &BlockSolver::moved_by_cached,
                   "the part of `moved` whose kernel rows were cached")
      .def_prop_ro(
          "sizes", [](const BlockSolver &self) { return copied(self.sizes()); },
          "sums of |change k(x, x_i)| over the other part of `moved`, for kernels "
          "whose "
          "values have one sign")
      .def_prop_ro("drift", &BlockSolver::drift,
                   "norm of what alpha has moved by since set_gradient")
      .def_prop_ro("violation", &of_scan<&BlockScan::violation>)
      .def_prop_ro("threshold", &of_scan<&BlockScan::threshold>)
      .def_prop_ro("apart", &of_scan<&BlockScan::apart>)
      .def_prop_ro("primal", &of_scan<&BlockScan::primal>)
      .def_prop_ro("dual", &of_scan<&BlockScan::dual>)
      .def(
          "set_alpha",
          [](BlockSolver &self, Array<const double> alpha) {
            self.set_alpha(sized(alpha, self.n(), "alpha"));
          },
          "alpha"_a)
      .def(
          "set_gradient",
          [](BlockSolver &self, Array<const double> F) {
            self.set_gradient(sized(F, self.n(), "F"));
          },
          "F"_a, "F = sum_j c_j k(x_j, x_i), as computed elsewhere.")
      .def("forget_rows", &BlockSolver::forget_rows)
      .def_prop_ro("alpha",
                   [](const BlockSolver &self) { return copied(self.alpha()); })
      .def_prop_ro("gradient",
                   [](const BlockSolver &self) {
                     const double *F = self.gradient().data();
                     return copied({F, F + self.n()});
                   })
      .def(
          "step",
          [](BlockSolver &self, double inner_tolerance, Stop &stop) {
            return without_gil(
                stop, [&](Poll &poll) { return self.step(inner_tolerance, poll); });
          },
          "inner_tolerance"_a, "stop"_a,
          "Solves one working set to `inner_tolerance` times the violation. Returns "
          "the inner steps made.");

  m.def(
      "pair_steps",
      [](Table<const float> H, Array<double> c,
         const std::array<Array<const double>, 2> &box, Array<float> v, double unit,
         double tol, Index most, Stop &stop) {
        const auto size = c.length();
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.s[i] = inner.row(i)[i];
          inner.c[i] = c.data()[i];
          inner.lo[i] = sized(box[0], size, "box[0]")[i];
          inner.hi[i] = sized(box[1], size, "box[1]")[i];
          inner.v[i] = sized(v, size, "v")[i];
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return pair_steps(inner, unit, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "c"_a, "box"_a, "v"_a, "unit"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the hinge on one matrix. Returns how many were made.");

  m.def(
      "coordinate_steps",
      [](Table<const float> H, Array<const double> y, Array<const double> delta,
         Array<double> c, Array<float> v, double tol, Index most, Stop &stop) {
        const auto size = c.length();
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.c[i] = c.data()[i];
          inner.y[i] = static_cast<float>(sized(y, size, "y")[i]);
          inner.delta[i] = sized(delta, size, "delta")[i];
          inner.v[i] = sized(v, size, "v")[i];
          inner.s[i] = inner.row(i)[i] + 1.0f + static_cast<float>(inner.delta[i]);
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return coordinate_steps(inner, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "y"_a, "delta"_a, "c"_a, "v"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the squared hinge on one matrix, as pair_steps.");
}

}  // namespace dualgap
