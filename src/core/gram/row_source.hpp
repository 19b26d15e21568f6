// Base of the sources of kernel rows.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "../simd.hpp"
#include "../stop.hpp"
#include "../threads.hpp"
#include "tile.hpp"

namespace dualgap {

class RowSource {
 public:
  explicit RowSource(Index threads) : team_(std::max<Index>(threads, 1)) {}
  virtual ~RowSource() = default;
  virtual Index n() const = 0;
  // Entries of a row, rounded up to whole panels.
  Index stride() const { return tile::in_panels(n()); }
  // Threads that share the work on rows.
  Team &team() const { return team_; }
  // Cost of computing a value, relative to adding a cached value.
  virtual double cost() const = 0;
  // out[t][j] <- k(x_who[t], x_j), t < m, j < n; out[t] has stride() entries. Returns
  // false if told to stop; the rows are incomplete then.
  virtual bool rows(const Order *who, Index m, float *const *out, Poll &poll) const = 0;
  // Whether rows in 16 bits are possible: all values are in [0, 1].
  virtual bool fixed() const { return false; }
  virtual bool rows(const Order *, Index, simd::Fixed *const *, Poll &) const {
    throw std::logic_error("rows that are not from 0 to 1");
  }
  // out[t][s] <- k(x_who[t], x_columns[s]), s < many, with the same bits as `rows`.
  // out[t] has room for `many` rounded up to panels.
  virtual bool cross(const Order *who, Index m, const Order *columns, Index many,
                     float *const *out, Poll &poll) const = 0;
  // sums_j += sum_t coef_t k(x_who[t], x_j). No row is stored.
  virtual bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                        Poll &poll) const = 0;
  // out_j <- k(x_i, x_j), j < n, one row as fast as possible. Its bits may differ from
  // the bits in `rows`.
  virtual void row(Index i, float *out) const = 0;
  // out[t * stride + s] <- k(x_who[t], x_columns[s]), s < many, in float64. All columns
  // if `columns` is null.
  virtual void block(const Order *who, Index m, const Order *columns, Index many,
                     double *out, Index stride) const = 0;

 private:
  mutable Team team_;
};

}  // namespace dualgap
