# Two images: `docker build --target slim .` has the core, `docker build --target full .` all extras, with CPU PyTorch.
# Runs are kept in /work:  docker run --rm -v "$PWD:/work" IMAGE experiment=tour
FROM python:3.12-slim AS wheel
WORKDIR /src
RUN pip install --no-cache-dir --no-compile "hatchling==1.33.0"
COPY . .
RUN python -m hatchling build --target wheel --directory /dist

FROM python:3.12-slim AS base
RUN useradd --create-home runner && mkdir /work && chown runner /work
COPY --from=wheel /dist /dist
WORKDIR /work
ENV NUMBA_CACHE_DIR=/tmp/numba
ENTRYPOINT ["runner"]

FROM base AS full
RUN pip install --no-cache-dir --no-compile torch --index-url https://download.pytorch.org/whl/cpu && \
    pip install --no-cache-dir --no-compile "$(echo /dist/*.whl)[all]"
USER runner

FROM base AS slim
RUN pip install --no-cache-dir --no-compile /dist/*.whl
USER runner
