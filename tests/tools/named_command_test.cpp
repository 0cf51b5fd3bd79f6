// The command on operations that mark axes with brackets, and on programs of several calls.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include <ein/npy.hpp>
#include "support/command.hpp"
#include "support/scratch.hpp"
#include "support/tensor_values.hpp"

namespace ein {
using namespace literals;

namespace {

using test::expect_fails;
using test::expect_holds;
using test::get_values;
using test::text_of;

class NamedCommand : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string save(const std::string& name, const Tensor& x) const {
    save_npy(path(name), x);
    return path(name);
  }
  /// Runs the words and gives what they wrote to y.npy.
  Tensor run(std::vector<std::string> words) const {
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"-o", path("y.npy")});
    EXPECT_EQ(text_of(words), "");
    return load_npy(path("y.npy"));
  }

 private:
  test::ScratchDirectory folder_;
};

TEST_F(NamedCommand, RunsThem) {
  const Tensor x = randn({3, 5}), weight = randn({5}), bias = randn({5}), table = randn({7, 2});
  const Tensor tokens = tensor<std::int64_t>({6, 0, 3});
  const std::string file = save("x.npy", x);
  EXPECT_EQ(get_values(run({"softmax", "b [c]", file})), get_values(softmax(x, "b [c]")));
  EXPECT_EQ(get_values(run({"layer_norm", "b [c]", file, save("w.npy", weight), save("b.npy", bias),
                            "--eps", "0.5"})),
            get_values(layer_norm(x, weight, bias, "b [c]", 0.5)));
  EXPECT_EQ(get_values(run({"rms_norm", "b [c]", file})), get_values(rms_norm(x, "b [c]")));
  EXPECT_EQ(get_values(run({"cumsum", "[b] c", file, "--as", "f64"})),
            get_values(cumsum(x, "[b] c", as(DType::f64))));
  EXPECT_EQ(
      get_values(run({"gather", "[v] d, b -> b d", save("t.npy", table), save("i.npy", tokens)})),
      get_values(gather(table, tokens, "[v] d, b -> b d")));
  const Tensor whole = run({"reduce", "b d ->", path("t.npy"), "--by", "sum", "--as", "f64"});
  EXPECT_EQ(get_values(whole), get_values(reduce(table, "b d ->", "sum", as(DType::f64))));
  EXPECT_EQ(run({"rearrange", "b -> b 1", path("i.npy"), "--as", "i32"}).dtype(), DType::i32);
  const Tensor hot = run({"one_hot", "b -> b [v]", path("i.npy"), "--axis", "v=8", "--as", "i32"});
  EXPECT_EQ(hot.dtype(), DType::i32);
  EXPECT_EQ(get_values(hot), get_values(one_hot(tokens, "b -> b [v]", "v"_a = 8)));

  EXPECT_EQ(get_values(run({"flip", "b [c]", file})), get_values(flip(x, "b [c]")));
  EXPECT_EQ(get_values(run({"roll", "[b c]", file, "--number", "1", "--number", "-2"})),
            get_values(roll(x, "[b c]", {1, -2})));
  EXPECT_EQ(get_values(run({"pad", "b [c]", file, "--number", "1", "--number", "2"})),
            get_values(pad(x, "b [c]", 1, 2)));
  EXPECT_EQ(get_values(run({"tril", "[b c]", file})), get_values(tril(x, "[b c]")));
  EXPECT_EQ(get_values(run({"median", "b [c]", file})), get_values(median(x, "b [c]")));
  EXPECT_EQ(get_values(run({"quantile", "b [c]", file, "--real", "0.1", "--real", "0.9"})),
            get_values(quantile(x, "b [c]", {0.1, 0.9})));

  text_of({"run", "sort", "b [c]", file, "--descending", "-o", path("v.npy"), "-o", path("p.npy")});
  const Sorted sorted = sort(x, "b [c]", true);
  EXPECT_EQ(get_values(load_npy(path("v.npy"))), get_values(sorted.values));
  EXPECT_EQ(get_values(load_npy(path("p.npy"))), get_values(sorted.positions));
  text_of({"run", "top_k", "b [c]", file, "-k", "2", "-o", path("v.npy"), "-o", path("p.npy")});
  EXPECT_EQ(get_values(load_npy(path("v.npy"))), get_values(top_k(x, "b [c]", 2).values));
}

