import numpy as np
import pytest
import torch

from drosurv.losses import cox_split
from drosurv.losses.cox_split import CoxSplit
from drosurv.patients.target import Target


def test_a_patient_who_outlived_the_other_half_has_loss_and_gradient_zero():
    target = Target(np.array([True, True, True]), np.array([9.0, 1.0, 2.0]))
    loss = CoxSplit(target, np.array([True, False, False]), both=False)
    assert loss(np.array([[-800.0, 5.0, 0.0]])).tolist() == [[0.0]]
    assert loss.pullback(np.ones((1, 1)))[0].tolist() == [[0.0, 0.0, 0.0]]
    scores, reference = (
        torch.tensor([-800.0], requires_grad=True),
        torch.tensor([5.0, 0.0], requires_grad=True),
    )
    found = cox_split(scores, torch.tensor([True]), torch.tensor([9.0]), reference, torch.tensor([1.0, 2.0]))
    found.sum().backward()
    assert found.tolist() == [0.0]
    assert scores.grad.tolist() == [0.0]
    assert reference.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("both", [True, False])
def test_a_half_without_events_has_no_losses(both):
    event = np.array([False, False, True, True])
    loss = CoxSplit(Target(event, np.arange(4.0)), np.array([True, True, False, False]), both=both)
    assert loss.rows.tolist() == ([2, 3] if both else [])
    assert loss(np.zeros((1, 4))).tolist() == ([[0.0, 0.0]] if both else [[]])
    assert loss.pullback(np.ones((1, len(loss.rows))))[0].tolist() == [[0.0] * 4]
    X = np.arange(8.0).reshape(4, 2)
    assert loss.hessian(np.ones((1, len(loss.rows))), X).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_rows_list_the_events_of_each_half_in_order_of_time():
    target = Target(np.array([True, True, False, True]), np.array([4.0, 3.0, 2.0, 1.0]))
    loss = CoxSplit(target, np.array([False, True, True, False]))
    assert loss.rows.tolist() == [1, 3, 0]
    assert [half.tolist() for half in loss.halves] == [[1, 2], [0, 3]]
    # Patient 1 meets patient 0, patient 3 meets both of the first half, patient 0 meets nobody.
    np.testing.assert_allclose(np.exp(loss(np.zeros((1, 4)))), [[2.0, 3.0, 1.0]], rtol=1e-12)


def test_weight_zero_equals_leaving_a_reference_patient_out():
    rng = np.random.default_rng(0)
    scores, reference = torch.as_tensor(rng.normal(size=8)), torch.as_tensor(rng.normal(size=10))
    reference.requires_grad_()
    event, time = torch.ones(8, dtype=torch.bool), torch.as_tensor(rng.integers(0, 9, 8))
    reference_time = torch.as_tensor(rng.integers(0, 9, 10))
    # The longest seen have weight zero, so that some risk sets hold nobody else.
    weight = (reference_time < 6).double()
    found = cox_split(scores, event, time, reference, reference_time, reference_weight=weight)
    kept = weight > 0
    alone = cox_split(scores, event, time, reference[kept], reference_time[kept])
    np.testing.assert_allclose(found.detach(), alone.detach())
    found.sum().backward()
    assert torch.isfinite(reference.grad).all()
    assert (reference.grad[~kept] == 0).all()


def test_batch_axes_broadcast_between_scored_and_reference_patients():
    rng = np.random.default_rng(0)
    scores, reference = torch.as_tensor(rng.normal(size=(2, 3, 5))), torch.as_tensor(rng.normal(size=7))
    event, time = torch.as_tensor(rng.random(5) < 0.7), torch.as_tensor(rng.random(5))
    reference_time = torch.as_tensor(rng.random((3, 7)))
    together = cox_split(scores, event, time, reference, reference_time)
    assert together.shape == (2, 3, 5)
    for a in range(2):
        for b in range(3):
            one = cox_split(scores[a, b], event, time, reference, reference_time[b])
            np.testing.assert_allclose(together[a, b], one)


def test_event_flags_may_be_zeros_and_ones():
    event = torch.tensor([1.0, 0.0])
    found = cox_split(torch.zeros(2), event, torch.ones(2), torch.zeros(3), torch.full((3,), 2.0))
    np.testing.assert_allclose(found.exp(), [4.0, 1.0], rtol=1e-6)
