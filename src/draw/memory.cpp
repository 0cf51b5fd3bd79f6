// A memory timeline as a picture.
#include <ein/memory_timeline.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

#include "draw/svg.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using draw::Paint;
using draw::Svg;

constexpr double memory_margin = 24, left = 84, plot_width = 800, plot_height = 320, row = 18;
constexpr std::size_t most_values = 400, most_rows = 10;

struct RoleStyle {
  const char* name;
  std::size_t hue;
};
constexpr std::array<RoleStyle, 3> role_styles{{{"read soon after, in the same pass", 7},
                                                {"activations, for the backward pass", 0},
                                                {"gradients, for the update", 1}}};
RoleStyle style_of(MemoryTimeline::Role role) {
  return role_styles[static_cast<std::size_t>(role)];
}

/// "12.3 MB", by powers of 1000.
std::string bytes_text(std::size_t bytes) {
  constexpr std::array<const char*, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.3g %s", value, units[unit]);
  return text.data();
}

std::string name_of(const KeptValue& value) {
  return (value.axes.empty() ? "" : value.axes + "  ") + std::string(name(value.dtype)) + " " +
         value.shape.to_string();
}

const char* word(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "again";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "";
}
std::size_t hue_of(Phase phase) {
  constexpr std::array<std::size_t, 4> hues{2, 4, 3, 6};
  return hues[static_cast<std::size_t>(phase)];
}

class MemoryPicture {
 public:
  explicit MemoryPicture(const MemoryTimeline& timeline)
      : timeline_(timeline),
        fullest_(timeline.fullest_step()),
        svg_("Memory of a step, by who holds it", description()) {}

  std::string text() {
    using draw::number;
    svg_.text(memory_margin, 36,
              "memory of a step: " + bytes_text(timeline_.arena) + " of intermediate values, " +
                  bytes_text(timeline_.others) + " of arguments, state and results",
              "bold", Svg::Anchor::start, 14);
    legend(58);
    axes();
    const std::size_t shown = std::min(most_values, timeline_.values.size());
    for (std::size_t v = 0; v < shown; ++v) value(timeline_.values[v]);
    phases();
    const double x = x_of(fullest_) + x_step() / 2;
    svg_.style(".dashed{stroke-dasharray:4 3}");
    svg_.path("M" + number(x) + " " + number(top - 6) + "V" + number(top + plot_height),
              "line dashed " + svg_.stroke(draw::wrong));
    return svg_.document(left + plot_width + 2 * memory_margin, list(top + plot_height + 62));
  }

 private:
  static constexpr double top = 82;

  double x_step() const {
    return plot_width / static_cast<double>(std::max<std::size_t>(timeline_.phases.size(), 1));
  }
  double x_of(std::size_t step) const { return left + static_cast<double>(step) * x_step(); }
  double y_of(std::size_t bytes) const {
    return top +
           plot_height * (1 - static_cast<double>(bytes) /
                                  static_cast<double>(std::max<std::size_t>(timeline_.arena, 1)));
  }

  std::string description() const {
    std::string text = std::to_string(timeline_.phases.size()) + " steps share a block of " +
                       bytes_text(timeline_.arena) + ". The most is alive at step " +
                       std::to_string(fullest_) + ": " + bytes_text(timeline_.alive_at(fullest_)) +
                       ". The largest values there: ";
    const std::vector<MemoryTimeline::Value> held = timeline_.held_at(fullest_);
    for (std::size_t v = 0; v < std::min(most_rows, held.size()); ++v)
      text += (v > 0 ? "; " : "") + bytes_text(held[v].what.bytes) + " of " +
              name_of(held[v].what) + ", " + held[v].what.operation;
    return text + ".";
  }

