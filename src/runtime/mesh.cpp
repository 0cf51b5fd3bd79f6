// Meshes, and tensors that are placed on them.
#include "runtime/mesh.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include "cost/exchange.hpp"
#include "graph/build.hpp"
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "mesh/mpi.hpp"
#include "mesh/shm.hpp"
#include "passes/distribute.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/complex.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

bool is_set(Variable variable) { return !environment(variable).empty(); }

std::string_view found_transport() {
  if (is_set(Variable::shm)) return "shm";
  const bool is_under_mpi = is_set(Variable::open_mpi_size) || is_set(Variable::pmi_size);
  return is_under_mpi ? "mpi" : "loop";
}

/// Opened once, and left when the program ends, which plans and meshes outlive.
struct Transports {
  CallerMutex mutex;
  std::map<std::string, std::unique_ptr<mesh::Transport>, std::less<>> opened;
};
Transports& transports() {
  return made_once([] {
    std::atexit([] {
      for (const auto& entry : transports().opened) entry.second->leave();
    });
    return Transports();
  });
}
mesh::Transport& transport_named(std::string_view name) {
  auto& [mutex, opened] = transports();
  const std::lock_guard lock(mutex);
  const auto known = opened.find(name);
  if (known != opened.end()) return *known->second;
  std::unique_ptr<mesh::Transport> transport;
  if (name == "shm")
    transport = mesh::open_shm();
  else if (name == "mpi")
    transport = mesh::open_mpi();
  else
    throw Error(
        ErrorKind::value,
        "Mesh: there is no transport '" + std::string(name) +
            "'\n  help: \"shm\", \"mpi\" or \"loop\"; tensors on a GPU are exchanged by NCCL, "
            "whichever it is");
  return *opened.emplace(name, std::move(transport)).first->second;
}

std::string to_string(const std::vector<MeshAxis>& axes) {
  std::string text;
  for (const MeshAxis& axis : axes)
    text += (text.empty() ? "" : ", ") + axis.name + "=" + std::to_string(axis.size);
  return "(" + text + ")";
}

/// Whether patterns can name it.
bool is_name(const std::string& text) {
  const grammar::Reading reading = grammar::parse_pattern(text);
  return !reading.mistake && reading.buffer.terms.size() == 1 &&
         reading.buffer.terms[0].kind == grammar::TermKind::name &&
         reading.buffer.terms[0].span == SourceSpan{0, static_cast<std::uint32_t>(text.size())} &&
         !reading.buffer.terms[0].is_placed();
}

constexpr std::int64_t most_processes = 1 << 20;
constexpr std::size_t most_axes = 32;

}  // namespace

int engine::processes_of(const std::vector<MeshAxis>& axes) {
  std::int64_t processes = 1;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::value, "Mesh " + to_string(axes) + ": " + why);
  };
  if (axes.empty() || axes.size() > most_axes) refuse("1 to 32 axes are wanted");
  for (const MeshAxis& axis : axes) {
    if (axis.size < 1) refuse("axis '" + axis.name + "' has no process");
    if (!is_name(axis.name)) refuse("'" + axis.name + "' is no name of an axis");
    const auto same = [&](const MeshAxis& other) { return other.name == axis.name; };
    if (std::count_if(axes.begin(), axes.end(), same) > 1)
      refuse("axis '" + axis.name + "' is there twice");
    processes *= axis.size;
    if (processes > most_processes)
      refuse("its axes have more processes than there can be, " + std::to_string(most_processes));
  }
  return static_cast<int>(processes);
}

const std::vector<Tensor>& detail::MeshData::Here::coordinates(Device device) const {
  const NoForkLock lock(known_->mutex);
  for (const auto& [of, known] : known_->coordinates) {
    if (of == device) return known;
  }
  std::vector<Tensor> made;
  for (std::size_t a = 0; a < axes_; ++a)
    made.push_back(from_vector(std::vector<std::int64_t>{process.coordinate(a)}, {},
                               Order::row_major, device));
  return known_->coordinates.emplace_back(device, std::move(made)).second;
}

