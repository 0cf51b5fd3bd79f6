// ein cost: the exact bill of a pattern, and the time it takes at a device's limits.
#include <algorithm>
#include <memory>
#include <optional>

#include <ein/hardware.hpp>

#include "cost/exchange.hpp"
#include "cost/scope.hpp"
#include "kernels.hpp"
#include "passes/complex.hpp"
#include "passes/contraction_order.hpp"
#include "passes/distribute.hpp"
#include "program.hpp"
#include "report.hpp"
#include "runtime/mesh.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein cost einsum 'b d, d k -> b k' --shape 1024,256 --shape 256,64
  ein cost einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64 --device h100-sxm
  ein cost einsum 'i j, j k, k l -> i l' --shape 9,100 --shape 100,100 --shape 100,2
  ein cost reduce 'b c -> b' --shape 64,1000 --by logsumexp --device cpu
  ein cost einsum 'b q d, b k d -> b q k'        no --shape: formulas in the axes
  ein cost gather '[v] d, b s -> b s d' --shape 50257,768 --shape 4,1024
  ein cost einsum 'b@data c, c f@model -> b f' --mesh data=8,model=2 --shape 64,512 --shape 512,2048
  ein cost program attention.ein --shape 8,512,64 --shape 8,512,64 --shape 8,512,64
  ein cost einsum 'i k, k j -> i j' --shape 64,64 --shape 64,64 --peak 60e12 --bandwidth 2e12

model        a multiply-add is 2, any other operation on an element 1
strict       what really happens: a sum of K numbers is K - 1 additions
matmul only  the part of model that is sums of products
estimated    the part of both that is a textbook's formula, of decompositions
sent         by a process in a ring: an estimate of what its exchanges move
bytes        each operation reads every element that it uses once and writes its result once

--device is cpu, measured on this machine, or one of the table of promised dense peaks; f32 is its
rate without tensor cores unless --tensor-cores asks for TF32.

Exit code: 0, or 2 for a mistake in the call, the pattern or the shapes; 1 for the rest.)";

struct CostWords {
  CallWords call;
  std::string device, peak, bandwidth, mesh;
  bool tensor_cores = false;
  bool json = false;
};

/// A graph's bill: as formulas, and where the shapes are known in numbers.
struct Bill {
  std::string title;
  CostFormula formula;
  std::optional<Cost> cost;
  std::string written(const Polynomial& part) const;
};

Bill bill_of(const std::string& title, const Graph& graph, bool has_sizes) {
  return {title, cost_formula(graph), has_sizes ? std::optional(cost(graph)) : std::nullopt};
}

/// Without shapes there is one axis under an ellipsis, which the solver numbers.
std::string Bill::written(const Polynomial& part) const {
  std::string text = part.to_string();
  if (cost) return text;
  for (std::size_t at; (at = text.find("...0")) != text.npos;) text.erase(at + 3, 1);
  return text;
}

/// A line of the bill; the key is the one in JSON.
struct Entry {
  const char* key;
  std::string label;
  std::string formula;
  std::optional<Count> count;
};

std::vector<Entry> entries_of(const Bill& bill) {
  const CostFormula& f = bill.formula;
  std::vector<Entry> entries;
  const auto add = [&](const char* key, const char* label, const Polynomial& formula,
                       auto&& count_of) {
    entries.push_back({key, label, bill.written(formula),
                       bill.cost ? std::optional<Count>(count_of(*bill.cost)) : std::nullopt});
  };
  add("flops.model", "model", f.model, [](const Cost& c) { return c.model; });
  add("flops.strict", "strict", f.strict(), [](const Cost& c) { return c.strict(); });
  add("flops.matmul_only", "matmul only", f.matmul_only,
      [](const Cost& c) { return c.matmul_only; });
  if (!f.estimated.is_zero())
    add("flops.estimated", "estimated", f.estimated, [](const Cost& c) { return c.estimated; });
  add("mul", "mul", f.mul, [](const Cost& c) { return c.mul; });
  add("add", "add", f.add, [](const Cost& c) { return c.add; });
  add("div", "div", f.div, [](const Cost& c) { return c.div; });
  add("compare", "compare", f.compare, [](const Cost& c) { return c.compare; });
  for (ScalarOp op : transcendental_ops) {
    const char* const name = info(op).name.data();
    add(name, name, f.count(op), [op](const Cost& c) { return c.count(op); });
  }
  add("bytes.read", "read", f.bytes_read, [](const Cost& c) { return c.bytes_read; });
  add("bytes.written", "written", f.bytes_written, [](const Cost& c) { return c.bytes_written; });
  return entries;
}

