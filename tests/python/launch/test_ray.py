"""Engines on a local Ray. Skipped without Ray, which is an optional dependency."""

import os
import signal

import pytest

from tests.conftest import BUILD, client_environment

from .conftest import all_ended, eventually

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install ray)")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    before = dict(os.environ)
    os.environ.update(client_environment(), TELETENSOR_DAEMON=str(BUILD / "bin/teletensord"))
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
    os.environ.clear()
    os.environ.update(before)


def test_engines(cluster):
    import teletensor
    import teletensor.ray

    with teletensor.ray.launch(2, {"CPU": 2}) as engines:
        addresses = engines.addresses
        assert len(engines) == len(set(addresses)) == 2
        for address in addresses:
            teletensor.connect(address, token=engines.token)
            assert teletensor.arange(4).sum().item() == 6
            teletensor.disconnect()
        with pytest.raises(ConnectionError):
            teletensor.connect(addresses[0], token="wrong")
        pids = [engine["pid"] for engine in engines.status()]
        os.kill(pids[0], signal.SIGKILL)  # the engine is started again at its address
        eventually(lambda: (s := engines.status()[0])["restarts"] == 1 and s["ready"], "a restart")
        assert engines.addresses == addresses
        teletensor.connect(addresses[0], token=engines.token)
        assert teletensor.ones(3).sum().item() == 3
        teletensor.disconnect()
        pids += [engine["pid"] for engine in engines.status()]
    all_ended(pids)


def test_lost_actor_is_replaced(cluster):
    import teletensor
    import teletensor.ray

    with teletensor.ray.launch(1, {"CPU": 1}) as engines:
        pid = engines.status()[0]["pid"]
        ray.kill(engines._actors[0], no_restart=False)
        all_ended([pid])

        def replaced():
            try:
                return engines.status()[0]["ready"]
            except ray.exceptions.RayActorError:
                return False

        eventually(replaced, "a new actor")
        teletensor.connect(engines.addresses[0], token=engines.token)
        assert teletensor.zeros(2).tolist() == [0.0, 0.0]
        teletensor.disconnect()


def test_missing_resources(cluster):
    import teletensor.ray

    with pytest.raises(TimeoutError, match="has not placed"):
        teletensor.ray.launch(1, {"CPU": 1, "unobtainium": 1}, timeout=1)


def test_engine_that_does_not_start(cluster):
    import teletensor.ray

    with pytest.raises(TimeoutError, match="not ready"):
        teletensor.ray.launch(1, {"CPU": 1}, options=["--no-such-option"], timeout=5)
