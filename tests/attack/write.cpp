// Programs as C++ that shows what is wrong, and as steps for peers.py.
#include <cmath>
#include <cstdio>

#include "program.hpp"

namespace ein::attack {
namespace {

enum class Language { cpp, python };

std::string text_of(double x, Language language) {
  const bool cpp = language == Language::cpp;
  if (std::isnan(x)) return cpp ? "NAN" : "nan";
  if (std::isinf(x)) return std::string(x < 0 ? "-" : "") + (cpp ? "INFINITY" : "inf");
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  const bool looks_whole = std::string_view(text).find_first_of(".e") == std::string_view::npos;
  return std::string(text) + (looks_whole ? ".0" : "");
}
std::string text_of(const Scalar& x, Language language) {
  return x.is_integer() ? std::to_string(x.integer()) : text_of(x.real(), language);
}
std::string cpp_dtype(DType dtype) {
  return "ein::DType::" + std::string(dtype == DType::boolean ? "boolean" : name(dtype));
}

template <class List, class F>
std::string list_of(const List& list, F&& text) {
  std::string result;
  for (const auto& entry : list) result += (result.empty() ? "" : ", ") + text(entry);
  return result;
}

/// The template with what the step says.
std::string filled(const std::string& form, const Step& step, Language language) {
  const auto value = [](int v) { return "v" + std::to_string(v); };
  const auto whole = [](std::int64_t n) { return std::to_string(n); };
  std::string text;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '$') {
      text += form[i];
      continue;
    }
    const char what = form[++i];
    const auto numbered = [&] {
      return i + 1 < form.size() && form[i + 1] >= '0' && form[i + 1] <= '9';
    };
    const auto number = [&] { return static_cast<std::size_t>(form[++i] - '0'); };
    if (what >= '0' && what <= '9')
      text += value(step.args[static_cast<std::size_t>(what - '0')]);
    else if (what == 'a')
      text += list_of(step.args, value);
    else if (what == 'p')
      text += "\"" + step.pattern + "\"";
    else if (what == 'd')
      text += language == Language::python   ? std::string(name(step.dtype))
              : step.dtype == DType::boolean ? "boolean"
                                             : std::string(name(step.dtype));
    else if (what == 'n')
      text += text_of(step.numbers[number()], language);
    else if (what == 'w' && numbered())
      text += whole(step.whole[number()]);
    else if (what == 'w')
      text += language == Language::python ? "[" + list_of(step.whole, whole) + "]"
                                           : list_of(step.whole, whole);
    else if (what == 'h') {
      for (const auto& [axis, size] : step.sizes) {
        text += language == Language::python ? ", " + axis + "=" + whole(size)
                                             : ", ein::axis(\"" + axis + "\", " + whole(size) + ")";
      }
      if (step.as) text += ", ein::as(" + cpp_dtype(*step.as) + ")";
    } else if (what == 'i') {
      // Entries of x.at(): position, position, 0 or begin, end, step.
      std::string entries;
      for (std::size_t k = 0; k < step.whole.size(); k += 3) {
        entries += entries.empty() ? "" : ", ";
        entries += step.whole[k + 2] == 0
                       ? whole(step.whole[k])
                       : "ein::slice(" + whole(step.whole[k]) + ", " + whole(step.whole[k + 1]) +
                             ", " + whole(step.whole[k + 2]) + ")";
      }
      text += "{" + entries + "}";
    }
  }
  return text;
}

std::string literal(const Input& input) {
  if (input.runs[0].size() > 400) {
    return "/* " + std::to_string(input.runs[0].size()) + " values */ ein::randn({" +
           list_of(input.shape, [](std::int64_t n) { return std::to_string(n); }) + "}).to(" +
           cpp_dtype(input.dtype) + ")";
  }
  Shape shape = input.shape;
  if (is_complex(input.dtype)) shape.push_back(2);
  const std::string parts =
      "ein::from_vector<double>({" +
      list_of(input.runs[0], [](double x) { return text_of(x, Language::cpp); }) + "}, {" +
      list_of(shape, [](std::int64_t n) { return std::to_string(n); }) + "}).to(" +
      cpp_dtype(real_dtype(input.dtype)) + ")";
  return is_complex(input.dtype) ? "ein::view_as_complex(" + parts + ")" : parts;
}

}  // namespace

std::string to_cpp(const Program& program) {
  std::string before, parameters, arguments, body;
  std::size_t input = 0;
  for (std::size_t v = 0; v < program.steps.size(); ++v) {
    const Step& step = program.steps[v];
    const std::string name = "v" + std::to_string(v);
    if (step.op) {
      body += "    const ein::Tensor " + name + " = " + filled(step.op->cpp, step, Language::cpp) +
              ";\n";
      continue;
    }
    const Input& given = program.inputs[input++];
    const bool differentiable =
        program.differentiates() && !given.is_state && has_gradients(given.dtype);
    before += "  const ein::Tensor " +
              std::string(given.is_state ? name : "x" + std::to_string(v)) + " = " +
              literal(given) + ";\n";
    if (given.is_state) continue;
    parameters += (parameters.empty() ? "const ein::Tensor& " : ", const ein::Tensor& ") +
                  std::string(differentiable ? "x" + std::to_string(v) : name);
    arguments += (arguments.empty() ? "x" : ", x") + std::to_string(v);
    if (differentiable)
      body += "    const ein::Tensor " + name + " = ein::detail::differentiable(x" +
              std::to_string(v) + ");\n";
  }
  const std::string outputs = list_of(program.outputs, [&](int v) {
    return "v" + std::to_string(v) + (program.differentiates() ? ".detach()" : "");
  });
  return "int main() {\n" + before + "  const auto f = [&](" + parameters + ") {\n" + body +
         "    return std::vector<ein::Tensor>{" + outputs +
         "};\n  };\n  for (const ein::Tensor& y : f(" + arguments +
         ")) std::cout << ein::to_string(y) << \"\\n\";\n  auto compiled = ein::compile(f);\n  for "
         "(const ein::Tensor& y : compiled(" +
         arguments + ")) std::cout << ein::to_string(y) << \"\\n\";\n}\n";
}

std::vector<std::string> to_peer(const Program& program) {
  std::vector<std::string> steps;
  for (const Step& step : program.steps) {
    const bool is_ours_alone = !step.op || step.as || step.pattern.find("...") != std::string::npos;
    steps.push_back(is_ours_alone ? "" : filled(step.op->peer, step, Language::python));
  }
  return steps;
}

}  // namespace ein::attack
