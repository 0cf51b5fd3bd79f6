// Functions of one element: their steps in plain C++, without branches, so that compilers vectorise them in strips, and the
// constants, which the vector code for AVX-512 shares (vector_functions.cpp takes the same steps). Errors that are named are
// those of the polynomials; docs/functions.md has those of results.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

namespace ein::host::functions {

/// The polynomial with these coefficients of x^0, x^1, ...
template <class C, std::size_t n>
inline C polynomial(C x, const std::array<C, n>& coefficients) {
  C sum = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = coefficients[i] + x * sum;
  return sum;
}
template <class C>
struct Constants;

template <>
struct Constants<float> {
  using Bits = std::uint32_t;
  using Integer = std::int32_t;
  static constexpr Bits sign = 0x80000000U;
  static constexpr int mantissa_bits = 23;
  static constexpr Integer bias = 127;
  static constexpr float to_integer = 12582912;  // 1.5 · 2^23: adding it rounds to a whole number, in the lowest bits
  static constexpr Bits upper_half = 0xFFFFF000U, half_unit = 0x800U;  // the bits of x that give an exact square
  // e^x: infinite beyond, 0 below.
  static constexpr float exp_most = 89, exp_least = -104;
  static constexpr float gate_last = 112;  // t·e^-t is 0 from here on
  static constexpr float log2_e = 1.44269504F;
  static constexpr float ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;  // the first of few digits
  // (e^r - 1 - r) / r² for |r| <= ln 2 / 2 (relative error of e^r 3e-9).
  static constexpr std::array<float, 5> exp = {0.49999994F, 0.16666521F, 0.04166839F, 0.008368745F, 0.0013814539F};
  // (tanh x - x) / x³ in x², for x up to `tanh_near` (relative error of tanh 4e-9).
  static constexpr float tanh_near = 0.625F;
  static constexpr std::array<float, 5> tanh = {-0.33333284F, 0.13331491F, -0.053743497F, 0.020650579F, -0.0057170368F};
  // log1p(f) = f - f²/2 + f³·p(f) for f from `log_least` - 1 = -1/4 to 1/2 (relative error 9e-10); ln 2 in two parts of one
  // sign, so that an infinite exponent stays what it is.
  static constexpr float log_least = 0.75F;
  static constexpr std::array<float, 9> log = {0.33333340F,   -0.25000164F, 0.19999605F,   -0.16655296F, 0.14276241F,
                                               -0.12727785F,  0.11700654F,  -0.091161422F, 0.037672464F};
  static constexpr float log_ln2_high = 0.693145752F, log_ln2_low = 1.42860677e-6F;
  // (erf x - x) / x in x², for x below `erf_near` (error 8e-10).
  static constexpr float erf_near = 0.4375F;
  static constexpr std::array<float, 5> erf_small = {0.128379166F, -0.37612626F, 0.11283318F, -0.0267995615F, 0.00482852478F};
  // erf x up to `erf_last`, beyond which it is 1, in 32 pieces around the multiples of 1/8: polynomials in the distance from
  // there (relative error 5e-8), of which no piece begins below the end of the one before.
  static constexpr float erf_last = 3.9192059F, to_eighths = 1.5F * (1 << 20);  // so large that its last bit is 1/8
  alignas(64) static constexpr float erf[5][32] = {
    {0, 1.403162e-01F, 2.763264e-01F, 4.041169e-01F, 5.204999e-01F, 6.232409e-01F, 7.1115565e-01F, 7.840751e-01F,
     8.427008e-01F, 8.883882e-01F, 9.2290014e-01F, 9.4817007e-01F, 9.6610516e-01F, 9.7844374e-01F, 9.866717e-01F,
     9.9199003e-01F, 9.953223e-01F, 9.97346e-01F, 9.985373e-01F, 9.9921703e-01F, 9.99593e-01F, 9.997946e-01F,
     9.998994e-01F, 9.9995214e-01F, 9.999779e-01F, 9.999901e-01F, 9.999957e-01F, 9.999982e-01F, 9.999993e-01F,
     9.999997e-01F, 9.999999e-01F, 9.9999994e-01F},
    {1.1283791F, 1.1108848F, 1.0600138F, 9.803526e-01F, 8.787826e-01F, 7.634997e-01F, 6.4293134e-01F, 5.2474535e-01F,
     4.1510782e-01F, 3.1827426e-01F, 2.3652135e-01F, 1.7035992e-01F, 1.1893036e-01F, 8.047227e-02F, 5.2774966e-02F,
     3.3545773e-02F, 2.0666923e-02F, 1.2340761e-02F, 7.142268e-03F, 4.006438e-03F, 2.178255e-03F, 1.147855e-03F,
     5.8626407e-04F, 2.902201e-04F, 1.392482e-04F, 6.475593e-05F, 2.9187524e-05F, 1.27509575e-05F, 5.399034e-06F,
     2.2157308e-06F, 8.813442e-07F, 3.3978304e-07F},
    {6.8669233e-06F, -1.3885362e-01F, -2.6500064e-01F, -3.6763084e-01F, -4.3939057e-01F, -4.7718695e-01F,
     -4.8219833e-01F, -4.5915213e-01F, -4.1510782e-01F, -3.5805857e-01F, -2.9565176e-01F, -2.34245e-01F,
     -1.7839569e-01F, -1.307676e-01F, -9.2356354e-02F, -6.289848e-02F, -4.1333973e-02F, -2.622422e-02F,
     -1.6070182e-02F, -9.515346e-03F, -5.445676e-03F, -3.0131442e-03F, -1.6122418e-03F, -8.3439215e-04F, -4.1775e-04F,
     -2.0236526e-04F, -9.486106e-05F, -4.3035307e-05F, -1.8897026e-05F, -8.03222e-06F, -3.3051308e-06F,
     -1.3166992e-06F},
    {-3.7667602e-01F, -3.582225e-01F, -3.0878156e-01F, -2.3465472e-01F, -1.4642835e-01F, -5.580544e-02F,
     2.6529146e-02F, 9.259573e-02F, 1.3803162e-01F, 1.6215308e-01F, 1.6730548e-01F, 1.5778825e-01F, 1.3867934e-01F,
     1.1483015e-01F, 9.0189494e-02F, 6.7426e-02F, 4.8286807e-02F, 3.309838e-02F, 2.177658e-02F, 1.3771343e-02F,
     8.37997e-03F, 4.9110344e-03F, 2.7738574e-03F, 1.45e-03F, 7.9407194e-04F, 4.0284224e-04F, 1.9734529e-04F,
     9.338465e-05F, -6.7e-05F, 1.8867691e-05F, 8.059641e-06F, 3.3287297e-06F},
    {1.408213e-02F, 6.6823006e-02F, 1.2609339e-01F, 1.6602345e-01F, 1.8271497e-01F, 1.7624293e-01F, 1.5059732e-01F,
     1.1241352e-01F, 6.928258e-02F, 2.812228e-02F, -5.9903124e-03F, -3.033849e-02F, -4.446325e-02F, -4.9620476e-02F,
     -4.8041638e-02F, -4.2232536e-02F, -3.4442317e-02F, -2.6373535e-02F, -1.9103352e-02F, -1.3154545e-02F,
     -8.641521e-03F, -5.4296604e-03F, -3.2694486e-03F, -1.8895587e-03F, -1.0494478e-03F, -5.6066975e-04F,
     -2.883736e-04F, -1.428907e-04F, -6.825045e-05F, -3.14395e-05F, -1.39733775e-05F, -5.9944286e-06F}};
  // Φ(-t)·e^(t²/2) for t up to `tail_last`, where Φ(-t) is 0: with s = t + 1, in pieces of 1/8 of each power of two of s,
  // polynomials in the distance from where the piece begins (relative error 7e-8). The place of a piece is the last two bits
  // of the exponent of s, and three of its mantissa.
  static constexpr float tail_last = 14.875F;
  static constexpr int tail_shift = 20;
  static constexpr Bits tail_begin = 0xFFF00000U;  // the bits of s that say where its piece begins
  static constexpr Integer tail_place(Bits s) { return static_cast<Integer>((s >> tail_shift) & 31); }
  alignas(64) static constexpr float tail[5][32] = {
    {0.261578292F, 0.230760321F, 0.20578067F, 0.185231671F, 0.168101996F, 0.153651938F, 0.14133133F, 0.130724728F,
     0.12151394F, 0.106345147F, 0.094410643F, 0.0848033875F, 0.0769193023F, 0.0703426972F, 0.0647793114F,
     0.0600156747F, 0.0558934808F, 0.0491225459F, 0.0437987894F, 0.0395066924F, 0.03597489F, 0.0330189727F,
     0.0305094142F, 0.0283526611F, 0.5F, 0.453793228F, 0.414032102F, 0.379604429F, 0.349618822F, 0.323356181F,
     0.30023247F, 0.279770583F},
    {-0.137363225F, -0.110491395F, -0.0902711377F, -0.0747869834F, -0.0627378821F, -0.0532253534F, -0.0456138141F,
     -0.039448902F, -0.0343997739F, -0.0267338231F, -0.021299623F, -0.0173268151F, -0.0143456375F, -0.0120575158F,
     -0.0102662975F, -0.00884035975F, -0.00768775539F, -0.00596184283F, -0.00475315331F, -0.00387529843F,
     -0.00321848807F, -0.00271464209F, -0.00231988309F, -0.00200503715F, -0.398941845F, -0.342218399F, -0.295433879F,
     -0.256590545F, -0.22413142F, -0.196845904F, -0.173768669F, -0.154144302F},
    {0.0620781854F, 0.0463044718F, 0.035177514F, 0.027174145F, 0.0213038661F, 0.0169442091F, 0.0136447391F,
     0.0111134239F, 0.00914612412F, 0.00638171844F, 0.00460357545F, 0.00341350446F, 0.0025938293F, 0.00201332383F,
     0.00158953818F, 0.00127618574F, 0.00103778369F, 0.000713003916F, 0.000509779202F, 0.000376388081F,
     0.000285632705F, 0.000221730414F, 0.000175350957F, 0.000141096243F, 0.249967128F, 0.205500454F, 0.170064583F,
     0.141680449F, 0.11872831F, 0.100194104F, 0.0849703774F, 0.0724809393F},
    {-0.0247353129F, -0.0173088573F, -0.0123676592F, -0.0090062432F, -0.00662234379F, -0.00499065965F,
     -0.00379610737F, -0.00291218655F, -0.0022532905F, -0.00142726465F, -0.000943497289F, -0.000640107493F,
     -0.000449440064F, -0.000326027017F, -0.000237383923F, -0.000179009992F, -0.00013426911F, -8.23997325e-05F,
     -5.3182328e-05F, -3.56143755e-05F, -2.48645283e-05F, -1.78902756e-05F, -1.30384124e-05F, -9.82958045e-06F,
     -0.132193983F, -0.105101705F, -0.0838214681F, -0.0675126389F, -0.0542628728F, -0.0449543446F, -0.0367803127F,
     -0.0305359233F},
    {0.00753754098F, 0.0050225216F, 0.00343844946F, 0.00241069612F, 0.00163703621F, 0.00120282581F, 0.000864249188F,
     0.000603996916F, 0.000419767632F, 0.000246190757F, 0.000153694054F, 9.54064599e-05F, 6.29362548e-05F,
     4.47708881e-05F, 2.88173669e-05F, 2.10809776e-05F, 1.3309309e-05F, 7.48325374e-06F, 4.46208787e-06F,
     2.72223929e-06F, 1.80131724e-06F, 1.24408143e-06F, 8.1700955e-07F, 5.98568988e-07F, 0.0549233928F, 0.0430447944F,
     0.0328355059F, 0.0259202141F, 0.018945815F, 0.0175686795F, 0.0137601867F, 0.0117721222F}};
};

template <>
struct Constants<double> {
  using Bits = std::uint64_t;
  using Integer = std::int64_t;
  static constexpr Bits sign = 0x8000000000000000U;
  static constexpr int mantissa_bits = 52;
  static constexpr Integer bias = 1023;
  static constexpr double to_integer = 6755399441055744.0;  // 1.5 · 2^52
  static constexpr Bits upper_half = 0xFFFFFFFFF8000000U, half_unit = 0x4000000U;
  static constexpr double exp_most = 710, exp_least = -746, gate_last = 760;
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  // Relative error of e^r 5e-18.
  static constexpr std::array<double, 10> exp = {
      0.50000000000000122,    0.16666666666666471,    0.041666666666519747,   0.0083333333334586653,  0.0013888888945921057,
      0.00019841269581196487, 2.4801491030993337e-05, 2.7557521646441741e-06, 2.7630907551142229e-07, 2.5020074850572813e-08};
  // log1p(f) = 2s + s·p(s²) with s = f / (2 + f), for 1 + f from `log_least` to twice that (relative error 3e-18).
  static constexpr double log_least = 0.70710678118654752;
  static constexpr std::array<double, 7> log = {0.66666666666667374, 0.39999999999398628, 0.28571428745551214, 0.22222198273544116,
                                                0.1818357906686337,  0.1531368752092411,  0.14799487338447104};
  // Relative error of tanh 6e-19.
  static constexpr double tanh_near = 0.55;
  static constexpr std::array<double, 11> tanh = {
      -0.33333333333333298,  0.13333333333326611,    -0.053968253963763549, 0.0218694883860839,
      -0.0088632326066402853, 0.0035920920925950122, -0.001455543287971718, 0.0005884464250902402,
      -0.0002333867116736725, 8.332403889106473e-05, -1.9499467221367055e-05};
  // As for floats (relative error 1e-16).
  static constexpr double tail_last = 38.875;
  static constexpr int tail_shift = 49;
  static constexpr Bits tail_begin = 0xFFFE000000000000U;
  static constexpr Integer tail_place(Bits s) {
    const Integer place = static_cast<Integer>(s >> tail_shift) - (bias << 3);
    return place < 43 ? place : 42;  // of NaN
  }
  alignas(64) static constexpr double tail[11][43] = {
    {0.5, 0.45379322204089234, 0.4140321029477354, 0.37960442786885923, 0.34961883472039806, 0.32335616871566197,
     0.30023246233995093, 0.27977057027239721, 0.26157829186512338, 0.23076032130563176, 0.20578066697739469,
     0.18523166467823896, 0.16810200122317059, 0.15365193742384164, 0.1413313313805753, 0.13072473410074711,
     0.12151394835556216, 0.10634515363370545, 0.094410641301968939, 0.084803392107800343, 0.076919304975006292,
     0.070342694025127883, 0.064779314324446849, 0.060015675343171829, 0.055893482440540529, 0.049122546212424935,
     0.043798788870866794, 0.039506694101386006, 0.035974889621134348, 0.033018971077214535, 0.030509414495257164,
     0.028352660527342942, 0.026479488999229889, 0.023386820284968527, 0.020939275580222579, 0.018954463554542129,
     0.017312711874640084, 0.015932280495565141, 0.014755454489489702, 0.013740330896954164, 0.01285575603872913,
     0.011389068787118756, 0.010222577091719925},
    {-0.3989422804014327, -0.34221812764631249, -0.29543425466448914, -0.256590619950605, -0.22413286304123023,
     -0.19684467495415772, -0.17376793364646811, -0.15414303141309579, -0.13736398853631168, -0.11049187876938921,
     -0.090271279935341536, -0.07478686721451297, -0.062738277955087851, -0.053225421197790647, -0.045613951949990988,
     -0.039449261624378076, -0.034400435334744621, -0.026734242683463517, -0.021299715193557271,
     -0.017327015916330468, -0.014345755526400586, -0.012057463263228639, -0.010266394454751518,
     -0.0088403906708155316, -0.0076879033176482266, -0.0059619107020333221, -0.0047531805636317074,
     -0.0038753393875728373, -0.0032184945689547272, -0.0027146274748582433, -0.0023198919630894937,
     -0.0020050330186316368, -0.001749945412984263, -0.0013663355569676643, -0.0010960443772036741,
     -0.00089854575604806459, -0.00074990728471084037, -0.00063526801230411826, -0.00054500918521076778,
     -0.00047268438976187064, -0.00041384320082961553, -0.00032487285227621377, -0.00026177382435556827},
    {0.25000000000000577, 0.20550797804106541, 0.17008676963914005, 0.14169147269275126, 0.11877620159930362,
     0.10016412343702789, 0.084953256052316198, 0.072447708894807519, 0.062107151664601033, 0.046322736421618549,
     0.035186873537266287, 0.027177323526286951, 0.021312722656183114, 0.01694736986455021, 0.013648225752500982,
     0.011119632316850288, 0.0091563211755701507, 0.0063876521207784451, 0.0046058902638819168, 0.0034159102421261445,
     0.0025952636714733721, 0.0020133230386549369, 0.0015904737979658152, 0.0012765679914239056,
     0.0010390796084742864, 0.00071363029807916133, 0.00051008189909378847, 0.00037665011283354196,
     0.00028572468131326552, 0.00022172068945727484, 0.00017540948754553177, 0.00014109913325348165,
     0.00011515390223010046, 7.9557908257942513e-05, 5.7216206676094074e-05, 4.250133876755385e-05,
     3.2422163146658715e-05, 2.5290093980628208e-05, 2.0103244399975725e-05, 1.6241796929223942e-05,
     1.3308406504970959e-05, 9.2594787255031958e-06, 6.6989709261054416e-06},
    {-0.13298076013430274, -0.10550987667984457, -0.08430418728672312, -0.067818772489412329, -0.054914920700776949,
     -0.044747366122597373, -0.036684330517316135, -0.030250428855309257, -0.025085612297785224,
     -0.017529486067555153, -0.012496989879330983, -0.0090755170091509456, -0.006704277535094734,
     -0.0050312796732058067, -0.0038311291777446714, -0.0029567575842042513, -0.0023104906001621983,
     -0.0014591534197595341, -0.00095871804616678188, -0.00065180660827412757, -0.00045647905575945243,
     -0.00032806218292363859, -0.00024118388892086672, -0.00018089957528419682, -0.00013811535235888034,
     -8.4289439095858705e-05, -5.4147823950131188e-05, -3.6279419792268739e-05, -2.5174358136827543e-05,
     -1.7993067117267817e-05, -1.3189541651009911e-05, -9.8817177321730456e-06, -7.5456264810093199e-06,
     -4.6170388503997328e-06, -2.9788167831356224e-06, -2.005880649795251e-06, -1.3991774535304016e-06,
     -1.0052209265749969e-06, -7.4052880680229969e-07, -5.5742626689346924e-07, -4.275330549576738e-07,
     -2.6369896027332684e-07, -1.7131941141282325e-07},
    {0.062500000020888499, 0.048079805778621025, 0.037252674996131982, 0.02906485503071983, 0.022829683296212905,
     0.018049263036673743, 0.014360001241219316, 0.011494652225564238, 0.0092553849846562283, 0.0061027194149378371,
     0.004110347238225876, 0.0028237920717118594, 0.001976041623518329, 0.001406747773652454, 0.0010176004431494653,
     0.00074713723678751108, 0.00055621230696674482, 0.00032015377933399425, 0.00019275452034506538,
     0.00012069511856512271, 7.8217091454917072e-05, 5.224525114599329e-05, 3.5842615346805859e-05,
     2.5180185351624954e-05, 1.806803209166385e-05, 9.8286958312997686e-06, 5.6878709206433585e-06,
     3.4639789717136315e-06, 2.2016852458830773e-06, 1.4509709697103879e-06, 9.8636142933033369e-07,
     6.887714789572862e-07, 4.9237610427221656e-07, 2.6706190180010814e-07, 1.5467193537265807e-07,
     9.4461300665977714e-08, 6.0270453447298471e-08, 3.9892694205897418e-08, 2.7241663968885286e-08,
     1.91087819561581e-08, 1.3720440250439718e-08, 7.5037762648248e-09, 4.3784680134216083e-09},
    {-0.026596152515203003, -0.019899847476123247, -0.014998054683824246, -0.011383806230343978,
     -0.0086999631374923368, -0.006693527863333288, -0.0051828450220202851, -0.0040386867163080681,
     -0.0031660470892536643, -0.0019802133900351875, -0.0012662945133320232, -0.00082677459347338833,
     -0.00055043525730438575, -0.00037322105410954418, -0.00025742220168499535, -0.0001804259904602927,
     -0.00012837040996948576, -6.7722952695223315e-05, -3.7539985869297332e-05, -2.173565930836512e-05,
     -1.3078672722278741e-05, -8.1426122695556656e-06, -5.2256338418405902e-06, -3.4456558014558435e-06,
     -2.3278090210581907e-06, -1.1319714283296371e-06, -5.9139684424644313e-07, -3.279267461549641e-07,
     -1.9116328815677869e-07, -1.1628291856261101e-07, -7.3368271083586431e-08, -4.7784239306729768e-08,
     -3.1996557506644585e-08, -1.5397171872856497e-08, -8.0099634323537024e-09, -4.4387028868806389e-09,
     -2.5914520620493671e-09, -1.5806939746587531e-09, -1.0007954757743255e-09, -6.5428694366634483e-10,
     -4.398657023711771e-10, -2.1335387311671766e-10, -1.1182896192680273e-10},
    {0.010416672870152464, 0.0075965485440468673, 0.0055814202955300346, 0.0041312763105167015, 0.0030790870563732241,
     0.0023144503782253681, 0.0017451353816694162, 0.0013295076836986382, 0.0010149001808710048,
     0.00060454145797409354, 0.00036848938269812189, 0.00022947601897289861, 0.00014583196160639886,
     9.451333094886828e-05, 6.2312535175635642e-05, 4.1827212343599902e-05, 2.8514999648246367e-05,
     1.3853377547474998e-05, 7.0990026637552656e-06, 3.8138475416035167e-06, 2.1370775149973099e-06,
     1.2432706388172244e-06, 7.4810956091954324e-07, 4.6382400614095047e-07, 2.9551037410803806e-07,
     1.2880978247208212e-07, 6.0881271682514193e-08, 3.0786469243327309e-08, 1.6479504838411049e-08,
     9.2621764782921491e-09, 5.4281551192594916e-09, 3.3006287154582942e-09, 2.0705357283808088e-09,
     8.847692164885003e-10, 4.1370322972307156e-10, 2.0812764070256168e-10, 1.1123273152045953e-10,
     6.2530661712070239e-11, 3.6722038268604283e-11, 2.2370199740066508e-11, 1.4085577488467412e-11,
     6.0609423525618268e-12, 2.854137360095051e-12},
    {-0.0037994823447087631, -0.0026847174398436538, -0.0019180031445959879, -0.0013906722143743292,
     -0.0010139759914165507, -0.00078562777561539223, -0.00054987726242489458, -0.00043883224275159422,
     -0.00030733908583223277, -0.00017474618049724997, -0.00010195846299341095, -6.0668858621546146e-05,
     -3.6809563471405188e-05, -2.3006686741523734e-05, -1.4371221143255375e-05, -9.3405875224173105e-06,
     -6.1110403550592681e-06, -2.7459108802052678e-06, -1.305772348378375e-06, -6.5252508761706133e-07,
     -3.4128165659876645e-07, -1.857810292467756e-07, -1.0520263514340079e-07, -6.1318227348996576e-08,
     -3.6929713226007877e-08, -1.447437391939557e-08, -6.203693458676857e-09, -2.8668303439805821e-09,
     -1.4093072481346475e-09, -7.3295220064574249e-10, -3.9900081256257406e-10, -2.2798801969214656e-10,
     -1.3320511794879652e-10, -5.0613634535695488e-11, -2.1292818194878346e-11, -9.7396643913858722e-12,
     -4.7715301961984101e-12, -2.4663353498256696e-12, -1.3481012211634133e-12, -7.5976901281363276e-13,
     -4.4977715380331254e-13, -1.7183213812316458e-13, -7.271646761347417e-14},
    {0.0013019191097333016, 0.00076507021165898219, 0.00047755406682338693, 0.00036057902597204356,
     0.000264656594708849, 0.00045704634819988967, 0.00014398155496909778, 0.00029683357488227393,
     8.8427236137919344e-05, 4.7604032033201558e-05, 2.6982162595335647e-05, 1.5163527866568543e-05,
     8.5094668955808345e-06, 5.5613384364860492e-06, 2.8125687421165808e-06, 2.0082830118199738e-06,
     1.2558599341785398e-06, 5.2488450401443625e-07, 2.3290617573768897e-07, 1.0802212514544617e-07,
     5.2658593545557816e-08, 2.6608002843944771e-08, 1.4448901051361875e-08, 7.7531401350807893e-09,
     4.4845126623670941e-09, 1.5909003850916677e-09, 6.2150111918088429e-10, 2.6406773622301729e-10,
     1.1834838650556485e-10, 5.72641684549041e-11, 2.8754991205035549e-11, 1.6422080622483472e-11,
     8.3946396044404518e-12, 2.8487455535957745e-12, 1.0821561853762379e-12, 4.5401595972316429e-13,
     2.0587887336282568e-13, 9.5662058077616102e-14, 5.0242257278139424e-14, 2.4196804599953313e-14,
     1.411002974042093e-14, 4.806634291448421e-15, 1.8300169796473956e-15},
    {-0.00041881869294293854, 0.00021901670646405283, 0.00036960073723027838, 0.00018335267177046268,
     0.00010489055840808658, -0.00087163453380825512, 3.1819182718960535e-05, -0.00065821347867071824,
     -2.3841311505436128e-05, -1.1395465171513695e-05, -6.7895384086165658e-06, -3.2805140070541388e-06,
     -1.2222341790489919e-06, -1.5503070104585184e-06, 9.095659628770811e-08, -4.0188042241279631e-07,
     -2.336836387818068e-07, -9.1970808884250333e-08, -3.8617340642146116e-08, -1.6280383813183026e-08,
     -7.2487976716912433e-09, -3.1831171551914835e-09, -1.8413748484143867e-09, -7.7129150004479141e-10,
     -4.9039799321940082e-10, -1.602674563206359e-10, -5.7960561277762203e-11, -2.3149605985279679e-11,
     -9.1245497187507056e-12, -4.2003918978228702e-12, -1.8610422138683272e-12, -1.4362840432534034e-12,
     -4.7780099241464576e-13, -1.4683716283581772e-13, -5.100973538836466e-14, -2.0332117438483081e-14,
     -8.9142288247540331e-15, -3.3478375345719144e-15, -1.9841844797380605e-15, -4.5296657122270321e-16,
     -4.0077712757306454e-16, -1.2358899040316651e-16, -4.2536756789834141e-17},
    {0.00011181589043244361, -0.00069287939008951839, -0.00081056538222241167, -0.00045167603300372896,
     -0.00028057773284267474, 0.0012405362111767057, -0.00010897890953968201, 0.00095807850508597186,
     4.9759404592773944e-06, 1.6883499166842635e-06, 1.3724167261547422e-06, 3.884160447651151e-07,
     -2.6632779174338911e-07, 4.8580189333512515e-07, -4.7880884513249065e-07, 5.9002022368604659e-08,
     2.981193673055455e-08, 1.1303828101954336e-08, 4.6201410713218248e-09, 1.6768922549010099e-09,
     6.3187299499495731e-10, 1.6576449004625173e-10, 1.6577556974027365e-10, 9.8491698863620043e-12,
     3.5571068477355361e-11, 1.1047424719774848e-11, 3.8120810648584033e-12, 1.4973200233602099e-12,
     4.7932226577717419e-13, 2.2166414183740621e-13, 7.4245889454262246e-14, 1.3113201187163825e-13,
     1.7950728808268395e-14, 5.1260436965210643e-15, 1.6704161047927849e-15, 6.7768522387112914e-16,
     3.1183291844993669e-16, 7.4179281740549812e-17, 7.0926260063275651e-17, -1.6557004690701445e-17,
     7.5253150883701275e-18, 2.1611644883948736e-18, 6.8006797840021907e-19}};
};

/// |size| with the sign of x.
template <class C>
inline C with_sign_of(C size, C x) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  return std::bit_cast<C>((std::bit_cast<Bits>(size) & ~K::sign) | (std::bit_cast<Bits>(x) & K::sign));
}
template <class C>
inline C size_of_number(C x) {
  using K = Constants<C>;
  return std::bit_cast<C>(std::bit_cast<typename K::Bits>(x) & ~K::sign);
}

