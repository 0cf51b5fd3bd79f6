#include "draw/network.hpp"

#include <algorithm>
#include <vector>

#include "draw/coloured.hpp"
#include "size/ask.hpp"

namespace ein::draw {
namespace {

constexpr double node_width = 112, node_gap = 96, least_height = 44, edge_gap = 20, rail_gap = 24,
                 drop = 74, port_width = 66, loop_line = 19, indent = 18;

double text_width(const std::string& text) {
  return static_cast<double>(length(text)) * 12 * Svg::character;
}

/// An axis and how often each operand has it, and the result.
struct Edge {
  std::size_t axis = 0;
  std::vector<std::size_t> times;
  std::size_t in_result = 0;
  bool is_summed() const { return in_result == 0; }
  /// The operands that have it.
  std::vector<std::size_t> ends() const {
    std::vector<std::size_t> ends;
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (times[k] > 0) ends.push_back(k);
    }
    return ends;
  }
  bool is_between_neighbours() const {
    const std::vector<std::size_t> all = ends();
    return is_summed() && all.size() == 2 && all[1] == all[0] + 1;
  }
};

std::size_t times_in(const Dimension& dim, std::size_t axis) {
  std::size_t times = 0;
  for (const Factor& factor : dim) {
    times += factor.kind == Factor::axis && factor.number == axis;
    times += static_cast<std::size_t>(std::count(factor.reads.begin(), factor.reads.end(), axis));
    for (const Dimension& piece : factor.pieces) times += times_in(piece, axis);
  }
  return times;
}
std::size_t times_in(const DrawnTensor& tensor, std::size_t axis) {
  std::size_t times = 0;
  for (const Dimension& dim : tensor.dims) times += times_in(dim, axis);
  return times;
}

std::vector<Edge> edges_of(const Example& example) {
  std::vector<Edge> edges;
  for (std::size_t a = 0; a < example.axes.size(); ++a) {
    Edge edge{a, {}, 0};
    for (const DrawnTensor& operand : example.operands) edge.times.push_back(times_in(operand, a));
    for (const DrawnTensor& result : example.results) edge.in_result += times_in(result, a);
    if (edge.in_result > 0 || !edge.ends().empty()) edges.push_back(std::move(edge));
  }
  return edges;
}

std::string label(const DrawnAxis& axis) {
  const std::int64_t size = axis.real.value_or(axis.size);
  const std::string number = std::to_string(size);
  return axis.name == number ? number : shortened(axis.name, 12) + " " + number;
}
std::string operand(const Example& example, std::size_t k) {
  return example.operands.size() > 1 ? "operand " + std::to_string(k + 1) : "operand";
}

class Network {
 public:
  Network(Svg& svg, const Example& example, double x, double y)
      : svg_(svg), example_(example), x_(x), edges_(edges_of(example)) {
    std::vector<std::size_t> between(example.operands.size(), 0);
    std::size_t rails = 0;
    for (const Edge& edge : edges_) {
      if (!edge.is_summed()) {
        kept_.push_back(&edge);
      } else if (edge.is_between_neighbours()) {
        ++between[edge.ends()[0]];
      } else {
        ++rails;
      }
    }
    const std::size_t most = *std::max_element(between.begin(), between.end());
    node_height_ = std::max(least_height, static_cast<double>(most) * edge_gap + 12);
    nodes_ = y + static_cast<double>(rails) * rail_gap + (rails > 0 ? 8 : 0);
    result_ = nodes_ + node_height_ + (kept_.empty() ? 20 : drop);
    const double row =
        static_cast<double>(example.operands.size()) * (node_width + node_gap) - node_gap;
    const double ports = std::max(node_width, static_cast<double>(kept_.size()) * port_width);
    width_ = std::max(row, ports);
    row_ = x + (width_ - row) / 2;
    ports_ = x + (width_ - ports) / 2;
    ports_width_ = ports;
  }

  Rectangle draw(double top) {
    summed();
    kept();
    for (std::size_t k = 0; k < example_.operands.size(); ++k)
      box({node_x(k), nodes_, node_width, node_height_}, operand(example_, k));
    const double loops_width = loops(x_ + width_ + 56, top);
    const double end = result_ + 34;
    return {x_, top, width_ + 56 + loops_width, std::max(end, loops_end_) - top};
  }

