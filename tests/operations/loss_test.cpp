// cross_entropy, mse_loss, dropout and clip_grad_norm.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();

// Expected figures: PyTorch 2 in f64.
TEST(LossTest, CrossEntropy) {
  const Values values{0.5, -1.25, 2.0, 0.0, 3.0, 2.5, -2.0, 1.0, -0.75, 100.0, 99.0, -100.0};
  const Tensor logits = make_tensor(values, {3, 4}, DType::f64);
  const Tensor targets = from_vector<std::int64_t>({2, 0, 1}, {3});
  EXPECT_EQ(cross_entropy(logits, targets, "n [v], n").shape(), Shape{});
  EXPECT_NEAR(cross_entropy(logits, targets, "n [v], n").item(), 0.40219266416378946, 1e-14);
  EXPECT_NEAR(cross_entropy(logits, targets, "n [v], n ->").item(), 0.40219266416378946, 1e-14);
  EXPECT_NEAR(cross_entropy(logits, targets, "... [v], ...").item(), 0.40219266416378946, 1e-14);
  const Values each = get_values(cross_entropy(logits, targets, "n [v], n -> n"));
  const Values expected{0.33449861260366254, 0.558817692369483, 0.31326168751822286};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(each[i], expected[i], 1e-14);
}

// Values and gradients, those of the sum of the losses: PyTorch 2 in f64.
TEST(LossTest, CrossEntropyWithOptions) {
  const Tensor logits = make_tensor({0.5, -1.25, 2.0, 0.0, 3.0, 2.5, -2.0, 1.0, -0.75, 100.0, 99.0,
                                     -100.0, 1.0, 1.0, -3.0, 0.25},
                                    {4, 4}, DType::f64)
                            .requires_grad(true);
  const Tensor targets = from_vector<std::int64_t>({2, 0, -100, 3}, {4});
  const Tensor probabilities =
      make_tensor({0.1, 0.2, 0.3, 0.4, 1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0.5, 0, 0.5}, {4, 4},
                  DType::f64)
          .requires_grad(true);
  const Tensor weights = make_tensor({0.5, 2.0, 1.25, 0.0625}, {4}, DType::f64);
  struct Row {
    bool are_probabilities;
    double smoothing;
    bool is_weighted, is_mean;
    Values losses, of_logits, of_targets;
  };
  const Row rows[] = {
      {false,
       0.0,
       false,
       false,
       {0.33449861260366254, 0.558817692369483, 0.0, 1.6625566454950607},
       {0.15969355003210825, 0.02775057793268041, -0.28430316221761565, 0.09685903425282705,
        -0.4281151919263153, 0.3468656699205647, 0.003853329526382652, 0.077396192479368, 0.0, 0.0,
        0.0, 0.0, 0.40149642670615543, 0.40149642670615543, 0.007353663566667074,
        -0.8103465169789779},
       {}},
      {true,
       0.0,
       false,
       false,
       {1.9344986126036625, 0.558817692369483, 75.75076168751822, 1.2875566454950607},
       {0.059693550032108245, -0.1722494220673196, 0.41569683778238437, -0.303140965747173,
        -0.4281151919263153, 0.3468656699205647, 0.003853329526382652, 0.077396192479368, -0.25,
        0.4810585786300049, 0.018941421369995104, -0.25, 0.40149642670615543, -0.09850357329384457,
        0.007353663566667074, -0.31034651697897786},
       {1.8344986126036624, 3.5844986126036624, 0.33449861260366254, 2.3344986126036624,
        0.558817692369483, 1.058817692369483, 5.558817692369483, 2.558817692369483,
        101.06326168751822, 0.31326168751822286, 1.3132616875182228, 200.31326168751824,
        0.9125566454950607, 0.9125566454950607, 4.91255664549506, 1.6625566454950607}},
      {false,
       0.0,
       false,
       true,
       {0.8519576501560686},
       {0.05323118334403608, 0.009250192644226803, -0.09476772073920521, 0.032286344750942345,
        -0.14270506397543842, 0.11562188997352157, 0.0012844431754608838, 0.025798730826456, 0.0,
        0.0, 0.0, 0.0, 0.13383214223538514, 0.13383214223538514, 0.0024512211888890246,
        -0.2701155056596593},
       {}},
      {true,
       0.0,
       false,
       true,
       {19.882908659496607},
       {0.014923387508027061, -0.0430623555168299, 0.10392420944559609, -0.07578524143679324,
        -0.10702879798157883, 0.08671641748014118, 0.000963332381595663, 0.019349048119842, -0.0625,
        0.12026464465750122, 0.004735355342498776, -0.0625, 0.10037410667653886,
        -0.024625893323461143, 0.0018384158916667686, -0.07758662924474446},
       {0.4586246531509156, 0.8961246531509156, 0.08362465315091563, 0.5836246531509156,
        0.13970442309237074, 0.26470442309237074, 1.3897044230923707, 0.6397044230923707,
        25.265815421879555, 0.07831542187955572, 0.3283154218795557, 50.07831542187956,
        0.22813916137376516, 0.22813916137376516, 1.228139161373765, 0.41563916137376516}},
      {false,
       0.0,
       true,
       false,
       {0.41812326575457814, 0.2794088461847415, 0.0, 0.10390979034344129},
       {0.19961693754013532, 0.03468822241585051, -0.3553789527720196, 0.12107379281603381,
        -0.21405759596315765, 0.17343283496028236, 0.001926664763191326, 0.038698096239684, 0.0,
        0.0, 0.0, 0.0, 0.025093526669134714, 0.025093526669134714, 0.00045960397291669214,
        -0.050646657311186116},
       {}},
      {true,
       0.0,
       true,
       false,
       {1.7093238207131132, 0.2794088461847415, 16.32982754591581, 0.9645115406667814},
       {0.085739517527292, -0.3764120087572217, 0.23334231211502668, 0.057330179114902985,
        -0.21405759596315765, 0.17343283496028236, 0.001926664763191326, 0.038698096239684, -0.125,
        0.19679020775672343, -0.056165207756723415, -0.015625, 0.41404319004072276,
        -0.5859568099592772, 0.007583465553125421, 0.16433015436542905},
       {0.9172493063018312, 7.168997225207325, 0.41812326575457814, 0.1459061632877289,
        0.2794088461847415, 2.117635384738966, 6.948522115461854, 0.15992610577309269,
        50.53163084375911, 0.6265233750364457, 1.6415771093977785, 12.51957885546989,
        0.45627832274753033, 1.8251132909901213, 6.140695806868825, 0.10390979034344129}},
      {false,
       0.0,
       true,
       true,
       {0.44217484263876466},
       {0.11013348278076432, 0.019138329608745112, -0.1960711463569763, 0.06679933396746693,
        -0.11810074260036284, 0.09568708135739716, 0.001062987455553835, 0.021350673787411862, 0.0,
        0.0, 0.0, 0.0, 0.013844704369177773, 0.013844704369177773, 0.0002535746057471405,
        -0.027942983344102685},
       {}},
      {true,
       0.0,
       true,
       true,
       {4.8207679383701105},
       {0.021434879381823, -0.09410300218930542, 0.05833557802875667, 0.014332544778725746,
        -0.053514398990789414, 0.04335820874007059, 0.0004816661907978315, 0.009674524059921,
        -0.03125, 0.04919755193918086, -0.014041301939180854, -0.00390625, 0.10351079751018069,
        -0.1464892024898193, 0.0018958663882813552, 0.041082538591357264},
       {0.2293123265754578, 1.7922493063018312, 0.10453081643864454, 0.036476540821932225,
        0.06985221154618537, 0.5294088461847415, 1.7371305288654635, 0.03998152644327317,
        12.632907710939778, 0.15663084375911143, 0.4103942773494446, 3.1298947138674724,
        0.11406958068688258, 0.45627832274753033, 1.5351739517172063, 0.025977447585860323}},
      {false,
       0.125,
       false,
       false,
       {0.5454361126036625, 0.793192692369483, 0.0, 1.7172441454950607},
       {0.12844355003210825, -0.0034994220673195894, -0.19055316221761565, 0.06560903425282705,
        -0.3343651919263153, 0.3156156699205647, -0.027396670473617348, 0.046146192479368006, 0.0,
        0.0, 0.0, 0.0, 0.37024642670615543, 0.37024642670615543, -0.023896336433332926,
        -0.7165965169789779},
       {}},
      {true,
       0.125,
       false,
       false,
       {1.9454361126036628, 0.7931926923694831, 75.75076168751822, 1.3891191454950607},
       {0.04094355003210824, -0.1784994220673196, 0.42194683778238434, -0.284390965747173,
        -0.3343651919263153, 0.3156156699205647, -0.027396670473617348, 0.046146192479368006, -0.25,
        0.4810585786300049, 0.018941421369995104, -0.25, 0.37024642670615543, -0.06725357329384457,
        -0.023896336433332926, -0.27909651697897786},
       {1.6051862860282047, 3.1364362860282045, 0.29268628602820473, 2.0426862860282045,
        0.4889654808232976, 0.9264654808232976, 4.863965480823298, 2.2389654808232975,
        88.43035397657844, 0.274103976578445, 1.149103976578445, 175.27410397657846,
        0.7984870648081781, 0.7984870648081781, 4.298487064808178, 1.454737064808178}},
      {false,
       0.125,
       false,
       true,
       {1.0186243168227354},
       {0.04281451667736942, -0.0011664740224398616, -0.06351772073920522, 0.021869678084275687,
        -0.11145506397543842, 0.10520522330685494, -0.009132223491205781, 0.015382064159789342, 0.0,
        0.0, 0.0, 0.0, 0.12341547556871849, 0.12341547556871849, -0.007965445477777642,
        -0.23886550565965933},
       {}},
      {true,
       0.125,
       false,
       true,
       {19.96962740949661},
       {0.01023588750802706, -0.0446248555168299, 0.10548670944559609, -0.07109774143679325,
        -0.08359129798157883, 0.07890391748014118, -0.006849167618404337, 0.011536548119842002,
        -0.0625, 0.12026464465750122, 0.004735355342498776, -0.0625, 0.09256160667653886,
        -0.016813393323461143, -0.0059740841083332314, -0.06977412924474446},
       {0.40129657150705117, 0.7841090715070511, 0.07317157150705118, 0.5106715715070511,
        0.1222413702058244, 0.2316163702058244, 1.2159913702058245, 0.5597413702058244,
        22.10758849414461, 0.06852599414461125, 0.28727599414461125, 43.818525994144615,
        0.19962176620204453, 0.19962176620204453, 1.0746217662020445, 0.3636842662020445}},
      {false,
       0.125,
       true,
       false,
       {0.6361789813024892, 0.5415293795416067, 0.0, 0.3573584793926961},
       {0.17806580970691255, -0.02884158418712005, -0.26475051511160025, 0.1155262895918078,
        -0.1347906830058591, 0.13057952329562686, -0.03691758024410341, 0.041128739954335705, 0.0,
        0.0, 0.0, 0.0, 0.05416637104853093, 0.0072913710485309246, -0.03778422645032545,
        -0.02367351564673639},
       {}},
      {true,
       0.125,
       true,
       false,
       {1.7659794668912072, 0.5415293795416067, 16.32982754591581, 1.1103850109256186},
       {0.07842306719567466, -0.3885542864635582, 0.2503805916645653, 0.05975062760331834,
        -0.1347906830058591, 0.13057952329562686, -0.03691758024410341, 0.041128739954335705,
        -0.125, 0.19679020775672343, -0.056165207756723415, -0.015625, 0.3944973264986705,
        -0.5273776735013295, -0.031550847567642815, 0.1644311945703019},
       {0.8025931430141023, 6.272872572056409, 0.3658578575352559, 0.12766789287676278,
        0.2444827404116488, 1.8529309616465952, 6.079956851029122, 0.1399353425514561,
        44.21517698828922, 0.54820795315689, 1.4363799707230562, 10.954631498536154,
        0.39924353240408905, 1.5969741296163562, 5.373108831010222, 0.09092106655051113}},
      {false,
       0.125,
       true,
       true,
       {0.846933429096161},
       {0.09824320535553796, -0.015912598172204164, -0.14606924971674493, 0.0637386425334112,
        -0.07436727338254293, 0.07204387492172518, -0.020368320134677743, 0.022691718595495566, 0.0,
        0.0, 0.0, 0.0, 0.02988489437160327, 0.004022825406086029, -0.0208464697656968,
        -0.01306125001199249},
       {}},
      {true,
       0.125,
       true,
       true,
       {4.93693035081856},
       {0.019605766798918664, -0.09713857161588955, 0.06259514791614132, 0.014937656900829585,
        -0.03369767075146478, 0.032644880823906715, -0.009229395061025852, 0.010282184988583926,
        -0.03125, 0.04919755193918086, -0.014041301939180854, -0.00390625, 0.09862433162466762,
        -0.13184441837533237, -0.007887711891910704, 0.04110779864257547},
       {0.20064828575352558, 1.5682181430141022, 0.09146446438381398, 0.031916973219190695,
        0.0611206851029122, 0.4632327404116488, 1.5199892127572805, 0.03498383563786402,
        11.053794247072306, 0.1370519882892225, 0.35909499268076406, 2.7386578746340384,
        0.09981088310102226, 0.39924353240408905, 1.3432772077525554, 0.022730266637627783}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::to_string(row.are_probabilities) + " " + std::to_string(row.smoothing) + " " +
                 std::to_string(row.is_weighted) + " " + std::to_string(row.is_mean));
    CrossEntropyOptions options{.smoothing = row.smoothing};
    if (row.is_weighted) options.weights = weights;
    if (!row.are_probabilities) options.ignored = -100;
    const auto loss = [&](const Tensor& x, const Tensor& t) {
      const std::string pattern = std::string("n [v], n") + (row.are_probabilities ? " v" : "") +
                                  (row.is_mean ? "" : " -> n");
      return cross_entropy(x, t, runtime(pattern), options);
    };
    const auto expect_near = [](const Tensor& got, const Values& want) {
      const Values values = get_values(got);
      ASSERT_EQ(values.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(values[i], want[i], 1e-14 * (1 + std::abs(want[i]))) << i;
    };
    const Tensor& t = row.are_probabilities ? probabilities : targets;
    const Tensor losses = loss(logits, t);
    expect_near(losses, row.losses);
    expect_near(compile(loss)(logits.detach(), t.detach()), row.losses);
    std::vector<Tensor> wanted{logits};
    if (row.are_probabilities) wanted.push_back(probabilities);
    const std::vector<Tensor> found = gradients(losses, ones(losses.shape(), DType::f64), wanted);
    expect_near(found[0], row.of_logits);
    if (row.are_probabilities) expect_near(found[1], row.of_targets);
  }
}

TEST(LossTest, CrossEntropyOfSomeAxesWithOptions) {
  // Means over s alone, each by its own weights; b is turned.
  const Tensor logits = randn({5, 2, 3}, DType::f64);
  const Tensor targets = from_vector<std::int64_t>({0, -1, 2, 4, -1, -1}, {2, 3});
  const Tensor weights = rand({5}, DType::f64) + 0.5;
  const CrossEntropyOptions options{.ignored = -1, .weights = weights, .smoothing = 0.3};
  const Tensor some = cross_entropy(logits, targets, "[v] b s, b s -> b", options);
  for (int b = 0; b < 2; ++b) {
    const Tensor one = cross_entropy(logits.at({every, b}), targets.at({b}), "[v] s, s", options);
    EXPECT_NEAR(some.at({b}).item(), one.item(), 1e-14);
  }
  const Tensor ignored = full({3}, -1, DType::i64);
  EXPECT_TRUE(std::isnan(
      cross_entropy(logits.at({every, 0}), ignored, "[v] s, s", {.ignored = -1}).item()));
  EXPECT_EQ(get_values(cross_entropy(logits.at({every, 0}), ignored, "[v] s, s -> s", options)),
            (Values{0, 0, 0}));
}

TEST(LossTest, CrossEntropyWithOptionsThatDoNotFit) {
  const Tensor logits = zeros({2, 3}), targets = zeros({2}, DType::i64);
  const auto expect = [&](const Tensor& t, const char* pattern, const CrossEntropyOptions& options,
                          ErrorKind kind, const std::string& text) {
    test::expect_error([&] { cross_entropy(logits, t, runtime(pattern), options); }, kind, {text});
  };
  expect(targets, "n [v], n", {.smoothing = 1.5}, ErrorKind::value, "smoothing is 1.5");
  expect(targets, "n [v], n", {.weights = ones({2})}, ErrorKind::shape,
         "weights has shape (2,), the axes in brackets have (3,)");
  expect(targets, "n [v], n", {.weights = ones({3}, DType::f64)}, ErrorKind::dtype,
         "weights is f64, operand 1 is f32");
  expect(zeros({2, 3}), "n [v], n v", {.ignored = 0}, ErrorKind::value,
         "probabilities have no target that is ignored");
  expect(zeros({2, 3}, DType::f64), "n [v], n v", {}, ErrorKind::dtype,
         "targets is f64, operand 1 is f32");
  expect(zeros({2, 3}, DType::i64), "n [v], n v", {}, ErrorKind::dtype, "i64");
  expect(full({2}, 3, DType::i64), "n [v], n", {.ignored = -100}, ErrorKind::value, "target 3");
}

TEST(LossTest, CrossEntropyOfMaskedLogits) {
  const Tensor logits = make_tensor({3.0, 2.5, -inf, 1.0}, {4});
  EXPECT_EQ(cross_entropy(logits, full({}, 2, DType::i64), "[v],").item(), inf);
  EXPECT_NEAR(cross_entropy(logits, full({}, 1, DType::i64), "[v],").item(), 1.0549569196419906,
              1e-6);
}

TEST(LossTest, CrossEntropyAgreesWithPlainLoops) {
  const unsigned seed = 20255;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (int round = 0; round < 30; ++round) {
      const auto b = static_cast<std::int64_t>(1 + random() % 5),
                 s = static_cast<std::int64_t>(1 + random() % 6);
      const auto v = static_cast<std::int64_t>(1 + random() % 50);
      const Tensor logits = test::scattered_tensor({v, b, s}, dtype, {false, false, false}, random);
      Values in(static_cast<std::size_t>(v * b * s));
      for (double& value : in) value = std::uniform_real_distribution<>(-30, 30)(random);
      test::set_values(logits, in);
      in = get_values(logits);
      std::vector<std::int32_t> picked(static_cast<std::size_t>(b * s));
      for (auto& target : picked)
        target = static_cast<std::int32_t>(random() % static_cast<unsigned>(v));
      const Tensor targets = from_vector(picked, {b, s});
      Values losses, of_batch(static_cast<std::size_t>(b), 0.0);
      double mean = 0;
      for (std::int64_t i = 0; i < b * s; ++i) {
        const auto at = [&](std::int64_t k) { return in[static_cast<std::size_t>(k * b * s + i)]; };
        double most = -inf, sum = 0;
        for (std::int64_t k = 0; k < v; ++k) most = std::max(most, at(k));
        for (std::int64_t k = 0; k < v; ++k) sum += std::exp(at(k) - most);
        losses.push_back(most + std::log(sum) - at(picked[static_cast<std::size_t>(i)]));
        mean += losses.back() / static_cast<double>(b * s);
        of_batch[static_cast<std::size_t>(i / s)] += losses.back() / static_cast<double>(s);
      }
      SCOPED_TRACE(name(dtype));
      const double eps = dtype == DType::f64 ? 1e-13 : finfo(dtype).eps + 1e-6;
      const Tensor result = cross_entropy(logits, targets, "[v] b s, b s");
      EXPECT_EQ(result.dtype(), dtype);
      EXPECT_NEAR(result.item(), mean, eps * (1 + mean));
      const Values each = get_values(cross_entropy(logits, targets, "[v] b s, b s -> s b"));
      const Values batch = get_values(cross_entropy(logits, targets, "[v] b s, b s -> b"));
      for (std::int64_t i = 0; i < b * s; ++i) {
        const double expected = losses[static_cast<std::size_t>(i)];
        EXPECT_NEAR(each[static_cast<std::size_t>(i % s * b + i / s)], expected,
                    eps * (1 + expected));
      }
      for (std::size_t i = 0; i < batch.size(); ++i)
        EXPECT_NEAR(batch[i], of_batch[i], eps * (1 + of_batch[i]));
    }
  }
}