namespace {

void add_process(detail::MeshData& data, mesh::Transport& end, std::vector<int> processes) {
  data.here.emplace_back(mesh::Process(end, data.axes, std::move(processes)), data.axes.size());
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Each knows all others, and in a collective has a thread.
constexpr int most_in_one_process = 1024;

void stand_for_all(detail::MeshData& data, int processes) {
  if (processes > most_in_one_process) {
    throw Error(ErrorKind::value, "Mesh " + to_string(data.axes) +
                                      ": one process stands for at most " +
                                      std::to_string(most_in_one_process) + " processes, not " +
                                      std::to_string(processes));
  }
  data.loop = std::make_unique<mesh::Loop>(processes);
  for (int rank = 0; rank < processes; ++rank)
    add_process(data, data.loop->end(rank), first_ranks(processes));
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes, std::string_view transport) {
  const int processes = engine::processes_of(axes);
  const std::string_view name = transport.empty() ? found_transport() : transport;
  const auto data = std::make_shared<detail::MeshData>();
  data->axes = std::move(axes);
  if (name == "loop") {
    stand_for_all(*data, processes);
  } else {
    data->transport = &transport_named(name);
    if (data->transport->size() != processes) {
      throw Error(ErrorKind::value,
                  "Mesh " + to_string(data->axes) + " has " + std::to_string(processes) +
                      " processes, and " + std::to_string(data->transport->size()) +
                      " were started\n  help: start " + std::to_string(processes) + ": " +
                      (name == "mpi" ? "mpirun -n " : "ein launch -n ") +
                      std::to_string(processes) + (name == "mpi" ? " program" : " -- program"));
    }
    add_process(*data, *data->transport, first_ranks(processes));
  }
  data_ = data;
}

Mesh Mesh::without(std::string_view axis) const {
  const std::size_t left_out = axis_named(axis);
  const mesh::Process& own = data_->here.front().process;
  std::vector<int> processes = own.along(~(std::uint32_t{1} << left_out));
  Mesh rest;
  const auto data = std::make_shared<detail::MeshData>();
  data->axes = data_->axes;
  data->axes.erase(data->axes.begin() + static_cast<std::ptrdiff_t>(left_out));
  data->transport = data_->transport;
  if (data_->loop)
    stand_for_all(*data, static_cast<int>(processes.size()));
  else
    add_process(*data, *data->transport, std::move(processes));
  rest.data_ = data;
  return rest;
}

const std::vector<MeshAxis>& Mesh::axes() const { return data_->axes; }
int Mesh::size() const { return static_cast<int>(data_->here.front().process.processes().size()); }
int Mesh::rank() const { return data_->here.front().process.rank(); }
std::string_view Mesh::transport() const { return data_->here.front().process.transport().name(); }
std::vector<Exchange> Mesh::exchanged() const {
  std::vector<Exchange> exchanges;
  for (const auto& [mesh_axes, counters] : data_->here.front().process.counters()) {
    for (std::size_t c = 0; c < collective_count; ++c) {
      const auto& [calls, bytes] = counters.counts[c];
      if (calls == 0) continue;
      exchanges.push_back(exchange_over(static_cast<Collective>(c), mesh_axes, data_->axes));
      exchanges.back().calls = calls;
      exchanges.back().bytes = bytes;
    }
  }
  return exchanges;
}
std::size_t Mesh::axis_named(std::string_view name) const {
  for (std::size_t a = 0; a < data_->axes.size(); ++a) {
    if (data_->axes[a].name == name) return a;
  }
  throw Error(ErrorKind::value,
              "Mesh " + to_string(data_->axes) + " has no axis '" + std::string(name) + "'");
}
int Mesh::size(std::string_view axis) const { return data_->axes[axis_named(axis)].size; }
int Mesh::coordinate(std::string_view axis) const {
  return data_->here.front().process.coordinate(axis_named(axis));
}

// --- placed tensors ---

namespace engine {

namespace {
bool has_ellipsis(const grammar::Pattern& pattern, const grammar::Side& side) {
  const auto terms = pattern.terms_of(side);
  return std::any_of(terms.begin(), terms.end(), [](const grammar::Term& term) {
    return term.kind == grammar::TermKind::ellipsis;
  });
}
/// How many dimensions a side names, not counting those under an ellipsis.
std::size_t dims_of(const grammar::Pattern& pattern, const grammar::Side& side) {
  std::size_t count = 0;
  for (std::uint32_t t = side.first; t < side.last; t = pattern.terms[t].next)
    count += pattern.terms[t].kind != grammar::TermKind::ellipsis;
  return count;
}
}  // namespace

bool are_same(const detail::MeshData& a, const detail::MeshData& b) {
  return &a == &b || (a.transport && a.transport == b.transport && a.axes == b.axes &&
                      a.here.front().process.processes() == b.here.front().process.processes());
}

MeshPointer common_mesh(const std::string& call, Operands operands) {
  MeshPointer mesh;
  for (const Tensor* operand : operands) {
    const auto& placed = operand->impl().placed;
    if (!placed) continue;
    if (mesh && !are_same(*mesh, *placed->mesh)) {
      throw Error(ErrorKind::placement, call + ": operands lie on several meshes, " +
                                            to_string(mesh->axes) + " and " +
                                            to_string(placed->mesh->axes) +
                                            "\n  help: make one ein::Mesh and place all on it");
    }
    mesh = placed->mesh;
  }
  return mesh;
}

Placement placement_of(const Tensor& x) {
  return x.impl().placed ? x.impl().placed->placement : Placement();
}
const Tensor& part_of(const Tensor& x, std::size_t here) {
  return x.impl().placed ? x.impl().placed->parts[here] : x;
}
const std::shared_ptr<Storage>& memory_of(const Tensor& x) { return part_of(x, 0).storage(); }
void count_write(const Tensor& x) {
  if (!x.impl().placed) return x.storage()->count_write();
  for (const Tensor& part : x.impl().placed->parts) part.storage()->count_write();
}
std::size_t local_bytes(const Tensor& x) { return part_of(x, 0).nbytes(); }

namespace {

/// On the mesh, though it may be whole.
Tensor made_of(const MeshPointer& mesh, Placement placement, Shape shape,
               std::vector<Tensor> parts) {
  const Tensor& first = parts.front();
  detail::TensorData data;
  data.strides = contiguous_strides(shape);
  data.shape = std::move(shape);
  data.dtype = first.dtype();
  data.traced.device = first.device();
  data.placed = std::make_shared<const detail::PlacedData>(
      detail::PlacedData{mesh, std::move(placement), std::move(parts)});
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

}  // namespace

Tensor joined(const MeshPointer& mesh, Placement placement, Shape shape,
              std::vector<Tensor> parts) {
  if (placement.is_whole()) return std::move(parts.front());
  return made_of(mesh, std::move(placement), std::move(shape), std::move(parts));
}

std::vector<Tensor> run_parts(const MeshPointer& mesh, const std::vector<Placement>& placements,
                              const std::function<Shape(std::size_t)>& shape_of,
                              const std::function<std::vector<Tensor>(std::size_t)>& f) {
  std::vector<std::vector<Tensor>> parts(placements.size(), std::vector<Tensor>(mesh->here.size()));
  for_each_here(*mesh, [&](std::size_t h) {
    std::vector<Tensor> own = f(h);
    for (std::size_t r = 0; r < own.size(); ++r) parts[r][h] = std::move(own[r]);
  });
  std::vector<Tensor> results;
  for (std::size_t r = 0; r < placements.size(); ++r)
    results.push_back(joined(mesh, placements[r], shape_of(r), std::move(parts[r])));
  return results;
}

Tensor with_parts(const Tensor& x, Shape shape, Placement placement,
                  const std::function<Tensor(const Tensor&)>& f) {
  const detail::PlacedData& placed = *x.impl().placed;
  std::vector<Tensor> parts;
  for (const Tensor& part : placed.parts) parts.push_back(f(part));
  Tensor result = made_of(placed.mesh, std::move(placement), std::move(shape), std::move(parts));
  result.impl().grad = x.impl().grad;
  return result;
}

namespace {

/// On the mesh, but whole still.
Tensor on_mesh(const Tensor& x, const MeshPointer& mesh) {
  detail::TensorData data = x.impl();
  data.traced.device = x.device();
  data.strides = contiguous_strides(data.shape);
  data.offset = 0;
  data.storage = nullptr;
  data.placed = std::make_shared<const detail::PlacedData>(
      detail::PlacedData{mesh, Placement(), std::vector<Tensor>(mesh->here.size(), x.detach())});
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

Tensor laid(const std::string& call, const Tensor& x, const std::vector<std::string>& names,
            const Placement& from, const Placement& to) {
  PlanKey key;
  add(key, KeyKind::reshard);
  for (const Placement* placement : {&from, &to}) {
    for (std::size_t d = 0; d < x.rank(); ++d) {
      key.add(static_cast<std::int64_t>(placement->split(d).size()));
      for (const int m : placement->split(d)) key.add(m);
    }
  }
  const Tensor* const operand = &x;
  const auto build = [&] {
    Graph graph;
    graph.ops.push_back({.kind = OpKind::input, .dtype = x.dtype(), .shape = x.shape()});
    Op op = plain_op(OpKind::reshard, x.dtype(), x.shape());
    for (std::size_t d = 0; d < names.size(); ++d) op.axes[d].name = names[d];
    op.inputs = {0};
    op.reads = {op.write};
    op.from = from;
    op.to = to;
    append(graph, std::move(op));
    graph.outputs = {1};
    verify(graph);
    return graph;
  };
  const auto plan = plan_for(
      key, {&operand, 1}, [&] { return call; }, build);
  return std::move(run(*plan, {&operand, 1}).front());
}

}  // namespace

Tensor lying_as(const Tensor& whole, const Tensor& like) {
  return lying_as(whole, like, placement_of(like));
}

Tensor lying_as(const Tensor& whole, const Tensor& like, const Placement& placement) {
  if (!like.is_placed() || Trace::active()) return whole;
  return laid("place", on_mesh(whole, like.impl().placed->mesh), {}, {}, placement);
}

void copy_parts(const Tensor& from, const Tensor& to) {
  const Tensor* const both[] = {&from, &to};
  const MeshPointer mesh = common_mesh("copy_from", both);
  if (!from.is_placed() && from.shape() == to.shape())
    return copy_parts(laid("copy_from", on_mesh(from, mesh), {}, {}, placement_of(to)), to);
  if (!(from.shape() == to.shape()))
    throw Error(ErrorKind::shape, "copy_from: the source has shape " + from.shape().to_string() +
                                      ", the tensor " + to.shape().to_string());
  if (!(placement_of(from) == placement_of(to))) {
    const auto text = [&](const Tensor& x) {
      return "\"" + to_string(placement_of(x), mesh->axes, x.rank()) + "\" of shape " +
             x.shape().to_string();
    };
    throw Error(ErrorKind::placement, "copy_from: the source lies as " + text(from) +
                                          ", the tensor as " + text(to) +
                                          "\n  help: ein::reshard the source first");
  }
  for (std::size_t h = 0; h < mesh->here.size(); ++h)
    part_of(to, h).copy_from(part_of(from, h).detach());
}

MeshPointer mesh_of_call(const std::string& call, Operands operands) {
  if (MeshPointer mesh = common_mesh(call, operands)) return mesh;
  const Trace* const trace = Trace::active();
  return trace ? trace->mesh() : nullptr;
}

Placement placement_in(const std::string& call, const grammar::Pattern& pattern,
                       const grammar::Side& side, const Shape& shape,
                       const std::vector<MeshAxis>& axes, const Placement::Split& under_ellipsis) {
  Placement placement;
  const auto terms = pattern.terms;
  const std::size_t count = dims_of(pattern, side);
  const bool is_open = has_ellipsis(pattern, side);
  if (is_open ? shape.rank() < count : shape.rank() != count)
    throw Error(ErrorKind::rank, call + ": the pattern has " + (is_open ? "at least " : "") +
                                     std::to_string(count) + (count == 1 ? " axis" : " axes") +
                                     ", the tensor is of shape " + shape.to_string());
  for (std::uint32_t t = side.first; t < side.last; t = terms[t].next) {
    if (terms[t].kind == grammar::TermKind::ellipsis) {
      for (std::size_t d = count; d < shape.rank(); ++d) placement.dims.push_back(under_ellipsis);
      continue;
    }
    Placement::Split split;
    // Of a composite dimension the first axis is placed.
    for (std::uint32_t in = t; in < terms[t].next; ++in) {
      pattern.for_each_mesh_axis(terms[in], [&](SourceSpan span) {
        const std::string_view name = pattern.text_of(span);
        const auto found = std::find_if(axes.begin(), axes.end(),
                                        [&](const MeshAxis& axis) { return axis.name == name; });
        if (found == axes.end())
          throw Error(ErrorKind::placement, call + ": the mesh " + to_string(axes) +
                                                " has no axis '" + std::string(name) + "'");
        split.push_back(static_cast<int>(found - axes.begin()));
      });
    }
    placement.dims.push_back(std::move(split));
  }
  return placement;
}

std::vector<std::string> names_in(const grammar::Pattern& pattern, const grammar::Side& side) {
  std::vector<std::string> names;
  if (has_ellipsis(pattern, side)) return names;
  for (std::uint32_t t = side.first; t < side.last; t = pattern.terms[t].next)
    names.emplace_back(pattern.text_of(pattern.terms[t].span));
  return names;
}

bool places(const grammar::Pattern& pattern, const grammar::Side& side) {
  const auto terms = pattern.terms_of(side);
  return std::any_of(terms.begin(), terms.end(),
                     [](const grammar::Term& term) { return term.is_placed(); });
}

namespace {

/// The value, which must lie so.
ValueId required(Graph& graph, ValueId value, Placement placement,
                 const std::vector<std::string>& names) {
  Op op = plain_op(OpKind::reshard, graph.op(value).dtype, graph.op(value).shape);
  for (std::size_t d = 0; d < names.size(); ++d) op.axes[d].name = names[d];
  op.inputs = {value};
  op.reads = {op.write};
  op.from = placement;
  op.to = std::move(placement);
  return append(graph, std::move(op));
}

}  // namespace

Graph lying_as_written(const std::string& call, const Graph& graph, const grammar::Pattern& pattern,
                       const MeshPointer& mesh) {
  if (!pattern.has_placements()) return graph;
  if (!mesh)
    throw Error(ErrorKind::placement,
                call +
                    ": the pattern says where axes lie, and no operand is on a mesh\n"
                    "  help: ein::place(x, mesh, \"b@data h\") puts one there");
  Graph result;
  std::vector<ValueId> moved;
  std::size_t input = 0;
  const auto inputs = pattern.inputs();
  const auto placed = [&](const grammar::Side& side, ValueId value) {
    return places(pattern, side)
               ? required(result, value,
                          placement_in(call, pattern, side, result.op(value).shape, mesh->axes),
                          names_in(pattern, side))
               : value;
  };
  for (const Op& op : graph.ops) {
    Op copy = op;
    for (ValueId& from : copy.inputs) from = moved[static_cast<std::size_t>(from)];
    ValueId value = append(result, std::move(copy));
    if (op.kind == OpKind::input && input < inputs.size()) value = placed(inputs[input++], value);
    moved.push_back(value);
  }
  const bool has_all = graph.outputs.size() == pattern.output_count;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const ValueId value = moved[static_cast<std::size_t>(graph.outputs[o])];
    result.outputs.push_back(has_all ? placed(pattern.outputs()[o], value) : value);
  }
  verify(result);
  return result;
}

void for_each_here(const detail::MeshData& mesh, const std::function<void(std::size_t)>& f) {
  if (!mesh.loop) return f(0);
  mesh.loop->run([&](int rank) { f(static_cast<std::size_t>(rank)); });
}

}  // namespace engine

Tensor Tensor::local(int process) const {
  const auto& placed = data_->placed;
  if (!placed) return *this;
  if (process >= 0 && static_cast<std::size_t>(process) < placed->parts.size())
    return placed->parts[static_cast<std::size_t>(process)];
  throw Error(ErrorKind::value,
              "local: process " + std::to_string(process) + " is not here; " +
                  (placed->mesh->loop ? "this one stands for processes 0 to " +
                                            std::to_string(placed->parts.size() - 1)
                                      : "0 asks for this one's part"));
}

void detail::no_elements_here(const TensorData& data) {
  if (data.placed) {
    const PlacedData& placed = *data.placed;
    const auto text = [&](const Placement& placement) {
      return to_string(placement, placed.mesh->axes, data.shape.rank());
    };
    const std::string lies = text(placed.placement), whole = text(Placement());
    throw Error(ErrorKind::placement,
                "the tensor of shape " + data.shape.to_string() + " is placed, \"" + lies +
                    "\", and this process has a part of it only\n  help: ein::reshard(x, \"" +
                    lies + " -> " + whole +
                    "\") makes it whole on every process; x.local() is the part");
  }
  throw Error(ErrorKind::value,
              "the tensor of shape " + data.shape.to_string() +
                  " has no elements: it is a value of a function that " + engine::Trace::tracer() +
                  " traces\n"
                  "  help: return it from the function and look at it after the call");
}

// --- place and reshard ---

namespace {

/// Parsed, and checked unless the compiler has.
CallPattern checked(Operation op, const detail::PatternArgument& argument, const Tensor& x) {
  CallPattern parsed(op, argument, {}, std::span(&x.shape(), 1));
  require_valid({.op = op, .pattern = parsed.pattern, .is_checked = argument.is_checked()}, 1);
  return parsed;
}
std::string call_text(Operation op, const detail::PatternArgument& pattern) {
  return std::string(name(op)) + " \"" + std::string(pattern.text()) + "\"";
}

}  // namespace

Tensor place(const Tensor& x, const Mesh& mesh,
             const PatternFor<Operation::place, detail::Types<Tensor>>& pattern) {
  const CallPattern parsed = checked(Operation::place, pattern, x);
  const std::string call = call_text(Operation::place, pattern);
  if (x.is_placed())
    throw Error(ErrorKind::placement, call + ": the tensor is placed, \"" + placement(x) +
                                          "\"\n  help: ein::reshard(x, \"" + placement(x) +
                                          " -> ...\")");
  engine::Trace* const trace = engine::Trace::active();
  if (trace) trace->lies_on(mesh.impl());
  const auto& side = parsed.pattern.sides.front();
  const Placement to = engine::placement_in(call, parsed.pattern, side, x.shape(), mesh.axes());
  return engine::laid(call, trace ? x : engine::on_mesh(x, mesh.impl()),
                      engine::names_in(parsed.pattern, side), Placement(), to);
}

Tensor reshard(const Tensor& x,
               const PatternFor<Operation::reshard, detail::Types<Tensor>>& pattern) {
  const CallPattern parsed = checked(Operation::reshard, pattern, x);
  const std::string call = call_text(Operation::reshard, pattern);
  const Tensor* const operand = &x;
  const engine::MeshPointer mesh = engine::mesh_of_call(call, {&operand, 1});
  if (!mesh)
    throw Error(ErrorKind::placement,
                call + ": the tensor of shape " + x.shape().to_string() +
                    " is whole and on no mesh\n  help: ein::place(x, mesh, \"...\") places it");
  const auto& from = parsed.pattern.sides[0];
  // What an ellipsis stands for stays as it is.
  const auto side = [&](std::size_t s) {
    return engine::placement_in(call, parsed.pattern, parsed.pattern.sides[s], x.shape(),
                                mesh->axes, Placement::same());
  };
  return engine::laid(call, x, engine::names_in(parsed.pattern, from), side(0), side(1));
}

std::string shard_pattern(const Tensor& x, const Mesh& mesh, std::string_view axis) {
  Placement placement = engine::placement_of(x);
  placement.dims.resize(x.rank());
  const std::int64_t parts = mesh.size(axis);
  const auto named = [&](const MeshAxis& known) { return known.name == axis; };
  const auto found = std::find_if(mesh.axes().begin(), mesh.axes().end(), named);
  const auto number = static_cast<int>(found - mesh.axes().begin());
  for (const Placement::Split& split : placement.dims) {
    if (std::find(split.begin(), split.end(), number) != split.end()) return {};
  }
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (!placement.dims[d].empty() || x.shape()[d] == 0 || x.shape()[d] % parts != 0) continue;
    placement.dims[d].push_back(number);
    return to_string(placement, mesh.axes(), x.rank());
  }
  return {};
}

Tensor gather_over(const Tensor& x, std::string_view axis) {
  if (!x.is_placed()) return x;
  const std::vector<MeshAxis>& axes = x.impl().placed->mesh->axes;
  if (std::none_of(axes.begin(), axes.end(),
                   [&](const MeshAxis& known) { return known.name == axis; }))
    throw Error(ErrorKind::value, "gather_over: the mesh " + to_string(axes) + " has no axis '" +
                                      std::string(axis) + "'");
  const Placement lies = engine::placement_of(x);
  Placement then = lies;
  for (Placement::Split& split : then.dims) {
    std::erase_if(split, [&](int m) { return axes[static_cast<std::size_t>(m)].name == axis; });
  }
  if (then == lies) return x;
  const std::string way =
      to_string(lies, axes, x.rank()) + " -> " + to_string(then, axes, x.rank());
  return reshard(x, runtime(way));
}

std::string placement(const Tensor& x) {
  const auto& placed = x.impl().placed;
  return to_string(engine::placement_of(x), placed ? placed->mesh->axes : std::vector<MeshAxis>(),
                   x.rank());
}

}  // namespace ein
