import pytest


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="there is no PyTorch here")
