// Allocations that fail, one after another, in the constructors of kernel rows, the
// cache and the block solver, and in their work: each is told as std::bad_alloc (in
// Python a MemoryError), loses no memory, and leaves what was there before usable.
//
//     c++ -std=c++20 -O1 -Isrc/core tests/core/failing_allocations.cpp -pthread
//         -o failing && ./failing
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "gram/block.hpp"
#include "gram/gram.hpp"
#include "gram/kernel_rows.hpp"

namespace {

long live = 0, left = -1;  // allocations held, and allowed before one fails

void *allocate(std::size_t bytes, std::size_t alignment) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  const std::size_t whole = (bytes + alignment) / alignment * alignment;
  void *p = std::aligned_alloc(alignment, whole);
  if (!p) throw std::bad_alloc();
  ++live;
  return p;
}
void release(void *p) {
  live -= p != nullptr;
  std::free(p);
}

}  // namespace

void *operator new(std::size_t n) { return allocate(n, alignof(std::max_align_t)); }
void *operator new[](std::size_t n) { return operator new(n); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept {
  try {
    return operator new(n);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void *operator new(std::size_t n, std::align_val_t to) {
  return allocate(n, static_cast<std::size_t>(to));
}
void operator delete(void *p) noexcept { release(p); }
void operator delete[](void *p) noexcept { release(p); }
void operator delete(void *p, std::size_t) noexcept { release(p); }
void operator delete[](void *p, std::size_t) noexcept { release(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }
void operator delete(void *p, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { release(p); }

using namespace dualgap;

namespace {

constexpr Index n = 70, d = 5;
double data[n * d];

void require(bool holds, const char *what) {
  if (holds) return;
  std::printf("%s\n", what);
  std::exit(1);
}

std::unique_ptr<KernelRows> kernel_rows(bool dense) {
  using Rows = DenseRows<double>;
  return std::make_unique<KernelRows>(
      std::make_unique<PointsOf<Rows>>(Rows(data, n, d, 0.0), Vector<Order>(), true),
      KernelMap::of(tile::Shape::kExponential, 0.5, 0.0, 1), dense, 1);
}

double cached(Gram &gram) {
  double sum = 0.0, block[6];
  for (const Index i : {3, 9, 3, 40}) sum += static_cast<double>(gram.row(i)[i + 1]);
  gram.block(2, [](Index q) { return q; }, 3, [](Index t) { return 7 * t; }, block, 3);
  for (const double value : block) sum += value;
  return sum;
}

double solved(const KernelRows &rows, bool squared) {
  Random random(3);
  BlockProblem problem{squared, {}, Vec(n, 1.0), Vec(n, 1.0), {}};
  for (Index i = 0; i < n; ++i) problem.y.push_back(data[i * d] > 0.0 ? 1.0 : -1.0);
  problem.p = problem.y;
  Stop stop;
  Poll poll(stop, [] {});
  auto &source = const_cast<KernelRows &>(rows);
  BlockSolver solver(source, std::move(problem), 16, 32, 20'000, false, random);
  for (int set = 0; set < 5; ++set) solver.step(0.1, poll);
  return solver.last_scan().dual;
}

// Runs work() with the k-th allocation failing, for all k. Returns how many failed.
template <class Work>
int fail_each(const Work &work) {
  const double expected = work();
  for (int k = 0;; ++k) {
    const long before = live;
    bool failed = false;
    left = k;
    double found = expected;
    try {
      found = work();
    } catch (const std::bad_alloc &) {
      failed = true;
    }
    left = -1;
    require(live == before, "memory was lost");
    if (!failed) {
      require(found == expected, "a result changed");
      return k;
    }
    require(work() == expected, "a failure was not forgotten");
  }
}

}  // namespace

int main() {
  Random random(1);
  for (double &x : data) x = static_cast<double>(random.below(2001)) / 1000.0 - 1.0;
  int failures = 0;
  for (const bool dense : {true, false}) {
    // Everything anew.
    failures += fail_each([&] {
      const auto rows = kernel_rows(dense);
      Gram gram(*rows, 2);
      return cached(gram) + solved(*rows, dense);
    });
    // A cache that stays, whose rows are evicted.
    const auto rows = kernel_rows(dense);
    Gram gram(*rows, 2);
    failures += fail_each([&] { return cached(gram); });
  }
  require(failures > 200, "few allocations were seen");
  std::printf("every failure was told, and nothing was lost\n");
}
