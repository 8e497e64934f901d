#!/bin/sh
# The studies of full size that wait for a GPU, each with a limit of its own.
#
#     sh studies/gpu_job.sh OUT DATA MINILM PUBMED ARTICLES QUESTIONS XSUM    # from a clone, after `make setup`
#
# DATA is the folder bin of `hat preprocess studies/paper_roles.py`, MINILM that of `hat import minilm`, PUBMED that of
# SumPubmed, ARTICLES that of `hat preprocess` as `shift.py` has it, QUESTIONS nq-open-oracle.jsonl.gz, XSUM the folder
# of `summaries.py`. OUT gets a log of each step and the tables of runs. A step that fails or is too slow ends alone,
# and keeps the runs that ended. MINUTES=0.5 makes each limit half as long; PYTHON is the interpreter (.venv/bin/python).
set -u
out=${1:?name a folder for the results}
data=${2:?name the data of paper_roles.py}
minilm=${3:?name the folder of MiniLM}
pubmed=${4:?name the folder of SumPubmed}
articles=${5:?name the preprocessed articles}
questions=${6:?name nq-open-oracle.jsonl.gz}
xsum=${7:?name the folder of XSum}
python=${PYTHON:-.venv/bin/python}
minutes=$(awk "BEGIN { print 11 * ${MINUTES:-1} }") # after which no run of a step begins
. "$(dirname "$0")/../benchmarks/gpu_step.sh"

step 720 copied_words "$python" studies/copied_words.py "$data" "$minilm/model.pt" --size full --minutes "$minutes" \
    --cache "$out/copied_words" --out "$out/copied_words.csv.gz"
step 720 convergence "$python" studies/convergence.py "$minilm" --root "$pubmed" --size full --minutes "$minutes" \
    --out "$out/convergence.csv.gz"
step 720 shift "$python" studies/shift.py "$articles/bin" "$minilm/model.pt" --size full --out "$out/shift.csv.gz"
step 720 far_answers "$python" studies/far_answers.py "$questions" "$minilm/model.pt" --size full \
    --out "$out/far_answers.csv.gz"
for seed in 1 2 3; do
    step 720 "summaries_pubmed_$seed" "$python" studies/summaries.py pubmed "$pubmed" --size full --seeds "$seed" \
        --work "$out/summaries" --out "$out/summaries.csv.gz"
    step 720 "summaries_xsum_$seed" "$python" studies/summaries.py xsum "$xsum" --minilm "$minilm" --size full \
        --seeds "$seed" --work "$out/summaries" --out "$out/summaries.csv.gz"
done
