"""Which code a run stands for: that it was played with, or later code that was seen to play runs like it alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cbo_gym.evaluation.runs.closure import PACKAGE, ROOM
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.provenance import is_id, is_of_package, library_versions, sources_now
from cbo_gym.evaluation.runs.restamp import Restamp
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.labels import Spec

NO_CODE = "code that nobody recorded"


def alike(run: Run) -> list[Restamp]:
    """The looks at a run's group that found it played alike, the oldest first."""
    return [look for look in run.restamps if not look.why]


def code_of(run: Run) -> Mapping[str, str]:
    """Stamps of the latest code that a run stands for, by the names that ``Run.sources`` has."""
    return known[-1].sources if (known := alike(run)) else run.sources


def libraries_of(run: Run) -> Mapping[str, str]:
    """Versions of the libraries of that code, without the processor whose kernels they ran."""
    return _versions(known[-1].libraries if (known := alike(run)) else run.libraries)


def parts_of(run: Run) -> dict[tuple[str, str], str]:
    """What runs that are compared must share: the stamps of the environment, of the agent and of what is neither.

    They go by ``("environment", "CBO/Dropwave-v0")`` and ``("agent", "MCBO")``, parameters left out, whatever names the
    code has in them, and the others by ``("package", "my_package")``.
    """
    code = code_of(run)
    agent = [stamp for name, stamp in sorted(code.items()) if name == ROOM or name.startswith(f"{ROOM}.")]
    env = [stamp for name, stamp in sorted(code.items()) if name == PACKAGE or is_id(name)]
    others = {("package", name): stamp for name, stamp in code.items() if stamp not in (*agent, *env)}
    return {
        ("environment", Spec.told(run.env).name): " ".join(env) or NO_CODE,
        ("agent", Spec.told(run.agent).name): " ".join(agent) or NO_CODE,
        **others,
    }


class Today:
    """The code and the libraries of this process, asked for once a name.

    Args:
        runs: that may be asked for.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        names = {
            name for run in runs for code in (run.sources, *(look.sources for look in run.restamps)) for name in code
        }
        self._stamps = sources_now(sorted(name for name in names if is_of_package(name) or "." not in name))
        self._libraries = library_versions()

    def gives(self, run: Run) -> bool:
        """Whether a run stands for what there is today, code and libraries."""
        code = code_of(run)
        return bool(code) and self._has(code) and libraries_of(run) == _versions(self._libraries)

    def differs(self, run: Run) -> str:
        """Where a look at the run's group saw that what there is today, kernels too, plays otherwise; empty if none."""
        for look in run.restamps:
            if look.why and self._has(look.sources) and look.libraries == self._libraries:
                return look.why
        return ""

    def _has(self, code: Mapping[str, str]) -> bool:
        return all(self._stamps.get(name) == stamp for name, stamp in code.items())

    def gives_every_bit(self, run: Run) -> bool:
        """Whether here is the very same, kernels and machine too, so that a run must come out as it was."""
        return self.gives(run) and run.libraries == self._libraries and run.machine == describe_machine()


def _versions(libraries: Mapping[str, str]) -> Mapping[str, str]:
    blas = libraries.get("blas", "").split()[:2]
    return {**libraries, "blas": " ".join(blas)}