TEST(LossTest, CrossEntropyOfNothing) {
  const Tensor none = zeros({0}, DType::i64);
  EXPECT_TRUE(std::isnan(cross_entropy(zeros({0, 4}), none, "n [v], n").item()));
  EXPECT_EQ(cross_entropy(zeros({0, 4}), none, "n [v], n -> n").shape(), (Shape{0}));
  EXPECT_THROW(cross_entropy(zeros({2, 0}), zeros({2}, DType::i64), "n [v], n"), Error);
  EXPECT_THROW(cross_entropy(zeros({2, 4}), full({2}, 4, DType::i64), "n [v], n"), Error);
}

TEST(LossTest, MeanSquareError) {
  const Tensor a = make_tensor({1, 2, 3.5}, {3}), b = make_tensor({0, 2.5, -1}, {3});
  EXPECT_NEAR(mse_loss(a, b).item(), 7.166666666666667, 1e-6);
  EXPECT_EQ(mse_loss(a.to(DType::bf16), b.to(DType::bf16)).dtype(), DType::bf16);
  EXPECT_NEAR(mse_loss(a.to(DType::i32), b.to(DType::i32)).item(), 17.0 / 3, 1e-6);
  EXPECT_THROW(mse_loss(a, zeros({1})), Error);
  EXPECT_TRUE(std::isnan(mse_loss(zeros({0}), zeros({0})).item()));
}