/// x, or `most` where x is larger; NaN stays.
template <class C>
inline C at_most(C x, C most) {
  return x > most ? most : x;
}

/// value·2^k, as products with two that are normal.
template <class C>
inline C scaled(C value, typename Constants<C>::Integer k) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  const auto two_to = [](typename K::Integer e) {
    return std::bit_cast<C>((static_cast<Bits>(e) + static_cast<Bits>(K::bias)) << K::mantissa_bits);
  };
  const typename K::Integer half = k >> 1;
  return value * two_to(half) * two_to(k - half);
}

/// 2^k·(1 + p) = e^(x - correction) in parts; x between exp_least and exp_most, or NaN.
template <class C>
struct ExpParts {
  C p;
  typename Constants<C>::Integer k;

  explicit ExpParts(C x, C correction = 0) {
    using K = Constants<C>;
    using Bits = typename K::Bits;
    const C shifted = x * K::log2_e + K::to_integer;
    const C whole = shifted - K::to_integer;
    const C exact = x - whole * K::ln2_high, rest = whole * K::ln2_low + correction;
    const C r = exact - rest;
    p = exact + (r * r * polynomial(r, K::exp) - rest);
    k = static_cast<typename K::Integer>(std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(K::to_integer));
  }
};

template <class C>
inline C exp(C x) {
  using K = Constants<C>;
  const C below = at_most(x, K::exp_most);
  const ExpParts<C> parts(below < K::exp_least ? K::exp_least : below);
  return scaled(C(1) + parts.p, parts.k);
}

