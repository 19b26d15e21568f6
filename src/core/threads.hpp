// A loop over rows in as many contiguous parts as there are threads. The parts depend
// on the number of threads alone, so results that are added part by part do too.
#pragma once

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "rows.hpp"

namespace dualgap {

// Calls body(part, begin, end) for every part of 0..n-1, part 0 on this thread.
// The first exception, in the order of the parts, is passed on.
template <class Body>
void parallel_for(Index parts, Index n, const Body &body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(parts));
  const auto run = [&](Index part) {
    try {
      body(part, n * part / parts, n * (part + 1) / parts);
    } catch (...) {
      errors[static_cast<std::size_t>(part)] = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(parts));
  for (Index part = 1; part < parts; ++part) {
    try {
      workers.emplace_back(run, part);
    } catch (const std::system_error &) {
      run(part);  // the system gives no more threads
    }
  }
  run(0);
  for (auto &worker : workers) worker.join();
  for (const auto &error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace dualgap
