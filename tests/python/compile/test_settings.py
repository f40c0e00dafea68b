"""Settings of torch._dynamo.config and similar modules: each has an effect, or is refused, or changes nothing that can be observed."""

from __future__ import annotations

import importlib

import pytest

import teletensor as torch

MODULES = ["_dynamo.config", "_functorch.config", "_inductor.config", "compiler.config"]
SETTINGS = [
    (name, setting)
    for name in MODULES
    for setting in importlib.import_module(f"teletensor.{name}").__dict__.get("_fixed", ())
]


@pytest.mark.parametrize("name", MODULES)
def test_settings_that_do_not_exist_cannot_be_set(name):
    config = importlib.import_module(f"teletensor.{name}")
    with pytest.raises(AttributeError, match="no setting 'no_such_setting'"):
        config.no_such_setting = 1
    with pytest.raises(AttributeError, match="no setting"), config.patch(no_such_setting=1):
        pass


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_settings_without_an_effect_keep_their_values(name, setting):
    config = importlib.import_module(f"teletensor.{name}")
    default = getattr(config, setting)
    setattr(config, setting, default)
    with pytest.raises(NotImplementedError, match=setting):
        setattr(config, setting, not default if isinstance(default, bool) else "other")
    assert getattr(config, setting) == default


def test_a_patch_that_fails_changes_nothing():
    config = torch._dynamo.config
    with pytest.raises(NotImplementedError), config.patch(recompile_limit=3, compiled_autograd=True):
        pass
    assert config.recompile_limit == 8


@pytest.mark.parametrize("name", ["recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"])
def test_limits_of_recompilations(name):
    compiled = torch.compile(lambda x, k: x + k, backend="eager")
    with torch._dynamo.config.patch({name: 2, "fail_on_recompile_limit_hit": True}):
        for k in ("a", "b"):
            with pytest.raises(TypeError):
                compiled(torch.ones(2), k)
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="limit of 2"):
            compiled(torch.ones(2), None)
    assert torch._dynamo.config.cache_size_limit == torch._dynamo.config.recompile_limit == 8


def test_settings_of_the_compiler_are_those_of_the_capture():
    torch.compiler.config.assume_static_by_default = False
    try:
        assert torch._dynamo.config.assume_static_by_default is False
    finally:
        torch._dynamo.config.assume_static_by_default = True
    assert torch.compiler.config.assume_static_by_default is True


def test_groups_of_settings():
    config = importlib.import_module("teletensor._inductor.config")
    with config.patch({"triton.cudagraphs": True, "max_autotune": True}):
        assert config.triton.cudagraphs and config.max_autotune
    assert not config.triton.cudagraphs and not config.max_autotune
    with pytest.raises(AttributeError, match="_inductor.config.triton' has no setting 'bogus'"):
        config.triton.bogus = 1
    with pytest.raises(AttributeError, match="no setting 'bogus'"), config.patch({"cpp.bogus": 1}):
        pass


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [("_dynamo.config", "recompile_limit", "a"), ("_dynamo.config", "disable", 1), ("_inductor.config.triton", "cudagraphs", "yes")],
)
def test_settings_have_types(module, name, value):
    config = torch
    for part in module.split("."):
        config = getattr(config, part)
    before = getattr(config, name)
    with pytest.raises(TypeError, match=f"{name}.* expected {type(before).__name__}, got {type(value).__name__}"):
        setattr(config, name, value)
    assert getattr(config, name) == before