/// A selection of which compilers make no branch.
template <class C>
inline C choose(bool condition, C yes, C no) {
  using Bits = typename Constants<C>::Bits;
  const Bits mask = -static_cast<Bits>(condition);
  return std::bit_cast<C>((std::bit_cast<Bits>(yes) & mask) | (std::bit_cast<Bits>(no) & ~mask));
}

/// x = m·2^e with m from log_least to twice that: log x = e·ln 2 + log1p(m - 1). What is exact is added last.
template <class C>
inline C log(C x) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  using Integer = typename K::Integer;
  using Limits = std::numeric_limits<C>;
  const bool is_subnormal = x < Limits::min();
  const C normal = x * choose(is_subnormal, C(Bits{1} << (K::mantissa_bits + 1)), C(1));
  // Without signs, as those of negative numbers would overflow.
  const auto bits = static_cast<Integer>(std::bit_cast<Bits>(normal) - std::bit_cast<Bits>(K::log_least));
  const Integer whole = bits >> K::mantissa_bits;
  const C f = std::bit_cast<C>(std::bit_cast<Bits>(normal) - (static_cast<Bits>(whole) << K::mantissa_bits)) - C(1);
  const C e = static_cast<C>(whole) - choose(is_subnormal, C(K::mantissa_bits + 1), C(0));
  const C half_square = C(0.5) * f * f;
  C result;
  if constexpr (sizeof(C) == 4) {
    result = (((f * f * f * polynomial(f, K::log) + e * K::log_ln2_low) - half_square) + f) + e * K::log_ln2_high;
  } else {
    const C s = f / (C(2) + f), square = s * s;
    result = e * K::ln2_high - ((half_square - (s * (half_square + square * polynomial(square, K::log)) + e * K::ln2_low)) - f);
  }
  result = choose(x == C(0), -Limits::infinity(), result);
  result = choose(x < C(0), Limits::quiet_NaN(), result);
  return choose(x < Limits::infinity(), result, x);  // NaN stays
}

