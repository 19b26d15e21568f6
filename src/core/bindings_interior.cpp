#include "bindings_row_sets.hpp"
#include "interior.hpp"
#include "newton.hpp"

namespace dualgap {

namespace {

void check(const NewtonPoint &point, const AnyRows &rows) {
  checked_lengths(rows.n(), {{point.residual, "residual"}, {point.image, "image"}});
  checked_lengths(rows.width(),
                  {{point.w, "w"}, {point.gradient, "gradient"}, {point.step, "step"}});
}

NewtonData newton_data(const RegressionExamples &examples) {
  return {examples.y.data(), examples.cost.data(), examples.loss.epsilon};
}

void bind_newton(nb::module_ &m) {
  using Each = Span<double>;
  made_of<Each, Each, Each, Each, Each>(
      nb::class_<NewtonPoint>(m, "NewtonState",
                              "A point, its residuals and gradient, and room for a "
                              "step and its image."),
      "w"_a, "residual"_a, "gradient"_a, "step"_a, "image"_a);
  m.def(
      "newton_point",
      [](const RegressionExamples &examples, const NewtonPoint &point, Team &threads) {
        const NewtonData data = newton_data(examples);
        check(point, examples.rows);
        nb::gil_scoped_release released;
        const NewtonValues values = examples.rows.visit(
            [&](const auto &x) { return newton_point(x, data, point, threads); });
        return std::make_tuple(values.primal, values.gap, values.outside);
      },
      "examples"_a, "state"_a, "threads"_a.noconvert(),
      "Residuals and gradient of the squared loss at w: (P, P - D, rows outside of the "
      "tube).");
  m.def(
      "newton_step",
      [](const RegressionExamples &examples, const NewtonPoint &point, double accuracy,
         Index most, const Algebra &algebra, Team &threads, Stop &stop) {
        const AnyRows &rows = examples.rows;
        const Index n = rows.n(), d = rows.width();
        const NewtonData data = newton_data(examples);
        check(point, rows);
        double *s = point.step;
        const LinearAlgebra functions = look_up(algebra);
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          Index conjugate = 0;
          bool found = false;
          if (most == 0) {
            NewtonFactor matrix(one_block(rows), threads, functions);
            found = matrix.solve(data, point, s, poll, stop);
          }
          if (most > 0) {
            conjugate = newton_conjugate(x, data, point, s, accuracy, most,
                                         rows.stored(), threads, poll);
            found = conjugate > 0;
          }
          double length = 0;
          if (found) {
            products(x, s, point.image, threads);
            length = newton_length(data, point.residual, point.image, n,
                                   dot_of(point.w, s, d), squared_norm(s, d));
          }
          return std::make_tuple(length, conjugate);
        });
      },
      "examples"_a, "state"_a, "accuracy"_a, "most"_a, "algebra"_a,
      "threads"_a.noconvert(), "stop"_a,
      "A Newton step and how far to go along it: (length, conjugate gradients); by a "
      "factor if `most` is 0. The length is 0 if told to leave, or at the optimum.");
}

}  // namespace

void bind_interior(nb::module_ &m) {
  bind_newton(m);
  nb::class_<Interior>(m, "Interior",
                       "The interior-point iteration; every cost is positive.")
      .def(
          "__init__",
          [](Interior *self, const ChosenExamples &examples, const Loss &loss,
             double scale, bool free_bias, Team &threads, const Algebra &algebra) {
            new (self) Interior(examples.taken(), loss, scale, free_bias, threads,
                                look_up(algebra));
          },
          "examples"_a, "loss"_a, "scale"_a, "free_bias"_a, "threads"_a.noconvert(),
          "algebra"_a, nb::keep_alive<1, 6>())
      .def(
          "start",
          [](Interior &self, Doubles w, double mu, Stop &stop) {
            const auto *point = sized(w, self.width(), "w");
            return without_gil(
                stop, [&](Poll &poll) { return self.start(point, mu, poll, stop); });
          },
          "w"_a, "mu"_a, "stop"_a,
          "Start at w with every product at mu; 0: far inside, for w = 0. False: told "
          "to leave.")
      .def(
          "iterate",
          [](Interior &self, Stop &stop) {
            const auto outcome =
                without_gil(stop, [&](Poll &poll) { return self.iterate(poll, stop); });
            return static_cast<int>(outcome);
          },
          "stop"_a,
          "One iteration: 0, 1 if told to leave, 2 if the matrix has no factor.")
      .def(
          "run",
          [](Interior &self, double goal, int most, Stop &stop) {
            const auto [outcome, steps, correctors] = without_gil(
                stop, [&](Poll &poll) { return self.run(goal, most, poll, stop); });
            return std::make_tuple(static_cast<int>(outcome), steps, correctors);
          },
          "goal"_a, "most"_a, "stop"_a,
          "Iterations until the relative gap is at most `goal`: the last outcome, the "
          "number of steps, and of their correctors.")
      .def(
          "refresh",
          [](Interior &self, Stop &stop) {
            return without_gil(stop,
                               [&](Poll &poll) { return self.refresh(poll, stop); });
          },
          "stop"_a,
          "Recompute margins, residual, P and D from w and alpha. False: told to "
          "leave.")
      .def_prop_ro("w", [](Interior &self) { return copied(self.w()); })
      .def_prop_ro("alpha", [](Interior &self) { return copied(self.alpha()); })
      .def_prop_ro("mu", &Interior::mu)
      .def_prop_ro("primal", &Interior::primal)
      .def_prop_ro("dual", &Interior::dual)
      .def_prop_ro("length", &Interior::step)
      .def_prop_ro("correctors", &Interior::correctors)
      .def_prop_ro("single", &Interior::single,
                   "Whether the next matrix is added up in float32.");
}

}  // namespace dualgap
