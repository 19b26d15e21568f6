// Cache of fixed size for rows of values of one type. It evicts the least recently used
// row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "../rows.hpp"

namespace dualgap {

template <class T>
class RowCache {
 public:
  using Value = T;
  // At most `capacity` of `rows` rows of `length` values.
  RowCache(Index rows, Index length, Index capacity)
      : length_(length), capacity_(capacity), slot_(capacity > 0 ? rows : 0, kNone) {}

  RowCache(const RowCache &) = delete;
  RowCache &operator=(const RowCache &) = delete;
  RowCache(RowCache &&) = default;
  RowCache &operator=(RowCache &&) = default;

  Index capacity() const { return capacity_; }
  Index held() const { return slots_.size(); }

  // Returns row i if it is cached, else null. Its age does not change.
  const T *peek(Index i) const {
    if (capacity_ == 0) return nullptr;
    const Slot slot = slot_[i];
    return slot == kNone ? nullptr : slots_[slot].values.get();
  }

  // Returns row i if it is cached, else null, and makes it the newest row.
  const T *find(Index i) {
    const T *values = peek(i);
    if (values) renew(slot_[i]);
    return values;
  }

  // Makes room for row i, calls `fill(values)` to write it, and makes it the newest
  // row. If `fill` throws, the room stays free.
  template <class Fill>
  const T *add(Index i, Fill &&fill) {
    const Slot slot = vacate();
    fill(at(slot).values.get());
    return keep(i, slot);
  }

  // Makes room for row i, which is not cached yet, and makes it the newest row.
  T *claim(Index i) { return keep(i, vacate()); }

  // Removes row i, whose values were not finished. Its room is used next.
  void drop(Index i) {
    const Slot slot = std::exchange(slot_[i], kNone);
    at(slot).row = kNobody;
    unlink(slot);
    link_oldest(slot);
  }

  void clear() {
    std::fill(slot_.begin(), slot_.end(), kNone);
    for (Entry &entry : slots_) entry.row = kNobody;
  }

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = static_cast<Slot>(-1);
  static constexpr Index kNobody = -1;
  struct Entry {
    std::unique_ptr<T[]> values;
    Index row;
    Slot older, newer;
  };
  Entry &at(Slot slot) { return slots_[slot]; }

  // Returns new room, or else the oldest room.
  Slot vacate() {
    if (held() < capacity_) {
      const Slot slot = static_cast<Slot>(held());
      slots_.push_back(
          {std::make_unique_for_overwrite<T[]>(length_), kNobody, kNone, kNone});
      link_oldest(slot);
      return slot;
    }
    const Slot slot = oldest_;
    const Index gone = std::exchange(at(slot).row, kNobody);
    if (gone != kNobody) slot_[gone] = kNone;
    return slot;
  }
  T *keep(Index i, Slot slot) {
    renew(slot);
    at(slot).row = i;
    slot_[i] = slot;
    return at(slot).values.get();
  }
  void unlink(Slot slot) {
    const Entry &entry = at(slot);
    (entry.older != kNone ? at(entry.older).newer : oldest_) = entry.newer;
    (entry.newer != kNone ? at(entry.newer).older : newest_) = entry.older;
  }
  void renew(Slot slot) {
    unlink(slot);
    at(slot).older = newest_;
    at(slot).newer = kNone;
    (newest_ != kNone ? at(newest_).newer : oldest_) = slot;
    newest_ = slot;
  }
  void link_oldest(Slot slot) {
    at(slot).newer = oldest_;
    at(slot).older = kNone;
    (oldest_ != kNone ? at(oldest_).older : newest_) = slot;
    oldest_ = slot;
  }

  Index length_, capacity_;
  Vector<Slot> slot_;  // slot of a row, or kNone
  Vector<Entry> slots_;
  Slot oldest_ = kNone, newest_ = kNone;
};

}  // namespace dualgap