/// Near 0, x + x³·p(x²); elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x.
template <class C>
inline C tanh(C x) {
  using K = Constants<C>;
  const C size = size_of_number(x), square = x * x;
  const C far = C(1) - C(2) / (exp(size + size) + C(1));
  const C near = size + size * square * polynomial(square, K::tanh);
  return with_sign_of(size > K::tanh_near ? far : near, x);
}

inline float erf(float x) {
  using K = Constants<float>;
  const float size = size_of_number(x);
  const float piece = size + K::to_eighths;
  const float t = size - (piece - K::to_eighths);
  const std::int32_t place = std::bit_cast<std::int32_t>(piece) & 31;
  float sum = K::erf[4][place];
  for (std::size_t i = 4; i-- > 0;) sum = K::erf[i][place] + t * sum;
  const float far = size > K::erf_last ? 1.F : sum;
  return with_sign_of(size < K::erf_near ? size + size * polynomial(x * x, K::erf_small) : far, x);
}

inline double erf(double x) { return std::erf(x); }

/// factor / (1 + e^t) = 2^-k·factor / (2^-k + 1 + p) for t >= 0: nothing overflows, and each step rises or falls with t.
template <class C>
struct LogisticTail {
  C size;

  explicit LogisticTail(C x) : size(at_most(size_of_number(x), Constants<C>::gate_last)) {}
  C times(C factor) const {
    const ExpParts<C> parts(size);
    const C power = scaled(C(1), -parts.k), sum = C(1) + power;
    const C lost = sizeof(C) == 4 ? C(0) : power - (sum - C(1));  // floats do well without
    return scaled(factor / (sum + (parts.p + lost)), -parts.k);
  }
};

