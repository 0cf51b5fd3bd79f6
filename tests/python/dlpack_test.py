"""Exchange with PyTorch and others by DLPack, and capsules that are misused."""

import ctypes
import gc

import numpy as np
import pytest

import ein

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def test_results_are_of_the_operands_kind(torch):
    x = torch.randn(3, 4, 5)
    y = ein.einsum(x, x, "b i k, b j k -> b i j")
    assert type(y) is torch.Tensor and torch.allclose(y, x @ x.mT, atol=1e-5)
    turned = ein.rearrange(x, "a b c -> c b a")
    assert turned.data_ptr() == x.data_ptr() and turned.stride() == (1, 5, 20)
    turned[0, 0, 0] = 9
    assert x[0, 0, 0] == 9
    assert type(ein.softmax(x.bfloat16(), "a b [c]")) is torch.Tensor
    assert type(ein.einsum(x.numpy(), x, "b i k, b j k -> b i j")) is torch.Tensor
    assert type(ein.einsum(ein.Tensor(x), "a b c -> c b a")) is ein.Tensor


def test_every_dtype_of_torch(torch):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128):
        x = torch.ones(2, 3, dtype=dtype)
        y = ein.rearrange(x, "a b -> b a")
        assert y.dtype == dtype and y.data_ptr() == x.data_ptr() and torch.equal(y, x.T)


def test_lives_as_long_as_it_is_seen(torch):
    x = torch.full((1000,), 3.0)
    view = ein.rearrange(x, "(a b) -> a b", a=10)
    tensor = ein.Tensor(torch.full((1000,), 4.0))
    del x
    gc.collect()
    assert (view == 3).all() and (np.asarray(tensor) == 4).all()
    back = torch.from_dlpack(ein.full((1000,), 5))
    gc.collect()
    assert (back == 5).all()


def test_gradients_are_not_lost_silently(torch):
    x = torch.randn(3, 4, requires_grad=True)
    assert ein.einsum(x, "a b -> b a").requires_grad
    with pytest.raises(ein.Error, match="gradient"):
        ein.Tensor(x)
    with torch.no_grad():
        assert ein.Tensor(x).shape == (3, 4)


class Capsule:
    """A producer whose struct says what it is told to."""

    SIZES = ctypes.c_int64 * 2

    class Tensor(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                    ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                    ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]

    def __init__(self, name=b"dltensor_versioned", shape=(2, 3), strides=(3, 1), **fields):
        self.elements = np.arange(6, dtype=np.float32)
        self.shape, self.strides = self.SIZES(*shape), self.SIZES(*strides)
        said = dict(major=1, data=self.elements.ctypes.data, device_type=1, ndim=2, code=2, bits=32, lanes=1,
                    shape=ctypes.addressof(self.shape), strides=ctypes.addressof(self.strides))
        self.deleted = 0
        self.kept = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        said["deleter"] = ctypes.cast(self.kept, ctypes.c_void_p).value
        self.struct = self.Tensor(**{**said, **fields})
        self.capsule = new_capsule(ctypes.addressof(self.struct), name, None)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def test_a_capsule_is_taken_once():
    producer = Capsule()
    tensor = ein.Tensor(producer)
    assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]] and producer.deleted == 0
    with pytest.raises(Exception):
        ein.Tensor(producer)  # it is called "used_..." by now
    del tensor
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize("fields, kind", [
    (dict(major=2), "value"), (dict(data=0), "value"), (dict(byte_offset=1), "value"),
    (dict(byte_offset=2**64 - 4), "overflow"), (dict(ndim=-1), "rank"), (dict(ndim=2**31 - 1), "rank"),
    (dict(shape=0), "shape"), (dict(lanes=4), "dtype"), (dict(code=200), "dtype"), (dict(bits=3), "dtype"),
    (dict(device_type=8), "device"),
])
def test_hostile_structs_are_errors(fields, kind):
    sizes = {key: fields.pop(key) for key in ("shape",) if fields.get(key) == 0}
    producer = Capsule(**fields)
    if sizes:
        producer.struct.shape = 0
    with pytest.raises(ein.Error) as caught:
        ein.Tensor(producer)
    assert caught.value.kind == kind
    assert producer.deleted == 0


@pytest.mark.parametrize("shape, strides", [((-2, 3), (3, 1)), ((2**62, 3), (3, 1)), ((2, 3), (2**62, 1)),
                                            ((2, 3), (-2**63, 1))])
def test_hostile_sizes_are_errors(shape, strides):
    with pytest.raises(ein.Error):
        ein.Tensor(Capsule(shape=shape, strides=strides))


def test_what_is_no_capsule():
    class Broken:
        def __init__(self, value):
            self.value = value

        def __dlpack__(self, **_):
            return self.value

    for value in (None, 3, "dltensor"):
        with pytest.raises(Exception):
            ein.Tensor(Broken(value))
    with pytest.raises(Exception):
        ein.Tensor(Capsule(name=b"another name"))


def test_capsules_that_nobody_takes():
    x = ein.ones((1000,))
    for _ in range(100):
        x.__dlpack__(max_version=(1, 0))
        x.__dlpack__()
    assert x.__dlpack_device__() == (1, 0)
