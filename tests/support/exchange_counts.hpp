// What a program gives to collectives, as a library behind it counts it, by itself.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ein/mesh.hpp>

namespace ein::test {

/// Calls and bytes by "all_reduce 0 2", a collective and the ranks of its processes.
using Counts = std::map<std::string, std::pair<long long, long long>>;

/// From lines such as "all_reduce 0 2:calls,bytes".
inline Counts counts_in(const std::string& text) {
  std::istringstream lines(text);
  Counts counts;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), comma = line.find(',');
    counts[line.substr(0, colon)] = {std::stoll(line.substr(colon + 1)),
                                     std::stoll(line.substr(comma + 1))};
  }
  return counts;
}

/// What was given since `before`.
inline Counts difference(Counts now, const Counts& before) {
  for (const auto& [key, count] : before) {
    now[key].first -= count.first;
    now[key].second -= count.second;
    if (now[key].first == 0) now.erase(key);
  }
  return now;
}

inline Counts counts_of(const std::vector<Exchange>& exchanges, const Mesh& mesh) {
  Counts counts;
  for (const Exchange& exchange : exchanges) {
    std::string key(name(exchange.collective));
    for (int rank = 0; rank < mesh.size(); ++rank) {
      bool is_of_group = true;
      int rest = rank, own = mesh.rank();
      for (std::size_t a = mesh.axes().size(); a-- > 0;) {
        const auto& [axis, size] = mesh.axes()[a];
        const auto& over = exchange.over;
        is_of_group &=
            rest % size == own % size || std::find(over.begin(), over.end(), axis) != over.end();
        rest /= size;
        own /= size;
      }
      if (is_of_group) key += " " + std::to_string(rank);
    }
    counts[key] = {exchange.calls, exchange.bytes};
  }
  return counts;
}

}  // namespace ein::test
