# hat_fairseq with fairseq, for linux/amd64, on a CPU or with `--gpus all`:
#     docker build -t hat_fairseq .
#     docker run --rm -v "$PWD:/data" hat_fairseq recipe list
# Python 3.12, because fairseq-fixed has a wheel for it: nothing is compiled.
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /
RUN set -- /wheels/*.whl && pip install --no-cache-dir --constraint /constraints.txt "$1[train]" \
    && useradd --uid 1000 --create-home hat && install --directory --owner hat /data
# Files are read and written in /data, as user 1000 unless `docker run --user` names another one.
USER 1000
WORKDIR /data
ENTRYPOINT ["hat"]
