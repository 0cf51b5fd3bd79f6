// Random slices that begin at a position, read or written.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/one_op.hpp"

namespace ein::test {

/// A gather of a slice from its first input, or a place of the first into the second; the last
/// input is the position, of which `position` is one that there is.
struct RandomSlice {
  Graph graph;
  double position = 0;

  template <class Random>
  RandomSlice(Random& random, bool gathers) {
    const auto below = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    std::vector<int> order;
    Op op{.kind = gathers ? OpKind::gather : OpKind::place,
          .dtype = real_dtypes[below(std::size(real_dtypes))]};
    for (std::int64_t a = 1 + below(4); a > 0; --a) {
      order.push_back(static_cast<int>(op.axes.size()));
      op.axes.push_back({std::string(1, static_cast<char>('a' + op.axes.size())), 1 + below(9)});
    }
    Shape whole, part;
    op.dim = static_cast<int>(below(std::ssize(order)));
    Access in_whole = plain(order);
    std::int64_t positions = 1;
    for (const Axis& axis : op.axes) {
      const std::int64_t more = below(3);
      if (static_cast<int>(whole.rank()) == op.dim) {
        positions += more;
      } else {
        in_whole[whole.rank()].offset = below(more + 1);
      }
      whole.push_back(axis.size + more);
    }
    if (below(3) == 0) {  // a dimension that only one element of is met
      in_whole.push_back({below(2), {}});
      whole.push_back(2);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (int a : order) part.push_back(op.axes[static_cast<std::size_t>(a)].size);
    const DType of_position = below(2) == 0 ? DType::i64 : DType::i32;
    position = static_cast<double>(below(positions));
    if (gathers) {
      op.shape = part;
      op.write = plain(order);
      op.reads = {in_whole, {}};
      graph = graph_of({{op.dtype, whole}, {of_position, {}}}, op);
    } else {
      op.shape = whole;
      op.write = in_whole;
      op.reads = {plain(order), in_whole, {}};
      graph = graph_of({{op.dtype, part}, {op.dtype, whole}, {of_position, {}}}, op);
    }
  }
};

}  // namespace ein::test
