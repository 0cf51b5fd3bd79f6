// Tensors of other libraries by DLPack, and tensors for them.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ein/compile.hpp>
#include <ein/dlpack.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "tensor/dlpack_abi.hpp"

namespace ein {
namespace {

/// What a producer hands over: elements, and what is said of them. Counts the calls of the deleter.
struct Produced {
  std::vector<float> elements{0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> shape{2, 3}, strides{3, 1};
  int deleted = 0;
  DLManagedTensorVersioned managed{};

  Produced() {
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Produced*>(self->manager_ctx)->deleted;
    };
    managed.dl_tensor = {elements.data(), {kDLCPU, 0},    2, {kDLFloat, 32, 1},
                         shape.data(),    strides.data(), 0};
  }
  Produced(const Produced&) = delete;
  Produced& operator=(const Produced&) = delete;

  DLTensor& tensor() { return managed.dl_tensor; }
};

/// That `why` is said, and that the deleter is left to the caller.
void expect_refused(Produced& produced, ErrorKind kind, const std::string& why) {
  test::expect_error([&] { from_dlpack(&produced.managed); }, kind, {why});
  EXPECT_EQ(produced.deleted, 0);
}

TEST(Dlpack, SharesTheElementsOfAProducer) {
  Produced produced;
  {
    const Tensor x = from_dlpack(&produced.managed);
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.raw_data(), produced.elements.data());
    x(1, 2) = 7;
    EXPECT_EQ(produced.elements[5], 7);
    produced.elements[0] = 8;
    EXPECT_EQ(einsum(x, "i j -> i").to_vector<float>(), (std::vector<float>{11, 14}));
    const Tensor row = x(0);
    EXPECT_EQ(produced.deleted, 0);
  }
  EXPECT_EQ(produced.deleted, 1);
}

TEST(Dlpack, KeepsStridesAndTheOffset) {
  Produced backwards;
  backwards.strides = {-3, -1};
  backwards.tensor().byte_offset = 5 * sizeof(float);
  const Tensor x = from_dlpack(&backwards.managed);
  EXPECT_EQ(x.strides(), (Strides{-3, -1}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(einsum(x, "i j -> j").to_vector<float>(), (std::vector<float>{7, 5, 3}));
  Produced repeated;
  repeated.strides = {0, 2};
  EXPECT_EQ(from_dlpack(&repeated.managed).to_vector<float>(),
            (std::vector<float>{0, 2, 4, 0, 2, 4}));
  Produced plain;
  plain.tensor().strides = nullptr;
  EXPECT_TRUE(from_dlpack(&plain.managed).is_contiguous());
}

TEST(Dlpack, KeepsWhatMayOnlyBeRead) {
  Produced produced;
  produced.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  const Tensor x = from_dlpack(&produced.managed);
  test::expect_error([&] { x.fill(1); }, ErrorKind::value, {"read-only"});
  const DlpackPointer again(to_dlpack(x));
  EXPECT_EQ(again->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  test::expect_error([&] { to_dlpack_unversioned(x); }, ErrorKind::value, {"read-only"});
  EXPECT_EQ(DlpackPointer(to_dlpack(ones({2})))->flags, 0u);
}

TEST(Dlpack, TakesTensorsWithoutADeleterAndWithoutElements) {
  Produced produced;
  produced.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&produced.managed).numel(), 6);
  Produced empty;
  empty.shape = {0, 3};
  empty.tensor().data = nullptr;
  EXPECT_EQ(from_dlpack(&empty.managed).shape(), (Shape{0, 3}));
  Produced scalar;
  scalar.tensor().ndim = 0;
  scalar.tensor().shape = scalar.tensor().strides = nullptr;
  scalar.tensor().byte_offset = 4;
  EXPECT_EQ(from_dlpack(&scalar.managed).item(), 1);
}

TEST(Dlpack, RefusesWhatNoMemoryIs) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  test::expect_error([] { from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)); },
                     ErrorKind::value, {"null"});
  test::expect_error([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }, ErrorKind::value,
                     {"null"});
  const struct {
    const char* name;
    void (*spoil)(Produced&);
    ErrorKind kind;
    const char* why;
  } cases[] = {
      {"version",
       [](Produced& p) {
         p.managed.version = {2, 0};
       },
       ErrorKind::value, "2.0"},
      {"null data", [](Produced& p) { p.tensor().data = nullptr; }, ErrorKind::value, "null"},
      {"no address", [](Produced& p) { p.tensor().data = nullptr, p.tensor().byte_offset = 64; },
       ErrorKind::value, "null"},
      {"unaligned", [](Produced& p) { p.tensor().byte_offset = 2; }, ErrorKind::value, "aligned"},
      {"offset", [](Produced& p) { p.tensor().byte_offset = ~std::uint64_t{3}; },
       ErrorKind::overflow, "beyond"},
      {"ndim", [](Produced& p) { p.tensor().ndim = -1; }, ErrorKind::rank, "-1 axes"},
      {"many axes", [](Produced& p) { p.tensor().ndim = 1 << 30; }, ErrorKind::rank, "1024"},
      {"no shape", [](Produced& p) { p.tensor().shape = nullptr; }, ErrorKind::shape, "no shape"},
      {"negative size", [](Produced& p) { p.shape[0] = -2; }, ErrorKind::shape, "negative"},
      {"huge size",
       [](Produced& p) {
         p.shape = {most, 3};
       },
       ErrorKind::overflow, "2^63"},
      {"huge stride", [](Produced& p) { p.strides[0] = most; }, ErrorKind::shape, "further"},
      {"least stride", [](Produced& p) { p.strides[0] = std::numeric_limits<std::int64_t>::min(); },
       ErrorKind::shape, "further"},
      {"around the end", [](Produced& p) { p.strides[0] = most / 4; }, ErrorKind::shape, "further"},
      {"around the beginning", [](Produced& p) { p.strides[0] = -(most / 8); }, ErrorKind::shape,
       "further"},
      {"a dtype of others",
       [](Produced& p) {
         p.tensor().dtype = {kDLFloat, 128, 1};
       },
       ErrorKind::dtype, "128 bits"},
      {"lanes", [](Produced& p) { p.tensor().dtype.lanes = 4; }, ErrorKind::dtype, "4 lanes"},
      {"a code of no dtype", [](Produced& p) { p.tensor().dtype.code = 255; }, ErrorKind::dtype,
       "code 255"},
      {"a device of others",
       [](Produced& p) { p.tensor().device.device_type = static_cast<DLDeviceType>(8); },
       ErrorKind::device, "type 8"},
      {"a GPU that is not here",
       [](Produced& p) {
         p.tensor().device = {kDLCUDA, 1 << 20};
       },
       ErrorKind::device, "GPU 1048576"},
  };
  for (const auto& [name, spoil, kind, why] : cases) {
    SCOPED_TRACE(name);
    Produced produced;
    spoil(produced);
    expect_refused(produced, kind, why);
  }
}

