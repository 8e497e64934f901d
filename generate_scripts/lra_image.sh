#!/usr/bin/env bash
# Image: the class of a grey picture of CIFAR-10, pixel by pixel.
# Flags: configs/lra_image.yaml; the whole command: DRY_RUN=1 generate_scripts/lra_image.sh
exec "$(dirname "$0")/../scripts/hat" recipe predict lra_image "$@"
