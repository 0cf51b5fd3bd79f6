import threading

import pytest


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="there is no PyTorch here")


@pytest.fixture
def in_threads():
    """Runs work(seed) in eight threads at once."""
    def run(work):
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return run
