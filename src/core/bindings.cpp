// The compiled module. Its functions take arrays, make passes over the rows and return
// numbers. The GIL is released around every pass.
#include "bindings.hpp"
#include "certify.hpp"
#include "class_probabilities.hpp"
#include "random.hpp"

#include <nanobind/stl/array.h>
#include <cstdlib>

#ifdef DUALGAP_COVERAGE
extern "C" void __gcov_dump();
extern "C" void __gcov_reset();
#endif

namespace dualgap {

template struct Evaluation<MarginTerms>;
template struct Evaluation<ResidualTerms>;

namespace {

template <class V, class I, class P>
AnyRows make_csr(Array<const V> values, Array<const I> indices, Array<const P> indptr,
                 Index d, double constant) {
  if (indptr.shape(0) == 0) throw std::invalid_argument("indptr is empty");
  if (values.shape(0) != indices.shape(0))
    throw std::invalid_argument("values and indices differ in length");
  return AnyRows(CsrRows<V, I>(values.data(), indices.data(), Pointers(indptr.data()),
                               indptr.length() - 1, d, constant),
                 values.length(),
                 {nb::cast(values), nb::cast(indices), nb::cast(indptr)});
}

template <class V>
AnyRows make_dense(Table<const V> values, double constant) {
  const auto n = values.length();
  const auto d = values.columns();
  return AnyRows(DenseRows<V>(values.data(), n, d, constant), n * d,
                 {nb::cast(values)});
}

void bind_rows(nb::module_ &m) {
  nb::class_<AnyRows>(m, "Rows", "Rows of a matrix, dense or CSR, not copied.")
      .def_prop_ro("n", &AnyRows::n)
      .def_prop_ro("width", &AnyRows::width, "columns, and the constant feature")
      .def_prop_ro("stored", &AnyRows::stored, "stored entries")
      .def_prop_ro("dense", &AnyRows::dense, "whether all entries are stored, in order")
      .def_prop_ro("bytes", &AnyRows::bytes, "size of the stored entries")
      .def_prop_ro(
          "arrays", &AnyRows::owners,
          nb::for_getter(nb::sig("def arrays(self) -> list[NDArray[numpy.generic]]")),
          "values, and of CSR rows indices and pointers")
      .def("with_constant", &AnyRows::with_constant, "constant"_a,
           "The same rows with another constant feature; 0 for none.")
      .def(
          "inspect",
          [](const AnyRows &self, Array<double> q) {
            double *out = sized(q, self.n(), "q");
            bool unique = true;
            Index where = 0;
            const char *fault = self.visit([&](const auto &rows) {
              nb::gil_scoped_release released;
              return rows.inspect(out, self.stored(), &unique, &where);
            });
            return std::make_tuple(
                fault ? std::optional<std::string>(fault) : std::nullopt, where,
                unique);
          },
          "q"_a,
          "Check every pointer, index and value and fill q with ||x_i||^2. Returns "
          "(fault or None, row of the fault, whether no row names a column twice).");

  auto csr = [&](auto f) {
    m.def("csr_rows", f, "values"_a, "indices"_a, "indptr"_a, "d"_a, "constant"_a);
  };
  using std::int32_t, std::int64_t;
  csr(&make_csr<float, int32_t, int32_t>);
  csr(&make_csr<float, int32_t, int64_t>);
  csr(&make_csr<float, int64_t, int64_t>);
  csr(&make_csr<float, int64_t, int32_t>);
  csr(&make_csr<double, int32_t, int32_t>);
  csr(&make_csr<double, int32_t, int64_t>);
  csr(&make_csr<double, int64_t, int64_t>);
  csr(&make_csr<double, int64_t, int32_t>);
  m.def("dense_rows", &make_dense<float>, "values"_a, "constant"_a);
  m.def("dense_rows", &make_dense<double>, "values"_a, "constant"_a);
}

void bind_tools(nb::module_ &m) {
  nb::class_<Loss>(m, "Loss", "max over 0 <= b <= slope of b u - curvature b^2/2.")
      .def(nb::init<double, double>(), "slope"_a, "curvature"_a)
      .def("value", &Loss::value, "u"_a)
      .def("derivative", &Loss::derivative, "u"_a);
  nb::class_<ResidualLoss>(m, "ResidualLoss",
                           "A loss of |r| - epsilon, times `above` where r > 0 and "
                           "`below` elsewhere.")
      .def(nb::init<const Loss &, double, double, double>(), "form"_a, "epsilon"_a,
           "above"_a, "below"_a);

  nb::class_<Team>(m, "Team", "Threads that wait for loops to share; 1 has none.")
      .def(nb::init<Index>(), "threads"_a)
      .def_prop_ro("size", &Team::size);
  nb::implicitly_convertible<Index, Team>();

  nb::class_<Random>(m, "Random", "xoshiro256++; the same seed, the same orders.")
      .def(nb::init<std::uint64_t>(), "seed"_a)
      .def(
          "shuffle",
          [](Random &self, Array<Order> order) {
            self.shuffle(order.data(), order.length());
          },
          "order"_a)
      .def(
          "draw",
          [](Random &self, Array<Order> order, std::uint32_t n) {
            if (n == 0) throw std::invalid_argument("n must be positive");
            self.draw(order.data(), order.length(), n);
          },
          "order"_a, "n"_a)
      .def(
          "below",
          [](Random &self, std::uint32_t n) {
            if (n == 0) throw std::invalid_argument("n must be positive");
            return self.below(n);
          },
          "n"_a)
      .def_prop_rw("state", &Random::state, &Random::set_state,
                   "Its four words: with them another one goes on as this one.");

  nb::class_<Targets>(m, "Targets",
                      "Accuracies to reach: the relative gap `goal` while less than "
                      "`free` work is done, and `tol` after it, or the gap `atol`.")
      .def(nb::init<double, double, double, double>(), "tol"_a, "atol"_a, "goal"_a,
           "free"_a);
  m.def("next_factor", &next_factor, "estimated"_a, "proved"_a, "most"_a,
        "How many times the target gap a gap may be estimated for the next proof, "
        "given an estimate and what was proved there.");
  m.def("gap_at_the_end", &gap_at_the_end, "gap"_a, "before"_a, "lag"_a, "least"_a,
        "after_sgd"_a,
        "The gap at the end of a sweep, given its sum over the visits and the sum of "
        "the sweep before.");

  nb::class_<Stop>(m, "Stop", "Tells running passes to leave, from any thread.")
      .def(nb::init<>())
      .def("request", &Stop::request)
      .def("set_deadline", &Stop::set_deadline, "seconds_from_now"_a)
      .def_prop_ro("requested", &Stop::requested)
      .def_prop_ro("expired", &Stop::expired);

  m.def(
      "squared_norm",
      [](Array<const double> w) { return squared_norm(w.data(), w.length()); }, "w"_a);
}

void bind_examples(nb::module_ &m) {
  using Costs = Array<const double>;
  nb::class_<Examples>(m, "Examples",
                       "Rows with their labels -1 or 1, costs c_i, q_i = ||x_i||^2, "
                       "and the loss.")
      .def(nb::init<const AnyRows &, Array<const std::int8_t>, Costs, Costs,
                    const Loss &>(),
           "rows"_a, "y"_a, "cost"_a, "q"_a, "loss"_a);
  nb::class_<LogisticExamples>(m, "LogisticExamples", "Examples of the logistic loss.")
      .def(nb::init<const AnyRows &, Array<const std::int8_t>, Costs, Costs>(),
           "rows"_a, "y"_a, "cost"_a, "q"_a);
  nb::class_<RegressionExamples>(m, "RegressionExamples",
                                 "Rows with their targets p_i instead of labels.")
      .def(nb::init<const AnyRows &, Costs, Costs, Costs, const ResidualLoss &>(),
           "rows"_a, "target"_a, "cost"_a, "q"_a, "loss"_a);
  nb::class_<Values>(m, "Values",
                     "Sums over the rows, and what bounds their rounding: "
                     "dualgap.problems.rounding.Values says what each is.")
      .def_ro("loss", &Values::loss)
      .def_ro("sum", &Values::sum)
      .def_ro("diagonal", &Values::diagonal)
      .def_ro("loss_error", &Values::loss_error)
      .def_ro("along", &Values::along)
      .def_ro("along_error", &Values::along_error)
      .def_ro("reach", &Values::reach)
      .def_ro("used", &Values::used)
      .def_ro("roundings", &Values::roundings)
      .def_ro("length", &Values::length)
      .def_ro("last", &Values::last);
}

// Makes one pass over the rows. `dual` names the kind of dual point.
template <class Terms>
Values values_of(const AnyRows &rows, const Terms &terms, const Array<const double> &q,
                 const Array<const double> &w, const std::string &dual,
                 Maybe<double> &alpha, Maybe<double> &v, Maybe<double> &seen,
                 Team &threads) {
  const Index n = rows.n();
  const auto *squares = sized(q, n, "q");
  const auto *point = sized(w, rows.width(), "w");
  double *a = sized(alpha, n, "alpha");
  double *sum = sized(v, rows.width(), "v");
  double *out = sized(seen, n, "margins");
  Dual kind = Dual::kOfW;
  if (dual == "given")
    kind = Dual::kGiven;
  else if (dual == "precise")
    kind = Dual::kPrecise;
  else if (dual == "built")
    kind = Dual::kBuilt;
  else if (dual != "of w")
    throw std::invalid_argument("dual: " + dual);
  if (kind != Dual::kOfW && !(a && sum))
    throw std::invalid_argument("this dual point needs alpha and v");
  if (sum) std::fill(sum, sum + rows.width(), 0.0);
  nb::gil_scoped_release released;
  return rows.visit([&](const auto &x) {
    return evaluate(x, terms, squares, point, kind, a, sum, out, threads);
  });
}

// A function of n dual variables, or other numbers of the rows, and of their costs.
template <class Result, class Number, class... More>
auto of_duals(Result (*f)(Number *, const double *, Index, const Loss &, More...)) {
  return [f](Array<Number> alpha, Array<const double> cost, const Loss &loss,
             More... more) {
    const Index n = alpha.length();
    const double *costs = sized(cost, n, "cost");
    if constexpr (std::is_same_v<Result, Vec>)
      return copied(f(alpha.data(), costs, n, loss, more...));
    else
      return f(alpha.data(), costs, n, loss, more...);
  };
}

void bind_certify(nb::module_ &m) {
  m.def(
      "signed_sum",
      [](Array<const std::int8_t> y, Array<const double> alpha) {
        const auto n = alpha.length();
        return signed_sum(sized(y, n, "y"), alpha.data(), n);
      },
      "y"_a, "alpha"_a, "sum_i y_i alpha_i, compensated.");

  m.def("dual_value", of_duals(&dual_value), "b"_a, "cost"_a, "loss"_a, "scale"_a,
        "norm"_a,
        "D of alpha = min(scale b, U), given norm = ||sum alpha_i y_i x_i||^2.");
  m.def("total_loss", of_duals(&total_loss), "margins"_a, "cost"_a, "loss"_a,
        "sum c_i l(m_i).");
  m.def("in_box", of_duals(&in_box), "alpha"_a, "cost"_a, "loss"_a,
        "Whether 0 <= alpha_i <= U_i for every i.");
  m.def("best_scale", of_duals(&best_scale), "alpha"_a, "cost"_a, "loss"_a, "sum"_a,
        "curvature"_a,
        "The s >= 0 that maximises D(s alpha) in the box, given sum alpha_i and "
        "||v||^2 + sum delta_i alpha_i^2; 0 if there is none, or if it overflows.");
  m.def("scale_into_box", of_duals(&scale_into_box), "alpha"_a, "cost"_a, "loss"_a,
        "scale"_a, "alpha_i <- min(scale alpha_i, U_i).");
  m.def("snapped", of_duals(&snapped), "alpha"_a, "cost"_a, "loss"_a, "share"_a,
        "most"_a,
        "The dual variables, with those at a bound that are within `share` U, and "
        "within `most`, of it.");

  nb::class_<Scaled>(m, "Scaled", "The best multiple of a point.")
      .def_ro("scale", &Scaled::scale)
      .def_ro("loss", &Scaled::loss, "sum of the losses there")
      .def_ro("loss_error", &Scaled::loss_error, "what rounding may hide of it");
  m.def(
      "best_multiple",
      [](const Examples &examples, Array<const double> margins, double norm,
         double length, double last, double roundings) {
        const Index n = examples.n;
        const double *at = sized(margins, n, "margins");
        const double constant =
            examples.rows.visit([](const auto &x) { return x.constant(); });
        const Sizes sizes{examples.q.data(), constant * constant, length, last,
                          static_cast<double>(examples.width() + 2)};
        nb::gil_scoped_release released;
        return best_multiple(at, examples.cost.data(), n, examples.loss, norm, sizes,
                             roundings);
      },
      "examples"_a, "margins"_a, "norm"_a, "length"_a, "last"_a, "roundings"_a,
      "The b in [1/2, 2] that minimises P(b w), given ||w||^2; the last three as in "
      "`Values`.");

  m.def(
      "class_probabilities",
      [](Table<const double> scores, Array<const std::int64_t> codes, Index first,
         Index last, Table<double> sums, Table<double> residual) {
        const auto classes = scores.length();
        const auto n = scores.columns();
        const auto *own = sized(codes, n, "codes");
        check_shape(sums, 4, n, "sums");
        check_shape(residual, classes, n, "residual");
        if (classes == 0 || first < 0 || last < first || last > n)
          throw std::invalid_argument("the rows are out of range");
        const Index most = std::max<Index>(classes, 2);
        const auto known = [&](std::int64_t c) { return 0 <= c && c < most; };
        if (!std::all_of(own + first, own + last, known))
          throw std::invalid_argument("a code is out of range");
        double *out = sums.data();
        const ClassRows rows{scores.data(), own,         n,
                             classes,       out,         out + n,
                             out + 2 * n,   out + 3 * n, residual.data()};
        nb::gil_scoped_release released;
        class_probabilities(rows, first, last);
      },
      "scores"_a, "codes"_a, "first"_a, "last"_a, "sums"_a, "residual"_a,
      "For rows first to last - 1 and scores of shape (classes, n), or (1, n) of the "
      "second of two classes whose first has the score 0: the rows of `sums` "
      "become sum exp(s_k - s_top) without one largest class, s_top - s_own, sum p_k "
      "(s_top - s_k) and 1 - p_own; `residual` becomes [y = k] - p_k.");

  m.def(
      "image_lengths",
      [](const AnyRows &rows, Table<const double> root, Array<double> out) {
        const Index width = rows.width();
        check_shape(root, width, width, "root");
        double *lengths = sized(out, rows.n(), "out");
        nb::gil_scoped_release released;
        rows.visit([&](const auto &x) { image_lengths(x, root.data(), lengths); });
      },
      "rows"_a, "root"_a, "out"_a,
      "out_i <- ||x_i' root|| for an upper triangular root.");

  m.def(
      "combine",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> alpha,
         Array<double> v, TeamOrCount threads) {
        const auto *labels = sized(y, rows.n(), "y");
        const auto *a = sized(alpha, rows.n(), "alpha");
        double *out = sized(v, rows.width(), "v");
        std::fill(out, out + rows.width(), 0.0);
        nb::gil_scoped_release released;
        rows.visit([&](const auto &x) { combine(x, labels, a, out, threads); });
      },
      "rows"_a, "y"_a, "alpha"_a, "v"_a, "threads"_a = 1,
      "v <- sum_i alpha_i y_i x_i.");

