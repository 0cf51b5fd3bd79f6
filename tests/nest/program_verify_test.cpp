// verify(Program): damage of each kind is found, and said in words.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "nest/nest.hpp"

namespace ein {
namespace {

LoopNest::Operand operand(int buffer, std::vector<Size> strides, std::int64_t offset = 0) {
  return {.buffer = buffer, .dtype = DType::f32, .offset = offset, .strides = std::move(strides)};
}

/// b2 = the sums of the rows of b0, (3, 4), times b1; b3 = b2 + 1, which is returned.
Program sums_of_rows() {
  Program program;
  program.input_count = 2;
  program.buffers = {{12, DType::f32}, {3, DType::f32}, {3, DType::f32}, {3, DType::f32}};
  LoopNest sums;
  sums.axes = {{"a", 3, false}, {"b", 4, true}};
  sums.inputs = {operand(0, {4, 1}), operand(1, {1, 0})};
  sums.output = operand(2, {1, 0});
  sums.body = Ex::input(0);
  sums.combine = Combine::sum;
  sums.epilogue = Ex::input(0) * Ex::input(1);
  LoopNest map;
  map.axes = {{"a", 3, false}};
  map.inputs = {operand(2, {1})};
  map.output = operand(3, {1});
  map.body = Ex::input(0) + Ex(1.0);
  program.nests = {sums, map};
  program.results = {{3, DType::f32, {3}, {1}, 0}};
  program.groups = {{.first = 0}, {.first = 1}};
  return program;
}

/// b2 = the rows of b0, (5, 2), at the positions b1.
Program rows_at_positions() {
  Program program;
  program.input_count = 2;
  program.buffers = {{10, DType::f32}, {3, DType::i64}, {6, DType::f32}};
  LoopNest gather;
  gather.axes = {{"a", 3, false}, {"b", 2, false}};
  gather.inputs = {operand(0, {0, 1}), operand(1, {1, 0})};
  gather.inputs[0].indirection = {.positions = 1, .stride = 2, .size = 5};
  gather.inputs[1].dtype = DType::i64;
  gather.output = operand(2, {2, 1});
  gather.body = Ex::input(0);
  program.nests = {gather};
  program.results = {{2, DType::f32, {3, 2}, {2, 1}, 0}};
  return program;
}

void expect_complaint(Program program, const std::function<void(Program&)>& damage,
                      const std::string& complaint) {
  ASSERT_NO_THROW(verify(program)) << to_string(program);
  damage(program);
  try {
    verify(program);
    ADD_FAILURE() << "nobody complains: " << complaint;
  } catch (const std::logic_error& error) {
    EXPECT_EQ(std::string(error.what()), "program: " + complaint);
  }
}

TEST(ProgramVerifyTest, Buffers) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(sums_of_rows(), damage, complaint);
  };
  expect([](Program& p) { p.input_count = 5; }, "buffers: more inputs than buffers");
  expect([](Program& p) { p.buffers[2].elements = -1; }, "buffers: negative size");
  expect([](Program& p) { p.buffers[0].is_local = true; }, "buffers: a local input");
  expect([](Program& p) { p.buffers[1].memory = 4; }, "buffers: memory of no buffer");
}

TEST(ProgramVerifyTest, Operands) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(sums_of_rows(), damage, complaint);
  };
  expect([](Program& p) { p.nests[0].inputs[1].buffer = 4; }, "nest 0: an operand in no buffer");
  expect([](Program& p) { p.nests[0].output.buffer = -1; }, "nest 0: an operand in no buffer");
  expect([](Program& p) { p.nests[1].inputs[0].dtype = DType::i32; },
         "nest 1: an operand of another dtype than its buffer");
  expect([](Program& p) { p.nests[1].output.strides.clear(); },
         "nest 1: one stride per axis is wanted");
  expect([](Program& p) { p.nests[1].output.offset = 1; }, "nest 1: an access leaves its buffer");
  expect([](Program& p) { p.nests[1].inputs[0].strides = {-1}; },
         "nest 1: an access leaves its buffer");
  expect([](Program& p) { p.nests[0].inputs[1].buffer = 3; },
         "nest 0: reads a buffer that nothing has written");
  expect([](Program& p) { std::swap(p.nests[0], p.nests[1]); },
         "nest 0: reads a buffer that nothing has written");
}

