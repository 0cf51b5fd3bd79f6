// Functions of one element: their steps, without branches, and the constants. V is a float or a
// double, so that compilers vectorise loops of them, or an `Emitted` vector (emitted.hpp), of which
// the steps make machine code at run time. Errors that are named are those of the polynomials;
// docs/functions.md has those of results.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace ein::host::functions {

template <class C>
struct Constants;

template <>
struct Constants<float> {
  using Bits = std::uint32_t;
  using Integer = std::int32_t;
  static constexpr Bits sign = 0x80000000U;
  static constexpr int mantissa_bits = 23;
  static constexpr Integer bias = 127;
  static constexpr float to_integer =
      12582912;  // 1.5 · 2^23: adding it rounds to a whole number, in the lowest bits
  // The bits of k + to_integer less these are k + 2 · bias.
  static constexpr Bits biased_from = std::bit_cast<Bits>(to_integer) - 2 * bias;
  // bits - lifted_from is the exponent field of 2^(k + lift), lowered_from - bits that of
  // 2^(lift - k). Both are normal numbers where 2^k and 2^-k are 1 or less and may be subnormal.
  static constexpr int lift = 100;
  static constexpr Bits lifted_from = std::bit_cast<Bits>(to_integer) - bias - lift,
                        lowered_from = std::bit_cast<Bits>(to_integer) + bias + lift;
  static constexpr Bits upper_half = 0xFFFFF000U,
                        half_unit = 0x800U;  // the bits of x that give an exact square
  // e^x: infinite beyond, 0 below.
  static constexpr float exp_most = 89, exp_least = -104;
  static constexpr float gate_last = 112;  // t·e^-t is 0 from here on
  static constexpr float log2_e = 1.44269504F;
  static constexpr float ln2_high = 0.693359375F,
                         ln2_low = -2.12194440e-4F;  // the first of few digits
  // (e^r - 1 - r) / r² for |r| <= ln 2 / 2 (relative error of e^r 3e-9).
  static constexpr std::array<float, 5> exp = {0.49999994F, 0.16666521F, 0.04166839F, 0.008368745F,
                                               0.0013814539F};
  // (tanh x - x) / x³ in x², for x up to `tanh_near` (relative error of tanh 4e-9).
  static constexpr float tanh_near = 0.625F;
  static constexpr std::array<float, 5> tanh = {-0.33333284F, 0.13331491F, -0.053743497F,
                                                0.020650579F, -0.0057170368F};
  // log1p(f) = f - f²/2 + f³·p(f) for f from `log_least` - 1 = -1/4 to 1/2 (relative error 9e-10);
  // ln 2 in two parts of one sign, so that an infinite exponent stays what it is.
  static constexpr float log_least = 0.75F;
  static constexpr std::array<float, 9> log = {0.33333340F,  -0.25000164F,  0.19999605F,
                                               -0.16655296F, 0.14276241F,   -0.12727785F,
                                               0.11700654F,  -0.091161422F, 0.037672464F};
  static constexpr float log_ln2_high = 0.693145752F, log_ln2_low = 1.42860677e-6F;
  // erf x up to `erf_last`, beyond which it is 1, in 32 pieces around the multiples of 1/8:
  // polynomials in the distance from there (relative error 5e-8), of which no piece begins below
  // the end of the one before. The first, around 0, is of erf x - x.
  static constexpr float erf_last = 3.9192059F, erf_last_piece = 31.F / 8,
                         to_eighths = 1.5F * (1 << 20);  // so large that its last bit is 1/8
  alignas(64) static constexpr float erf[5][32] = {
      {0,
       1.403162e-01F,
       2.763264e-01F,
       4.041169e-01F,
       5.204999e-01F,
       6.232409e-01F,
       7.1115565e-01F,
       7.840751e-01F,
       8.427008e-01F,
       8.883882e-01F,
       9.2290014e-01F,
       9.4817007e-01F,
       9.6610516e-01F,
       9.7844374e-01F,
       9.866717e-01F,
       9.9199003e-01F,
       9.953223e-01F,
       9.97346e-01F,
       9.985373e-01F,
       9.9921703e-01F,
       9.99593e-01F,
       9.997946e-01F,
       9.998994e-01F,
       9.9995214e-01F,
       9.999779e-01F,
       9.999901e-01F,
       9.999957e-01F,
       9.999982e-01F,
       9.999993e-01F,
       9.999997e-01F,
       9.999999e-01F,
       9.9999994e-01F},
      {0.128379151F,   1.1108848F,     1.0600138F,      9.803526e-01F,  8.787826e-01F,
       7.634997e-01F,  6.4293134e-01F, 5.2474535e-01F,  4.1510782e-01F, 3.1827426e-01F,
       2.3652135e-01F, 1.7035992e-01F, 1.1893036e-01F,  8.047227e-02F,  5.2774966e-02F,
       3.3545773e-02F, 2.0666923e-02F, 1.2340761e-02F,  7.142268e-03F,  4.006438e-03F,
       2.178255e-03F,  1.147855e-03F,  5.8626407e-04F,  2.902201e-04F,  1.392482e-04F,
       6.475593e-05F,  2.9187524e-05F, 1.27509575e-05F, 5.399034e-06F,  2.2157308e-06F,
       8.813442e-07F,  3.3978304e-07F},
      {6.86988233e-06F, -1.3885362e-01F, -2.6500064e-01F, -3.6763084e-01F, -4.3939057e-01F,
       -4.7718695e-01F, -4.8219833e-01F, -4.5915213e-01F, -4.1510782e-01F, -3.5805857e-01F,
       -2.9565176e-01F, -2.34245e-01F,   -1.7839569e-01F, -1.307676e-01F,  -9.2356354e-02F,
       -6.289848e-02F,  -4.1333973e-02F, -2.622422e-02F,  -1.6070182e-02F, -9.515346e-03F,
       -5.445676e-03F,  -3.0131442e-03F, -1.6122418e-03F, -8.3439215e-04F, -4.1775e-04F,
       -2.0236526e-04F, -9.486106e-05F,  -4.3035307e-05F, -1.8897026e-05F, -8.03222e-06F,
       -3.3051308e-06F, -1.3166992e-06F},
      {-0.376676142F,  -3.582225e-01F, -3.0878156e-01F, -2.3465472e-01F, -1.4642835e-01F,
       -5.580544e-02F, 2.6529146e-02F, 9.259573e-02F,   1.3803162e-01F,  1.6215308e-01F,
       1.6730548e-01F, 1.5778825e-01F, 1.3867934e-01F,  1.1483015e-01F,  9.0189494e-02F,
       6.7426e-02F,    4.8286807e-02F, 3.309838e-02F,   2.177658e-02F,   1.3771343e-02F,
       8.37997e-03F,   4.9110344e-03F, 2.7738574e-03F,  1.45e-03F,       7.9407194e-04F,
       4.0284224e-04F, 1.9734529e-04F, 9.338465e-05F,   -6.7e-05F,       1.8867691e-05F,
       8.059641e-06F,  3.3287297e-06F},
      {0.0140834413F,    6.6823006e-02F,  1.2609339e-01F,  1.6602345e-01F,  1.8271497e-01F,
       1.7624293e-01F,   1.5059732e-01F,  1.1241352e-01F,  6.928258e-02F,   2.812228e-02F,
       -5.9903124e-03F,  -3.033849e-02F,  -4.446325e-02F,  -4.9620476e-02F, -4.8041638e-02F,
       -4.2232536e-02F,  -3.4442317e-02F, -2.6373535e-02F, -1.9103352e-02F, -1.3154545e-02F,
       -8.641521e-03F,   -5.4296604e-03F, -3.2694486e-03F, -1.8895587e-03F, -1.0494478e-03F,
       -5.6066975e-04F,  -2.883736e-04F,  -1.428907e-04F,  -6.825045e-05F,  -3.14395e-05F,
       -1.39733775e-05F, -5.9944286e-06F}};
  // Φ(-t)·e^(t²/2) for t up to `tail_last`, where Φ(-t) is 0: with s = t + 1, in pieces of equal
  // length of each power of two of s, polynomials in the distance from a place of the piece. The
  // piece is told by the last two bits of the exponent of s and the first ones of its mantissa, the
  // place by the bits that `begin` leaves of s, and `middle`.
  static constexpr float tail_last = 14.875F;
  static constexpr float density = 0.39894229F, density_low = -1.13351701e-08F;  // 1 / √(2π)
  /// 32 pieces, from where they begin (relative error 7e-8): for look-ups among 32 numbers.
  struct LongTail {
    static constexpr int shift = 20;
    static constexpr Bits begin = 0xFFF00000U, middle = 0;
    static constexpr Integer place(Bits s) { return static_cast<Integer>((s >> shift) & 31); }
    alignas(64) static constexpr float numbers[5][32] = {
        {0.261578292F,  0.230760321F,  0.20578067F,   0.185231671F,  0.168101996F,  0.153651938F,
         0.14133133F,   0.130724728F,  0.12151394F,   0.106345147F,  0.094410643F,  0.0848033875F,
         0.0769193023F, 0.0703426972F, 0.0647793114F, 0.0600156747F, 0.0558934808F, 0.0491225459F,
         0.0437987894F, 0.0395066924F, 0.03597489F,   0.0330189727F, 0.0305094142F, 0.0283526611F,
         0.5F,          0.453793228F,  0.414032102F,  0.379604429F,  0.349618822F,  0.323356181F,
         0.30023247F,   0.279770583F},
        {-0.137363225F,   -0.110491395F,   -0.0902711377F,  -0.0747869834F,  -0.0627378821F,
         -0.0532253534F,  -0.0456138141F,  -0.039448902F,   -0.0343997739F,  -0.0267338231F,
         -0.021299623F,   -0.0173268151F,  -0.0143456375F,  -0.0120575158F,  -0.0102662975F,
         -0.00884035975F, -0.00768775539F, -0.00596184283F, -0.00475315331F, -0.00387529843F,
         -0.00321848807F, -0.00271464209F, -0.00231988309F, -0.00200503715F, -0.398941845F,
         -0.342218399F,   -0.295433879F,   -0.256590545F,   -0.22413142F,    -0.196845904F,
         -0.173768669F,   -0.154144302F},
        {0.0620781854F,   0.0463044718F,   0.035177514F,    0.027174145F,    0.0213038661F,
         0.0169442091F,   0.0136447391F,   0.0111134239F,   0.00914612412F,  0.00638171844F,
         0.00460357545F,  0.00341350446F,  0.0025938293F,   0.00201332383F,  0.00158953818F,
         0.00127618574F,  0.00103778369F,  0.000713003916F, 0.000509779202F, 0.000376388081F,
         0.000285632705F, 0.000221730414F, 0.000175350957F, 0.000141096243F, 0.249967128F,
         0.205500454F,    0.170064583F,    0.141680449F,    0.11872831F,     0.100194104F,
         0.0849703774F,   0.0724809393F},
        {-0.0247353129F,   -0.0173088573F,   -0.0123676592F,   -0.0090062432F,   -0.00662234379F,
         -0.00499065965F,  -0.00379610737F,  -0.00291218655F,  -0.0022532905F,   -0.00142726465F,
         -0.000943497289F, -0.000640107493F, -0.000449440064F, -0.000326027017F, -0.000237383923F,
         -0.000179009992F, -0.00013426911F,  -8.23997325e-05F, -5.3182328e-05F,  -3.56143755e-05F,
         -2.48645283e-05F, -1.78902756e-05F, -1.30384124e-05F, -9.82958045e-06F, -0.132193983F,
         -0.105101705F,    -0.0838214681F,   -0.0675126389F,   -0.0542628728F,   -0.0449543446F,
         -0.0367803127F,   -0.0305359233F},
        {0.00753754098F,  0.0050225216F,   0.00343844946F,  0.00241069612F,  0.00163703621F,
         0.00120282581F,  0.000864249188F, 0.000603996916F, 0.000419767632F, 0.000246190757F,
         0.000153694054F, 9.54064599e-05F, 6.29362548e-05F, 4.47708881e-05F, 2.88173669e-05F,
         2.10809776e-05F, 1.3309309e-05F,  7.48325374e-06F, 4.46208787e-06F, 2.72223929e-06F,
         1.80131724e-06F, 1.24408143e-06F, 8.1700955e-07F,  5.98568988e-07F, 0.0549233928F,
         0.0430447944F,   0.0328355059F,   0.0259202141F,   0.018945815F,    0.0175686795F,
         0.0137601867F,   0.0117721222F}};
  };
  /// 8 pieces, around their middles (relative error 5e-8): for look-ups among 8 numbers.
  struct ShortTail {
    static constexpr int shift = 22;
    static constexpr Bits begin = 0xFFC00000U, middle = 0x00200000U;
    /// The middles as t = s - 1, for look-ups.
    alignas(64) static constexpr float places[8] = {1.5F, 2.5F, 4, 6, 9, 13, 0.25F, 0.75F};
    static constexpr Integer place(Bits s) { return static_cast<Integer>((s >> shift) & 7); }
    alignas(64) static constexpr float numbers[9][8] = {
        {0.20578067F, 0.14133133F, 0.094410643F, 0.0647793114F, 0.0437987894F, 0.0305094142F,
         0.414032102F, 0.30023247F},
        {-0.0902712792F, -0.045613952F, -0.0212997161F, -0.0102663944F, -0.00475318078F,
         -0.00231989194F, -0.295434266F, -0.173767939F},
        {0.0351865031F, 0.0136484029F, 0.00460584369F, 0.00159056287F, 0.000510078855F,
         0.000175412133F, 0.170087427F, 0.0849495009F},
        {-0.0124969548F, -0.00383115374F, -0.000958709628F, -0.000241191141F, -5.41478148e-05F,
         -1.31897023e-05F, -0.0843025818F, -0.0366825312F},
        {0.00411736732F, 0.00101417699F, 0.000192960099F, 3.54130098e-05F, 5.69090798e-06F,
         9.83163432e-07F, 0.0372011736F, 0.0146486908F},
        {-0.00126681244F, -0.000257019623F, -3.75381424e-05F, -5.19824653e-06F, -5.90686057e-07F,
         -7.32230987e-08F, -0.0150526213F, -0.00527262501F},
        {0.000325826491F, 8.35233004e-05F, 6.80085395e-06F, 1.41168039e-06F, 5.97987508e-08F,
         6.66542821e-09F, 0.006875508F, -0.00536746904F},
        {-0.000101833917F, -1.60445506e-05F, -1.35610605e-06F, -1.29573962e-07F, -6.63940458e-09F,
         -4.36748471e-10F, -0.00143071369F, 0.000536722771F},
        {0.00010849176F, -3.76884018e-05F, 3.78657631e-07F, -3.05682875e-07F, 7.79163345e-10F,
         -1.19709173e-10F, -0.00948306173F, 0.0549990386F}};
  };
  /// For results of 16 bits, log2 of Φ(-t), and of (Φ(-t) - t·φ(t)) / (slope_root - t), where φ is
  /// the density: polynomials in t, in the pieces of ShortTail (off by 6e-5 and 2e-5 of the power).
  static constexpr float slope_root = 0.751791537F;
  alignas(64) static constexpr float log2_of_tail[4][8] = {
      {-1.01882434F, -1.09260738F, -1.27310669F, -1.58003688F, -1.98206317F, -2.44073486F,
       -1.00000322F, -1.00165737F},
      {-1.09522724F, -0.983592749F, -0.811026037F, -0.622011483F, -0.454219162F, -0.325044483F,
       -1.15089369F, -1.14158118F},
      {-0.521833658F, -0.578748524F, -0.634199739F, -0.673263967F, -0.696757436F, -0.708948314F,
       -0.461339504F, -0.479497463F},
      {-0.0201743282F, -0.0104009062F, -0.00440833578F, -0.00170022214F, -0.000596456637F,
       -0.000211095772F, -0.0456028879F, -0.0332994983F}};
  alignas(64) static constexpr float log2_of_slope[4][8] = {
      {-0.606697202F, -0.655713558F, -0.740935683F, -0.848695815F, -0.954283714F, -1.04638553F,
       -0.588410199F, -0.590619802F},
      {-0.325843155F, -0.250552833F, -0.168087408F, -0.101051137F, -0.0565875769F, -0.0304284934F,
       -0.382826358F, -0.370079756F},
      {-0.631264746F, -0.670237482F, -0.697064579F, -0.711057067F, -0.717338383F, -0.719827533F,
       -0.564447939F, -0.590023041F},
      {-0.0111128204F, -0.00432017911F, -0.00138511893F, -0.000405801227F, -0.000108091997F,
       -2.87877174e-05F, -0.0420365855F, -0.0241766982F}};
  // 2^f for |f| <= 1/2 (relative error 3e-6), for them too.
  static constexpr std::array<float, 5> power_of_2 = {0.999999285F, 0.693121791F, 0.240247443F,
                                                      0.0559178591F, 0.00957010128F};
  /// In strips, as in row code: AVX-512 has look-ups among 32 numbers. Without fused products
  /// strips take them too: in long polynomials more would be lost.
#if defined(__AVX512F__) || !(defined(__FMA__) || defined(__ARM_FEATURE_FMA))
  using Tail = LongTail;
#else
  using Tail = ShortTail;
#endif
};