TEST(LossTest, MeanSquareErrorOfIntegersIsExact) {
  const auto loss = [](std::int64_t a, std::int64_t b, DType dtype) {
    return mse_loss(full({1}, a, dtype), full({1}, b, dtype)).item();
  };
  EXPECT_EQ(loss(16777217, 16777216, DType::i64), 1);
  EXPECT_EQ(loss(16777216, 16777217, DType::i64), 1);
  EXPECT_EQ(loss(3, 255, DType::u8), 252 * 252);
  EXPECT_EQ(loss(1, 0, DType::boolean), 1);
  EXPECT_EQ(loss(INT64_MAX, INT64_MIN, DType::i64), static_cast<float>(0x1p128));
  const Tensor zero = zeros({1}, DType::u64), most = from_vector<std::uint64_t>({UINT64_MAX}, {1});
  EXPECT_EQ(mse_loss(zero, most).item(), static_cast<float>(0x1p128));
  EXPECT_EQ(mse_loss(zeros({1}, DType::u8), full({1}, -3, DType::i32)).item(), 9);
  auto compiled = compile([](const Tensor& a, const Tensor& b) { return mse_loss(a, b); });
  EXPECT_EQ(compiled(full({1}, 16777217, DType::i64), full({1}, 16777216, DType::i64)).item(), 1);
  EXPECT_EQ(mse_loss(zeros({2}, DType::i64), zeros({2}, DType::i64)).dtype(), DType::f32);
}

