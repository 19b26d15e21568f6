// Kernel values on every tail of the tile, for the sanitizers: sizes that are no
// multiples of 6 or 12 queries, 32 points, or 2 to 16 lanes, in buffers of exactly the
// size promised, against plain sums.
//
//     for level in v2 v3 v4; do
//       c++ -std=c++20 -O0 -march=x86-64-$level -fsanitize=address,undefined
//           -fno-sanitize-recover=all -Isrc/core
//           tests/core/tile_tails.cpp -pthread -o tile_tails && ./tile_tails
//     done
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "gram/block.hpp"
#include "gram/row_errors.hpp"

using namespace dualgap;

namespace {

struct Data {
  Index n, d;
  std::vector<double> dense;
  std::vector<float> values;
  std::vector<std::int32_t> indices, indptr{0};
};

// Rows 0, 3, 6, ... moved far away from the others.
Data far_apart(Data data) {
  for (Index i = 0; i < data.n; i += 3) {
    for (Index e = data.indptr[static_cast<std::size_t>(i)];
         e < data.indptr[static_cast<std::size_t>(i + 1)]; ++e) {
      const auto k =
          static_cast<std::size_t>(data.indices[static_cast<std::size_t>(e)]);
      double &v = data.dense[static_cast<std::size_t>(i * data.d) + k];
      v += 65536.0;
      v = static_cast<double>(static_cast<float>(v));
      data.values[static_cast<std::size_t>(e)] = static_cast<float>(v);
    }
  }
  return data;
}

Data draw(Random &random, Index n, Index d, bool sparse) {
  Data data{n, d, {}, {}, {}};
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < d; ++k) {
      const double u = static_cast<double>(random.below(2001)) / 1000.0 - 1.0;
      const double v = sparse && random.below(10) < 7 ? 0.0 : u;
      data.dense.push_back(static_cast<double>(static_cast<float>(v)));
      if (v == 0.0) continue;
      data.values.push_back(static_cast<float>(v));
      data.indices.push_back(static_cast<std::int32_t>(k));
    }
    data.indptr.push_back(static_cast<std::int32_t>(data.values.size()));
  }
  return data;
}

constexpr double kGamma = 0.4, kCoef0 = 0.7;
constexpr int kDegree = 3;

double exact(tile::Shape shape, const Data &data, Index i, Index j) {
  double dot = 0.0, square = 0.0, sum = 0.0;
  for (Index k = 0; k < data.d; ++k) {
    const double a = data.dense[static_cast<std::size_t>(i * data.d + k)];
    const double b = data.dense[static_cast<std::size_t>(j * data.d + k)];
    dot += a * b;
    square += (a - b) * (a - b);
    sum += std::abs(a - b);
  }
  switch (shape) {
    case tile::Shape::kLinear:
      return dot;
    case tile::Shape::kExponential:
    case tile::Shape::kDifferences:
      return std::exp(-kGamma * square);
    case tile::Shape::kLaplacian:
      return std::exp(-kGamma * sum);
    case tile::Shape::kPolynomial:
      return std::pow(kGamma * dot + kCoef0, kDegree);
    case tile::Shape::kSigmoid:
      return std::tanh(kGamma * dot + kCoef0);
  }
  return 0.0;
}

void expect(double found, double wanted, double tolerance, const char *what) {
  if (std::abs(found - wanted) <= tolerance * (1.0 + std::abs(wanted))) return;
  std::printf("%s: %.17g instead of %.17g\n", what, found, wanted);
  std::exit(1);
}

std::unique_ptr<Points> points_of(const Data &data, bool dense) {
  if (dense) {
    using Rows = DenseRows<double>;
    return std::make_unique<PointsOf<Rows>>(
        Rows(data.dense.data(), data.n, data.d, 0.0), Vector<Order>(), true);
  }
  using Rows = CsrRows<float, std::int32_t>;
  return std::make_unique<PointsOf<Rows>>(
      Rows(data.values.data(), data.indices.data(), Pointers(data.indptr.data()),
           data.n, data.d, 0.0),
      Vector<Order>(), true);
}

