#include "draw/layers.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "size/ask.hpp"

namespace ein {
namespace {

constexpr std::size_t longest_bent_edge = 12;  // layers
constexpr double bend_width = 8;

class Layout {
 public:
  Layout(const std::vector<double>& widths,
         const std::vector<std::pair<std::size_t, std::size_t>>& edges, double gap)
      : widths_(widths), gap_(gap) {
    result_.bends.resize(edges.size());
    assign_layers(edges);
    add_bends(edges);
    for (int sweep = 0; sweep < 12; ++sweep) order(sweep % 2 == 0);
    place();
    finish();
  }

  LayeredLayout result() && { return std::move(result_); }

 private:
  using Nodes = std::vector<std::size_t>;

  void assign_layers(const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
    const std::size_t count = widths_.size();
    layer_.assign(count, 0);
    std::vector<Nodes> from(count), to(count);
    for (const auto& [a, b] : edges) {
      to[a].push_back(b);
      from[b].push_back(a);
    }
    for (std::size_t b = 0; b < count; ++b) {
      for (std::size_t a : from[b]) layer_[b] = std::max(layer_[b], layer_[a] + 1);
    }
    // What nothing leads to, but chains of its own, comes right before what reads it.
    std::vector<char> floats(count, 0);
    for (std::size_t n = 0; n < count; ++n) {
      floats[n] = !to[n].empty() && std::all_of(from[n].begin(), from[n].end(), [&](std::size_t a) {
        return floats[a] && to[a].size() == 1;
      });
    }
    for (std::size_t a = count; a-- > 0;) {
      if (!floats[a]) continue;
      std::size_t first = std::numeric_limits<std::size_t>::max();
      for (std::size_t b : to[a]) first = std::min(first, layer_[b]);
      layer_[a] = first - 1;
    }
    for (std::size_t layer : layer_) result_.layers = std::max(result_.layers, layer + 1);
  }

  /// Points where an edge passes through a layer are nodes, too.
  void add_bends(const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
    above_.resize(widths_.size());
    below_.resize(widths_.size());
    bends_.resize(edges.size());
    const auto connect = [&](std::size_t a, std::size_t b) {
      below_[a].push_back(b);
      above_[b].push_back(a);
    };
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const auto [a, b] = edges[e];
      std::size_t last = a;
      if (layer_[b] - layer_[a] <= longest_bent_edge) {
        for (std::size_t l = layer_[a] + 1; l < layer_[b]; ++l) {
          const std::size_t bend = widths_.size();
          widths_.push_back(bend_width);
          layer_.push_back(l);
          above_.emplace_back();
          below_.emplace_back();
          bends_[e].push_back(bend);
          connect(last, bend);
          last = bend;
        }
        connect(last, b);
      }
    }
    rows_.resize(result_.layers);
    for (std::size_t n = 0; n < widths_.size(); ++n) rows_[layer_[n]].push_back(n);
    x_.assign(widths_.size(), 0);
    for (Nodes& row : rows_) number(row);
  }

  void number(const Nodes& row) {
    for (std::size_t i = 0; i < row.size(); ++i) x_[row[i]] = static_cast<double>(i);
  }

  /// The mean of the places of a node's neighbours; its own where it has none.
  double wish(std::size_t node, const Nodes& neighbours) const {
    if (neighbours.empty()) return x_[node];
    double sum = 0;
    for (std::size_t n : neighbours) sum += x_[n];
    return sum / static_cast<double>(neighbours.size());
  }

  void order(bool down) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Nodes& row = rows_[down ? i : rows_.size() - 1 - i];
      std::vector<std::pair<double, std::size_t>> wishes;  // and places so far
      for (std::size_t k = 0; k < row.size(); ++k)
        wishes.emplace_back(wish(row[k], (down ? above_ : below_)[row[k]]), k);
      std::sort(wishes.begin(), wishes.end());
      const Nodes before = row;
      for (std::size_t k = 0; k < row.size(); ++k) row[k] = before[wishes[k].second];
      number(row);
    }
  }

  double distance(std::size_t left, std::size_t right) const {
    return (widths_[left] + widths_[right]) / 2 + gap_;
  }

  void place() {
    for (const Nodes& row : rows_) {
      for (std::size_t i = 1; i < row.size(); ++i)
        x_[row[i]] = x_[row[i - 1]] + distance(row[i - 1], row[i]);
    }
    for (int sweep = 0; sweep < 16; ++sweep) {
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const bool down = sweep % 2 == 0;
        settle(rows_[down ? i : rows_.size() - 1 - i], down);
      }
    }
  }

  /// Moves the nodes of a row as near to their wishes as their order and widths allow, in least
  /// squares: neighbours that would overlap form blocks (pool adjacent violators: Ayer et al., Ann.
  /// Math. Stat. 26, 1955).
  void settle(const Nodes& row, bool down) {
    struct Block {
      double sum = 0;  // of the wishes, less the places in the row
      std::size_t count = 0;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<Block> blocks;
    std::vector<double> at;  // of each node when the first is at 0
    for (std::size_t i = 0; i < row.size(); ++i) {
      at.push_back(i == 0 ? 0 : at.back() + distance(row[i - 1], row[i]));
      const Nodes& ahead = down ? above_[row[i]] : below_[row[i]];
      const Nodes& behind = down ? below_[row[i]] : above_[row[i]];
      const double wished = ahead.empty() ? wish(row[i], behind) : wish(row[i], ahead);
      blocks.push_back({wished - at[i], 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() >= blocks.back().mean()) {
        blocks[blocks.size() - 2].sum += blocks.back().sum;
        blocks[blocks.size() - 2].count += blocks.back().count;
        blocks.pop_back();
      }
    }
    std::size_t i = 0;
    for (const Block& block : blocks) {
      for (std::size_t k = 0; k < block.count; ++k, ++i) x_[row[i]] = at[i] + block.mean();
    }
  }

  void finish() {
    double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest();
    for (std::size_t n = 0; n < x_.size(); ++n) {
      least = std::min(least, x_[n] - widths_[n] / 2);
      most = std::max(most, x_[n] + widths_[n] / 2);
    }
    if (x_.empty()) return;
    for (double& x : x_) x -= least;
    result_.width = most - least;
    const std::size_t count = above_.size() - bend_count();
    result_.x.assign(x_.begin(), x_.begin() + static_cast<std::ptrdiff_t>(count));
    result_.layer.assign(layer_.begin(), layer_.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t e = 0; e < bends_.size(); ++e) {
      for (std::size_t bend : bends_[e]) result_.bends[e].emplace_back(x_[bend], layer_[bend]);
    }
  }
  std::size_t bend_count() const {
    return std::accumulate(bends_.begin(), bends_.end(), std::size_t{0},
                           [](std::size_t n, const Nodes& bends) { return n + bends.size(); });
  }

  std::vector<double> widths_;
  double gap_;
  std::vector<std::size_t> layer_;
  std::vector<Nodes> above_, below_, bends_, rows_;
  std::vector<double> x_;
  LayeredLayout result_;
};

}  // namespace

LayeredLayout layered_layout(const std::vector<double>& widths,
                             const std::vector<std::pair<std::size_t, std::size_t>>& edges,
                             double gap) {
  return Layout(widths, edges, gap).result();
}

}  // namespace ein
