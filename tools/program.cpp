#include "program.hpp"

#include <algorithm>
#include <cctype>

#include <ein/error.hpp>

#include "compile/passes.hpp"
#include "graph/build.hpp"
#include "io/file.hpp"
#include "passes/complex.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

/// The largest file that is read.
constexpr std::uint64_t most_bytes = 1 << 20;

constexpr const char* quotes = "'\"";

/// The words of a line, those in quotes without them; what follows a '#' is no word.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '#') {
      break;
    } else if (std::string_view(quotes).find(c) != std::string_view::npos) {
      const std::size_t end = line.find(c, at + 1);
      if (end == line.npos) throw UsageError("a quote is not closed");
      words.emplace_back(line.substr(at + 1, end - at - 1));
      at = end + 1;
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r#'\"", at), line.size());
      words.emplace_back(line.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

bool is_name(const std::string& word) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) &&
         std::all_of(word.begin(), word.end(), fits);
}

std::string in_quotes(const std::string& word) { return io::in_quotes(word); }

/// The graph's operations behind those of `to`, with these values as inputs; its results.
std::vector<ValueId> append_graph(Graph& to, const Graph& part,
                                  const std::vector<ValueId>& inputs) {
  std::vector<ValueId> moved;
  std::size_t input = 0;
  for (const Op& op : part.ops) {
    if (op.kind == OpKind::input) {
      moved.push_back(inputs[input++]);
      continue;
    }
    Op copy = op;
    for (ValueId& from : copy.inputs) from = moved[static_cast<std::size_t>(from)];
    moved.push_back(append(to, std::move(copy)));
  }
  std::vector<ValueId> results;
  for (const ValueId output : part.outputs)
    results.push_back(moved[static_cast<std::size_t>(output)]);
  return results;
}

}  // namespace

template <class F>
auto ProgramFile::at_line(std::size_t number, F&& f) const {
  const std::string where = printable_line(path_) + ":" + std::to_string(number) + ": ";
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.kind(), where + error.what());
  } catch (const UsageError& error) {
    throw UsageError(where + error.what());
  } catch (const CLI::ParseError& error) {
    throw UsageError(where + without_marks(error.what()));
  }
}

ProgramFile::ProgramFile(const std::string& path) : path_(path) {
  const io::InputFile file(program_word, path);
  if (file.size() > most_bytes)
    file.fail("is larger than " + std::to_string(most_bytes) + " bytes");
  const std::string text = file.read();
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at_line(++number, [&] {
      const std::vector<std::string> words = words_of(line);
      if (!words.empty()) read(number, words);
    });
    at = end + 1;
  }
  if (outputs_.empty()) throw UsageError(path_ + ": the program has no line of outputs");
}

std::size_t ProgramFile::new_value(const std::string& name) {
  if (!is_name(name))
    throw UsageError(in_quotes(name) + " is no name: letters, digits and '_', no digit first");
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    throw UsageError(in_quotes(name) + " has a value already");
  names_.push_back(name);
  return names_.size() - 1;
}

std::size_t ProgramFile::value(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) throw UsageError("no line before gives " + in_quotes(name));
  return static_cast<std::size_t>(found - names_.begin());
}

void ProgramFile::read(std::size_t number, const std::vector<std::string>& words) {
  if (!outputs_.empty()) throw UsageError("nothing may follow the line of outputs");
  const bool is_inputs = words[0] == "inputs";
  if (is_inputs == has_inputs_) {
    throw UsageError(is_inputs ? "the inputs were named before"
                               : "the first line names the inputs, such as: inputs x y");
  }
  if (is_inputs) {
    has_inputs_ = true;
    for (std::size_t i = 1; i < words.size(); ++i) new_value(words[i]);
    inputs_ = names_.size();
  } else if (words[0] == "outputs") {
    if (words.size() == 1) throw UsageError("a program has an output");
    for (std::size_t i = 1; i < words.size(); ++i) outputs_.push_back(value(words[i]));
  } else {
    read_call(number, words);
  }
}

void ProgramFile::read_call(std::size_t number, const std::vector<std::string>& words) {
  const auto equals = std::find(words.begin(), words.end(), "=");
  if (equals == words.begin() || equals == words.end())
    throw UsageError("a line is: RESULT = OP 'PATTERN' OPERANDS");
  Line& line = lines_.emplace_back();
  line.number = number;
  CLI::App app;
  add_call(app, line.words);
  add_words(app, "IN", line.operand_names, "the operands")->allow_extra_args();
  std::vector<const char*> arguments{""};
  for (auto word = equals + 1; word != words.end(); ++word) arguments.push_back(word->c_str());
  std::vector<std::string> marked =
      mark_words(static_cast<int>(arguments.size()), arguments.data());
  std::reverse(marked.begin(), marked.end());
  app.parse(marked);
  if (line.words.op == program_word) throw UsageError("a program does not run another one");
  for (const std::string& name : line.operand_names) line.operands.push_back(value(name));
  line.call = std::make_unique<Call>(line.words, line.operands.size());
  const std::size_t results = line.call->result_count();
  if (line.call->op() == Operation::parse_shape) throw UsageError("parse_shape computes nothing");
  if (results != static_cast<std::size_t>(equals - words.begin())) {
    throw UsageError(std::string(name(line.call->op())) + " has " + std::to_string(results) +
                     (results == 1 ? " result" : " results") + ", the line names " +
                     std::to_string(equals - words.begin()));
  }
  for (auto word = words.begin(); word != equals; ++word) line.results.push_back(new_value(*word));
}

Graph ProgramFile::graph(std::span<const OperandType> operands) const {
  Graph graph;
  std::vector<ValueId> values(names_.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values[i] = append(
        graph, {.kind = OpKind::input, .dtype = operands[i].dtype, .shape = operands[i].shape});
  }
  for (const Line& line : lines_) {
    std::vector<OperandType> types;
    std::vector<ValueId> inputs;
    for (const std::size_t operand : line.operands) {
      inputs.push_back(values[operand]);
      const Op& op = graph.op(inputs.back());
      types.push_back({op.shape, op.dtype});
    }
    const std::vector<ValueId> results = append_graph(
        graph, at_line(line.number, [&] { return build_graph(line.call->get(), types); }), inputs);
    for (std::size_t r = 0; r < results.size(); ++r) values[line.results[r]] = results[r];
  }
  for (const std::size_t output : outputs_) graph.outputs.push_back(values[output]);
  verify(graph);
  return has_complex(graph) ? graph : engine::simple_graph(std::move(graph));
}

Computation::Computation(const CallWords& words) {
  if (words.op == program_word)
    program_.emplace(words.pattern);
  else
    call_.emplace(words);
}

Computation::Computation(const CallWords& words, std::size_t operand_count) {
  if (words.op != program_word) {
    call_.emplace(words, operand_count);
    return;
  }
  program_.emplace(words.pattern);
  if (program_->input_count() != operand_count) {
    throw UsageError(words.pattern + " has " + std::to_string(program_->input_count()) +
                     (program_->input_count() == 1 ? " input" : " inputs") + ", the call has " +
                     std::to_string(operand_count));
  }
}

Graph Computation::graph(std::span<const OperandType> operands) const {
  return call_ ? build_graph(call_->get(), operands) : program_->graph(operands);
}

}  // namespace ein::command
