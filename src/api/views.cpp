// Views: the same elements under other axes. Strides alone say so; where gradients flow or a
// function is traced, a graph does.
#include <algorithm>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include <ein/tensor.hpp>
#include "graph/build.hpp"
#include "runtime/call.hpp"
#include "runtime/custom.hpp"
#include "runtime/map.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

bool wants_graph(const Tensor& x) {
  return engine::Trace::active() || x.is_placed() || (x.requires_grad() && grad_is_enabled());
}

/// The elements of x under other axes.
Tensor strided(const Tensor& x, Shape shape, Strides strides, std::int64_t offset) {
  if (!x.storage()) detail::no_elements_here(x.impl());
  Tensor view(
      detail::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), offset));
  const Tensor* const operand = &x;
  if (x.requires_grad()) engine::CustomScope::note("view", {&operand, 1}, {&view, 1});
  return view;
}

/// A graph of one input like x, and of one like `position` if there is one; `view` appends what
/// makes a view of value 0.
template <class View>
Tensor view_by_graph(const char* what, engine::PlanKey& key, const Tensor& x, View&& view,
                     const Tensor* position = nullptr) {
  const Tensor* const both[] = {&x, position};
  const engine::Operands operands(both, position ? 2 : 1);
  const auto build = [&] {
    Graph graph;
    for (const Tensor* operand : operands) {
      graph.ops.push_back(
          {.kind = OpKind::input, .dtype = operand->dtype(), .shape = operand->shape()});
    }
    view(graph);
    graph.outputs = {static_cast<ValueId>(graph.ops.size()) - 1};
    verify(graph);
    return graph;
  };
  const auto plan = engine::plan_for(
      key, operands, [&] { return std::string(what); }, build);
  return std::move(engine::run(*plan, operands).front());
}

/// What rearranges `input`, like `from`, to `shape`; it says how where that is not plain.
Op reindex(const Op& from, ValueId input, const Shape& shape) {
  Op op = plain_op(OpKind::reindex, from.dtype, shape);
  op.inputs = {input};
  return op;
}
/// The row-major elements in another shape: all axes as one, and that one cut anew.
Tensor view_as(const Tensor& x, const Shape& shape) {
  engine::PlanKey key;
  add(key, engine::KeyKind::view);
  key.add(shape);
  return view_by_graph("view", key, x, [&](Graph& graph) {
    Op flattened = reindex(graph.op(0), 0, x.shape());
    flattened.reads = {flattened.write};
    flattened.write = {joined_dim(flattened.axes, 0, x.rank())};
    flattened.shape = {x.numel()};
    graph.ops.push_back(std::move(flattened));
    Op cut = reindex(graph.op(0), 1, shape);
    cut.reads = {{joined_dim(cut.axes, 0, shape.rank())}};
    graph.ops.push_back(std::move(cut));
  });
}

}  // namespace

namespace {

void require_position(const Tensor& x) {
  if (x.numel() != 1) {
    throw Error(ErrorKind::shape, "slice: a tensor of shape " + x.shape().to_string() +
                                      " says where to begin, one position is wanted");
  }
  if (x.dtype() != DType::i64 && x.dtype() != DType::i32) {
    throw Error(ErrorKind::dtype, "slice: positions are i64 or i32, got " +
                                      std::string(name(x.dtype())) +
                                      "\n  help: cast first, x.to(ein::DType::i64)");
  }
}

}  // namespace

TensorSlice slice_of(const Tensor& first, Size count) {
  require_position(first);
  if (count < 0)
    throw Error(ErrorKind::value, "slice_of: the slice has " + to_string(count) +
                                      " positions, at least 0 are wanted");
  return {first, count};
}

TensorSlice slice(const Tensor& first, const Tensor& end) {
  require_position(first);
  require_position(end);
  engine::Trace* const trace = engine::Trace::active();
  const auto count =
      trace ? trace->difference(end, first)
            : std::optional<Size>(end.item<std::int64_t>() - first.item<std::int64_t>());
  if (!count) {
    throw Error(ErrorKind::value,
                "slice: the size of a slice cannot depend on values in a function that " +
                    engine::Trace::tracer(trace) +
                    " traces, and its end is not its first position plus a number\n"
                    "  help: slice(first, first + 3), or slice_of(first, 3)");
  }
  return slice_of(first, std::max<Size>(0, *count));
}

