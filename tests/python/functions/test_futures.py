"""Errors of callbacks of torch.futures.Future."""

import pytest


def test_a_failed_callback_is_an_error_of_the_derived_future(torch):
    future = torch.futures.Future()
    derived = future.then(lambda future: 1 / future.wait())
    future.set_result(0)
    assert future.wait() == 0
    for read in (derived.wait, derived.value):
        with pytest.raises(RuntimeError, match="running the callback: ZeroDivisionError") as error:
            read()
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    failed = torch.futures.Future()
    failed.set_exception(ValueError("reason"))
    with pytest.raises(ValueError, match="reason"):
        failed.wait()
    with pytest.raises(RuntimeError, match="ValueError: reason"):
        failed.then(lambda future: future.wait()).wait()


def test_errors_of_done_callbacks_are_logged(torch, caplog):
    future, order = torch.futures.Future(), []
    for callback in (order.append, lambda: None, order.append):
        future.add_done_callback(callback)
    future.set_result(5)
    future.add_done_callback(lambda future: future.absent)
    assert future.wait() == 5 and order == [future, future]
    assert "takes 0 positional arguments" in caplog.text and "no attribute 'absent'" in caplog.text
