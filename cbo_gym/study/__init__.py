"""Studies: agents on systems without a simulator. A study suggests trials and keeps their outcomes in a database."""

from cbo_gym.errors import naming_the_extra

with naming_the_extra("cbo_gym.study", "study"):
    from cbo_gym.actions.domains import Categorical, Integer, Range
    from cbo_gym.study.campaigns import Campaign, UnusedDataWarning
    from cbo_gym.study.description import Description
    from cbo_gym.study.diagram_check import DiagramCheck, DiagramWarning, Independence
    from cbo_gym.study.expectation import Expectation, RecommendedAction, RecommendedSet
    from cbo_gym.study.study import Study, Trial, create_study, load_study, studies_in

__all__ = [
    "Campaign",
    "Categorical",
    "Description",
    "DiagramCheck",
    "DiagramWarning",
    "Expectation",
    "Independence",
    "Integer",
    "Range",
    "RecommendedAction",
    "RecommendedSet",
    "Study",
    "Trial",
    "UnusedDataWarning",
    "create_study",
    "load_study",
    "studies_in",
]