TEST_F(NamedCommand, ChecksCostsAndEmitsThem) {
  EXPECT_EQ(text_of({"check", "softmax", "b [c]"}), "ok\n");
  EXPECT_EQ(text_of({"check", "top_k", "b [c]", "--shape", "3,5", "-k", "2"}), "(3, 2)\n(3, 2)\n");
  EXPECT_EQ(text_of({"check", "gather", "[v] d, b s -> b s d", "--shape", "9,4", "--shape", "2,3"}),
            "(2, 3, 4)\n");
  expect_holds(text_of({"cost", "softmax", "b [c]", "--shape", "4,8"}), {"exp", "b·c", "32"});
  expect_holds(text_of({"cost", "layer_norm", "b [c]"}), {"b·c"});
  expect_holds(text_of({"cost", "gather", "[v] d, b -> b d"}), {"4·d·b"});
  expect_holds(text_of({"emit", "graph", "softmax", "b [c]", "--shape", "4,8"}),
               {"reduce max", "exp("});
  expect_holds(text_of({"emit", "cuda", "softmax", "b [c]", "--shape", "4,8"}), {"__global__"});
  const std::string picture = text_of({"emit", "svg", "softmax", "b [c]", "--shape", "4,8"});
  EXPECT_EQ(picture.rfind("<svg", 0), 0u) << picture;
  expect_holds(picture, {"</svg>"});
  EXPECT_EQ(text_of({"emit", "svg", "softmax", "b [c]", "--shape", "4,8", "-o", path("s.svg")}),
            "");
  std::ifstream file(path("s.svg"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), picture);
}

TEST_F(NamedCommand, KnowsDecompositions) {
  const Tensor m = eye(3) * 2;
  const std::string file = save("m.npy", m);
  EXPECT_EQ(get_values(run({"inverse", "[i j]", file})), get_values(inverse(m, "[i j]")));
  EXPECT_EQ(text_of({"run", "svd", "[n m]", file, "-o", path("u.npy"), "-o", path("s.npy"), "-o",
                     path("v.npy")}),
            "");
  EXPECT_EQ(get_values(load_npy(path("s.npy"))), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(text_of({"check", "qr", "b [n m]", "--shape", "5,4,3"}), "(5, 4, 3)\n(5, 3, 3)\n");
  const std::string solve = "b [n m], b [n] k -> b [m] k";
  expect_holds(text_of({"cost", "solve", solve, "--shape", "5,6,6", "--shape", "5,6,4"}),
               {"estimated", "2,160"});
  expect_fails(2, {"cost", "solve", solve}, "cost solve needs --shape, once for each operand");
  expect_fails(1, {"emit", "cuda", "det", "[i j]", "--shape", "4,4"},
               "det: runs on the CPU alone; copy the operands there first, with .to(ein::cpu)");
}

TEST_F(NamedCommand, AnOptionOfAnotherOperationIsAMistake) {
  const auto fails = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), "check");
    expect_fails(2, words, message);
  };
  fails({"softmax", "b [c]", "--eps", "1"},
        "--eps is for layer_norm and rms_norm, not for softmax");
  fails({"softmax", "b [c]", "-k", "1"}, "-k is for top_k, not for softmax");
  fails({"argmax", "b [c]", "--descending"}, "--descending is for sort, not for argmax");
  fails({"softmax", "b [c]", "--as", "f64"}, "--as is for einsum, reduce");
  fails({"softmax", "b [c]", "--number", "1"}, "--number is for roll, pad, tril");
  fails({"roll", "b [c]", "--number", "x"}, "--number: 'x' is no number");
  fails({"roll", "b [c]", "--shape", "2,3"}, "0 shifts are given for 1 axis in brackets");
  fails({"pad", "[b c]", "--number", "1", "--number", "2", "--number", "3"},
        "pad needs --number as often for how many after as for how many before; it is given 3 "
        "times");
  for (const std::string op : {"tril", "triu", "diagonal"})
    fails({op, "[b c]", "--number", "1", "--number", "2"},
          op + " needs --number at most once, which diagonal; it is given 2 times");
  fails({"from_diagonal", "b [c]", "--number", "1", "--number", "2"}, "at most once");
  fails({"histogram", "b [c]", "--real", "0", "--real", "1"},
        "histogram needs --number once, how many bins; it is given 0 times");
  fails({"histogram", "b [c]", "--number", "3"},
        "histogram needs --real twice, where the bins begin and where they end; it is given 0");
  fails({"histogram", "b [c]", "--number", "3", "--real", "0", "--real", "1", "--real", "2"},
        "it is given 3 times");
  fails({"quantile", "b [c]", "--shape", "2,3"},
        "quantile needs --real at least once, which quantile; it is given 0 times");
  fails({"multinomial", "b [c]", "--shape", "2,3"}, "unknown operation 'multinomial'");
  fails({"quantile", "b [c]", "--shape", "2,3", "--real", "2"}, "q is 2, 0 <= q <= 1 is wanted");
  fails({"top_k", "b [c]", "--shape", "2,3"}, "top_k needs -k");
  fails({"top_k", "b [c]", "--shape", "2,3", "-k", "4"}, "top_k");
  fails({"layer_norm", "b [c]", "--eps", "-1"}, "--eps: '-1' is no number of 0 or more");
  fails({"softmax", "b c", "--shape", "2,3"}, "softmax");
  fails({"gather", "[v] d, b -> b d", "--shape", "2,3", "--shape", "2", "--dtype", "f32", "--dtype",
         "f32"},
        "positions are integers");
  fails({"einsum", "i, i ->", "--shape", "2", "--dtype", "f32", "--dtype", "f32"},
        "--dtype is given 2 times, --shape 1 time");
}

