"""A web page of the studies in a database, with the report of each and a form for each method of a study."""

from cbo_gym.errors import naming_the_extra

with naming_the_extra("cbo-gym study serve", "serve"):
    from cbo_gym.study.page.access import AccessPolicy
    from cbo_gym.study.page.agent_pool import AgentPool
    from cbo_gym.study.page.application import make_app
    from cbo_gym.study.page.service import StudyService
    from cbo_gym.study.page.serving import serve

__all__ = ["AccessPolicy", "AgentPool", "StudyService", "make_app", "serve"]
