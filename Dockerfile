# The image is built by the two commands of the README: it exists only if the leaderboard runs and the tests pass.
# hadolint global ignore=DL3008
FROM python:3.12-slim-bookworm

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 researcher

USER 1000
WORKDIR /home/researcher/cbo-gym
COPY --chown=1000:1000 . .

RUN make leaderboard && make test

ENV PATH="/home/researcher/cbo-gym/.venv/bin:${PATH}"
CMD ["cbo-gym", "list"]