TEST(ProgramVerifyTest, AxesAndExpressions) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(sums_of_rows(), damage, complaint);
  };
  expect([](Program& p) { p.nests[0].axes[1].size = -1; }, "nest 0: an axis of negative size");
  expect([](Program& p) { p.nests[0].axes[1].ordered = true; },
         "nest 0: an ordered axis is reduced");
  expect([](Program& p) { p.nests[1].axes[0].ordered = true; },
         "nest 1: one ordered axis is wanted to scan or sort, and else none");
  expect([](Program& p) { p.nests[1].along = LoopNest::Along::argsort; },
         "nest 1: one ordered axis is wanted to scan or sort, and else none");
  expect([](Program& p) { p.nests[0].combine.reset(); },
         "nest 0: values meet, and nothing says how they combine");
  expect([](Program& p) { p.nests[1].epilogue = Ex::input(0); },
         "nest 1: an epilogue of what is not combined");
  expect([](Program& p) { p.nests[0].compute = DType::bf16; }, "nest 0: no compute type");
  expect(
      [](Program& p) {
        p.nests[0].axes[1].size = 3, p.nests[0].output.strides = {0, 1};
      },
      "nest 0: the output moves along a reduced axis");
  expect([](Program& p) { p.nests[1].body = {}; }, "nest 1: no body");
  expect([](Program& p) { p.nests[1].body = Ex::input(1); }, "nest 1: an expression of no input");
  expect([](Program& p) { p.nests[1].body = Ex::index(1); }, "nest 1: the index of no axis");
  expect([](Program& p) { std::swap(p.nests[1].body.steps.front(), p.nests[1].body.steps.back()); },
         "nest 1: an expression refers ahead");
  expect([](Program& p) { p.nests[0].epilogue = Ex::index(0); },
         "nest 0: an epilogue asks for an index");
  expect(
      [](Program& p) {
        p.buffers[1].elements = 4;
        p.nests[0].inputs[1].strides = {0, 1};
      },
      "nest 0: what an epilogue reads moves along a reduced axis");
  expect(
      [](Program& p) {
        p.nests[0].inputs[0].strides = {5, 1};
      },
      "nest 0: an access leaves its buffer");
}

TEST(ProgramVerifyTest, Positions) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(rows_at_positions(), damage, complaint);
  };
  expect([](Program& p) { p.nests[0].inputs[0].indirection.positions = 2; },
         "nest 0: positions of no input");
  expect([](Program& p) { p.nests[0].inputs[0].indirection.positions = 0; },
         "nest 0: positions that have positions");
  expect([](Program& p) { p.nests[0].inputs[1].dtype = p.buffers[1].dtype = DType::f32; },
         "nest 0: positions are i64 or i32");
  expect([](Program& p) { p.nests[0].inputs[0].indirection.size = -1; },
         "nest 0: positions along an axis of negative size");
  expect([](Program& p) { p.nests[0].inputs.push_back(p.nests[0].inputs[0]); },
         "nest 0: only input 0 is gathered");
  const auto scatter = [](Program& p) {
    p.nests[0].inputs[0].indirection = {};
    p.nests[0].output = operand(2, {0, 1});
    p.nests[0].output.indirection = {.positions = 1, .stride = 2, .size = 3};
    p.nests[0].axes[0].reduced = true;
  };
  expect([&](Program& p) { scatter(p); }, "nest 0: values meet, and nothing says how they combine");
  expect(
      [&](Program& p) {
        scatter(p);
        p.nests[0].combine = Combine::sum;
        p.nests[0].output.indirection.size = 4;
      },
      "nest 0: an access leaves its buffer");
  const auto write = [](Program& p) {
    p.nests[0].inputs = {operand(0, {2, 1}), operand(1, {0, 0})};
    p.nests[0].inputs[1].dtype = DType::i64;
    p.nests[0].output = operand(2, {2, 1});
    p.nests[0].axes[0].size = 2;
    p.nests[0].output.indirection = {.positions = 1, .stride = 2, .size = 3, .length = 2};
  };
  Program written = rows_at_positions();
  write(written);
  EXPECT_NO_THROW(verify(written)) << to_string(written);
  const auto expect_of_write = [&](const std::function<void(Program&)>& damage,
                                   const char* complaint) {
    expect_complaint(written, damage, complaint);
  };
  expect_of_write([](Program& p) { p.nests[0].inputs[1].strides[0] = 1; },
                  "nest 0: several positions of what is not combined");
  expect_of_write([](Program& p) { p.nests[0].body = Ex::input(0) + Ex(1.0); },
                  "nest 0: what is written at a position is an input as it is");
  expect_of_write([](Program& p) { p.nests[0].output.indirection.length = 1; },
                  "nest 0: an access leaves its buffer");
  expect_of_write([](Program& p) { p.nests[0].output.indirection.length = 5; },
                  "nest 0: positions along an axis of negative size");
}