void check(tile::Shape shape, const Data &data, Index m, bool dense, Random &random,
           Poll &poll) {
  KernelRows rows(points_of(data, dense), KernelMap::of(shape, kGamma, kCoef0, kDegree),
                  dense, 2);
  const Index n = data.n, stride = rows.stride(), many = n / 2 + 1;
  const Index width = tile::in_panels(many);
  std::vector<Order> who, columns;
  std::vector<double> coef;
  for (Index t = 0; t < m; ++t) {
    who.push_back(random.below(static_cast<std::uint32_t>(n)));
    coef.push_back(static_cast<double>(random.below(100)) / 50.0 - 1.0);
  }
  for (Index t = 0; t < many; ++t)
    columns.push_back(random.below(static_cast<std::uint32_t>(n)));
  std::vector<double> kernel;  // [m][n]
  for (const Order i : who)
    for (Index j = 0; j < n; ++j)
      kernel.push_back(exact(shape, data, static_cast<Index>(i), j));
  for (const bool precise : {false, true}) {
    rows.set_precise(precise);
    const double near = precise ? 2e-7 : 1e-5;
    std::vector<std::unique_ptr<float[]>> whole, some;
    std::vector<float *> to, at;
    for (Index t = 0; t < m; ++t) {
      whole.emplace_back(new float[static_cast<std::size_t>(stride)]);
      some.emplace_back(new float[static_cast<std::size_t>(width)]);
      to.push_back(whole.back().get());
      at.push_back(some.back().get());
    }
    rows.rows(who.data(), m, to.data(), poll);
    rows.cross(who.data(), m, columns.data(), many, at.data(), poll);
    std::vector<double> sums(static_cast<std::size_t>(stride), 0.0), products = sums;
    rows.add_rows(who.data(), coef.data(), m, sums.data(), poll);
    std::vector<double> off(static_cast<std::size_t>(n),
                            1e-12 * static_cast<double>(m));
    rows.times(who.data(), coef.data(), m, {nullptr, n}, products.data(),
               rows.bounded() ? off.data() : nullptr, poll);
    std::vector<double> at_some(static_cast<std::size_t>(width), 0.0),
        errors(static_cast<std::size_t>(n));
    std::vector<double> off_some(static_cast<std::size_t>(many));
    rows.times(who.data(), coef.data(), m, {columns.data(), many}, at_some.data(),
               rows.bounded() ? off_some.data() : nullptr, poll);
    for (Index s = 0; s < many; ++s)
      expect(at_some[s], products[columns[s]], 0.0, "times at some rows");
    row_errors(rows, false, errors.data());
    for (Index j = 0; j < n; ++j) {
      double sum = 0.0;
      for (Index t = 0; t < m; ++t) {
        const double k = kernel[static_cast<std::size_t>(t * n + j)];
        expect(to[t][j], k, near, "rows");
        sum += coef[t] * k;
      }
      expect(sums[j], sum, near * static_cast<double>(m), "add_rows");
      // The sum here is rounded too.
      expect(products[j], sum, off[j] + 1e-15 * static_cast<double>(m), "times");
      expect(off[j], 0.0, 1e-7 * static_cast<double>(m), "the bound of times");
    }
    for (Index t = 0; t < m; ++t)
      for (Index s = 0; s < many; ++s)
        expect(at[t][s], to[t][columns[s]], 0.0, "cross");
    if (shape == tile::Shape::kExponential || shape == tile::Shape::kLaplacian)
      for (Index t = 0; t < m; ++t) expect(to[t][who[t]], 1.0, 0.0, "k(x, x)");
    if (!rows.fixed()) continue;
    std::vector<std::unique_ptr<simd::Fixed[]>> fixed;
    std::vector<simd::Fixed *> into;
    for (Index t = 0; t < m; ++t) {
      fixed.emplace_back(new simd::Fixed[static_cast<std::size_t>(stride)]);
      into.push_back(fixed.back().get());
    }
    rows.rows(who.data(), m, into.data(), poll);
    for (Index t = 0; t < m; ++t)
      for (Index j = 0; j < n; ++j)
        expect(into[t][j] / 65535.0, to[t][j], 0.51 / 65535.0, "rows in 16 bits");
  }
}

// Some working sets, with a cache that does not hold them.
void fit(const Data &data, bool dense, bool squared, bool fixed, Index q,
         Random &random, Poll &poll) {
  KernelRows rows(points_of(data, dense),
                  KernelMap::of(tile::Shape::kExponential, kGamma, 0.0, 1), dense, 2);
  const auto n = static_cast<std::size_t>(data.n);
  BlockProblem problem{squared, {}, Vec(n, 10.0), Vec(n, 1.0), {}};
  for (std::size_t i = 0; i < n; ++i)
    problem.y.push_back(i == 0 || random.below(2) ? 1.0 : -1.0);
  problem.p = problem.y;
  BlockSolver solver(rows, std::move(problem), q, 2 * q, 20'000, fixed, random);
  double dual = solver.last_scan().dual;
  for (int set = 0; set < 80; ++set) {
    if (solver.step(0.1, poll) == 0) break;
    if (!(solver.last_scan().dual >= dual - 1e-4 * std::abs(dual))) {
      std::printf("the dual value fell to %g\n", solver.last_scan().dual);
      std::exit(1);
    }
    dual = solver.last_scan().dual;
  }
}

}  // namespace

int main() {
  Stop stop;
  Poll poll(stop, [] {});
  Random random(1);
  constexpr Index kSizes[][2] = {{1, 1},   {2, 3},   {31, 5},   {32, 6},  {33, 7},
                                 {63, 11}, {65, 12}, {100, 13}, {96, 25}, {129, 33}};
  for (const auto &[n, m] : kSizes)
    for (const Index d : {1, 7, 40})
      for (const bool dense : {true, false}) {
        const Data data = draw(random, n, d, !dense);
        for (const auto shape :
             {tile::Shape::kLinear, tile::Shape::kExponential, tile::Shape::kLaplacian,
              tile::Shape::kPolynomial, tile::Shape::kSigmoid})
          check(shape, data, m, dense, random, poll);
        if (d != 7) continue;  // what follows has no tails of d that `check` has not
        for (const auto shape : {tile::Shape::kExponential, tile::Shape::kLaplacian})
          check(shape, far_apart(data), m, dense, random, poll);
        for (const bool squared : {false, true})
          for (const Index q : {2, 15, 16, 33})
            fit(data, dense, squared, q > 15, q, random, poll);
      }
  std::printf("every tail passed\n");
}
