"""Actions, for environments and agents alike: spaces, native units, limits, cells, costs and codecs.

A codec converts the actions of one mode into other forms. This package does not depend on problems or mechanisms, so
agents may import all of it.
"""

from cbo_gym.actions.codec import (
    ArmCodec,
    BoxCodec,
    CellCodec,
    ChoiceCodec,
    Codec,
    GridCodec,
    PolicyCodec,
    SparseCodec,
    SuperArmCodec,
)
from cbo_gym.actions.costs import Costs
from cbo_gym.actions.domains import Categorical, Domains, Integer, Interval, Range, TypedDomain
from cbo_gym.actions.limited_spaces import LimitedBox, LimitedDict
from cbo_gym.actions.limits import Limits
from cbo_gym.actions.spaces import CellBox, GridBox, Space, SparseBox, SuperArmSpace

__all__ = [
    "ArmCodec",
    "BoxCodec",
    "Categorical",
    "CellBox",
    "CellCodec",
    "ChoiceCodec",
    "Codec",
    "Costs",
    "Domains",
    "GridBox",
    "GridCodec",
    "Integer",
    "Interval",
    "LimitedBox",
    "LimitedDict",
    "Limits",
    "PolicyCodec",
    "Range",
    "Space",
    "SparseBox",
    "SparseCodec",
    "SuperArmCodec",
    "SuperArmSpace",
    "TypedDomain",
]
