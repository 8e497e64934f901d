#!/usr/bin/env bash
# LibreOffice's help, English-German, page by page: a small HAT from scratch on a CPU.
exec "$(dirname "$0")/../scripts/hat" recipe train libreoffice_help_en_de "$@"
