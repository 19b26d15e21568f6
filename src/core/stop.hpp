// Early exit from long kernels. A kernel counts its work. About every millisecond it
// checks the clock and a flag that any thread may set, and about every 50 ms it lets
// Python handle a pending signal. A kernel that is told to stop returns between two
// rows, with a consistent state.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "rows.hpp"

namespace dualgap {

class Stop {
 public:
  using Clock = std::chrono::steady_clock;

  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  void set_deadline(double seconds_from_now) {
    deadline_.store(now() + seconds_from_now, std::memory_order_relaxed);
  }
  bool expired() const { return now() > deadline_.load(std::memory_order_relaxed); }

  static double now() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

 private:
  std::atomic<bool> requested_{false};
  std::atomic<double> deadline_{std::numeric_limits<double>::infinity()};
};

class Poll {
 public:
  // `signals` runs pending signal handlers; the bindings supply it.
  Poll(const Stop &stop, std::function<void()> signals)
      : stop_(stop), signals_(std::move(signals)), last_(Stop::now()) {}

  // Adds the work of one row. Returns true if the kernel must stop now.
  bool operator()(Index entries) {
    left_ -= entries + 8;
    return left_ < 0 && look();
  }

 private:
  bool look() {
    left_ = kQuantum;
    const double now = Stop::now();
    if (now - last_ > kBetweenSignals) {
      last_ = now;
      signals_();
    }
    return stop_.requested() || stop_.expired();
  }
  // Entries between two looks at the clock: a fraction of a millisecond.
  static constexpr Index kQuantum = 1 << 20;
  // Seconds between two looks for signals, which take the interpreter's lock: Ctrl-C
  // still seems immediate.
  static constexpr double kBetweenSignals = 0.05;
  const Stop &stop_;
  std::function<void()> signals_;
  double last_;
  Index left_ = kQuantum;
};

// Poll of a loop over parts. The calling thread polls, and all threads stop.
class SharedPoll {
 public:
  explicit SharedPoll(Poll &poll) : poll_(poll), caller_(std::this_thread::get_id()) {}
  bool operator()(Index work) {
    if (std::this_thread::get_id() == caller_ && poll_(work))
      leave_.store(true, std::memory_order_relaxed);
    return leave();
  }
  bool leave() const { return leave_.load(std::memory_order_relaxed); }

 private:
  Poll &poll_;
  const std::thread::id caller_;
  std::atomic<bool> leave_{false};
};

}  // namespace dualgap