template <class C>
inline C sigmoid(C x) {
  const C tail = LogisticTail<C>(x).times(C(1));
  return x < C(0) ? tail : C(1) - tail;
}

/// x·sigmoid(x) = x - x·sigmoid(-x); at -infinity its limit, -0.
template <class C>
inline C silu(C x) {
  const LogisticTail<C> tail(x);
  return (x < C(0) ? C(-0.0) : x) - tail.times(tail.size);
}

/// Φ(-t) = e^(-t²/2)·tail(t) for t >= 0, still to be scaled. The square is the sum of two numbers: the error of one would be as
/// many times larger as it is large itself.
template <class C>
struct NormalTail {
  C size, first, rest;  // tail(t)·(1 + p) = first + rest, where first is a constant
  typename Constants<C>::Integer k;
};
template <class C>
inline NormalTail<C> normal_tail(C x) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  const C t = at_most(size_of_number(x), K::tail_last);
  const C upper = std::bit_cast<C>((std::bit_cast<Bits>(t) + K::half_unit) & K::upper_half);
  const ExpParts<C> parts(upper * upper * C(-0.5), (t - upper) * (t + upper) * C(0.5));
  const Bits s = std::bit_cast<Bits>(t + C(1));
  const typename K::Integer place = K::tail_place(s);
  const C distance = t - (std::bit_cast<C>(s & K::tail_begin) - C(1));
  constexpr std::size_t last = std::size(K::tail) - 1;
  C sum = K::tail[last][place];
  for (std::size_t i = last; i-- > 1;) sum = K::tail[i][place] + distance * sum;
  sum *= distance;
  const C first = K::tail[0][place];
  return {t, first, first * parts.p + (sum + sum * parts.p), parts.k};
}

/// Φ(x).
template <class C>
inline C normal_cdf(C x) {
  const NormalTail<C> tail = normal_tail(x);
  const C below = scaled(tail.first + tail.rest, tail.k);
  return x > C(0) ? C(1) - below : below;
}

/// x·Φ(x) = x - x·Φ(-x); at -infinity its limit, -0.
template <class C>
inline C gelu(C x) {
  const NormalTail<C> tail = normal_tail(x);
  const C below = scaled(tail.size * tail.first + tail.size * tail.rest, tail.k);
  return (x < C(0) ? C(-0.0) : x) - below;
}

}  // namespace ein::host::functions