// --- programs ---

constexpr const char* attention = R"(# attention of one head
inputs q k v     # (b s d)

s = einsum 'b q d, b k d -> b q k' q k
p = softmax "b q [k]" s
y = einsum 'b q k, b k d -> b q d' p v
outputs y p
)";

TEST_F(NamedCommand, RunsAProgram) {
  const Tensor q = randn({2, 5, 4}), k = randn({2, 6, 4}), v = randn({2, 6, 4});
  const std::string file = write("attention.ein", attention);
  text_of({"run", "program", file, save("q.npy", q), save("k.npy", k), save("v.npy", v), "-o",
           path("y.npy"), "-o", path("p.npy")});
  const Tensor p = softmax(einsum(q, k, "b q d, b k d -> b q k"), "b q [k]");
  const auto is_close = [&](const std::string& name, const Tensor& want) {
    const Tensor got = load_npy(path(name));
    ASSERT_EQ(got.shape(), want.shape());
    EXPECT_LE(reduce(abs(got - want), "b q d ->", Reduction::max).item(), 1e-6);
  };
  is_close("p.npy", p);
  is_close("y.npy", einsum(p, v, "b q k, b k d -> b q d"));
  const std::vector<std::string> shapes{"--shape", "2,5,4", "--shape", "2,6,4", "--shape", "2,6,4"};
  const auto with_shapes = [&](std::vector<std::string> words) {
    words.insert(words.end(), shapes.begin(), shapes.end());
    return text_of(words);
  };
  EXPECT_EQ(with_shapes({"check", "program", file}), "(2, 5, 4)\n(2, 5, 6)\n");
  EXPECT_EQ(text_of({"check", "program", file}), "ok\n");
  expect_holds(with_shapes({"cost", "program", file}), {"exp"});
  expect_holds(with_shapes({"emit", "svg", "program", file}), {"<svg"});
  expect_holds(with_shapes({"emit", "cuda", "program", file}), {"__global__"});
}