Index::Index(const TensorSlice& range)
    : is_position_(false), tensor_range_(std::make_shared<const TensorSlice>(range)) {}

Tensor engine::broadcast(const Tensor& x, const Shape& shape) {
  PlanKey key;
  add(key, KeyKind::broadcast);
  key.add(shape);
  return view_by_graph("broadcast", key, x, [&](Graph& graph) {
    Op op = reindex(graph.op(0), 0, shape);
    op.reads = {broadcast_access(x.shape(), shape)};
    graph.ops.push_back(std::move(op));
  });
}

Tensor Tensor::transpose() const {
  if (rank() != 2) {
    throw Error(ErrorKind::rank, "transpose: wants a matrix, got shape " + shape().to_string() +
                                     "; rearrange exchanges axes by name");
  }
  if (wants_graph(*this)) {
    engine::PlanKey key;
    add(key, engine::KeyKind::view);
    return view_by_graph("transpose", key, *this, [&](Graph& graph) {
      Op op = reindex(graph.op(0), 0, {shape()[1], shape()[0]});
      op.reads = {{op.write[1], op.write[0]}};
      graph.ops.push_back(std::move(op));
    });
  }
  return strided(*this, {shape()[1], shape()[0]}, {strides()[1], strides()[0]}, offset());
}

namespace {

void require_inside(const TensorSlice& range, Size size) {
  require_position(range.first);
  if (range.count >= 0 && range.count <= size) return;
  throw Error(ErrorKind::value, "at: a slice of " + to_string(range.count) +
                                    " positions does not fit an axis of size " + to_string(size));
}

std::int64_t checked_first(const TensorSlice& range, std::int64_t size) {
  const auto first = range.first.item<std::int64_t>();
  if (first >= 0 && first <= size - range.count) return first;
  throw Error(ErrorKind::value, "at: " + outside_axis(first, range.count, size));
}

}  // namespace

Tensor Tensor::at(std::span<const Index> indices) const {
  if (indices.size() > rank()) {
    throw Error(ErrorKind::rank, "at: " + std::to_string(indices.size()) +
                                     (indices.size() == 1 ? " index is" : " indices are") +
                                     " given for shape " + shape().to_string());
  }
  Shape shape;
  Strides strides;
  Access read;
  Size offset = this->offset();
  // While a function is traced, the position of a slice may be a value of it. One such slice makes
  // a view, and the others one of that.
  const TensorSlice* moved = nullptr;
  std::size_t moved_dim = 0;
  std::vector<Index> later;
  for (std::size_t d = 0; d < rank(); ++d) {
    const Size size = this->shape()[d], stride = this->strides()[d];
    Index index = d < indices.size() ? indices[d] : Index(every);
    if (const TensorSlice* range = index.tensor_range()) {
      require_inside(*range, size);
      if (!engine::Trace::active() || range->count == 0) {
        const std::int64_t first = range->count == 0 ? 0 : checked_first(*range, size);
        index = slice(first, first + range->count);
      } else if (moved) {
        later.resize(shape.rank(), every);
        later.push_back(index);
        index = every;
      } else {
        moved = range;
        moved_dim = d;
        index = slice(0, range->count);
      }
    }
    if (index.is_position()) {
      const Size position = index.position() < 0 ? index.position() + size : index.position();
      if (position < 0 || position >= size) {
        throw Error(ErrorKind::shape, "at: position " + to_string(index.position()) +
                                          " is outside an axis of size " + to_string(size) +
                                          " of shape " + this->shape().to_string());
      }
      offset += position * stride;
      read.push_back({position, {}});
      continue;
    }
    const Slice& range = index.range();
    if (range.step < 1) {
      throw Error(ErrorKind::value, "at: the step of a slice is " + std::to_string(range.step) +
                                        ", at least 1 is wanted");
    }
    const auto bound = [&](Size b) {
      return b < 0 ? std::max<Size>(0, b + size) : std::min(b, size);
    };
    const Size begin = bound(range.begin), end = bound(range.end);
    const Size count = end > begin ? (end - begin - 1) / range.step + 1 : Size(0);
    if (begin.word() != 0 && count > 0) offset += begin * stride;
    read.push_back(
        {begin.word() == 0 || count > 0 ? begin : Size(0),
         {{static_cast<int>(shape.rank()), range.step == 1 || count > 1 ? range.step : 1}}});
    shape.push_back(count);
    strides.push_back(range.step == 1 || count <= 1 ? stride : stride * range.step);
  }
  if (wants_graph(*this)) {
    engine::PlanKey key;
    add(key, moved ? engine::KeyKind::slice_at : engine::KeyKind::slice);
    if (moved) key.add(static_cast<std::int64_t>(moved_dim));
    for (std::size_t d = 0; d < rank(); ++d) {
      key.add(read[d].offset.word());
      key.add(read[d].terms.empty() ? 0 : read[d].terms[0].coefficient.word());
    }
    key.add(shape);
    const auto view = [&](Graph& graph) {
      Op op = reindex(graph.op(0), 0, shape);
      op.reads = {read};
      if (moved) {
        op.kind = OpKind::gather;
        op.dim = static_cast<int>(moved_dim);
        op.inputs.push_back(1);
        op.reads.push_back(Access(moved->first.rank()));
      }
      graph.ops.push_back(std::move(op));
    };
    const Tensor result = view_by_graph("at", key, *this, view, moved ? &moved->first : nullptr);
    return later.empty() ? result : result.at(later);
  }
  // What is empty may lie behind the end; it reads nothing, so any place will do.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) offset = this->offset();
  return strided(*this, std::move(shape), std::move(strides), offset);
}