TEST(LossTest, NamesTargetsThatAreNoClass) {
  const auto call = [](const Tensor& logits, const Tensor& targets) {
    return cross_entropy(logits, targets, "b [v], b");
  };
  for (const std::int64_t target : {3, -1}) {
    for (const std::int64_t rows : {1, 5}) {
      const std::string text =
          "cross_entropy: target " + std::to_string(target) + " is none of the 3 classes, 0 to 2";
      const Tensor logits = ones({rows, 3}), targets = full({rows}, target, DType::i64);
      test::expect_error([&] { call(logits, targets); }, ErrorKind::value, {text});
      auto compiled = compile(call);
      test::expect_error([&] { compiled(logits, targets); }, ErrorKind::value, {text});
    }
  }
}

TEST(DropoutTest, KeepsTheMean) {
  manual_seed(11);
  constexpr std::int64_t n = 100'000;
  for (double p : {0.1, 0.5, 0.9}) {
    const Values kept = get_values(dropout(ones({n}), p));
    std::int64_t zeros = 0;
    for (double value : kept) {
      if (value == 0) {
        ++zeros;
      } else {
        ASSERT_NEAR(value, 1 / (1 - p), 1e-5);
      }
    }
    // Five standard deviations of a binomial distribution.
    EXPECT_NEAR(static_cast<double>(zeros), n * p, 5 * std::sqrt(n * p * (1 - p))) << p;
  }
}