TEST_F(NamedCommand, OfAResultThatNoFileHoldsNoneIsWritten) {
  const std::string x = save("x.npy", randn({2, 3}));
  const std::string file = write("two.ein",
                                 "inputs x\na = einsum 'i j -> j' x\n"
                                 "b = einsum 'i j -> i' x --as bf16\noutputs a b\n");
  expect_fails(2, {"run", "program", file, x, "-o", path("a.npy"), "-o", path("b.npy")},
               "b.npy': NumPy has no bf16; say another dtype with --as, such as f32");
  EXPECT_FALSE(std::ifstream(path("a.npy")).is_open());
  expect_fails(2, {"run", "rearrange", "i j -> j i", x, "-o", ""}, "-o '' names no file");
}

TEST_F(NamedCommand, BenchDrawsPositionsThatTheAxisHas) {
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"gather", "[v] d, b -> b d", "--shape", "3,4", "--shape", "50"},
           {"gather", "[v] d, b -> b d", "--shape", "300,4", "--shape", "50", "--dtype", "f32",
            "--dtype", "u8"},
           {"scatter_add", "b d, b -> [v] d", "--shape", "50,4", "--shape", "50", "--axis", "v=3"},
           {"cross_entropy", "b [v], b", "--shape", "50,3", "--shape", "50"}}) {
    std::vector<std::string> words{"bench"};
    words.insert(words.end(), call.begin(), call.end());
    expect_holds(text_of(words), {"median"});
  }
  const std::string file = write("p.ein",
                                 "inputs t i\nj = rearrange 'a b -> b a' i\n"
                                 "y = gather '[v] d, b a -> b a d' t j\noutputs y\n");
  expect_holds(text_of({"bench", "program", file, "--shape", "3,4", "--shape", "5,6", "--dtype",
                        "f32", "--dtype", "i64"}),
               {"median"});
}

TEST_F(NamedCommand, MistakesInAProgramNameTheLine) {
  const auto fails = [&](const std::string& text, const std::string& message,
                         std::vector<std::string> shapes = {}) {
    std::vector<std::string> words{"check", "program", write("p.ein", text)};
    words.insert(words.end(), shapes.begin(), shapes.end());
    expect_fails(2, words, message);
  };
  fails("", "p.ein: the program has no line of outputs");
  fails("y = softmax 'b [c]' x\n", "p.ein:1: the first line names the inputs");
  fails("inputs x\ninputs y\n", "p.ein:2: the inputs were named before");
  fails("inputs x x\n", "p.ein:1: 'x' has a value already");
  fails("inputs 1x\n", "p.ein:1: '1x' is no name");
  fails("inputs x\ny = softmax 'b [c]' z\n", "p.ein:2: no line before gives 'z'");
  fails("inputs x\ny = softmax 'b [c' x\n", "p.ein:2: ");
  fails("inputs x\ny = softmax 'b [c] x\n", "p.ein:2: a quote is not closed");
  fails("inputs x\nsoftmax 'b [c]' x\n", "p.ein:2: a line is: RESULT = OP 'PATTERN' OPERANDS");
  fails("inputs x\ny = sort 'b [c]' x\n", "p.ein:2: sort has 2 results, the line names 1");
  fails("inputs x\ny = softmax 'b [c]' x --eps 1\n", "p.ein:2: --eps is for");
  fails("inputs x\ny = softmax 'b [c]' x --shape 1\n", "p.ein:2: ");
  fails("inputs x\ny = program other.ein x\n", "p.ein:2: a program does not run another one");
  fails("inputs x\noutputs\n", "p.ein:2: a program has an output");
  fails("inputs x\noutputs x\ny = softmax 'b [c]' x\n", "p.ein:3: nothing may follow");
  fails("inputs x\n\ny = softmax 'b [c]' x\noutputs y\n", "p.ein:3: softmax", {"--shape", "2"});
  fails("inputs x\noutputs x\n", "p.ein has 1 input, the call has 2",
        {"--shape", "2", "--shape", "2"});
  expect_fails(1, {"check", "program", path("none.ein")}, "none.ein");
}

}  // namespace
}  // namespace ein
