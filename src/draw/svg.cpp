#include "draw/svg.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "draw/layers.hpp"

namespace ein {
namespace {

// In pixels.
constexpr double line_height = 16, box_height = 3 * line_height + 8, pill_height = 24;
constexpr double layer_height = box_height + 44, gap = 22, margin = 24, legend_line = 22;
constexpr double least_width = 480;  // so that the legend has room
constexpr double character = 7.3;    // of 12 pixel monospace type, and some room
constexpr std::size_t longest_line = 44;

/// A kind of box, for its colour and its line in the legend.
struct Style {
  std::string_view name, fill, border;
};
constexpr Style styles[] = {
    {"argument", "#e8f1fb", "#4a7fb5"},
    {"parameter", "#cfe3f7", "#1f5a94"},
    {"optimizer state", "#dcdff3", "#5b62a8"},
    {"constant", "#eef0f2", "#8a939c"},
    {"contraction", "#fde0c5", "#c8702a"},
    {"elementwise", "#dff2df", "#4d9a50"},
    {"reduction, scan, sort", "#f6dcec", "#a8477f"},
    {"gather, scatter", "#d7f0ee", "#2e8a83"},
    {"function of matrices", "#e4e0f7", "#6a55b0"},
    {"moves", "#f4f1e4", "#a39a6b"},
    {"result, assignment", "#ffffff", "#444444"},
};
enum StyleId {
  argument,
  parameter,
  optimizer_state,
  constant,
  contraction,
  elementwise,
  reduction,
  indirect,
  matrices,
  moves,
  end
};

StyleId style_of(OpKind kind) {
  constexpr StyleId by_kind[] = {argument,  elementwise, contraction, reduction, moves,
                                 moves,     moves,       indirect,    indirect,  reduction,
                                 reduction, matrices,    moves,       moves};
  static_assert(std::size(by_kind) == static_cast<std::size_t>(OpKind::collective) + 1);
  return by_kind[static_cast<std::size_t>(kind)];
}
/// The first styles are those of inputs, in the order of the roles.
StyleId style_of(InputRole role) { return static_cast<StyleId>(role); }

struct PhaseStyle {
  Phase phase;
  std::string_view name, colour;
};
constexpr PhaseStyle phases[] = {{Phase::forward, "forward", "#9aa3ab"},
                                 {Phase::recompute, "computed again", "#3f7fd0"},
                                 {Phase::backward, "backward", "#d0433f"},
                                 {Phase::update, "update", "#2f2f2f"}};
std::string_view colour(Phase phase) {
  for (const PhaseStyle& style : phases) {
    if (style.phase == phase) return style.colour;
  }
  return phases[0].colour;
}

std::string escaped(std::string_view text) {
  constexpr std::pair<char, std::string_view> entities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string result;
  for (const char& c : text) {
    const auto found = std::find_if(std::begin(entities), std::end(entities),
                                    [&](const auto& entity) { return entity.first == c; });
    result += found == std::end(entities) ? std::string_view(&c, 1) : found->second;
  }
  return result;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}
/// Of a long text the beginning.
std::string shortened(const std::string& text) {
  if (length(text) <= longest_line) return text;
  std::size_t at = 0;
  for (std::size_t seen = 0; seen < longest_line || !begins_character(text[at]); ++at)
    seen += begins_character(text[at]);
  return text.substr(0, at) + "…";
}

/// Tenths of pixels are fine enough.
std::string number(double x) {
  const auto tenths = static_cast<std::int64_t>(std::llround(x * 10));
  const std::int64_t whole = tenths / 10, rest = std::abs(tenths % 10);
  return (tenths < 0 && whole == 0 ? "-" : "") + std::to_string(whole) +
         (rest ? "." + std::to_string(rest) : "");
}

struct Box {
  std::string id;
  std::vector<std::string> lines;
  std::string whole;  // what is shown of it when it is pointed at
  StyleId style = end;
  Phase phase = Phase::forward;
  bool is_operation = false;
  double width() const {
    std::size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, length(line));
    return static_cast<double>(most) * character + 26;
  }
  double height() const { return lines.size() == 1 ? pill_height : box_height; }
};

Box box_of(const Graph& graph, ValueId id) {
  const Op& op = graph.op(id);
  const std::string name_of_value = "%" + std::to_string(id);
  Box box{"v" + std::to_string(id),
          {},
          name_of_value + " = " + to_string(op),
          style_of(op.kind),
          op.marks.phase};
  box.is_operation = op.kind != OpKind::input;
  const std::string_view kind = op.kind == OpKind::matrix       ? name(op.function)
                                : op.kind == OpKind::collective ? name(op.collective)
                                                                : name(op.kind);
  std::string head = name_of_value + " " + std::string(kind), what;
  if (op.kind == OpKind::reduce || op.kind == OpKind::scan || op.kind == OpKind::scatter)
    head += " " + std::string(name(op.combine));
  if (op.kind == OpKind::map) {
    what = to_string(op.expr);
  } else if (op.kind == OpKind::concat) {
    what = "along dimension " + std::to_string(op.dim);
  } else {
    const std::size_t open = box.whole.find('"'), close = box.whole.rfind('"');
    if (open < close) what = box.whole.substr(open + 1, close - open - 1);
  }
  box.lines = {head, shortened(what), std::string(name(op.dtype)) + " " + op.shape.to_string()};
  return box;
}

class Picture {
 public:
  Picture(const Graph& graph, std::span<const InputRole> roles) {
    std::size_t input = 0;
    for (std::size_t id = 0; id < graph.ops.size(); ++id) {
      boxes_.push_back(box_of(graph, static_cast<ValueId>(id)));
      const Op& op = graph.ops[id];
      if (op.kind == OpKind::input) {
        const InputRole role = input < roles.size() ? roles[input] : InputRole::argument;
        boxes_.back().style = style_of(role);
        boxes_.back().lines[1] = styles[style_of(role)].name;
        ++input;
      }
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const auto seen = op.inputs.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(op.inputs.begin(), seen, op.inputs[i]) == seen)
          edges_.emplace_back(op.inputs[i], id);
      }
    }
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const std::string which = graph.outputs.size() > 1 ? " " + std::to_string(o + 1) : "";
      add_end("r" + std::to_string(o), "result" + which, graph.outputs[o]);
    }
    for (std::size_t a = 0; a < graph.assignments.size(); ++a) {
      const auto& [target, value] = graph.assignments[a];
      add_end("a" + std::to_string(a), "assigned to %" + std::to_string(target), value);
    }
    std::vector<double> widths;
    for (const Box& box : boxes_) widths.push_back(box.width());
    layout_ = layered_layout(widths, edges_, gap);
    has_phases_ = occurs(Phase::recompute) || occurs(Phase::backward) || occurs(Phase::update);
    legend_height_ = each_entry([](std::string_view, double, double, const auto&) {});
  }

  std::string text() const {
    const double width = content_width() + 2 * margin;
    const double height =
        legend_height_ + static_cast<double>(layout_.layers) * layer_height + 2 * margin;
    std::string text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
        number(height) + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
        "\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
        "font-size=\"12\">\n"
        "<style>.e{fill:none;stroke:#7d868f;stroke-width:1.2}.l{stroke:#b4bbc2;stroke-width:.9}"
        ".b{font-weight:bold}.t{fill:#5b6570}</style>\n"
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" "
        "fill=\"#7d868f\"/></marker></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    text += legend();
    for (std::size_t e = 0; e < edges_.size(); ++e) text += arrow(e);
    for (std::size_t n = 0; n < boxes_.size(); ++n) text += shown(n);
    return text + "</svg>\n";
  }

 private:
  void add_end(const std::string& id, const std::string& label, ValueId value) {
    edges_.emplace_back(value, boxes_.size());
    boxes_.push_back({id, {label}, label, end});
  }

  /// The graph is in the middle where the legend is wider.
  double across(double x) const { return margin + (content_width() - layout_.width) / 2 + x; }
  double middle_x(std::size_t n) const { return across(layout_.x[n]); }
  double top_of(std::size_t layer) const {
    return legend_height_ + margin + static_cast<double>(layer) * layer_height;
  }
  double top(std::size_t n) const {
    return top_of(layout_.layer[n]) + (box_height - boxes_[n].height()) / 2;
  }

  std::string arrow(std::size_t e) const {
    const auto [from, to] = edges_[e];
    double x = middle_x(from), y = top(from) + boxes_[from].height();
    std::string path = "M" + number(x) + " " + number(y);
    const auto curve_to = [&](double to_x, double to_y) {
      const double half = (y + to_y) / 2;
      path += "C" + number(x) + " " + number(half) + " " + number(to_x) + " " + number(half) + " " +
              number(to_x) + " " + number(to_y);
      x = to_x;
      y = to_y;
    };
    for (const auto& [bend_x, layer] : layout_.bends[e]) {
      curve_to(across(bend_x), top_of(layer));
      y = top_of(layer) + box_height;
      path += "V" + number(y);
    }
    curve_to(middle_x(to), top(to) - 1);
    const bool is_long = layout_.bends[e].size() + 1 < layout_.layer[to] - layout_.layer[from];
    return "<path class=\"" + std::string(is_long ? "e l" : "e") + "\" d=\"" + path +
           "\" marker-end=\"url(#arrow)\"/>\n";
  }

  static std::string rectangle(double x, double y, double width, double height, double radius,
                               const Style& style) {
    return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
           "\" height=\"" + number(height) + "\" rx=\"" + number(radius) + "\" fill=\"" +
           std::string(style.fill) + "\" stroke=\"" + std::string(style.border) + "\"/>";
  }

  std::string shown(std::size_t n) const {
    const Box& box = boxes_[n];
    const double width = box.width(), height = box.height(), x = middle_x(n) - width / 2,
                 y = top(n);
    const bool is_round = box.lines.size() == 1 || !box.is_operation;
    std::string text = "<g id=\"" + box.id + "\"><title>" + escaped(box.whole) + "</title>";
    text += rectangle(x, y, width, height, is_round ? 12 : 4, styles[box.style]);
    if (box.is_operation && has_phases_) text += bar(x, y + 4, height - 8, box.phase);
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      const double at =
          y + (box.lines.size() == 1 ? 16 : 17 + static_cast<double>(i) * line_height);
      const std::string_view type = box.lines.size() == 1 ? ""
                                    : i == 0              ? " class=\"b\""
                                    : i == 2              ? " class=\"t\""
                                                          : "";
      text += "<text x=\"" + number(x + 13) + "\" y=\"" + number(at) + "\"" + std::string(type) +
              ">" + escaped(box.lines[i]) + "</text>";
    }
    return text + "</g>\n";
  }

  // --- legend ---

  /// Calls show(label, x, y, mark) for the kinds and phases that occur, in lines that fit the
  /// picture; the height.
  template <class Show>
  double each_entry(Show&& show) const {
    double x = margin, y = margin / 2;
    const auto add = [&](std::string_view label, const auto& mark) {
      const double width = static_cast<double>(label.size()) * character + 40;
      if (x + width > content_width() + margin) {
        x = margin;
        y += legend_line;
      }
      show(label, x, y, mark);
      x += width;
    };
    for (std::size_t s = 0; s < std::size(styles); ++s) {
      const bool occurs =
          std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.style == s; });
      if (occurs)
        add(styles[s].name,
            [s](double at, double top) { return rectangle(at, top, 18, 12, 3, styles[s]); });
    }
    for (const PhaseStyle& phase : phases) {
      if (has_phases_ && occurs(phase.phase))
        add(phase.name, [&](double at, double top) { return bar(at + 7, top, 12, phase.phase); });
    }
    return y + legend_line;
  }
  double content_width() const { return std::max(layout_.width, least_width); }
  bool occurs(Phase phase) const {
    return std::any_of(boxes_.begin(), boxes_.end(),
                       [&](const Box& box) { return box.is_operation && box.phase == phase; });
  }
  static std::string bar(double x, double y, double height, Phase phase) {
    return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"4\" height=\"" +
           number(height) + "\" fill=\"" + std::string(colour(phase)) + "\"/>";
  }
  std::string legend() const {
    std::string text = "<g id=\"legend\">";
    each_entry([&](std::string_view label, double x, double y, const auto& mark) {
      text += mark(x, y) + "<text x=\"" + number(x + 24) + "\" y=\"" + number(y + 10) + "\">" +
              escaped(label) + "</text>";
    });
    return text + "</g>\n";
  }

  bool has_phases_ = false;  // more than one
  double legend_height_ = 0;
  std::vector<Box> boxes_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;
  LayeredLayout layout_;
};

}  // namespace

std::string to_svg(const Graph& graph, std::span<const InputRole> roles) {
  return Picture(graph, roles).text();
}

}  // namespace ein