TEST(DropoutTest, SeedsAndLimits) {
  const Tensor x = ones({1000});
  manual_seed(3);
  const Values first = get_values(dropout(x, 0.5)), second = get_values(dropout(x, 0.5));
  EXPECT_NE(first, second);
  manual_seed(3);
  EXPECT_EQ(get_values(dropout(x, 0.5)), first);
  EXPECT_TRUE(dropout(x, 0).same_storage(x));
  EXPECT_EQ(dropout(x.to(DType::bf16), 0.5).dtype(), DType::bf16);
  for (double p : {-0.1, 1.0, std::nan("")}) EXPECT_THROW(dropout(x, p), Error);
  EXPECT_THROW(dropout(ones({2}, DType::i64), 0.5), Error);
}

// Expected figures: torch.nn.utils.clip_grad_norm_ of PyTorch 2.
TEST(ClipGradNormTest, ScalesAllGradients) {
  const std::vector<Tensor> parameters{zeros({2}), zeros({3, 1}), zeros({4})};
  for (const Tensor& parameter : parameters) parameter.requires_grad(true);
  const auto set = [&] {
    parameters[0].set_grad(make_tensor({3, -4}, {2}));
    parameters[1].set_grad(make_tensor({1, 2, -2}, {3, 1}));
  };
  set();
  EXPECT_FLOAT_EQ(static_cast<float>(clip_grad_norm(parameters, 2).item()), 5.830951690673828f);
  const Values expected{1.028991460800171, -1.3719885349273682, 0.34299713373184204,
                        0.6859942674636841, -0.6859942674636841};
  Values clipped = get_values(parameters[0].grad());
  for (double value : get_values(parameters[1].grad())) clipped.push_back(value);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(clipped[i], expected[i], 1e-6);
  EXPECT_FALSE(parameters[2].has_grad());
  set();
  clip_grad_norm(parameters, 100);
  EXPECT_EQ(get_values(parameters[0].grad()), (Values{3, -4}));
  EXPECT_THROW(clip_grad_norm(parameters, -1), Error);
  const std::vector<Tensor> complex{
      from_vector(std::vector<std::complex<float>>{{3, 4}}, {1}).requires_grad(true)};
  complex[0].set_grad(complex[0].detach());
  test::expect_error([&] { clip_grad_norm(complex, 1); }, ErrorKind::dtype,
                     {"clip_grad_norm: a gradient of shape (1,) is c64"});
  EXPECT_EQ(clip_grad_norm({}, 1).item(), 0);
}

