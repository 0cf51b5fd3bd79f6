#include "train/log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>

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
  io::remove_abandoned_files(directory);
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
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 400\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"720\" height=\"400\" fill=\"white\"/>\n";
  for (int i = 0; i <= 4; ++i) {
    const double loss = low + (high - low) * i / 4, step = static_cast<double>(last) * i / 4;
    svg += "<line x1=\"56\" x2=\"700\" y1=\"" + formatted("%.1f", y(loss)) + "\" y2=\"" +
           formatted("%.1f", y(loss)) + "\" stroke=\"#ddd\"/><text x=\"50\" y=\"" +
           formatted("%.1f", y(loss) + 4) + "\" text-anchor=\"end\">" + formatted("%.2f", loss) +
           "</text><text x=\"" + formatted("%.1f", x(step)) +
           "\" y=\"376\" text-anchor=\"middle\">" + formatted("%.0f", step) + "</text>\n";
  }
  const auto curve = [&](const std::vector<Losses::Point>& points, const char* colour,
                         const char* style) {
    svg += std::string("<polyline fill=\"none\" stroke=\"") + colour + "\" " + style + " points=\"";
    for (const Losses::Point& point : points) {
      if (is_drawn(point.loss))
        svg += formatted("%.1f,", x(static_cast<double>(point.step))) +
               formatted("%.1f ", y(point.loss));
    }
    svg += "\"/>\n";
  };
  curve(losses.steps, "#9ecae1", "stroke-width=\"1\"");
  curve(losses.train, "#08519c", "stroke-width=\"2\"");
  curve(losses.validation, "#d94801", "stroke-width=\"2\"");
  svg +=
      "<text x=\"690\" y=\"40\" text-anchor=\"end\" fill=\"#9ecae1\">loss of each step</text>"
      "<text x=\"690\" y=\"56\" text-anchor=\"end\" fill=\"#08519c\">training</text>"
      "<text x=\"690\" y=\"72\" text-anchor=\"end\" fill=\"#d94801\">validation</text>"
      "<text x=\"378\" y=\"394\" text-anchor=\"middle\">step</text>\n";
  return svg + "</svg>\n";
}

}  // namespace ein::training