TEST(Dlpack, EveryDtypeGoesThereAndBack) {
  for (const DType dtype : all_dtypes) {
    const Tensor x = ones({2, 3}, dtype);
    const Tensor turned = rearrange(x, "a b -> b a");
    const Tensor y = from_dlpack(to_dlpack(turned));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    EXPECT_EQ(y.strides(), turned.strides());
    EXPECT_EQ(y.raw_data(), x.raw_data());
    const Tensor z = from_dlpack(to_dlpack_unversioned(y));
    EXPECT_EQ(z.dtype(), dtype);
    EXPECT_EQ(z.raw_data(), x.raw_data());
  }
}

TEST(Dlpack, KeepsAnExportedTensorAlive) {
  std::weak_ptr<Storage> storage;
  DlpackPointer exported;
  {
    const Tensor x = full({4}, 3);
    storage = x.storage();
    exported.reset(to_dlpack(x(slice(1, 4, 2))));
  }
  EXPECT_FALSE(storage.expired());
  const DLTensor& seen = exported->dl_tensor;
  EXPECT_EQ(exported->version.major, 1u);
  ASSERT_EQ(seen.ndim, 1);
  EXPECT_EQ(seen.shape[0], 2);
  EXPECT_EQ(seen.strides[0], 2);
  EXPECT_EQ(seen.dtype, (DLDataType{kDLFloat, 32, 1}));
  EXPECT_EQ(static_cast<const float*>(seen.data)[2], 3);
  exported.reset();
  EXPECT_TRUE(storage.expired());
}

TEST(Dlpack, RefusesTensorsThatAreNoMemory) {
  const Tensor x = ones({2});
  x.requires_grad(true);
  test::expect_error([&] { to_dlpack(x); }, ErrorKind::value, {"gradients", "detach"});
  EXPECT_NE(DlpackPointer(to_dlpack(x.detach())), nullptr);
  test::expect_error(
      [] {
        compile([](const Tensor& t) {
          DlpackPointer(to_dlpack(t));
          return t;
        })(ones({2}));
      },
      ErrorKind::value, {"no elements"});
}

}  // namespace
}  // namespace ein
