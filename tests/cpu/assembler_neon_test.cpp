// What the assembler of NEON writes, on a host of another kind: the instructions of each of its
// methods are a golden text, and all of them can be encoded. What they compute is tested where
// they run.
#if defined(__x86_64__) && EIN_ASMJIT
#define EIN_NEON_ELSEWHERE 1
#include "cpu/assembler_neon.cpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein::host {
namespace {

using Arithmetic = Assembler::Arithmetic;
using Rounding = Assembler::Rounding;
using Vector = Assembler::Vector;
using Int = Assembler::Int;

constexpr std::array<double, 32> table{};

// --- instructions as text ---

std::string of_register(const asmjit::BaseReg& reg) {
  const std::string number =
      std::to_string(reg.isVirtReg() ? asmjit::Operand::virtIdToIndex(reg.id()) : reg.id());
  if (!reg.as<a64::Reg>().isVec()) return (reg.size() == 4 ? "w" : "x") + number;
  const auto& vec = reg.as<a64::Vec>();
  const std::string name = "v" + number;
  if (!vec.hasElementType()) return name + ":" + std::to_string(8 * vec.size());
  static constexpr unsigned bits_of[] = {0, 8, 16, 32, 64, 32, 16};
  const unsigned bits = bits_of[static_cast<unsigned>(vec.elementType())];
  if (vec.hasElementIndex())
    return name + "[" + std::to_string(vec.elementIndex()) + ":" + std::to_string(bits) + "]";
  return name + "." + std::to_string(8 * vec.size() / bits) + "x" + std::to_string(bits);
}

/// Addresses of this program are not the same from run to run.
std::string of_number(std::int64_t value) {
  Dl_info found;
  const auto* const address = reinterpret_cast<const void*>(value);
  return ::dladdr(address, &found) != 0 ? "ADDRESS" : std::to_string(value);
}

std::string of_operand(const asmjit::Operand_& operand) {
  if (operand.isReg()) return of_register(operand.as<asmjit::BaseReg>());
  if (operand.isImm()) {
    return of_number(operand.as<asmjit::Imm>().value());
  }
  if (operand.isLabel()) return "L" + std::to_string(operand.id());
  const auto& at = operand.as<a64::Mem>();
  std::string text = "[x" + std::to_string(asmjit::Operand::virtIdToIndex(at.baseId()));
  if (at.hasIndex())
    text += " + x" + std::to_string(asmjit::Operand::virtIdToIndex(at.indexId())) + " << " +
            std::to_string(at.shift());
  if (at.hasOffset()) text += " + " + std::to_string(at.offset());
  return text + "]";
}

std::string text_of(const asmjit::BaseNode* node) {
  if (node->isLabel() && !node->isFunc())
    return "  L" + std::to_string(node->as<asmjit::LabelNode>()->labelId()) + ":\n";
  if (!node->isInst()) return "";
  const auto* const inst = node->as<asmjit::InstNode>();
  asmjit::String name;
  asmjit::InstAPI::instIdToString(asmjit::Arch::kAArch64, inst->id(), name);
  std::string text = "  " + std::string(name.data(), name.size());
  const auto condition = asmjit::BaseInst::extractARMCondCode(inst->id());
  if (condition != asmjit::arm::CondCode::kAL)
    text += " if " + std::to_string(static_cast<int>(condition));
  for (std::uint32_t i = 0; i < inst->opCount(); ++i)
    text += (i == 0 ? " " : ", ") + of_operand(inst->op(i));
  return text + "\n";
}

// --- a function that has one method's instructions ---

/// What a method needs of the function that it stands in.
struct In {
  Assembler& to;
  Int argument;
  Vector x, y, z;
  Assembler::Mask mask;
  Assembler::Tail tail;
};
using Emit = std::function<void(const In&)>;

class FirstError final : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error /*code*/, const char* message, asmjit::BaseEmitter*) override {
    if (text.empty()) text = message;
  }
  std::string text;
};

/// The instructions that `emit` has written, and constants before them. Registers are numbered in
/// the order in which the function made them.
std::string written(DType compute, const Emit& emit) {
  asmjit::CodeHolder holder;
  FirstError error;
  holder.init(asmjit::Environment(asmjit::Arch::kAArch64));
  holder.setErrorHandler(&error);
  const std::unique_ptr<Assembler> assembler = make_neon_assembler(compute, holder);
  asmjit::BaseCompiler& compiler = assembler->compiler();
  const Int argument = assembler->begin();
  const Assembler::Address at{.base = argument};
  const In in{*assembler,
              argument,
              assembler->load(at, compute, nullptr),
              assembler->load(at, compute, nullptr),
              assembler->load(at, compute, nullptr),
              assembler->none(),
              assembler->tail(argument)};
  assembler->begin_constants();
  asmjit::BaseNode* const before = compiler.cursor();
  emit(in);
  std::string text;
  for (const asmjit::BaseNode* node = before; node != compiler.cursor();) {
    node = node->next();
    text += text_of(node);
  }
  assembler->store(at, compute, in.x, nullptr, false);
  assembler->end();
  EXPECT_EQ(compiler.finalize(), asmjit::kErrorOk);
  EXPECT_EQ(error.text, "") << text;
  EXPECT_GT(holder.codeSize(), 0u);
  return text;
}