/// Kinds of operations that do not occur are left out, but for the two that everybody looks for.
bool is_shown(const Entry& entry) {
  const std::string_view key = entry.key;
  return key.find('.') != key.npos || key == "mul" || key == "add" || entry.formula != "0";
}

std::string table_of(const Bill& bill) {
  Table table({false, false, true});
  table.add({"", "formula", bill.cost ? "count" : ""});
  for (const Entry& entry : entries_of(bill)) {
    if (!is_shown(entry)) continue;
    const std::string_view key = entry.key;
    if (key == "flops.model") table.add({"FLOPs"});
    if (key == "mul") table.add({"operations"});
    if (key == "bytes.read") table.add({"bytes"});
    table.add({"  " + entry.label, entry.formula, entry.count ? grouped(*entry.count) : ""});
  }
  return (bill.title.empty() ? "" : bill.title + "\n") + table.text();
}

// --- graphs ---

/// The call on operands made up for the pattern, where no shapes are given: axes have this size
/// where --axis says nothing, and an ellipsis is one of them.
Graph graph_without_shapes(CallWords words, std::int64_t size) {
  // The estimates of decompositions are numbers, of sizes that are known.
  const bool is_estimated =
      words.op != program_word &&
      grammar::form_of(operation_of(words.op)).brackets == grammar::Form::matrix_of_the_input;
  if (words.op == name(Operation::pack) || words.op == name(Operation::unpack) ||
      words.op == program_word || is_estimated) {
    throw UsageError("cost " + words.op + " needs --shape, once for each operand");
  }
  const grammar::Reading reading = grammar::parse_pattern(words.pattern);
  const grammar::Form form = grammar::form_of(operation_of(words.op));
  if (reading.buffer.pattern(words.pattern).has_braces())
    throw UsageError("cost: what is inside of braces depends on the sizes; give --shape");
  const bool takes_sizes = form.has_groups || form.brackets == grammar::Form::axis_of_the_output;
  for (const grammar::Term& term : reading.buffer.terms) {
    if (term.kind == grammar::TermKind::unnamed) {
      throw UsageError("cost: '_' has no name to stand in a formula; name it or give --shape");
    }
    if (term.kind != grammar::TermKind::name) continue;
    const std::string axis =
        words.pattern.substr(term.span.begin, term.span.end - term.span.begin) + "=";
    const bool is_given =
        std::any_of(words.axes.begin(), words.axes.end(),
                    [&](const std::string& size) { return size.starts_with(axis); });
    if (!is_given && takes_sizes) words.axes.push_back(axis + std::to_string(size));
  }
  const Call call(words);
  const grammar::Pattern& pattern = call.get().pattern;
  const auto size_of_term = [&](const grammar::Term& term) -> std::int64_t {
    if (term.kind == grammar::TermKind::number) return term.value;
    if (term.kind == grammar::TermKind::ellipsis) return size;
    for (const AxisSize& given : call.get().sizes) {
      if (given.name == pattern.name_of(term)) return given.size;
    }
    if (term.kind == grammar::TermKind::name) return size;
    return 1;  // a group, whose members follow
  };
  std::vector<OperandType> operands;
  for (const grammar::Side& side : pattern.inputs()) {
    Shape shape;
    for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
      std::int64_t extent = 1;
      for (std::uint32_t j = i; j < pattern.terms[i].next; ++j) {
        if (__builtin_mul_overflow(extent, size_of_term(pattern.terms[j]), &extent)) {
          throw UsageError("cost: the pattern has too many axes for a formula; give --shape");
        }
      }
      shape.push_back(extent);
    }
    const bool is_positions = std::cmp_equal(info(call.op()).positions, operands.size());
    operands.push_back({shape, is_positions ? DType::i64 : dtype_of(words)});
  }
  return build_graph(call.get(), operands);
}

