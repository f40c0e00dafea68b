"""torch.autograd.functional in reverse mode: several inputs and outputs, strict=True, create_graph=True, refused vectors."""

import pytest


def inputs(torch):
    return torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])


def test_structures_of_jacobians(torch):
    functional, (a, b) = torch.autograd.functional, inputs(torch)
    both = functional.jacobian(lambda a, b: (a * b, b.sum()), (a, b))
    assert [[d.tolist() for d in row] for row in both] == [[[[3, 0], [0, 4]], [[1, 0], [0, 2]]], [[0, 0], [1, 1]]]
    assert [d.tolist() for d in functional.jacobian(lambda a: (a, a.sum()), a)] == [[[1, 0], [0, 1]], [1, 1]]
    assert functional.jacobian(lambda a, b: a * 2, (a, b))[1].tolist() == [[0, 0], [0, 0]]
    assert functional.jacobian(lambda a: a[:0], a).shape == (0, 2)
    assert not functional.jacobian(torch.square, a.requires_grad_()).requires_grad


def test_hessians_of_several_inputs(torch):
    functional, (a, b) = torch.autograd.functional, inputs(torch)
    (aa, ab), (ba, bb) = functional.hessian(lambda a, b: (a * b**2).sum(), (a, b))
    assert [h.tolist() for h in (aa, ab, ba, bb)] == [[[0, 0], [0, 0]], [[6, 0], [0, 8]], [[6, 0], [0, 8]], [[2, 0], [0, 4]]]
    assert functional.hessian(lambda a: (a**3).sum(), a).tolist() == [[6, 0], [0, 12]]
    assert functional.hessian(lambda a: a.sum(), a).tolist() == [[0, 0], [0, 0]]
    a.requires_grad_()
    functional.hessian(lambda a: (a**3).sum(), a, create_graph=True).sum().backward()
    assert a.grad.tolist() == [6, 6]


def test_products_of_several_inputs_and_outputs(torch):
    functional, (a, b) = torch.autograd.functional, inputs(torch)
    outputs, found = functional.vjp(lambda a, b: (a * b, b.sum()), (a, b), (a, torch.tensor(10.0)))
    assert [y.tolist() for y in outputs] == [[3, 8], 7] and [d.tolist() for d in found] == [[3, 8], [11, 14]]
    for product in (functional.hvp, functional.vhp):
        value, found = product(lambda a, b: (a * b**2).sum(), (a, b), (torch.ones(2), torch.zeros(2)))
        assert value.item() == 41 and [d.tolist() for d in found] == [[0, 0], [6, 8]]
    assert functional.vhp(lambda x: x**3, torch.tensor(2.0))[1].item() == 12


def test_one_tensor_as_two_inputs(torch):
    functional, x = torch.autograd.functional, torch.tensor([1.0, 2.0], requires_grad=True)
    for create_graph in (False, True):
        found = functional.jacobian(lambda a, b: a * b**2, (x, x), create_graph=create_graph)
        assert [d.tolist() for d in found] == [[[1, 0], [0, 4]], [[2, 0], [0, 8]]]


def test_without_gradient_mode(torch):
    functional, (a, _) = torch.autograd.functional, inputs(torch)
    with torch.no_grad():
        assert functional.jacobian(torch.square, a).tolist() == [[2, 0], [0, 4]]
        assert functional.hessian(lambda a: (a**3).sum(), a).tolist() == [[6, 0], [0, 12]]
        assert functional.vjp(torch.square, a, a)[1].tolist() == [2, 8]
        value, product = functional.jvp(torch.square, a.clone().requires_grad_(), a, create_graph=True)
        assert value.grad_fn is not None and product.grad_fn is not None and product.tolist() == [2, 8]
        for product in (functional.hvp, functional.vhp):
            value, found = product(lambda a: (a**3).sum().reshape(1), a, a)
            assert value.tolist() == [9] and found.tolist() == [6, 24]
        assert not torch.is_grad_enabled()


def test_strict_refuses_independent_inputs(torch):
    functional, (a, b) = torch.autograd.functional, inputs(torch)
    for call in (
        lambda: functional.jacobian(lambda a, b: a * 2, (a, b), strict=True),
        lambda: functional.jacobian(lambda a: torch.ones(2), a, strict=True),
        lambda: functional.jacobian(torch.sin, a, strict=True, vectorize=True),
        lambda: functional.vjp(lambda a, b: a.sum(), (a, b), strict=True),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert functional.jacobian(torch.square, a, strict=True).tolist() == [[2, 0], [0, 4]]
    for call in (
        lambda: functional.jacobian(lambda a: a * 2, a, strict=True, create_graph=True),
        lambda: functional.hessian(lambda a: a.sum(), a, strict=True),
        lambda: functional.hvp(lambda a: a.sum(), a, a, strict=True),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_refused_vectors_and_functions(torch):
    functional, (a, b) = torch.autograd.functional, inputs(torch)
    for call in (
        lambda: functional.vjp(torch.sin, a),
        lambda: functional.vjp(torch.sin, a, torch.ones(3)),
        lambda: functional.vjp(torch.sin, a, (a, b)),
        lambda: functional.vhp(lambda x: (x**3).sum(), a),
        lambda: functional.hessian(torch.sin, a),
        lambda: functional.hvp(lambda x: (x.sum(), x.sum()), a, a),
        lambda: functional.jacobian(torch.square, a * 1j),
        lambda: functional.vjp(torch.square, a[0] * 1j),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(TypeError):
        functional.jacobian(lambda a: 3.0, a)
    with pytest.raises(TypeError):
        functional.vjp(torch.sin, a, 3.0)
    for product in (functional.vjp, functional.jvp, functional.vhp, functional.hvp, lambda f, x, v: functional.jacobian(f, x)):
        with pytest.raises(TypeError, match="inputs given to"):
            product(lambda a: (a**3).sum(), (a, 2), a)
    with pytest.raises(TypeError, match="given to jvp must be"):
        functional.jvp(lambda a: (a, 2), a, a)
    with pytest.raises(RuntimeError, match="expected"):
        functional.jvp(torch.sin, a, a[:1])


def test_standard_basis_for_several_tensors(torch):
    from teletensor.autograd.functional import _construct_standard_basis_for

    tensors = torch.zeros(1), torch.zeros(2, dtype=torch.float64), torch.zeros(1)
    blocks = _construct_standard_basis_for(tensors, (1, 2, 1))
    assert [b.dtype for b in blocks] == [t.dtype for t in tensors]
    assert torch.cat([b.double() for b in blocks], 1).tolist() == torch.eye(4).tolist()
    with pytest.raises(AssertionError, match="expected one size per tensor"):
        _construct_standard_basis_for(tensors, (1,))


def test_helpers_that_libraries_import(torch):
    from teletensor.autograd.functional import _as_tuple, _grad_postprocess, _tuple_postprocess

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert _as_tuple(x, "inputs", "vjp")[0] is False and _as_tuple((x, y), "inputs", "vjp")[0] is True
    assert _as_tuple(x, "inputs", "vjp")[1][0] is x and _as_tuple(x)[0] is x and _as_tuple([1, 2]) == (1, 2)
    assert [_tuple_postprocess(((1,), (2,)), u) for u in (True, False, (True, False), (False, False))] == [((1,), (2,)), (1,), (1, 2), 1]
    with pytest.raises(TypeError, match="The inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        _as_tuple((x, 1), "inputs", "vjp")
    kept, detached = _grad_postprocess((y, (y,)), True), _grad_postprocess((y, (y,)), False)
    assert kept[1][0] is y and not detached[0].requires_grad and not detached[1][0].requires_grad