/// Whether the places of a tail are the middles of its pieces.
constexpr bool are_middles_of_pieces() {
  using Tail = Constants<float>::ShortTail;
  for (const float s : {1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, 8.0F, 12.0F}) {
    const auto bits = std::bit_cast<Constants<float>::Bits>(s);
    const auto middle = std::bit_cast<float>((bits & Tail::begin) | Tail::middle);
    if (Tail::places[Tail::place(bits)] != middle - 1) return false;
  }
  return true;
}
static_assert(are_middles_of_pieces());

template <>
struct Constants<double> {
  using Bits = std::uint64_t;
  using Integer = std::int64_t;
  static constexpr Bits sign = 0x8000000000000000U;
  static constexpr int mantissa_bits = 52;
  static constexpr Integer bias = 1023;
  static constexpr double to_integer = 6755399441055744.0;  // 1.5 · 2^52
  // The bits of k + to_integer less these are k + 2 · bias.
  static constexpr Bits biased_from = std::bit_cast<Bits>(to_integer) - 2 * bias;
  // They less `lifted_from`, and `lowered_from` less them, are the exponents of 2^(k + lift) and of
  // 2^(lift - k), normal where 2^k and 2^-k are 1 or less and may be subnormal.
  static constexpr int lift = 100;
  static constexpr Bits lifted_from = std::bit_cast<Bits>(to_integer) - bias - lift,
                        lowered_from = std::bit_cast<Bits>(to_integer) + bias + lift;
  static constexpr Bits upper_half = 0xFFFFFFFFF8000000U, half_unit = 0x4000000U;
  static constexpr double exp_most = 710, exp_least = -746, gate_last = 760;
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  // Relative error of e^r 5e-18.
  static constexpr std::array<double, 10> exp = {0.50000000000000122,    0.16666666666666471,
                                                 0.041666666666519747,   0.0083333333334586653,
                                                 0.0013888888945921057,  0.00019841269581196487,
                                                 2.4801491030993337e-05, 2.7557521646441741e-06,
                                                 2.7630907551142229e-07, 2.5020074850572813e-08};
  // log1p(f) = 2s + s·p(s²) with s = f / (2 + f), for 1 + f from `log_least` to twice that
  // (relative error 3e-18).
  static constexpr double log_least = 0.70710678118654752;
  static constexpr std::array<double, 7> log = {
      0.66666666666667374, 0.39999999999398628, 0.28571428745551214, 0.22222198273544116,
      0.1818357906686337,  0.1531368752092411,  0.14799487338447104};
  // Relative error of tanh 6e-19.
  static constexpr double tanh_near = 0.55;
  static constexpr std::array<double, 11> tanh = {
      -0.33333333333333298,   0.13333333333326611,   -0.053968253963763549,  0.0218694883860839,
      -0.0088632326066402853, 0.0035920920925950122, -0.001455543287971718,  0.0005884464250902402,
      -0.0002333867116736725, 8.332403889106473e-05, -1.9499467221367055e-05};
  // As for floats, but that the constants are of 26 bits, and followed by what they lack (relative
  // error 8e-17).
  static constexpr double tail_last = 38.875;
  static constexpr double density = 0.39894228040143268, density_low = -2.49232720227773e-17;
  struct Tail {
    static constexpr int shift = 49;
    static constexpr Bits begin = 0xFFFE000000000000U, middle = 0;
    static constexpr Integer place(Bits s) {
      const Integer place = static_cast<Integer>(s >> shift) - (bias << 3);
      return place < 43 ? place : 42;  // of NaN
    }
    alignas(64) static constexpr double numbers[12][43] = {
        {0.5,
         0.4537932202219963,
         0.41403210163116455,
         0.37960442900657654,
         0.3496188372373581,
         0.32335616648197174,
         0.3002324625849724,
         0.2797705680131912,
         0.2615782916545868,
         0.23076032102108002,
         0.20578066632151604,
         0.18523166328668594,
         0.16810199990868568,
         0.15365193784236908,
         0.14133132994174957,
         0.130724735558033,
         0.12151394784450531,
         0.10634515434503555,
         0.09441064111888409,
         0.08480339124798775,
         0.07691930420696735,
         0.07034269347786903,
         0.06477931514382362,
         0.060015675611793995,
         0.05589348264038563,
         0.04912254586815834,
         0.04379878845065832,
         0.03950669430196285,
         0.0359748899936676,
         0.03301897086203098,
         0.030509414616972208,
         0.028352660592645407,
         0.026479489170014858,
         0.02338682021945715,
         0.02093927562236786,
         0.01895446376875043,
         0.017312712036073208,
         0.01593228057026863,
         0.014755454380065203,
         0.013740330934524536,
         0.012855756096541882,
         0.01138906879350543,
         0.010222577024251223},
        {0.0,
         1.818896048623558e-09,
         1.3165708689318398e-09,
         -1.137717299895532e-09,
         -2.5169600234339676e-09,
         2.2336902091931038e-09,
         -2.4502144522194644e-10,
         2.259205970683637e-09,
         2.1053657968965633e-10,
         2.845517560368546e-10,
         6.558786537965611e-10,
         1.3915530169141633e-09,
         1.3144849222230475e-09,
         -4.185274406250266e-10,
         1.4388257369442678e-09,
         -1.4572858751870942e-09,
         5.110568570626127e-10,
         -7.113301064005825e-10,
         1.8308485006203544e-10,
         8.598126003908173e-10,
         7.680389421437541e-10,
         5.472588538206063e-10,
         -8.193767743312115e-10,
         -2.686221644761513e-10,
         -1.9984509385416543e-10,
         3.44266591660982e-10,
         4.202084697149993e-10,
         -2.0057684953350911e-10,
         -3.7253325286145535e-10,
         2.151835517569408e-10,
         -1.2171504365001154e-10,
         -6.530246650171552e-11,
         -1.7078496975018625e-10,
         6.551137811170752e-11,
         -4.21452802494118e-11,
         -2.1420830201847254e-10,
         -1.6143312543300655e-10,
         -7.470348938620286e-11,
         1.0942449841484959e-10,
         -3.7570371365352145e-11,
         -5.781275115929195e-11,
         -6.38667422613772e-12,
         6.746870300426454e-11},
        {-0.3989422804014327,     -0.34221812764632115,    -0.2954342546644988,
         -0.25659061995061044,    -0.22413286304123364,    -0.19684467495414396,
         -0.17376793364646947,    -0.15414303141308514,    -0.1373639885363092,
         -0.11049187876939291,    -0.09027127993534062,    -0.07478686721451448,
         -0.06273827795509146,    -0.05322542119778899,    -0.0456139519499944,
         -0.03944926162437811,    -0.03440043533474573,    -0.02673424268346346,
         -0.021299715193556872,   -0.017327015916331092,   -0.014345755526401188,
         -0.012057463263229292,   -0.01026639445475158,    -0.00884039067081578,
         -0.007687903317648607,   -0.0059619107020331295,  -0.0047531805636315295,
         -0.0038753393875726387,  -0.003218494568954828,   -0.0027146274748582598,
         -0.0023198919630895405,  -0.0020050330186315145,  -0.0017499454129842598,
         -0.0013663355569676853,  -0.001096044377203677,   -0.0008985457560480059,
         -0.0007499072847107814,  -0.0006352680123041378,  -0.0005450091852107474,
         -0.00047268438976189964, -0.00041384320082961596, -0.0003248728522762131,
         -0.0002617738243555775},
        {0.2499999999999991,     0.20550797804255053,    0.17008676964080496,
         0.1416914726936899,     0.11877620159989045,    0.10016412343466087,
         0.08495325605254933,    0.07244770889297379,    0.06210715166439017,
         0.046322736421937,      0.03518687353718769,    0.027177323526417146,
         0.021312722656492707,   0.016947369864407594,   0.013648225752794315,
         0.011119632316853463,   0.009156321175618706,   0.006387652120776346,
         0.004605890263865005,   0.003415910242152958,   0.002595263671499234,
         0.0020133230386829787,  0.0015904737979684956,  0.0012765679914345427,
         0.001039079608482738,   0.0007136302980751047,  0.0005100818990900037,
         0.00037665011282929074, 0.0002857246813154292,  0.00022172068945763195,
         0.0001754094875465364,  0.00014109913325085344, 0.00011515390223010272,
         7.95579082581763e-05,   5.721620667612739e-05,  4.250133876692432e-05,
         3.2422163146026144e-05, 2.529009398083751e-05,  2.010324439975634e-05,
         1.6241796929535586e-05, 1.3308406504977134e-05, 9.259478725500604e-06,
         6.698970926155242e-06},
        {-0.13298076013369073,    -0.10550987679692155,    -0.08430418741804657,
         -0.06781877256345704,    -0.05491492074707242,    -0.04474736593581087,
         -0.036684330535674825,   -0.03025042871057012,    -0.025085612289495716,
         -0.017529486080094615,   -0.012496989876236132,   -0.009075517014281845,
         -0.00670427754729147,    -0.0050312796675823345,  -0.003831129189313293,
         -0.0029567575843308367,  -0.002310490601130019,   -0.0014591534197227521,
         -0.0009587180458356427,  -0.0006518066088030049,  -0.0004564790562691136,
         -0.00032806218347668963, -0.00024118388897365617, -0.00018089957549395944,
         -0.00013811535244411598, -8.428943905650058e-05,  -5.4147823913039304e-05,
         -3.6279419750442794e-05, -2.517435815815882e-05,  -1.7993067120801517e-05,
         -1.3189541660913497e-05, -9.881717706246988e-06,  -7.545626481156045e-06,
         -4.617038851581934e-06,  -2.9788167833072626e-06, -2.0058806466961857e-06,
         -1.3991774504138648e-06, -1.0052209276067622e-06, -7.405288057206702e-07,
         -5.574262684308151e-07,  -4.2753305497994314e-07, -2.6369896026853417e-07,
         -1.713194115358518e-07},
        {0.06249999999197048,    0.04807981085543973,    0.03725268069305661,
         0.029064858243245215,   0.022829685305002675,   0.01804925493011846,
         0.014360002036962796,   0.011494645942300223,   0.009255384805350686,
         0.006102719686573495,   0.004110347171187253,   0.0028237921829407063,
         0.0019760418878822642,  0.0014067476516868669,  0.001017600694106888,
         0.000747137239553025,   0.0005562123175521159,  0.0003201537789743419,
         0.00019275451677339817, 0.00012069512430187662, 7.821709698031051e-05,
         5.2245257145034675e-05, 3.584261591898735e-05,  2.5180187627074135e-05,
         1.8068032562033477e-05, 9.82869562060424e-06,   5.687870720446856e-06,
         3.4639787452731737e-06, 2.2016853615612108e-06, 1.4509709889228277e-06,
         9.86361483039132e-07,   6.887713382932465e-07,  4.923761049587805e-07,
         2.670619050682778e-07,  1.5467193585405244e-07, 9.446129227242077e-08,
         6.027044500063808e-08,  3.989269700370305e-08,  2.7241661035537785e-08,
         1.9108786127196245e-08, 1.3720440288102052e-08, 7.503776260027563e-09,
         4.3784681805057815e-09},
        {-0.02659615171823421,    -0.019899979884561037,   -0.014998203313801877,
         -0.011383890053999857,   -0.008700015557949917,   -0.006693316279516736,
         -0.005182865773308978,   -0.004038522682751867,   -0.0031660447558819133,
         -0.001980216929606919,   -0.001266293639854239,   -0.0008267760437676983,
         -0.0005504387040887413,  -0.0003732194631533069,  -0.00025742547587639133,
         -0.00018042602672182896, -0.00012837047949124404, -6.77229505593558e-05,
         -3.753996267675044e-05,  -2.1735696730259452e-05, -1.3078708752564204e-05,
         -8.142651404514182e-06,  -5.225637572887865e-06,  -3.445670647277255e-06,
         -2.3278105769505897e-06, -1.1319707485151395e-06, -5.913961938480909e-07,
         -3.279260086409922e-07,  -1.911636654516147e-07,  -1.1628298134648484e-07,
         -7.336844627467574e-08,  -4.7783780329168235e-08, -3.199655901218134e-08,
         -1.539717728562602e-08,  -8.009964238985684e-09,  -4.4386892120416605e-09,
         -2.5914382925307218e-09, -1.580698537694786e-09,  -1.0007906912733639e-09,
         -6.542937493381616e-10,  -4.398657380578129e-10,  -2.1335387034301783e-10,
         -1.118290983543476e-10},
        {0.010416659325287559,   0.007598714054037781,   0.005583851760871226,
         0.004132647759267298,   0.003079944803019895,   0.0023109877239834604,
         0.0017454747776929835,  0.0013268226356865406,  0.0010148811350645243,
         0.0006045703832517828,  0.00036848224536278044, 0.00022948787730570438,
         0.00014586014380454037, 9.450031770011272e-05,  6.233932125566283e-05,
         4.182751010464009e-05,  2.851528563964971e-05,  1.3853369535403607e-05,
         7.0989081625225826e-06, 3.8140006042347326e-06, 2.1372248480333676e-06,
         1.2434307196133651e-06, 7.481248189518845e-07,  4.638847420197563e-07,
         2.9551359361737425e-07, 1.2880840491001915e-07, 6.087994592122967e-08,
         3.0784962709162045e-08, 1.648027648262482e-08,  9.26230507823695e-09,
         5.428513456760813e-09,  3.2996896820523985e-09, 2.0705376001301348e-09,
         8.847748226722416e-10,  4.1370407328360037e-10, 2.0811366870937597e-10,
         1.1121865549676927e-10, 6.253532827547489e-11,  3.671714488599553e-11,
         2.2377162364084388e-11, 1.4085597872452548e-11, 6.060941424768831e-12,
         2.8542071943207777e-12},
        {-0.003799338395870227,   -0.002707089166514267,   -0.0019431281643478254,
         -0.0014048453398415582,  -0.0010228411769650017,  -0.0007498348234914192,
         -0.0005533839679874798,  -0.0004110719111839345,  -0.00030724086610661424,
         -0.0001748955059677292,  -0.00010192162053113815, -6.073010668721957e-05,
         -3.695512539678198e-05,  -2.293945166163801e-05,  -1.450963856737602e-05,
         -9.342130666237077e-06,  -6.111782860572131e-06,  -2.74589178617608e-06,
         -1.305528994347026e-06,  -6.52920528334689e-07,   -3.4166222211905786e-07,
         -1.8619463348644064e-07, -1.0524205222851252e-07, -6.14751774893996e-08,
         -3.693391379971675e-08,  -1.4472608541463976e-08, -6.201985694012904e-09,
         -2.8648861687621185e-09, -1.410304106115033e-09,  -7.33118538224061e-10,
         -3.9946378409933555e-10, -2.2677454554927343e-10, -1.332065110174104e-10,
         -5.061729496359137e-11,  -2.1293373489730153e-11, -9.7306462240154e-12,
         -4.762440731918161e-12,  -2.469349874930646e-12,  -1.344939999617521e-12,
         -7.642681552516035e-13,  -4.4978432829438644e-13, -1.7183197447807727e-13,
         -7.273904308913374e-14},
        {0.0013009870222713625,  0.0009068182582830155,  0.0006367783010939141,
         0.0004504071630701503,  0.00032084858346816293, 0.00023014528187437005,
         0.00016620384422347256, 0.00012082247202090269, 8.811652833424183e-05,
         4.807685368323146e-05,  2.6865516806748575e-05, 1.535754700531414e-05,
         8.970582930946734e-06,  5.348292145234066e-06,  3.251234930336063e-06,
         2.0131848363450047e-06, 1.2570414152924536e-06, 5.248564651048383e-07,
         2.325216843611458e-07,  1.0864867046830283e-07, 5.326148137318383e-08,
         2.7263377808599018e-08, 1.4511354782526255e-08, 8.001875151113715e-09,
         4.487869233573478e-09,  1.5895115569216403e-09, 6.201515009473304e-10,
         2.625288353706917e-10,  1.191381798904261e-10,  5.739608979950619e-11,
         2.9121833777545844e-11, 1.546040670134694e-11,  8.395254883647982e-12,
         2.8502090755537854e-12, 1.0823797638716086e-12, 4.504458734634501e-13,
         2.0227910260711909e-13, 9.68563280474586e-14,   4.898981208439073e-14,
         2.5979717703577144e-14, 1.4111552539931706e-14, 4.806625334754836e-15,
         1.8344921615882097e-15},
        {-0.0004154552100765127,  -0.0002837751444714915,  -0.0001952771770377964,
         -0.00013535922046165464, -9.449656609798477e-05,  -6.643073977081967e-05,
         -4.701978122013207e-05,  -3.3503080198690775e-05, -2.3290980584531097e-05,
         -1.2233647644652432e-05, -6.582777257830369e-06,  -3.624590158598009e-06,
         -2.0400090822286143e-06, -1.1723898269425242e-06, -6.872887620719372e-07,
         -4.10593430557848e-07,   -2.3473552340445554e-07, -9.194766788977316e-08,
         -3.827714945422196e-08,  -1.683611168244757e-08,  -7.783479512563184e-09,
         -3.764460039298999e-09,  -1.8967720942080753e-09, -9.919636262936125e-10,
         -4.918978525016671e-10,  -1.5965532657014483e-10, -5.7363304297268495e-11,
         -2.24676262019084e-11,   -9.474844888619034e-12,  -4.258953552089472e-12,
         -2.0237633117538222e-12, -1.0096531555605254e-12, -4.779498129697805e-13,
         -1.4716434183526112e-13, -5.1060022308677045e-14, -1.9540873754046184e-14,
         -8.116116834873729e-15,  -3.612702336466707e-15,  -1.7064065511847047e-15,
         -8.484736221580491e-16,  -4.009558937924416e-16,  -1.2359028724043562e-16,
         -4.303332495623383e-17},
        {0.00010662985501214226, 7.16350070710471e-05,   4.848278553391992e-05,
         3.305224152444995e-05,  2.2693477335491857e-05, 1.569003984786563e-05,
         1.0922108305583077e-05, 7.653946916677064e-06,  4.558035504618441e-06,
         2.3253310473648028e-06, 1.21530170758228e-06,   6.499899228643911e-07,
         3.5538363217843595e-07, 1.984342621152462e-07,  1.1304212239909652e-07,
         6.5638800543106e-08,    3.02132094003295e-08,   1.1295613544436521e-08,
         4.491079809418166e-09,  1.8881857926587983e-09, 8.35145365136641e-10,
         3.8681308285594803e-10, 1.8683965654025237e-10, 9.37695927101295e-11,
         3.585810413610526e-11,  1.0931696600804971e-11, 3.698754689068945e-12,
         1.36775595296068e-12,   5.459215025495341e-13,  2.3280642412836474e-13,
         1.0518588067978128e-13, 5.0002270706947094e-14, 1.7965920222479416e-14,
         5.157366814706118e-15,  1.6752561501637437e-15, 6.025086915037705e-16,
         2.359791006601829e-16,  9.935942157217694e-17,  4.451758581526791e-17,
         2.1050856339923115e-17, 7.53423008642106e-18,   2.1613228311729215e-18,
         7.036849662500664e-19}};
  };
};