std::string operand_list(const std::vector<OperandType>& operands, const Graph& graph) {
  std::string list;
  for (const OperandType& operand : operands)
    list += (list.empty() ? "" : ", ") + operand.shape.to_string();
  list += " -> ";
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    list += (i > 0 ? ", " : "") + graph.op(graph.outputs[i]).shape.to_string();
  }
  return list;
}

// --- the mesh ---

/// What one process of a mesh does, and gives to the others.
struct Part {
  std::vector<MeshAxis> mesh;
  std::vector<ExchangeFormula> formulas;
  std::vector<Exchange> counts;  // as the formulas; none where no shapes are given
  int processes() const { return engine::processes_of(mesh); }
};

/// Of the call's graph, whose operands and result lie as its pattern says.
Graph graph_of_process(const CallWords& words, const Graph& written, const Graph& graph,
                       const std::vector<MeshAxis>& mesh) {
  if (words.op == program_word)
    throw UsageError("cost: --mesh is for a pattern, not for a program");
  const Call call(words);
  const grammar::Pattern& pattern = call.get().pattern;
  const std::string text = words.op + " \"" + words.pattern + "\"";
  const auto placement = [&](const grammar::Side& side, ValueId value) {
    return engine::placement_in(text, pattern, side, written.op(value).shape, mesh);
  };
  std::vector<Placement> inputs;
  for (std::size_t id = 0; id < written.ops.size() && inputs.size() < pattern.inputs().size();
       ++id) {
    if (written.ops[id].kind == OpKind::input)
      inputs.push_back(placement(pattern.inputs()[inputs.size()], static_cast<ValueId>(id)));
  }
  std::vector<std::optional<Placement>> outputs;
  for (std::size_t o = 0; o < pattern.output_count; ++o) {
    const grammar::Side& side = pattern.outputs()[o];
    outputs.push_back(engine::places(pattern, side)
                          ? std::optional(placement(side, written.outputs[o]))
                          : std::nullopt);
  }
  return distribute(text, graph, mesh, inputs, outputs).graph;
}

/// The least time in which a process sends that, and over what.
std::optional<std::pair<double, std::string>> time_of(const Part& part, const Hardware& device) {
  double bytes = 0;
  for (const Exchange& exchange : part.counts) bytes += exchange.sent_by_ring();
  const Hardware::Links& links = device.links;
  const bool is_node = part.processes() <= links.nvlink_group;
  const double speed = is_node ? links.nvlink : links.infiniband;
  if (bytes == 0 || speed == 0) return std::nullopt;
  return std::pair(bytes / speed,
                   with_prefix(speed, "B/s") + (is_node ? " of NVLink" : " of InfiniBand"));
}

std::string exchanges_text(const Part& part) {
  Table table({false, false, true});
  table.add({"exchanges, of a process"});
  for (std::size_t i = 0; i < part.formulas.size(); ++i) {
    const ExchangeFormula& f = part.formulas[i];
    const Exchange* const count = part.counts.empty() ? nullptr : &part.counts[i];
    std::string over;
    for (const std::string& axis : f.over) over += " " + axis;
    table.add({"  " + std::string(name(f.collective)) + " over" + over});
    table.add({"    bytes", f.bytes.to_string(), count ? grouped(Count(count->bytes)) : ""});
    table.add({"    sent", f.sent_by_ring(),
               count ? grouped(Count(static_cast<std::int64_t>(count->sent_by_ring()))) : ""});
  }
  if (part.formulas.empty()) table.add({"  none"});
  return table.text();
}

// --- the device ---

/// The device of the options, or none when they name none.
std::optional<Hardware> device_of(const CostWords& words, DType dtype, TensorCores units) {
  if (words.device.empty() && words.peak.empty() && words.bandwidth.empty()) return std::nullopt;
  if (words.device.empty() && (words.peak.empty() || words.bandwidth.empty())) {
    throw UsageError("--peak and --bandwidth make a device together; one alone needs --device");
  }
  Hardware device;
  if (words.device.empty()) {
    device.key = device.name = device.source = "given";
  } else {
    device = hardware_named(words.device);
  }
  if (!words.peak.empty()) {
    device.set_peak(dtype, units, positive_number("--peak", words.peak));
    device.source += device.source == "given" ? "" : "; --peak";
  }
  if (!words.bandwidth.empty()) {
    device.bandwidth = positive_number("--bandwidth", words.bandwidth);
    device.source += device.source == "given" ? "" : "; --bandwidth";
  }
  return device;
}