std::vector<std::pair<std::string, Emit>> methods(DType compute) {
  const bool is_f64 = compute == DType::f64;
  std::vector<std::pair<std::string, Emit>> all;
  const auto add = [&](std::string name, Emit emit) {
    all.emplace_back(std::move(name), std::move(emit));
  };
  // Integers and jumps.
  add("set", [](const In& in) { in.to.set(in.argument, in.to.new_int()); });
  add("set to a number", [](const In& in) { in.to.set(in.argument, 1LL << 40); });
  for (const std::int64_t by : {8LL, -8LL, 1LL << 20})
    add("add " + std::to_string(by), [by](const In& in) { in.to.add(in.argument, by); });
  add("add", [](const In& in) { in.to.add(in.argument, in.argument); });
  add("subtract", [](const In& in) { in.to.subtract(in.argument, in.argument); });
  add("round_down", [](const In& in) { in.to.round_down(in.argument, 4); });
  add("lower_to", [](const In& in) { in.to.lower_to(in.argument, in.argument); });
  add("load_int", [](const In& in) { in.to.load_int(in.argument, 24); });
  add("add_to_memory", [](const In& in) { in.to.add_to_memory(in.argument, 24, in.argument); });
  add("address", [](const In& in) {
    in.to.address({in.argument, in.argument, 2, 40});
    in.to.address({in.argument, {}, 0, 1 << 20});
  });
  add("jumps", [](const In& in) {
    const asmjit::Label end = in.to.new_label();
    in.to.jump(end);
    in.to.jump_if_less(in.argument, in.argument, end);
    in.to.jump_if_less(in.argument, 7, end);
    in.to.jump_if_less(in.argument, 1LL << 20, end);
    in.to.jump_if_not_less(in.argument, in.argument, end);
    in.to.jump_if_none(in.mask, end);
    in.to.bind(end);
  });
  add("tail", [](const In& in) { in.to.tail(in.argument); });

  // Memory.
  std::vector<DType> read{DType::f32, DType::bf16, DType::f16,
                          DType::i32, DType::u8,   DType::boolean};
  std::vector<DType> stored{DType::f32, DType::bf16, DType::f16};
  if (is_f64) {
    read.insert(read.end(), {DType::f64, DType::i64});
    stored.push_back(DType::f64);
  }
  for (const DType dtype : read) {
    const std::string of = " " + std::string(name(dtype));
    add("load" + of, [dtype](const In& in) {
      in.to.load({in.argument, {}, 0, 48}, dtype, nullptr);
      in.to.load({in.argument, in.argument, 1, 6}, dtype, nullptr);
    });
    add("load the tail" + of,
        [dtype](const In& in) { in.to.load({in.argument}, dtype, &in.tail); });
  }
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32,
                            DType::u8, DType::boolean})
    add("load_one " + std::string(name(dtype)),
        [dtype](const In& in) { in.to.load_one(in.argument, dtype); });
  for (const DType dtype : stored) {
    const std::string of = " " + std::string(name(dtype));
    add("store" + of, [dtype](const In& in) {
      in.to.store({in.argument, {}, 0, 48}, dtype, in.x, nullptr, true);
    });
    add("store the tail" + of,
        [dtype](const In& in) { in.to.store({in.argument}, dtype, in.x, &in.tail, false); });
    add("store_one" + of, [dtype](const In& in) { in.to.store_one(in.argument, dtype, in.x); });
    add("rounded" + of, [dtype](const In& in) { in.to.rounded(in.x, dtype); });
  }
  add("rounded bf16, NaNs as expected", [](const In& in) {
    in.to.expect_bf16_nans();
    in.to.rounded(in.x, DType::bf16);
  });
  add("load_every_other", [](const In& in) {
    in.to.load_every_other({in.argument}, nullptr);
    in.to.load_every_other({in.argument}, &in.tail);
  });
  add("stream", [](const In& in) { in.to.stream({in.argument}, in.x); });

  // Numbers.
  add("copy", [](const In& in) { in.to.copy(in.x); });
  add("set a vector", [](const In& in) { in.to.set(in.x, in.y); });
  add("constant", [](const In& in) { in.to.constant(0.1); });
  add("number", [](const In& in) { in.to.number(in.argument); });
  add("count_from", [](const In& in) { in.to.count_from(in.argument); });
  for (const auto& [word, op] : {std::pair("add", Arithmetic::add),
                                 {"subtract", Arithmetic::subtract},
                                 {"multiply", Arithmetic::multiply},
                                 {"divide", Arithmetic::divide},
                                 {"least", Arithmetic::least},
                                 {"largest", Arithmetic::largest},
                                 {"bit_and", Arithmetic::bit_and},
                                 {"bit_or", Arithmetic::bit_or},
                                 {"bit_xor", Arithmetic::bit_xor},
                                 {"integer_add", Arithmetic::integer_add},
                                 {"integer_subtract", Arithmetic::integer_subtract}})
    add("apply " + std::string(word), [op = op, is_f64](const In& in) {
      in.to.apply(op, in.x, in.y);
      in.to.apply(op, in.x, is_f64 ? Assembler::Operand(2.5) : Assembler::Operand(2.5F));
    });
  add("square_root", [](const In& in) { in.to.square_root(in.x); });
  for (const auto& [word, how] : {std::pair("to_even", Rounding::to_even),
                                  {"down", Rounding::down},
                                  {"up", Rounding::up},
                                  {"to_zero", Rounding::to_zero}})
    add("whole " + std::string(word), [how = how](const In& in) { in.to.whole(how, in.x); });
  for (const bool minus_product : {false, true})
    for (const bool minus_z : {false, true})
      add(std::string("multiply_add ") + (minus_product ? "-" : "+") + (minus_z ? "-" : "+"),
          [=](const In& in) {
            in.to.multiply_add(in.x, in.y, in.z, minus_product, minus_z);
            in.to.multiply_add(in.x, in.y, {in.z, true}, minus_product, minus_z);
          });
  add("shifts", [](const In& in) {
    in.to.shift_left(in.x, 23);
    in.to.shift_right(in.x, 23);
    in.to.shift_right_signed(in.x, 23);
  });
  add("with_sign_of", [](const In& in) { in.to.with_sign_of(in.x, in.y); });
  for (const int count : {8, 32, 20})
    add("look_up of " + std::to_string(count),
        [count](const In& in) { in.to.look_up(table.data(), count, in.x); });

  // Masks.
  for (const ScalarOp op :
       {ScalarOp::lt, ScalarOp::le, ScalarOp::gt, ScalarOp::ge, ScalarOp::eq, ScalarOp::ne})
    add("compare " + std::string(info(op).name),
        [op](const In& in) { in.to.compare(op, in.x, in.y); });
  add("is_nan", [](const In& in) {
    in.to.is_nan(in.x, in.x);
    in.to.is_nan(in.x, in.y);
  });
  add("both, either, none", [](const In& in) {
    in.to.both(in.mask, in.mask);
    in.to.either(in.mask, in.mask);
    in.to.none();
  });
  add("note", [](const In& in) {
    in.to.note(in.mask, in.mask, nullptr);
    in.to.note(in.mask, in.mask, &in.tail);
  });
  add("select", [](const In& in) { in.to.select(in.mask, in.x, in.y); });

  // Combinations.
  for (const auto& [word, how] : {std::pair("sum", Combine::sum),
                                  {"prod", Combine::prod},
                                  {"max", Combine::max},
                                  {"min", Combine::min}}) {
    add("combine " + std::string(word), [how = how](const In& in) {
      in.to.combine(how, in.x, in.y, nullptr);
      in.to.combine(how, in.x, in.y, &in.tail);
    });
    add("combine_lanes " + std::string(word),
        [how = how](const In& in) { in.to.combine_lanes(how, in.x); });
    add("combine_lanes_of " + std::string(word), [how = how](const In& in) {
      const std::vector<Vector> of(static_cast<std::size_t>(in.to.lanes()), in.x);
      in.to.combine_lanes_of(how, of);
    });
  }
  add("add_product", [](const In& in) {
    in.to.add_product(in.x, in.y, in.z, nullptr);
    in.to.add_product(in.x, in.y, in.z, &in.tail);
  });
  return all;
}

TEST(AssemblerNeon, WritesWhatTheGoldenTextHas) {
  std::string text;
  for (const DType compute : {DType::f32, DType::f64}) {
    for (const auto& [method, emit] : methods(compute)) {
      SCOPED_TRACE(method);
      text += std::string(name(compute)) + ": " + method + "\n" + written(compute, emit);
    }
  }
  const std::string path = (test::project / "tests/golden/neon.txt").string();
  if (std::getenv("EIN_WRITE_GOLDEN")) test::write_bytes(path, text);
  EXPECT_EQ(text, test::read_bytes(path));
}

}  // namespace
}  // namespace ein::host
#endif
