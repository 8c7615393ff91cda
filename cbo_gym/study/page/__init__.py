"""The page of a database's studies: the report, live, with a form for everything that a study can be told or asked."""

from cbo_gym.errors import naming_the_extra

with naming_the_extra("cbo-gym study serve", "serve"):
    from cbo_gym.study.page.application import make_app
    from cbo_gym.study.page.desk import Desk
    from cbo_gym.study.page.door import Door
    from cbo_gym.study.page.serving import serve
    from cbo_gym.study.page.thinker import Thinker

__all__ = ["Desk", "Door", "Thinker", "make_app", "serve"]
