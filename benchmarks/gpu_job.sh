#!/bin/sh
# Everything that waits for a GPU, in at most 12 minutes: the most important first, each with a limit of its own.
#
#     sh benchmarks/gpu_job.sh OUT        # from the root of a clone, after `make setup` on a machine with a GPU
#
# OUT gets a log of each step and the results of those that ended. A step that fails or is too slow ends alone. MINUTES=0.5
# makes each limit half as long; PYTHON is the interpreter (.venv/bin/python).
set -u
out=${1:?name a folder for the results}
python=${PYTHON:-.venv/bin/python}
. "$(dirname "$0")/gpu_step.sh"

step 150 tests "$python" -m pytest -q -m gpu tests
step 60 kernels "$python" benchmarks/gpu_kernels.py --out "$out/kernels.json"
step 90 one_document "$python" benchmarks/gpu.py --settings 1 --rounds 5 --out "$out/one_document.json"
step 120 large "$python" benchmarks/gpu.py --settings 8 9 --rounds 5 --out "$out/large.json"
step 30 plan "$python" -m hat_fairseq.cli plan pubmed --bf16
step 120 encoders "$python" benchmarks/gpu.py --settings 10 11 --rounds 5 --out "$out/encoders.json"
step 60 windows "$python" benchmarks/gpu_windows.py --settings 0 2 --rounds 5 --out "$out/windows.json"
step 90 generation "$python" benchmarks/gpu.py --settings 0 2 --rounds 3 --out "$out/generation.json"