/// The number in a V.
template <class V>
struct NumberOf {
  using type = typename V::Number;
};
template <>
struct NumberOf<float> {
  using type = float;
};
template <>
struct NumberOf<double> {
  using type = double;
};
template <class V>
using Number = typename NumberOf<V>::type;
template <class V>
using ConstantsOf = Constants<Number<V>>;
template <class V>
inline constexpr bool is_float = sizeof(Number<V>) == sizeof(float);

// --- steps of one number; emitted.hpp has the same of vectors ---

/// x · y + z and z - x · y, rounded once where the processor can.
template <std::floating_point C>
inline C multiply_add(C x, C y, C z) {
  return x * y + z;
}
template <std::floating_point C>
inline C minus_product(C x, C y, C z) {
  return z - x * y;
}

/// |size| with the sign of x.
template <std::floating_point C>
inline C with_sign_of(C size, C x) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  return std::bit_cast<C>((std::bit_cast<Bits>(size) & ~K::sign) |
                          (std::bit_cast<Bits>(x) & K::sign));
}
template <std::floating_point C>
inline C magnitude(C x) {
  using K = Constants<C>;
  return std::bit_cast<C>(std::bit_cast<typename K::Bits>(x) & ~K::sign);
}

/// x to half of its bits: the products of two such numbers are exact.
template <std::floating_point C>
inline C upper_half(C x) {
  using K = Constants<C>;
  return std::bit_cast<C>((std::bit_cast<typename K::Bits>(x) + K::half_unit) & K::upper_half);
}

