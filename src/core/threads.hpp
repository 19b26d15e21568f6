// Loops over rows in contiguous parts, shared by threads. The parts depend on their
// number only, so sums that are added part by part do not depend on the assignment to
// threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

#include "rows.hpp"

namespace dualgap {

// Moves this thread, the `number`-th of a team, away from the processor `home`. Linux
// may leave a thread for milliseconds on the processor that started it while others are
// idle. Later it wakes the thread on the new processor. The thread may still move.
inline void step_aside([[maybe_unused]] int home, [[maybe_unused]] Index number) {
#if defined(__linux__)
  cpu_set_t all, one;
  if (home < 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
  const Index others = CPU_COUNT(&all) - (CPU_ISSET(home, &all) ? 1 : 0);
  if (others < 1) return;
  Index left = (number - 1) % others;
  for (int shift = 1; shift < CPU_SETSIZE; ++shift) {
    const int cpu = (home + shift) % CPU_SETSIZE;
    if (!CPU_ISSET(cpu, &all) || left-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
      sched_setaffinity(0, sizeof all, &all);
    return;
  }
#endif
}

inline int current_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Threads that wait between loops. They start with the first loop. If a second caller
// arrives during a loop, it does its own loop alone.
class Team {
 public:
  explicit Team(Index threads) : size_(threads) {
    if (threads < 1) throw std::invalid_argument("threads must be positive");
  }
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;
  ~Team() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    for (auto &worker : workers_) worker.join();
  }

  Index size() const { return size_; }
  // Number of parts of a loop whose result does not depend on it: several per thread,
  // because processors are not equally fast.
  Index shares() const { return size_ == 1 ? 1 : 16 * size_; }

  // Calls body(part, begin, end) for every part of 0..n-1, part 0 on this thread. Other
  // parts go to any free thread, so a thread that wakes late delays nothing. The first
  // exception, in the order of the parts, is rethrown.
  using Body = std::function<void(Index part, Index begin, Index end)>;
  void run(Index parts, Index n, const Body &body) {
    Vector<std::exception_ptr> errors(parts);
    const std::function<void(Index)> job = [&](Index part) {
      try {
        body(part, n * part / parts, n * (part + 1) / parts);
      } catch (...) {
        errors[part] = std::current_exception();
      }
    };
    if (parts > 1) {
      share(parts, job);
    } else if (parts == 1) {
      job(0);
    }
    for (const auto &error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void share(Index parts, const std::function<void(Index)> &job) {
    const Lock mine(turn_, std::try_to_lock);
    if (!mine) {
      for (Index part = 0; part < parts; ++part) job(part);
      return;
    }
    start(std::min(parts, size_));
    Lock lock(mutex_);
    job_ = &job, next_ = 1, parts_ = left_ = parts;
    lock.unlock();
    wake_.notify_all();
    job(0);
    lock.lock();
    --left_;
    take_parts(lock);
    finished_.wait(lock, [&] { return left_ == 0; });
  }

  void take_parts(Lock &lock) {
    while (next_ < parts_) {
      const Index part = next_++;
      lock.unlock();
      (*job_)(part);
      lock.lock();
      if (--left_ == 0) finished_.notify_one();
    }
  }

  void start(Index threads) {
    const int home = current_processor();
    for (Index number = workers_.size() + 1; number < threads; ++number) {
      try {
        workers_.emplace_back([this, home, number] {
          step_aside(home, number);
          Lock lock(mutex_);
          for (;;) {
            wake_.wait(lock, [&] { return ended_ || next_ < parts_; });
            if (ended_) return;
            take_parts(lock);
          }
        });
      } catch (const std::system_error &) {
        return;  // no more threads available: fewer threads do the same parts
      }
    }
  }

  const Index size_;
  Vector<std::thread> workers_;
  std::mutex turn_, mutex_;
  std::condition_variable wake_, finished_;
  const std::function<void(Index)> *job_ = nullptr;
  Index parts_ = 0, next_ = 0, left_ = 0;  // all, the next one, unfinished ones
  bool ended_ = false;
};

}  // namespace dualgap