  m.def(
      "evaluate",
      [](const Examples &examples, Array<const double> w, const std::string &dual,
         Maybe<double> alpha, Maybe<double> v, Maybe<double> margins,
         TeamOrCount threads, Maybe<std::uint8_t> wake) {
        const MarginTerms terms{examples.y.data(), examples.cost.data(), examples.loss,
                                sized(wake, examples.n, "wake")};
        return values_of(examples.rows, terms, examples.q, w, dual, alpha, v, margins,
                         threads);
      },
      "examples"_a, "w"_a, "dual"_a, "alpha"_a.none(), "v"_a.none(),
      "margins"_a.none() = nb::none(), "threads"_a = 1, "wake"_a.none() = nb::none(),
      "One pass: sum c_i l(1 - m_i), sum a_i, sum delta_i a_i^2, and what bounds their "
      "rounding. `dual` is 'of w', 'given', 'precise' or 'built'. `wake` becomes 0 at "
      "rows that are not at a bound on their side of the margin.");

  m.def(
      "evaluate_residuals",
      [](const RegressionExamples &examples, Array<const double> w,
         const std::string &dual, Maybe<double> alpha, Maybe<double> v,
         Maybe<double> residuals, TeamOrCount threads) {
        const ResidualTerms terms{examples.y.data(), examples.cost.data(),
                                  examples.loss};
        return values_of(examples.rows, terms, examples.q, w, dual, alpha, v, residuals,
                         threads);
      },
      "examples"_a, "w"_a, "dual"_a, "alpha"_a.none(), "v"_a.none(),
      "residuals"_a.none(), "threads"_a = 1,
      "The same for l(|r_i| - epsilon): sum c_i l, sum (p_i a_i - epsilon |a_i|), "
      "sum delta_i a_i^2, and the bounds.");
}

}  // namespace
}  // namespace dualgap

NB_MODULE(DUALGAP_MODULE, m) {
  using namespace dualgap;
  // Users cannot mend what still holds an object when Python ends.
  nb::set_leak_warnings(std::getenv("DUALGAP_LEAKS") != nullptr);
  bind_rows(m);
  bind_tools(m);
  bind_examples(m);
  bind_certify(m);
  bind_kernel(m);
  bind_kernel_rows(m);
  bind_block(m);
  bind_crammer_singer(m);
  bind_cutting_planes(m);
  bind_dual_coordinate(m);
  bind_elastic_net(m);
  bind_folds(m);
  bind_stochastic_gradient(m);
  bind_regression(m);
  bind_row_sets(m);
  bind_interior(m);
  bind_io(m);
  bind_kernel_times(m);
  bind_labellings(m);
  bind_pairs(m);
  bind_simplex(m);
#ifdef DUALGAP_COVERAGE
  m.def("write_counters", [] { __gcov_dump(), __gcov_reset(); });
#endif
}