namespace {

/// Strides under which the elements of `x`, row-major, have `shape`; false where there are none.
bool find_view_strides(const Tensor& x, const Shape& shape, Strides& strides) {
  strides = contiguous_strides(shape);
  if (x.numel() == 0) return true;
  // Runs of old dimensions that step evenly must be tiled by runs of new ones.
  std::size_t d = x.rank();
  std::size_t n = shape.rank();
  while (d > 0 || n > 0) {
    while (d > 0 && x.shape()[d - 1] == 1) --d;
    if (d == 0) break;
    Size stride = x.strides()[d - 1];
    Size old_size = x.shape()[--d];
    while (d > 0 && (x.shape()[d - 1] == 1 || x.strides()[d - 1] == stride * old_size))
      old_size *= x.shape()[--d];
    Size new_size = 1;
    while (new_size < old_size) {
      if (n == 0) return false;
      --n;
      strides[n] = stride * new_size;
      new_size *= shape[n];
    }
    if (new_size != old_size) return false;
  }
  return true;
}

void require_same_numel(const char* what, const Tensor& x, const Shape& shape) {
  const Size wanted = checked_numel(shape, static_cast<std::int64_t>(x.element_size()));
  if (wanted == x.numel()) return;
  throw Error(ErrorKind::shape, std::string(what) + ": shape " + shape.to_string() + " has " +
                                    to_string(wanted) + (wanted == 1 ? " element" : " elements") +
                                    ", the tensor of shape " + x.shape().to_string() + " has " +
                                    to_string(x.numel()));
}

}  // namespace

Tensor Tensor::view(const Shape& shape) const {
  require_same_numel("view", *this, shape);
  Strides strides;
  if (!find_view_strides(*this, shape, strides)) {
    throw Error(ErrorKind::shape, "view: no strides give shape " + shape.to_string() +
                                      " to a tensor of shape " + this->shape().to_string() +
                                      " and strides " + this->strides().to_string() +
                                      "; reshape copies where it must");
  }
  if (wants_graph(*this)) return view_as(*this, shape);
  return strided(*this, shape, std::move(strides), offset());
}

Tensor Tensor::reshape(const Shape& shape) const {
  require_same_numel("reshape", *this, shape);
  Strides strides;
  return find_view_strides(*this, shape, strides) ? view(shape) : clone().view(shape);
}

}  // namespace ein