struct Limit {
  Hardware device;
  std::optional<double> peak;
  Roofline roofline;
};

std::string limit_text(const Limit& limit, DType dtype, TensorCores units) {
  const Roofline& r = limit.roofline;
  std::string rate = "no peak for " + std::string(name(dtype));
  if (limit.peak) {
    rate = with_prefix(*limit.peak, "FLOP/s ") +
           (units == TensorCores::yes && dtype == DType::f32 ? "tf32" : std::string(name(dtype)));
  }
  Table table({false, false});
  table.add({"device", limit.device.name + ": " + rate + ", " +
                           with_prefix(limit.device.bandwidth, "B/s") + " (" + limit.device.source +
                           ")"});
  table.add(
      {"bound", std::string(name(r.bound)) +
                    (limit.peak ? "; compute from " + shown(r.ridge) + " FLOP/byte on" : "")});
  table.add({"time", "at least " + duration(r.seconds)});
  return table.text();
}

// --- the command ---

std::string json_of(const CostWords& words, const std::vector<Bill>& bills,
                    const std::optional<Cost>& run, const std::optional<Limit>& limit,
                    const std::optional<Part>& part) {
  Json json;
  json.add("op", words.call.op);
  json.add("pattern", words.call.pattern);
  json.add("dtype", name(dtype_of(words.call)));
  for (const Bill& bill : bills) {
    const std::string prefix = &bill == &bills.front() ? "" : "ordered.";
    json.add(prefix + "formula", bill.written(bill.formula.model));
    for (const Entry& entry : entries_of(bill)) {
      json.add(prefix + "formula." + entry.key, entry.formula);
      if (entry.count) json.add(prefix + entry.key, *entry.count);
    }
  }
  if (run) {
    json.add("run.flops.model", run->model);
    json.add("run.bytes.read", run->bytes_read);
    json.add("run.bytes.written", run->bytes_written);
  }
  for (std::size_t i = 0; part && i < part->formulas.size(); ++i) {
    const ExchangeFormula& f = part->formulas[i];
    std::string key = "exchanges." + std::string(name(f.collective));
    for (const std::string& axis : f.over) key += "." + axis;
    json.add("formula." + key + ".bytes", f.bytes.to_string());
    json.add("formula." + key + ".sent", f.sent_by_ring());
    if (part->counts.empty()) continue;
    json.add(key + ".bytes", Count(part->counts[i].bytes));
    json.add(key + ".sent", part->counts[i].sent_by_ring());
  }
  if (limit && part) {
    if (const auto time = time_of(*part, limit->device)) json.add("seconds.exchanges", time->first);
  }
  if (limit) {
    const Roofline& r = limit->roofline;
    json.add("device", limit->device.key);
    json.add("device.name", limit->device.name);
    json.add("device.source", limit->device.source);
    if (limit->peak) json.add("device.peak", *limit->peak);
    json.add("device.bandwidth", limit->device.bandwidth);
    json.add("intensity", r.intensity);
    json.add("ridge", r.ridge);
    json.add("seconds", r.seconds);
    json.add("seconds.compute", r.compute_seconds);
    json.add("seconds.bandwidth", r.bandwidth_seconds);
    json.add("bound", name(r.bound));
  }
  return json.text();
}

std::string text_of(const CostWords& words, const std::string& operands,
                    const std::vector<Bill>& bills, const std::optional<Cost>& run,
                    const std::optional<Limit>& limit, TensorCores units,
                    const std::optional<Part>& part) {
  std::string text = words.call.op + " '" + words.call.pattern + "'";
  if (!words.call.by.empty()) text += " by " + words.call.by;
  text += "\n" + std::string(name(dtype_of(words.call))) +
          (operands.empty() ? "" : " " + operands) + "\n";
  if (part) {
    text += "each of " + std::to_string(part->processes()) + " processes, mesh";
    for (const MeshAxis& axis : part->mesh)
      text += " " + axis.name + "=" + std::to_string(axis.size);
    text += "\n";
  }
  for (const Bill& bill : bills) text += "\n" + table_of(bill);
  if (part) text += "\n" + exchanges_text(*part);
  if (run && run->bytes() > 0) {
    Table table({false, false});
    if (run->bytes() != bills.back().cost->bytes()) {
      table.add({"as it runs", grouped(run->bytes()) + " bytes, elementwise operations fused"});
    }
    table.add(
        {"intensity", shown(run->model.approximate() / run->bytes().approximate()) + " FLOP/byte"});
    text += "\n" + table.text();
  }
  if (limit) text += "\n" + limit_text(*limit, real_dtype(dtype_of(words.call)), units);
  if (const auto time = limit && part ? time_of(*part, limit->device) : std::nullopt)
    text += "sending at least " + duration(time->first) + " at " + time->second + "\n";
  return text;
}

