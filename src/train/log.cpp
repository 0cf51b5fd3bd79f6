#include "train/log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>

#include "draw/svg.hpp"
#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"

namespace ein::training {
namespace {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// As JSON has it, which knows no infinities and no NaN.
std::string json(const char* format, double value) {
  return std::isfinite(value) ? formatted(format, value) : "null";
}

/// The number after `"key": ` in a line that this file wrote; NaN for null.
bool find_number(const std::string& line, const std::string& key, double& value) {
  const std::size_t at = line.find("\"" + key + "\": ");
  if (at == std::string::npos) return false;
  const char* const text = line.c_str() + at + key.size() + 4;
  if (std::string_view(text).starts_with("null")) {
    value = NAN;
    return true;
  }
  return std::sscanf(text, "%lf", &value) == 1;
}

/// Losses are computed in float; with larger numbers the scale would overflow.
bool is_drawn(double loss) { return std::abs(loss) <= std::numeric_limits<float>::max(); }

std::string read_if_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  return io::InputFile("train", path).read();
}

}  // namespace

std::string read_log(const std::string& text, std::int64_t first_step, Losses& losses) {
  std::string kept;
  std::istringstream old(text);
  for (std::string line; std::getline(old, line);) {
    double step = 0, loss = 0;
    if (!line.ends_with('}')) continue;  // a full disk cut it
    if (!find_number(line, "step", step) || !(step >= 0 && step < 0x1p63)) continue;
    // The evaluation at the first step comes again.
    const auto at = static_cast<std::int64_t>(step);
    const bool is_step = find_number(line, "loss", loss);
    if (at > first_step || (!is_step && at == first_step)) continue;
    if (is_step) losses.steps.push_back({at, loss});
    if (find_number(line, "train_loss", loss)) losses.train.push_back({at, loss});
    if (find_number(line, "val_loss", loss)) losses.validation.push_back({at, loss});
    kept += line + "\n";
  }
  return kept;
}

Log::Log(const std::string& directory, std::int64_t first_step) : directory_(directory) {
  io::remove_what_killed_saves_left("train", directory);
  std::string kept;
  const std::string path = io::join(directory, log_name);
  if (first_step > 0) kept = read_log(read_if_there(path), first_step, losses_);
  io::replace_file("train", path, kept);
}

void Log::write(const std::string& line) {
  io::append_to_file("train", io::join(directory_, log_name), line);
}

void Log::stepped(std::int64_t step, const TrainProgress& p) {
  losses_.steps.push_back({step, p.loss});
  write("{\"step\": " + std::to_string(step) + ", \"loss\": " + json("%.9g", p.loss) +
        ", \"lr\": " + json("%.9g", p.learning_rate) + ", \"grad_norm\": " +
        json("%.9g", p.grad_norm) + ", \"seconds\": " + json("%.6g", p.seconds) +
        ", \"tokens_per_second\": " + json("%.6g", p.tokens_per_second) +
        ", \"mfu\": " + json("%.4g", p.mfu) + "}\n");
}

void Log::evaluated(const TrainProgress& p) {
  losses_.train.push_back({p.step, p.train_loss});
  losses_.validation.push_back({p.step, p.validation_loss});
  write("{\"step\": " + std::to_string(p.step) + ", \"train_loss\": " + json("%.9g", p.train_loss) +
        ", \"val_loss\": " + json("%.9g", p.validation_loss) +
        ", \"elapsed\": " + json("%.6g", p.elapsed) +
        (p.whole_validation_loss ? ", \"whole_val_loss\": " + json("%.9g", *p.whole_validation_loss)
                                 : "") +
        "}\n");
  io::replace_file("train", io::join(directory_, picture_name), picture(losses_));
}

std::string picture(const Losses& losses) {
  constexpr double width = 720, height = 400, left = 56, right = 20, top = 24, bottom = 44;
  double low = INFINITY, high = -INFINITY;
  std::int64_t last = 1;
  for (const auto* points : {&losses.steps, &losses.train, &losses.validation}) {
    for (const Losses::Point& point : *points) {
      if (!is_drawn(point.loss)) continue;
      low = std::min(low, point.loss);
      high = std::max(high, point.loss);
      last = std::max(last, point.step);
    }
  }
  if (!(low < high)) {
    low = std::isfinite(low) ? low : 0;
    high = low + std::max(1.0, 0x1p-20 * std::abs(low));  // large losses are more than 1 apart
  }
  const auto x = [&](double step) {
    return left + (width - left - right) * step / static_cast<double>(last);
  };
  const auto y = [&](double loss) {
    return top + (height - top - bottom) * (high - loss) / (high - low);
  };
  const bool has_last = !losses.steps.empty() && is_drawn(losses.steps.back().loss);
  const std::string last_loss =
      has_last ? ", at last " + formatted("%.4g", losses.steps.back().loss) : "";
  draw::Svg svg("Losses of a training run",
                "The loss of " + std::to_string(losses.steps.size()) + " steps" + last_loss +
                    ", and its mean over training and validation data, by step.");
  svg.style(".curve{fill:none;stroke-width:2}.thin{stroke-width:1}");
  constexpr draw::Paint grid{0xdddddd, 0x30363d}, step_loss{0x4292c6, 0x5b9bd0};
  for (int i = 0; i <= 4; ++i) {
    const double loss = low + (high - low) * i / 4, step = static_cast<double>(last) * i / 4;
    svg.path(
        "M" + draw::number(left) + " " + draw::number(y(loss)) + "H" + draw::number(width - right),
        svg.stroke(grid));
    svg.text(left - 6, y(loss) + 4, formatted("%.2f", loss), "", draw::Svg::Anchor::end);
    svg.text(x(step), height - bottom + 20, formatted("%.0f", step), "", draw::Svg::Anchor::middle);
  }
  double line = top + 16;
  const auto curve = [&](const std::vector<Losses::Point>& points, const draw::Paint& paint,
                         const char* classes, const char* name) {
    std::vector<std::pair<double, double>> places;
    for (const Losses::Point& point : points) {
      if (is_drawn(point.loss))
        places.emplace_back(x(static_cast<double>(point.step)), y(point.loss));
    }
    svg.polyline(places, classes + svg.stroke(paint));
    svg.text(width - right - 10, line, name, svg.fill(paint), draw::Svg::Anchor::end);
    line += 16;
  };
  curve(losses.steps, step_loss, "curve thin ", "loss of each step");
  curve(losses.train, draw::hue(0), "curve ", "training");
  curve(losses.validation, draw::hue(1), "curve ", "validation");
  svg.text((left + width - right) / 2, height - 6, "step", "", draw::Svg::Anchor::middle);
  return svg.document(width, height);
}

}  // namespace ein::training
