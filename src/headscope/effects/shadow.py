"""A shadow of a model: the same modules over again, with the same weights, to be led aside.

What a module of the shadow does can be replaced without touching the model that it is of.
"""

import copy
from collections import OrderedDict

from torch import nn


def shadow(model: nn.Module) -> dict[nn.Module, nn.Module]:
    """Every module of a model with its twin, whose weights and parts are the same."""
    twins = {module: copy.copy(module) for module in model.modules()}
    for module, twin in twins.items():
        for name, held in vars(module).items():
            if name.startswith("_forward") and isinstance(held, dict):
                twin.__dict__[name] = OrderedDict(held)  # hooks of its own
        twin.__dict__["_modules"] = {
            name: None if one is None else twins[one] for name, one in module._modules.items()
        }
    return twins