/// x · y + z rounded once, or nearly so, where z is small beside x · y.
template <std::floating_point C>
inline C product_and(C x, C y, C z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(x, y, z);
#else
  const C upper_x = upper_half(x), upper_y = upper_half(y);
  return upper_x * upper_y + (upper_x * (y - upper_y) + ((x - upper_x) * y + z));
#endif
}
/// x · y - product, where `product` is nearly that.
template <std::floating_point C>
inline C rest_of_product(C x, C y, C product) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(x, y, -product);
#else
  const C upper_x = upper_half(x), upper_y = upper_half(y);
  return (upper_x * upper_y - product) + (upper_x * (y - upper_y) + (x - upper_x) * y);
#endif
}

/// A selection of which compilers make no branch.
template <std::floating_point C>
inline C choose(bool condition, C yes, C no) {
  using Bits = typename Constants<C>::Bits;
  const Bits mask = -static_cast<Bits>(condition);
  return std::bit_cast<C>((std::bit_cast<Bits>(yes) & mask) | (std::bit_cast<Bits>(no) & ~mask));
}

/// x, or the bound where x is beyond it; NaN stays. By a selection: beyond the bound all that
/// follows is constant, and a branch around it leaves no vector code.
template <std::floating_point C>
inline C at_most(C x, C most) {
  return choose(x > most, most, x);
}
template <std::floating_point C>
inline C at_least(C x, C least) {
  return choose(x < least, least, x);
}