  void legend(double y) {
    double x = memory_margin;
    for (const RoleStyle& style : role_styles) {
      svg_.rectangle({x, y - 10, 14, 12}, 2, svg_.fill(draw::shade(draw::hue(style.hue), 2)));
      svg_.text(x + 20, y, style.name);
      x += 40 + static_cast<double>(draw::length(style.name)) * 12 * Svg::character;
    }
  }
  void axes() {
    constexpr int lines = 4;
    for (int i = 0; i <= lines; ++i) {
      const std::size_t bytes = timeline_.arena / lines * static_cast<std::size_t>(i);
      svg_.path("M" + draw::number(left) + " " + draw::number(y_of(bytes)) + "h" +
                    draw::number(plot_width),
                svg_.stroke(draw::shade(draw::hue(7), 1)));
      svg_.text(left - 8, y_of(bytes) + 4, bytes_text(bytes), svg_.fill(draw::dim),
                Svg::Anchor::end);
    }
  }
  void value(const MemoryTimeline::Value& value) {
    const KeptValue& what = value.what;
    const double x = x_of(value.first), width = x_of(value.last + 1) - x,
                 y = y_of(value.offset + what.bytes), height = y_of(value.offset) - y;
    const Paint paint = draw::hue(style_of(value.role).hue);
    svg_.begin_group(bytes_text(what.bytes) + "  " + name_of(what) + "  " + what.operation +
                     ", steps " + std::to_string(value.first) + " to " +
                     std::to_string(value.last));
    svg_.rectangle({x, y, width, height}, 0,
                   svg_.fill(draw::shade(paint, 2)) + " " + svg_.stroke(draw::page));
    const std::string label = what.axes.empty() ? what.shape.to_string() : what.axes;
    const double label_width = static_cast<double>(draw::length(label)) * 11 * Svg::character;
    if (height >= 13 && width >= label_width + 8)
      svg_.text(x + width / 2, y + height / 2 + 4, label, "", Svg::Anchor::middle, 11);
    svg_.end_group();
  }
  /// Of steps of one phase after another a bar.
  void phases() {
    const std::vector<Phase>& all = timeline_.phases;
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      while (end < all.size() && all[end] == all[begin]) ++end;
      const double x = x_of(begin), width = x_of(end) - x;
      svg_.rectangle({x, top + plot_height + 6, width, 18}, 0,
                     svg_.fill(draw::shade(draw::hue(hue_of(all[begin])), 1)));
      const char* const label = word(all[begin]);
      if (width > static_cast<double>(draw::length(label)) * 12 * Svg::character + 6)
        svg_.text(x + width / 2, top + plot_height + 19, label, "", Svg::Anchor::middle);
      begin = end;
    }
  }
  /// Who holds the most at the fullest step; where it ends.
  double list(double y) {
    const std::vector<MemoryTimeline::Value> held = timeline_.held_at(fullest_);
    svg_.text(memory_margin, y,
              "at step " + std::to_string(fullest_) + " of " +
                  std::to_string(timeline_.phases.size()) + ", the dashed line, " +
                  bytes_text(timeline_.alive_at(fullest_)) + " are alive:",
              "bold");
    for (std::size_t v = 0; v < std::min(most_rows, held.size()); ++v) {
      y += row;
      const KeptValue& what = held[v].what;
      svg_.rectangle({memory_margin, y - 10, 10, 11}, 2,
                     svg_.fill(draw::shade(draw::hue(style_of(held[v].role).hue), 2)));
      svg_.text(memory_margin + 90, y, bytes_text(what.bytes), "", Svg::Anchor::end);
      svg_.text(memory_margin + 104, y, draw::shortened(name_of(what), 52));
      svg_.text(memory_margin + 500, y, draw::shortened(what.operation, 48), svg_.fill(draw::dim));
    }
    if (held.size() > most_rows) {
      y += row;
      std::size_t rest = 0;
      for (std::size_t v = most_rows; v < held.size(); ++v) rest += held[v].what.bytes;
      svg_.text(memory_margin + 90, y, bytes_text(rest), "", Svg::Anchor::end);
      svg_.text(memory_margin + 104, y,
                "in " + std::to_string(held.size() - most_rows) + " smaller ones",
                svg_.fill(draw::dim));
    }
    return y + memory_margin;
  }

  const MemoryTimeline& timeline_;
  std::size_t fullest_;
  Svg svg_;
};

}  // namespace

std::size_t MemoryTimeline::alive_at(std::size_t step) const {
  std::size_t bytes = 0;
  for (const Value& value : values) {
    if (value.first <= step && step <= value.last) bytes += value.what.bytes;
  }
  return bytes;
}

std::size_t MemoryTimeline::fullest_step() const {
  std::size_t fullest = 0, most = 0;
  for (std::size_t step = 0; step < phases.size(); ++step) {
    const std::size_t bytes = alive_at(step);
    if (bytes > most) {
      most = bytes;
      fullest = step;
    }
  }
  return fullest;
}

std::vector<MemoryTimeline::Value> MemoryTimeline::held_at(std::size_t step) const {
  std::vector<Value> held;
  for (const Value& value : values) {
    if (value.first <= step && step <= value.last) held.push_back(value);
  }
  return held;
}

std::string MemoryTimeline::svg() const { return MemoryPicture(*this).text(); }

}  // namespace ein