 private:
  double node_x(std::size_t k) const {
    return row_ + static_cast<double>(k) * (node_width + node_gap);
  }
  std::string classes(const Edge& edge) { return "line wide " + svg_.stroke(hue(edge.axis)); }
  void name(const Edge& edge, double x, double y, Svg::Anchor anchor = Svg::Anchor::middle) {
    svg_.text(x, y, label(example_.axes[edge.axis]), "bold " + svg_.fill(hue(edge.axis)), anchor);
  }
  void box(const Rectangle& at, const std::string& text) {
    svg_.rectangle(at, 8, svg_.fill(shade(hue(7), 1)) + " " + svg_.stroke(line));
    svg_.text(at.x + at.width / 2, at.y + at.height / 2 + 4, text, "", Svg::Anchor::middle);
  }
  /// Where the line of an edge leaves a node at its top or bottom: a place for each of `edges`.
  double slot(std::size_t node, std::size_t place, std::size_t places) const {
    return node_x(node) +
           node_width * static_cast<double>(place + 1) / static_cast<double>(places + 1);
  }

  void summed() {
    std::vector<std::size_t> between(example_.operands.size(), 0), beside(between);
    std::vector<std::size_t> above(example_.operands.size(), 0), used(above);
    for (const Edge& edge : edges_) {
      if (!edge.is_summed()) continue;
      if (edge.is_between_neighbours()) {
        ++beside[edge.ends()[0]];
        continue;
      }
      for (const std::size_t k : edge.ends()) above[k] += std::min<std::size_t>(edge.times[k], 2);
    }
    std::size_t rail = 0;
    for (const Edge& edge : edges_) {
      if (!edge.is_summed()) continue;
      const std::vector<std::size_t> ends = edge.ends();
      if (edge.is_between_neighbours()) {
        const std::size_t k = ends[0];
        const double y = nodes_ + node_height_ * static_cast<double>(between[k]++ + 1) /
                                      static_cast<double>(beside[k] + 1);
        svg_.path("M" + number(node_x(k) + node_width) + " " + number(y) + "h" + number(node_gap),
                  classes(edge));
        name(edge, node_x(k) + node_width + node_gap / 2, y - 5);
        continue;
      }
      const double y = nodes_ - 8 - static_cast<double>(rail++ + 1) * rail_gap + 12;
      std::vector<double> at;
      for (const std::size_t k : ends) {
        for (std::size_t t = 0; t < std::min<std::size_t>(edge.times[k], 2); ++t)
          at.push_back(slot(k, used[k]++, above[k]));
      }
      for (const double x : at) {
        svg_.path("M" + number(x) + " " + number(nodes_) + "V" + number(y), classes(edge));
        svg_.circle(x, y, 3, svg_.fill(hue(edge.axis)));
      }
      svg_.path("M" + number(at.front()) + " " + number(y) + "H" + number(at.back()),
                classes(edge));
      if (at.size() == 1)
        name(edge, at[0] + 8, y + 4, Svg::Anchor::start);
      else
        name(edge, (at.front() + at.back()) / 2, y - 5);
    }
  }

  void kept() {
    const double top = result_;
    std::vector<std::size_t> below(example_.operands.size(), 0), used(below);
    for (const Edge* edge : kept_) {
      for (const std::size_t k : edge->ends()) below[k] += std::min<std::size_t>(edge->times[k], 2);
    }
    svg_.rectangle({ports_, top, ports_width_, 30}, 8,
                   svg_.fill(page) + " " + svg_.stroke(line) + " dashed");
    if (kept_.empty())
      svg_.text(ports_ + ports_width_ / 2, top + 19, "result", "", Svg::Anchor::middle);
    for (std::size_t p = 0; p < kept_.size(); ++p) {
      const Edge& edge = *kept_[p];
      const double x = ports_ + ports_width_ * (static_cast<double>(p) + 0.5) /
                                    static_cast<double>(kept_.size());
      std::size_t lines = 0;
      for (const std::size_t k : edge.ends()) {
        for (std::size_t t = 0; t < std::min<std::size_t>(edge.times[k], 2); ++t, ++lines) {
          const double from = slot(k, used[k]++, below[k]), y = nodes_ + node_height_;
          const double middle = (y + top - 12) / 2;
          svg_.path("M" + number(from) + " " + number(y) + "C" + number(from) + " " +
                        number(middle) + " " + number(x) + " " + number(middle) + " " + number(x) +
                        " " + number(top - 12) + "V" + number(top),
                    classes(edge));
        }
      }
      if (lines > 1) svg_.circle(x, top - 12, 3.5, svg_.fill(hue(edge.axis)));
      name(edge, x, top + 19);
    }
  }