/// A whole number k; `shifted` has it in its lowest bits.
template <class V>
struct Whole {
  V number, shifted;
};

/// value · 2^k, as products with two powers that are normal; `biased` is k + 2 · bias.
template <std::floating_point C>
inline C scaled_by(C value, typename Constants<C>::Bits biased) {
  using K = Constants<C>;
  const auto power = [](typename K::Bits exponent) {
    return std::bit_cast<C>(exponent << K::mantissa_bits);
  };
  const typename K::Bits half = biased >> 1;
  return value * power(half) * power(biased - half);
}
/// value · 2^k.
template <std::floating_point C>
inline C scaled(C value, const Whole<C>& k) {
  using K = Constants<C>;
  return scaled_by(value, std::bit_cast<typename K::Bits>(k.shifted) - K::biased_from);
}
/// value · 2^(k + lift) for k from -bias - lift + 1 to 0: what remains is a product with `lowered`,
/// in which alone something may get subnormal.
template <std::floating_point C>
inline C lifted(C value, const Whole<C>& k) {
  using K = Constants<C>;
  return value * std::bit_cast<C>((std::bit_cast<typename K::Bits>(k.shifted) - K::lifted_from)
                                  << K::mantissa_bits);
}
/// value · 2^(lift - k) for k from 0 to bias + lift - 1.
template <std::floating_point C>
inline C lifted_down(C value, const Whole<C>& k) {
  using K = Constants<C>;
  return value * std::bit_cast<C>((K::lowered_from - std::bit_cast<typename K::Bits>(k.shifted))
                                  << K::mantissa_bits);
}
/// 2^-lift.
template <std::floating_point C>
inline constexpr C lowered = std::bit_cast<C>(
    static_cast<typename Constants<C>::Bits>(Constants<C>::bias - Constants<C>::lift)
    << Constants<C>::mantissa_bits);