std::string cost_command(const CostWords& words) {
  const std::vector<OperandType> operands = operands_of(words.call);
  const bool has_sizes = !operands.empty();
  const DType dtype = real_dtype(dtype_of(words.call));  // of the arithmetic
  const TensorCores units = words.tensor_cores ? TensorCores::yes : usual_units(dtype);
  if (words.call.op == name(Operation::parse_shape)) {
    throw UsageError("cost: parse_shape computes nothing");
  }
  std::optional<Part> part;
  if (!words.mesh.empty()) part = {mesh_axes(words.mesh), {}, {}};
  const std::int64_t size = part ? 2 * part->processes() : 2;  // which the mesh divides
  const Graph written = has_sizes ? Computation(words.call, operands.size()).graph(operands)
                                  : graph_without_shapes(words.call, size);
  const auto of_process = [&](const Graph& of_all) {
    const Graph graph = without_complex(of_all, "cost");
    return part ? graph_of_process(words.call, of_all, graph, part->mesh) : graph;
  };
  const Graph graph = of_process(written);
  if (!has_sizes &&
      cost_formula(of_process(graph_without_shapes(words.call, 3 * size))) != cost_formula(graph)) {
    throw UsageError("cost " + words.call.op +
                     ": what it costs is no formula of products of axes; give --shape, once for "
                     "each operand");
  }
  if (part) {
    part->formulas = exchange_formulas(graph, part->mesh);
    if (has_sizes) part->counts = exchanges_of(program_of(graph), part->mesh);
  }

  std::vector<Bill> bills{bill_of("", graph, has_sizes)};
  std::optional<Cost> run;
  if (has_sizes) {  // the cheapest order depends on them
    const Bill ordered =
        bill_of("In the cheapest order, two operands at a time:", order_contractions(graph), true);
    if (operands.size() > 2 || ordered.cost != bills[0].cost) {
      bills[0].title = "As written:";
      bills.push_back(ordered);
    }
    run = cost(program_of(graph));
  }

  std::optional<Limit> limit;
  if (const std::optional<Hardware> device = device_of(words, dtype, units)) {
    if (!run) {
      throw UsageError("--device, --peak and --bandwidth need --shape, once for each operand");
    }
    if (words.tensor_cores) {
      limit = {*device, device->peak(dtype, units), roofline(*run, *device, dtype, units)};
    } else {
      limit = {*device, device->peak(dtype), roofline(*run, *device, dtype)};
    }
  }
  if (words.json) return json_of(words, bills, run, limit, part);
  return text_of(words, has_sizes ? operand_list(operands, written) : "", bills, run, limit, units,
                 part);
}

}  // namespace

void add_cost(CLI::App& app, std::string& output) {
  CLI::App* command = app.add_subcommand("cost", "Count the operations and bytes of a pattern");
  const auto words = std::make_shared<CostWords>();
  add_call(*command, words->call);
  add_operands(*command, words->call);
  add_word(*command, "--device", words->device,
           "for the time at its limits: h100-sxm, a100-40gb, t4, cpu ...")
      ->type_name("DEVICE");
  command->add_flag("--tensor-cores", words->tensor_cores,
                    "take the device's tensor cores for f32 (TF32) and f64");
  add_word(*command, "--peak", words->peak, "the device's FLOP/s, instead of the table's")
      ->type_name("FLOPS");
  add_word(*command, "--bandwidth", words->bandwidth,
           "its bytes per second, instead of the table's")
      ->type_name("BYTES");
  add_word(*command, "--mesh", words->mesh,
           "of processes over which @ splits axes: the bill is that of one, with what it sends")
      ->type_name("AXES");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(examples);
  command->callback([words, &output] { output = cost_command(*words); });
}

}  // namespace ein::command
