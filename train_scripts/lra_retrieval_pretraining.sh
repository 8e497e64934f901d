#!/usr/bin/env bash
# Self-pretraining for Retrieval of Long Range Arena: 32 sequences an update, 20,000 updates.
exec "$(dirname "$0")/../scripts/hat" recipe train lra_retrieval_pretraining "$@"