TEST(ProgramVerifyTest, Results) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(sums_of_rows(), damage, complaint);
  };
  expect([](Program& p) { p.results[0].buffer = 4; }, "result 0: an operand in no buffer");
  expect([](Program& p) { p.results[0].offset = 1; }, "result 0: an access leaves its buffer");
  expect([](Program& p) { p.results[0].shape = {4}; }, "result 0: an access leaves its buffer");
  expect([](Program& p) { p.results[0].dtype = DType::i32; },
         "result 0: an operand of another dtype than its buffer");
  expect([](Program& p) { p.buffers[3].is_local = true; }, "result 0: lies in a local buffer");
  expect([](Program& p) { p.nests.pop_back(); },
         "result 0: lies in a buffer that nothing has written");
}

TEST(ProgramVerifyTest, Groups) {
  const auto expect = [](const std::function<void(Program&)>& damage, const char* complaint) {
    expect_complaint(sums_of_rows(), damage, complaint);
  };
  expect([](Program& p) { p.groups.pop_back(); }, "groups: groups are to have all nests, in order");
  expect([](Program& p) { std::swap(p.groups[0], p.groups[1]); },
         "group 0: groups are to have all nests, in order");
  expect([](Program& p) { p.groups[1].count = 2; },
         "group 1: groups are to have all nests, in order");
  expect([](Program& p) { p.groups[0].count = 0; },
         "group 0: groups are to have all nests, in order");
  expect([](Program& p) { p.groups[0].form = Program::Group::Repeated{2}; },
         "group 0: nests beyond a whole repetition");
  expect([](Program& p) { p.groups[0].form = Program::Group::Blocks{0}; }, "group 0: no blocks");
  expect([](Program& p) { p.groups[0].form = Program::Group::Blocks{3}; },
         "group 0: one axis per nest is wanted to cut it into blocks");
  const auto in_blocks = [](Program& p, std::int64_t blocks, std::vector<std::size_t> axes) {
    p.groups = {{.first = 0, .count = 2, .form = Program::Group::Blocks{blocks, std::move(axes)}}};
  };
  expect([&](Program& p) { in_blocks(p, 3, {0}); },
         "group 0: one axis per nest is wanted to cut it into blocks");
  expect([&](Program& p) { in_blocks(p, 3, {0, 1}); }, "group 0: blocks of no axis");
  expect(
      [&](Program& p) {
        in_blocks(p, 2, {0, 0});
      },
      "group 0: an axis does not fall into blocks");
  expect(
      [&](Program& p) {
        in_blocks(p, 4, {1, 0});
      },
      "group 0: an axis does not fall into blocks");
  expect([](Program& p) { p.groups = {{.first = 0, .count = 2, .form = Program::Group::Rows{2}}}; },
         "group 0: nests do not share their rows");
  expect([](Program& p) { p.buffers[2].is_local = true; },
         "group 1: shares a local buffer with another group");
  Program whole = sums_of_rows();
  in_blocks(whole, 3, {0, 0});
  whole.buffers[2].is_local = true;
  EXPECT_NO_THROW(verify(whole));
}

}  // namespace
}  // namespace ein