/// Whether these exponents suit all k of e^-t and e^(-t²/2).
template <class C>
constexpr bool is_lifted_enough() {
  using K = Constants<C>;
  const double least = K::bias + K::lift - 1;
  return K::gate_last * K::log2_e < least && K::tail_last * K::tail_last / 2 * K::log2_e < least;
}
static_assert(is_lifted_enough<float>() && is_lifted_enough<double>());
/// value · 2^k for such a k.
template <std::floating_point C>
inline C scaled_below(C value, const Whole<C>& k) {
  return lifted(value, k) * lowered<C>;
}
/// x - value · 2^k.
template <std::floating_point C>
inline C minus_scaled_below(C value, const Whole<C>& k, C x) {
  return minus_product(lifted(value, k), lowered<C>, x);
}
/// value · 2^-k.
template <std::floating_point C>
inline C scaled_down(C value, const Whole<C>& k) {
  return lifted_down(value, k) * lowered<C>;
}
/// 2^-k for k >= 0.
template <std::floating_point C>
inline C power_down(const Whole<C>& k) {
  return scaled_down(C(1), k);
}

/// x = (1 + f) · 2^e with 1 + f from log_least to twice that. `is_whole_range`: also of 0, infinity
/// and negative numbers f and e are such that log x follows.
template <class V>
struct Split {
  V f, e;
  bool is_whole_range;
};
template <std::floating_point C>
inline Split<C> split(C x) {
  using K = Constants<C>;
  using Bits = typename K::Bits;
  const bool is_subnormal = x < std::numeric_limits<C>::min();
  const C normal = x * choose(is_subnormal, C(Bits{1} << (K::mantissa_bits + 1)), C(1));
  // The exponent with its bias, which has no sign: not all processors shift signs of 64 bits, or
  // convert such integers.
  constexpr Bits bias = K::bias, ones = std::bit_cast<Bits>(C(Bits{1} << K::mantissa_bits));
  const Bits bits = std::bit_cast<Bits>(normal);
  const Bits exponent =
      (bits - std::bit_cast<Bits>(K::log_least) + (bias << K::mantissa_bits)) >> K::mantissa_bits;
  const C e = std::bit_cast<C>(exponent | ones) - C((Bits{1} << K::mantissa_bits) + bias);
  return {std::bit_cast<C>(bits - ((exponent - bias) << K::mantissa_bits)) - C(1),
          e - choose(is_subnormal, C(K::mantissa_bits + 1), C(0)), false};
}