  /// As a program; its width.
  double loops(double x, double y) {
    double width = 0;
    const auto write = [&](std::vector<Svg::Span> spans, std::size_t depth) {
      double end = static_cast<double>(depth) * indent;
      std::string all;
      for (const Svg::Span& span : spans) all += span.content;
      end += text_width(all);
      svg_.text(x + static_cast<double>(depth) * indent, y += loop_line, spans);
      width = std::max(width, end);
    };
    const auto write_loop = [&](const Edge& edge, std::size_t depth) {
      const DrawnAxis& axis = example_.axes[edge.axis];
      write({{"for ", svg_.fill(dim)},
             {shortened(axis.name, 12), "bold " + svg_.fill(hue(edge.axis))},
             {" of " + std::to_string(axis.real.value_or(axis.size)), svg_.fill(dim)}},
            depth);
    };
    const auto element = [&](std::vector<Svg::Span>& to, const std::string& of, SourceSpan side) {
      to.push_back({of + "[", ""});
      for (Svg::Span& span : coloured(svg_, example_, trimmed(side))) to.push_back(std::move(span));
      to.push_back({"]", ""});
    };
    std::size_t depth = 0;
    for (const Edge* edge : kept_) write_loop(*edge, depth++);
    const bool sums = kept_.size() < edges_.size();
    std::vector<Svg::Span> statement;
    element(statement, "result", example_.results[0].span);
    if (sums) {
      std::vector<Svg::Span> first = statement;
      first.push_back({" = 0", ""});
      write(std::move(first), depth);
      for (const Edge& edge : edges_) {
        if (edge.is_summed()) write_loop(edge, depth++);
      }
    }
    statement.push_back({sums ? " += " : " = ", ""});
    const bool is_long = example_.operands.size() > 2;
    for (std::size_t k = 0; k < example_.operands.size(); ++k) {
      if (k > 0) statement.push_back({" · ", ""});
      if (is_long && k % 2 == 0) {
        write(std::move(statement), depth + (k > 0 ? 2 : 0));
        statement.clear();
      }
      element(statement, operand(example_, k), example_.operands[k].span);
    }
    write(std::move(statement), depth + (is_long ? 2 : 0));
    loops_end_ = y + 8;
    return width;
  }
  /// Without the blanks around it.
  SourceSpan trimmed(SourceSpan span) const {
    constexpr std::string_view blanks = " \t\n\v\f\r";
    while (span.begin < span.end && blanks.find(example_.text[span.begin]) != blanks.npos)
      ++span.begin;
    while (span.begin < span.end && blanks.find(example_.text[span.end - 1]) != blanks.npos)
      --span.end;
    return span;
  }

  Svg& svg_;
  const Example& example_;
  double x_;
  std::vector<Edge> edges_;
  std::vector<const Edge*> kept_;
  double node_height_ = 0, nodes_ = 0, result_ = 0, width_ = 0, row_ = 0, ports_ = 0,
         ports_width_ = 0, loops_end_ = 0;
};

}  // namespace

Rectangle draw_network(Svg& svg, const Example& example, double x, double y) {
  svg.style(".wide{stroke-width:2}.dashed{stroke-dasharray:4 3}");
  return Network(svg, example, x, y).draw(y);
}

std::string network_in_words(const Example& example) {
  std::string text;
  for (const Edge& edge : edges_of(example)) {
    std::string ends;
    for (const std::size_t k : edge.ends())
      ends += (ends.empty() ? "" : " and ") + operand(example, k);
    text += "Axis " + label(example.axes[edge.axis]) + ": " +
            (ends.empty() ? "new" : "of " + ends) + (edge.is_summed() ? ", summed. " : ", kept. ");
  }
  return text;
}

}  // namespace ein::draw
