#!/bin/bash
# Trains a recipe on several machines: sbatch -N 2 -G 8 examples/slurm_train.sh wmt20_en_de
# Two minutes before the time limit training finishes its update, saves and ends with 143; the job then goes back into
# the queue, as after the loss of a machine, and goes on from checkpoint_last.pt. Not tested on a cluster.
#SBATCH --job-name=hat --time=24:00:00 --ntasks-per-node=1 --cpus-per-task=16 --output=slurm-%j.log --open-mode=append
#SBATCH --signal=B:USR1@120 --requeue
set -u
recipe=$1
shift
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
gpus=${SLURM_GPUS_ON_NODE:-1}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1} # srun does not inherit it from sbatch
stopped=
trap 'stopped=1; scancel --signal USR1 "$SLURM_JOB_ID"' USR1 # to the processes of srun
srun --kill-on-bad-exit=1 torchrun --nnodes "$SLURM_NNODES" --nproc-per-node "$gpus" --rdzv-backend c10d \
    --rdzv-id "$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}" --rdzv-endpoint "$first:29500" \
    --signals-to-handle SIGTERM,SIGINT,SIGUSR1 --no-python \
    hat recipe train "$recipe" --gpus $((SLURM_NNODES * gpus)) "$@" &
training=$!
wait "$training"
status=$?
if [ -n "$stopped" ]; then # the signal has interrupted `wait`
    wait "$training"
    status=$?
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