/// Of a table, the number at a place.
template <std::floating_point C, std::size_t n>
inline C look_up(const C (&numbers)[n], typename Constants<C>::Integer place) {
  return numbers[place];
}
/// The last five bits of x.
inline std::int32_t last_bits(float x) { return std::bit_cast<std::int32_t>(x) & 31; }
/// The piece of a tail that s = t + 1 is in, and the t from which distances are taken there.
template <class Tail, std::floating_point C>
inline typename Constants<C>::Integer tail_piece(C s) {
  return Tail::place(std::bit_cast<typename Constants<C>::Bits>(s));
}
template <class Tail, std::floating_point C>
inline C tail_place(C s, typename Constants<C>::Integer) {
  const C place = std::bit_cast<C>((std::bit_cast<typename Constants<C>::Bits>(s) & Tail::begin) |
                                   Tail::middle);
  return place - C(1);
}
/// The numbers of a piece of a tail, by [i].
template <class Tail, std::floating_point C>
inline auto tail_numbers(C, typename Constants<C>::Integer piece) {
  struct Numbers {
    typename Constants<C>::Integer piece;
    C operator[](std::size_t i) const { return look_up(Tail::numbers[i], piece); }
  };
  return Numbers{piece};
}
/// f of the tail that suits x.
template <std::floating_point C, class F>
inline auto with_tail(C, const F& f) {
  return f(typename Constants<C>::Tail());
}

// --- the functions ---

/// The polynomial with these coefficients of x^0, x^1, ...
template <class V, std::size_t n>
inline V polynomial(const V& x, const std::array<Number<V>, n>& coefficients) {
  V sum = multiply_add(x, coefficients[n - 1], coefficients[n - 2]);
  for (std::size_t i = n - 2; i-- > 0;) sum = multiply_add(std::move(sum), x, coefficients[i]);
  return sum;
}

/// 2^k · (1 + p) = e^(x - correction / 2); x between exp_least and exp_most, or NaN.
template <class V>
struct ExpParts {
  Whole<V> k;
  V main, rest, p;  // p = main + rest; of floats only p is made
};
template <class V, class... Correction>
inline ExpParts<V> exp_parts(const V& x, const Correction&... correction) {
  using K = ConstantsOf<V>;
  const V shifted = multiply_add(x, K::log2_e, K::to_integer);
  const V whole = shifted - K::to_integer;
  V high = minus_product(whole, K::ln2_high, x);
  if constexpr (is_float<V>) {
    ((high = minus_product(correction, Number<V>(0.5), std::move(high))), ...);
    const V r = minus_product(whole, K::ln2_low, std::move(high));
    const V p = multiply_add(polynomial(r, K::exp), r * r, r);
    return {{whole, shifted}, p, p, p};
  } else {
    V low = whole * K::ln2_low;
    ((low = multiply_add(correction, Number<V>(0.5), std::move(low))), ...);
    const V r = high - low;
    const V rest = multiply_add(polynomial(r, K::exp), r * r, -low);
    return {{whole, shifted}, high, rest, high + rest};
  }
}

template <class V>
inline V exp(const V& x) {
  using K = ConstantsOf<V>;
  const auto parts = exp_parts(at_least(at_most(x, K::exp_most), K::exp_least));
  return scaled(parts.p + Number<V>(1), parts.k);
}

/// x = m·2^e with m from log_least to twice that: log x = e·ln 2 + log1p(m - 1). What is exact is
/// added last.
template <class V>
inline V log(const V& x) {
  using C = Number<V>;
  using K = Constants<C>;
  using Limits = std::numeric_limits<C>;
  const Split<V> parts = split(x);
  const V &f = parts.f, &e = parts.e;
  const V square = f * f;
  V result = [&] {
    if constexpr (is_float<V>) {
      V sum = multiply_add(polynomial(f, K::log), square * f, e * K::log_ln2_low);
      sum = minus_product(square, C(0.5), std::move(sum)) + f;
      return multiply_add(e, K::log_ln2_high, std::move(sum));
    } else {
      const V s = f / (f + C(2)), s_square = s * s, half_square = square * C(0.5);
      const V near = multiply_add(polynomial(s_square, K::log), s_square, half_square);
      const V low = multiply_add(s, near, e * K::ln2_low);
      return multiply_add(e, K::ln2_high, -((half_square - low) - f));
    }
  }();
  if (parts.is_whole_range) return result;
  result = choose(x == C(0), -Limits::infinity(), result);
  result = choose(x < C(0), Limits::quiet_NaN(), result);
  return choose(x < Limits::infinity(), result, x);  // NaN stays
}

/// Near 0, x + x³·p(x²); elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x.
template <class V>
inline V tanh(const V& x) {
  using C = Number<V>;
  using K = Constants<C>;
  const V size = magnitude(x), square = x * x;
  const V far = C(1) - C(2) / (exp(size + size) + C(1));
  const V near = multiply_add(polynomial(square, K::tanh), square * size, size);
  return with_sign_of(choose(size > K::tanh_near, far, near), x);
}

/// Of floats alone.
template <class V>
inline V erf(const V& x) {
  using K = ConstantsOf<V>;
  const V size = magnitude(x);
  // A piece that there is, and the polynomial that it has, however the thread rounds.
  const V piece = at_most(size, K::erf_last_piece) + K::to_eighths;
  const V middle = piece - K::to_eighths;
  const V t = size - middle;
  const auto place = last_bits(piece);
  V sum = look_up(K::erf[4], place);
  for (std::size_t i = 4; i-- > 1;)
    sum = multiply_add(std::move(sum), t, look_up(K::erf[i], place));
  const V first = choose(middle > 0.F, look_up(K::erf[0], place), size);
  sum = multiply_add(std::move(sum), t, first);
  return with_sign_of(choose(size > K::erf_last, 1.F, sum), x);
}
inline double erf(double x) { return std::erf(x); }