TEST(ClipGradNormTest, OfGradientsThatAreNotFinite) {
  const std::vector<Tensor> parameters{zeros({2}), zeros({1})};
  for (const double value : {inf, -inf, std::nan("")}) {
    for (const Tensor& parameter : parameters) parameter.requires_grad(true);
    parameters[0].set_grad(make_tensor({3, -4}, {2}));
    parameters[1].set_grad(make_tensor({value}, {1}));
    test::expect_error([&] { clip_grad_norm(parameters, 1, true); }, ErrorKind::value,
                       {"clip_grad_norm: the norm of the gradients is"});
    EXPECT_EQ(get_values(parameters[0].grad()), (Values{3, -4})) << "nothing was scaled";
    EXPECT_FALSE(std::isfinite(clip_grad_norm(parameters, 1).item()));
  }
  parameters[1].set_grad(make_tensor({12}, {1}));
  parameters[0].set_grad(make_tensor({3, -4}, {2}));
  EXPECT_EQ(clip_grad_norm(parameters, 100, true).item(), 13);
  const auto step = [&](const Tensor& x) {
    parameters[0].set_grad(x);
    return clip_grad_norm(std::span(parameters).first(1), 1, true);
  };
  test::expect_error([&] { compile(step)(zeros({2})); }, ErrorKind::value,
                     {"error_if_nonfinite", "ein::compile"});
}

}  // namespace
}  // namespace ein
