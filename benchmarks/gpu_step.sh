# For the jobs on a GPU, which set `out`: a folder for the log of each step, and steps.txt with their status and time.

# `step SECONDS NAME COMMAND ...` runs a command within a limit, of which MINUTES is the part (1). It may fail alone.
step() {
    limit=$(awk "BEGIN { print int($1 * ${MINUTES:-1}) + 1 }") name=$2
    shift 2
    begin=$(date +%s)
    timeout "$limit" "$@" > "$out/$name.log" 2>&1
    status=$?
    echo "$name: status $status after $(($(date +%s) - begin)) s of $limit" | tee -a "$out/steps.txt"
}

mkdir -p "$out"
nvidia-smi > "$out/gpu.txt" 2>&1
