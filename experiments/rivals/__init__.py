"""Rivals of robust training, to compare with: ARL, JTT and DORO over any loss and network."""

from experiments.rivals.adversarial_reweighting import AdversarialReweighting
from experiments.rivals.dropped_outlier_dro import DroppedOutlierDRO
from experiments.rivals.just_train_twice import JustTrainTwice

__all__ = ["AdversarialReweighting", "DroppedOutlierDRO", "JustTrainTwice"]