/// factor / (1 + e^t) = 2^-k·factor / (2^-k + 1 + p) for t >= 0: nothing overflows, and each step
/// rises or falls with t.
template <class V, class Factor>
inline V logistic_tail(const V& t, const Factor& factor) {
  using C = Number<V>;
  const auto parts = exp_parts(t);
  const V power = power_down(parts.k);
  const V sum = power + C(1);
  if constexpr (is_float<V>) {  // floats do well without what that lost
    return scaled_down(factor / (sum + parts.p), parts.k);
  } else {
    const V lost = power - (sum - C(1));
    return scaled_down(factor / (sum + (parts.p + lost)), parts.k);
  }
}

template <class V>
inline V sigmoid(const V& x) {
  using C = Number<V>;
  const V tail = logistic_tail(at_most(magnitude(x), ConstantsOf<V>::gate_last), C(1));
  return choose(x < C(0), tail, C(1) - tail);
}

/// x where it is positive or NaN, else -0.
template <class V>
inline V positive_part(const V& x) {
  return at_least(x, Number<V>(-0.0));
}

/// x·sigmoid(x) = x - x·sigmoid(-x); at -infinity its limit, -0.
template <class V>
inline V silu(const V& x) {
  const V size = at_most(magnitude(x), ConstantsOf<V>::gate_last);
  return positive_part(x) - logistic_tail(size, size);
}

/// Φ(-t) = e^(-t²/2)·tail(t) for t >= 0, still to be scaled. The square is the sum of two numbers:
/// the error of one would be as many times larger as it is large itself. Doubles have nothing
/// rounded that is as large as the result.
template <class V>
struct NormalTail {
  V size;         // t
  V first, rest;  // the sum of these is to be scaled
  Whole<V> k;
  V power, more;  // e^(-t²/2) is the sum of these, scaled too; of floats 1 + more
};
template <class Tail, class V>
inline NormalTail<V> normal_tail_by(const V& x) {
  using C = Number<V>;
  const V t = at_most(magnitude(x), Constants<C>::tail_last);
  const V square = t * t;
  const auto parts = exp_parts(square * C(-0.5), rest_of_product(t, t, square));
  const V s = t + C(1);
  const auto piece = tail_piece<Tail>(s);
  const V distance = t - tail_place<Tail>(s, piece);
  constexpr std::size_t last = std::size(Tail::numbers) - 1;
  auto numbers = tail_numbers<Tail>(s, piece);
  V sum = numbers[last];
  for (std::size_t i = last; i-- > 1;) sum = multiply_add(std::move(sum), distance, numbers[i]);
  const V first = numbers[0];
  // Copied as a whole, k would stay in memory, and loops no vector code.
  if constexpr (is_float<V>) {
    sum = std::move(sum) * distance;
    return {t,
            first,
            multiply_add(first, parts.p, multiply_add(sum, parts.p, sum)),
            {parts.k.number, parts.k.shifted},
            parts.p,
            parts.p};
  } else {
    const V power = upper_half(parts.main + C(1)),
            more = (parts.main - (power - C(1))) + parts.rest;
    return {t,
            first * power,
            multiply_add(first, more, sum * (power + more)),
            {parts.k.number, parts.k.shifted},
            power,
            more};
  }
}
template <class V>
inline NormalTail<V> normal_tail(const V& x) {
  return with_tail(x, [&]<class Tail>(Tail) { return normal_tail_by<Tail>(x); });
}

/// Φ(x).
template <class V>
inline V normal_cdf(const V& x) {
  using C = Number<V>;
  const NormalTail<V> tail = normal_tail(x);
  const V below = scaled_below(tail.first + tail.rest, tail.k);
  return choose(x > C(0), C(1) - below, below);
}

/// x·Φ(x) = x - x·Φ(-x); at -infinity its limit, -0.
template <class V>
inline V gelu(const V& x) {
  const NormalTail<V> tail = normal_tail(x);
  return minus_scaled_below(product_and(tail.size, tail.first, tail.size * tail.rest), tail.k,
                            positive_part(x));
}

/// Φ(x) + x·φ(x), of which each is 1 less what it is at -x: Φ(-t) - t·φ(t) for t >= 0, where φ is
/// the density, e^(-t²/2) / √(2π).
template <class V>
inline V gelu_slope(const V& x) {
  using C = Number<V>;
  using K = Constants<C>;
  const NormalTail<V> tail = normal_tail(x);
  const V factor = tail.size * K::density;
  const V upper = upper_half(factor);
  const V rest =
      multiply_add(tail.size, K::density_low, rest_of_product(tail.size, K::density, upper));
  // What is exact is taken away last. Of doubles `first` is exact, too.
  const V sum = [&] {
    if constexpr (is_float<V>) {
      return (minus_product(factor, tail.more, tail.first + tail.rest) - rest) - upper;
    } else {
      const V low = minus_product(rest, tail.power, minus_product(factor, tail.more, tail.rest));
      const V high = minus_product(upper, tail.power, tail.first);
      const V lost = minus_product(upper, tail.power, tail.first - high);
      return high + (low + lost);
    }
  }();
  const V below = scaled_below(sum, tail.k);
  return choose(x > C(0), C(1) - below, below);
}

// --- the same of floats, for results that are then rounded to 16 bits (relative error 8e-5) ---

/// 2^p(t) for t from 0 to tail_last, where p(t) is at most 0: polynomials by pieces, in few steps
/// that wait for each other.
template <class V>
inline V power_by_pieces(const V& t, const float (&p)[4][8]) {
  using K = Constants<float>;
  const auto piece = tail_piece<K::ShortTail>(t + 1.F);
  const V low = multiply_add(t, look_up(p[1], piece), look_up(p[0], piece));
  const V high = multiply_add(t, look_up(p[3], piece), look_up(p[2], piece));
  const V sum = multiply_add(t * t, high, low);
  const V shifted = sum + K::to_integer;
  const V whole = shifted - K::to_integer;
  const V f = sum - whole, square = f * f;
  constexpr auto c = K::power_of_2;
  const V upper = multiply_add(square, c[4], multiply_add(f, c[3], c[2]));
  const V power = multiply_add(square, upper, multiply_add(f, c[1], c[0]));
  return scaled_below(power, Whole<V>{whole, shifted});
}

template <class V>
inline V normal_cdf_of_16_bits(const V& x) {
  using K = Constants<float>;
  const V below = power_by_pieces(at_most(magnitude(x), K::tail_last), K::log2_of_tail);
  return choose(x > 0.F, 1.F - below, below);
}

template <class V>
inline V gelu_of_16_bits(const V& x) {
  using K = Constants<float>;
  const V t = at_most(magnitude(x), K::tail_last);
  return minus_product(t, power_by_pieces(t, K::log2_of_tail), positive_part(x));
}

template <class V>
inline V gelu_slope_of_16_bits(const V& x) {
  using K = Constants<float>;
  const V t = at_most(magnitude(x), K::tail_last);
  const V below = (K::slope_root - t) * power_by_pieces(t, K::log2_of_slope);
  return choose(x > 0.F, 1.F - below, below);
}

}  // namespace ein::host::functions
