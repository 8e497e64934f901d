# shellcheck shell=bash disable=SC2154  # $log and $checkpoints are those of the demo
# Functions of the demos, to be sourced with $log and $checkpoints set. A step shows its title, its progress in a terminal, and its
# result; all that its commands print is in $log.
start=$SECONDS watcher=
trap 'stop_watching' EXIT

step() { printf '\n=== %s (%d s so far)\n' "$*" "$((SECONDS - start))" | tee -a "$log"; }

# Runs a command. If it fails, shows the end of what it printed, and ends.
quietly() {
  local status=0
  printf '$ %s\n' "$*" >> "$log"
  if [ -t 1 ]; then
    show_progress "$*" "$SECONDS" &
    watcher=$!
  elif [[ $* == "hat recipe train"* ]]; then
    echo "the training goes on for minutes; its log: $checkpoints/train.log"
  fi
  "$@" >> "$log" 2>&1 || status=$?
  stop_watching
  if [ "$status" != 0 ]; then
    tail -n 15 "$log" >&2
    echo "hat demo: this step failed with status $status; everything that it printed is in $log" >&2
    exit "$status"
  fi
}

stop_watching() {
  [ -n "$watcher" ] || return 0
  kill "$watcher" 2> /dev/null || true
  wait "$watcher" 2> /dev/null || true
  watcher=
  printf '\r\033[K'
}

# Shows the seconds since the start of a command every second, and the bar of a training.
show_progress() {
  local updates all="" width=30 filled
  while sleep 1; do
    updates=$(tail -n 200 "$checkpoints/train.log" 2> /dev/null |
      sed -nE 's/.*"num_updates": "([0-9]+)".*/\1/p' | tail -n 1) || true
    [[ $1 != "hat recipe train"* ]] || all=$(tail -n 60 "$log" | sed -nE 's/.*--max-update ([0-9]+).*/\1/p' | tail -n 1)
    if [ -n "$all" ]; then
      filled=$((width * ${updates:-0} / all))
      printf '\r\033[K[%s%s] %s of %s updates, %d s' "$(printf '%*s' "$filled" '' | tr ' ' '#')" \
        "$(printf '%*s' "$((width - filled))" '' | tr ' ' '.')" "${updates:-0}" "$all" "$((SECONDS - $2))"
    else
      printf '\r\033[K%d s' "$((SECONDS - $2))"
    fi
  done
}

# Says how many documents `hat preprocess` has written.
say_documents() {
  sed -nE 's/^documents +([0-9,]+) +([0-9,]+) +([0-9,]+).*/\1 documents to train on, \2 to choose the checkpoint, \3 to test/p' \
    "$log" | tail -n 1
}

# Says the best figure of the validation part that the training log has under this name.
say_best() {
  local best
  best=$(sed -nE "s/.*\"valid_(best_)?$1\": \"([0-9.]+)\".*/\2/p" "$checkpoints/train.log" | tail -n 1)
  echo "best $2 on the validation part: ${best:-not measured}"
}
