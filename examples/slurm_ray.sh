#!/bin/bash
# Runs a command of hat on several machines: sbatch -N 4 -G 8 examples/slurm_ray.sh generate MODEL data-bin/arxiv ...
# A lost machine costs its batches. Two minutes before the time limit, or if the first machine is lost, the job goes back
# into the queue, and goes on with the batches that are absent. Needs pip install 'hat_fairseq[cluster]' and whole
# machines: at the end Ray ends all Ray processes of the user on each. Not tested on a cluster.
#SBATCH --job-name=hat --time=24:00:00 --ntasks-per-node=1 --cpus-per-task=16 --exclusive --output=slurm-%j.log
#SBATCH --open-mode=append --signal=B:USR1@120 --requeue --no-kill
set -eu
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=600
(umask 077 && ray get-auth-token --generate >/dev/null) # in the home folder, which all machines share
status=.slurm-$SLURM_JOB_ID # that of hat; with several machines symmetric-run of Ray 2.60 exits with 1 after success, too
trap 'rm -f "$status"' EXIT
trap 'scontrol requeue "$SLURM_JOB_ID"' USR1 # which ends this job
# shellcheck disable=SC2016 # the inner bash expands them
srun --cpus-per-task "$SLURM_CPUS_PER_TASK" ray symmetric-run --address "$first:6379" --min-nodes "$SLURM_NNODES" \
    --num-cpus "$SLURM_CPUS_PER_TASK" -- bash -c 'hat "${@:2}" --cluster auto; echo $? >"$1"' bash "$status" "$@" &
wait $! || true
exit "$(cat "$status" || echo 1)"
