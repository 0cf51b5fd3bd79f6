// The table of dtypes: one row each, floats before integers. Define what you need and include this
// file; there is no include guard. It undefines what you defined.
//
//   EIN_FLOATING(dtype, type, text, npy, safetensors, cuda, typed)
//   EIN_INTEGRAL(dtype, type, text, npy, safetensors, cuda, typed)
//   EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed)   what those two are that you do
//       not define
//   EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed)   nothing unless you define it:
//       kernels know real numbers alone
//
//   dtype        of DType
//   type         of an element in C++
//   text         what name() says and parse_dtype() reads
//   npy          NumPy's code, which .npy files have behind the byte order; "" where NumPy has no
//                such type
//   safetensors  the format's name; "" where it has none
//   cuda         of an element in the text of our kernels; codegen/vocabulary/elements.cpp declares
//                what CUDA C++ lacks
//   typed        of tensors that name their axes: Float<"b c">
#ifndef EIN_DTYPE
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed)
#endif
#ifndef EIN_FLOATING
#define EIN_FLOATING EIN_DTYPE
#endif
#ifndef EIN_INTEGRAL
#define EIN_INTEGRAL EIN_DTYPE
#endif
#ifndef EIN_COMPLEX
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed)
#endif
// clang-format off
EIN_FLOATING(f64, double, "f64", "f8", "F64", "double", Double)
EIN_FLOATING(f32, float, "f32", "f4", "F32", "float", Float)
EIN_FLOATING(f16, f16, "f16", "f2", "F16", "f16", Half)
EIN_FLOATING(bf16, bf16, "bf16", "", "BF16", "bf16", BFloat16)
EIN_FLOATING(f8e4m3, f8e4m3, "f8e4m3", "", "F8_E4M3", "f8e4m3", Float8E4M3)
EIN_FLOATING(f8e5m2, f8e5m2, "f8e5m2", "", "F8_E5M2", "f8e5m2", Float8E5M2)
EIN_INTEGRAL(i64, std::int64_t, "i64", "i8", "I64", "i64", Long)
EIN_INTEGRAL(i32, std::int32_t, "i32", "i4", "I32", "i32", Int)
EIN_INTEGRAL(i16, std::int16_t, "i16", "i2", "I16", "i16", Int16)
EIN_INTEGRAL(i8, std::int8_t, "i8", "i1", "I8", "i8", Int8)
EIN_INTEGRAL(u64, std::uint64_t, "u64", "u8", "U64", "u64", UInt64)
EIN_INTEGRAL(u32, std::uint32_t, "u32", "u4", "U32", "u32", UInt32)
EIN_INTEGRAL(u16, std::uint16_t, "u16", "u2", "U16", "u16", UInt16)
EIN_INTEGRAL(u8, std::uint8_t, "u8", "u1", "U8", "u8", Byte)
EIN_INTEGRAL(boolean, bool, "bool", "b1", "BOOL", "boolean", Bool)
EIN_COMPLEX(c64, std::complex<float>, "c64", "c8", "C64", "", ComplexFloat)
EIN_COMPLEX(c128, std::complex<double>, "c128", "c16", "", "", ComplexDouble)
// clang-format on
#undef EIN_COMPLEX
#undef EIN_INTEGRAL
#undef EIN_FLOATING
#undef EIN_DTYPE
