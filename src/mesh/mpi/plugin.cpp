// libein_mpi.so: collectives by the MPI library that it was compiled with.
//
// How values differ from those of shm: MPI chooses the order in which it combines, and may take
// another for MPI_Reduce_scatter_block than for MPI_Allreduce, so that the last bits of sums and
// products of floats of more than two processes may differ. Floats narrower than f32 travel as they
// are and are rounded after every combination, not once at the end. Which of +0 and -0 is the
// maximum depends on the order too. Integers are the same.
#include "mesh/mpi/plugin.hpp"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <type_traits>

#include <ein/dtype.hpp>
#include <ein/graph.hpp>

#include "mesh/transport.hpp"
#include "nest/combine.hpp"

namespace {

using namespace ein;
using ein::Collective;

/// The type of the elements: for those that MPI lacks, integers of the same size.
MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f32:
      return MPI_FLOAT;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return MPI_UINT16_T;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::u8:
      return MPI_UINT8_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i16:
      return MPI_INT16_T;
    case DType::i8:
      return MPI_INT8_T;
    case DType::u64:
      return MPI_UINT64_T;
    case DType::u32:
      return MPI_UINT32_T;
    case DType::boolean:
      return MPI_CXX_BOOL;
    case DType::c64:
      return MPI_CXX_FLOAT_COMPLEX;
    case DType::c128:
      return MPI_CXX_DOUBLE_COMPLEX;
  }
  return MPI_DATATYPE_NULL;
}

/// An operation of MPI on elements of our own. It gives a NaN where there is one, knows narrow
/// floats, and integers wrap: those of Open MPI 4.1 stop at the largest number, some of them.
template <class T, Combine combine>
void combine_elements(void* with, void* into, int* count, MPI_Datatype*) {
  using C =
      std::conditional_t<ein::is_floating(ein::dtype_of<T>) && sizeof(T) < sizeof(float), float, T>;
  const T* const a = static_cast<const T*>(with);
  T* const b = static_cast<T*>(into);
  for (int i = 0; i < *count; ++i)
    b[i] = ein::convert<T>(ein::combined<combine, C>(ein::convert<C>(a[i]), ein::convert<C>(b[i])));
}

/// Made at the first use; MPI may combine in another order.
template <class T>
MPI_Op operation_on(Combine combine) {
  MPI_Op made = MPI_OP_NULL;
  visit_combine(combine, [&]<Combine how>(std::integral_constant<Combine, how>) {
    static const MPI_Op operation = [] {
      MPI_Op op = MPI_OP_NULL;
      MPI_Op_create(combine_elements<T, how>, 1, &op);
      return op;
    }();
    made = operation;
  });
  return made;
}

MPI_Op operation_of(DType dtype, Combine combine) {
  if (dtype == DType::f64 || dtype == DType::f32) {
    if (combine == Combine::sum) return MPI_SUM;
    if (combine == Combine::prod) return MPI_PROD;
  }
  switch (dtype) {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                \
    return operation_on<type>(combine);
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                  \
    break;
#include <ein/detail/dtypes.hpp>
  }
  return MPI_OP_NULL;  // a complex number is two real ones here
}

bool has_started = false;

int start(std::int32_t* rank, std::int32_t* size) {
  int is_initialized = 0, code = MPI_Initialized(&is_initialized);
  if (code == MPI_SUCCESS && !is_initialized) {
    int provided = 0;
    code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    has_started = code == MPI_SUCCESS;
  }
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(MPI_COMM_WORLD, size);
  return code;
}

int stop() { return has_started ? MPI_Finalize() : MPI_SUCCESS; }

int make_group(const std::int32_t* ranks, std::int32_t count, void** group) {
  MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  int code = MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (code == MPI_SUCCESS) code = MPI_Group_incl(world, count, ranks, &members);
  if (code == MPI_SUCCESS) code = MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &communicator);
  if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  *group = code == MPI_SUCCESS ? new MPI_Comm(communicator) : nullptr;
  return code;
}

int end_group(void* group) {
  MPI_Comm* const communicator = static_cast<MPI_Comm*>(group);
  const int code = MPI_Comm_free(communicator);
  delete communicator;
  return code;
}

int begin(void* group, std::int32_t collective, const void* from, void* to, std::int32_t count,
          std::int32_t dtype, std::int32_t combine, void** request) {
  const MPI_Comm communicator = *static_cast<MPI_Comm*>(group);
  const MPI_Datatype type = type_of(static_cast<DType>(dtype));
  const auto operation = [&] {
    return operation_of(static_cast<DType>(dtype), static_cast<Combine>(combine));
  };
  MPI_Request started = MPI_REQUEST_NULL;
  int code = MPI_ERR_ARG;
  switch (static_cast<Collective>(collective)) {
    case Collective::all_reduce:
      code = MPI_Iallreduce(from == to ? MPI_IN_PLACE : from, to, count, type, operation(),
                            communicator, &started);
      break;
    case Collective::reduce_scatter:
      code = MPI_Ireduce_scatter_block(from, to, count, type, operation(), communicator, &started);
      break;
    case Collective::all_gather:
      code = MPI_Iallgather(from, count, type, to, count, type, communicator, &started);
      break;
    case Collective::all_to_all:
      code = MPI_Ialltoall(from, count, type, to, count, type, communicator, &started);
      break;
    case Collective::barrier:
      code = MPI_Ibarrier(communicator, &started);
      break;
    case Collective::send:
      break;  // has a function of its own
  }
  *request = code == MPI_SUCCESS ? new MPI_Request(started) : nullptr;
  return code;
}

int send(void* group, const void* from, std::int32_t count, std::int32_t dtype, std::int32_t to,
         void** request) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int code = MPI_Isend(from, count, type_of(static_cast<DType>(dtype)), to, 0,
                             *static_cast<MPI_Comm*>(group), &started);
  *request = code == MPI_SUCCESS ? new MPI_Request(started) : nullptr;
  return code;
}

int receive(void* group, void* to, std::int32_t count, std::int32_t dtype, std::int32_t from,
            void** request) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(to, count, type_of(static_cast<DType>(dtype)), from, 0,
                             *static_cast<MPI_Comm*>(group), &started);
  *request = code == MPI_SUCCESS ? new MPI_Request(started) : nullptr;
  return code;
}

int test(void* request, std::int32_t* is_done) {
  MPI_Request* const started = static_cast<MPI_Request*>(request);
  const int code = MPI_Test(started, is_done, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS || *is_done) delete started;
  return code;
}

void explain(int code, char* text) {
  static_assert(MPI_MAX_ERROR_STRING <= 512);
  int length = 0;
  MPI_Error_string(code, text, &length);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const EinMpiFunctions* ein_mpi_functions() {
  static constexpr EinMpiFunctions functions = {
      ein_mpi_version, start, stop, make_group, end_group, begin, send, receive, test, explain};
  return &functions;
}
