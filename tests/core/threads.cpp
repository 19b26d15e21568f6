// Everything in the core that starts threads of its own, for ThreadSanitizer: a team
// and its callers, the text parser, kernel rows and the block solver. What they compute
// must not depend on how many threads there are.
//
//     c++ -std=c++20 -O1 -fsanitize=thread -Isrc/core -Isrc/io tests/core/threads.cpp
//         -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -pthread -o threads && ./threads
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gram/block.hpp"
#include "gram/kernel_rows.hpp"
#include "svmlight.hpp"

using namespace dualgap;

namespace {

void require(bool holds, const char *what) {
  if (holds) return;
  std::printf("%s\n", what);
  std::exit(1);
}

std::vector<long> squares(Team &team, Index parts, Index n) {
  std::vector<long> found(static_cast<std::size_t>(n));
  team.run(parts, n, [&](Index, Index begin, Index end) {
    for (Index i = begin; i < end; ++i) found[static_cast<std::size_t>(i)] = i * i;
  });
  return found;
}

void teams() {
  for (const Index size : {1, 2, 4}) {
    Team team(size);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller)
      callers.emplace_back([&team] {
        for (const Index parts : {1, 2, 7, 64})
          for (int turn = 0; turn < 50; ++turn)
            require(squares(team, parts, 100)[99] == 99 * 99, "a part was not done");
      });
    for (auto &caller : callers) caller.join();
    for (int turn = 0; turn < 50; ++turn) {
      bool told = false;
      try {
        team.run(8, 8, [](Index part, Index, Index) {
          if (part % 2 == 1) throw std::runtime_error(std::to_string(part));
        });
      } catch (const std::runtime_error &error) {
        told = std::strcmp(error.what(), "1") == 0;
      }
      require(told, "the first error was not passed on");
    }
  }
}

void parser() {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += std::to_string(i % 2) + " 1:0.5 " + std::to_string(2 + i % 7) + ":1e-3\n";
  const auto parse = [](const std::string &of, int threads) {
    svmlight::Options options;
    options.threads = threads;
    return svmlight::parse<double, std::int32_t>(of, options, [] { return false; });
  };
  const auto alone = parse(text, 1);
  for (const int threads : {2, 3, 8}) {
    const auto table = parse(text, threads);
    require(table.labels.size() == alone.labels.size(), "rows were lost");
    for (std::size_t k = 0; k < alone.values.size(); ++k)
      require(
          table.values[k] == alone.values[k] && table.indices[k] == alone.indices[k],
          "entries differ");
    bool told = false;
    try {
      parse(text + "1 2:x\n" + text + "1 3:y\n", threads);
    } catch (const svmlight::Malformed &error) {
      told = std::string(error.what()).rfind("line 301,", 0) == 0;
    }
    require(told, "the first malformed line was not told");
  }
}

std::vector<double> block(Index threads) {
  constexpr Index n = 120, d = 5;
  Random random(3);
  std::vector<double> data;
  for (Index k = 0; k < n * d; ++k)
    data.push_back(static_cast<double>(random.below(2001)) / 1000.0 - 1.0);
  using Rows = DenseRows<double>;
  KernelRows rows(std::make_unique<PointsOf<Rows>>(Rows(data.data(), n, d, 0.0),
                                                   Vector<Order>(), true),
                  KernelMap::of(tile::Shape::kExponential, 0.5, 0.0, 1), true, threads);
  BlockProblem problem{false, {}, Vec(n, 1.0), Vec(n, 1.0), {}};
  for (Index i = 0; i < n; ++i) problem.y.push_back(data[i * d] > 0.0 ? 1.0 : -1.0);
  problem.p = problem.y;
  Stop stop;
  Poll poll(stop, [] {});
  BlockSolver solver(rows, std::move(problem), 16, 32, 20'000, false, random);
  std::vector<double> duals;
  for (int set = 0; set < 20 && solver.step(0.1, poll) > 0; ++set)
    duals.push_back(solver.last_scan().dual);
  return duals;
}

}  // namespace

int main() {
  teams();
  parser();
  const auto alone = block(1);
  require(!alone.empty(), "the block solver made no step");
  for (const Index threads : {2, 4})
    require(block(threads) == alone, "threads changed a bit of the block solver");
  std::printf("no thread got in the way of another\n");
}
