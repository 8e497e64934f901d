"""Runs `hat` with small blocks, and kills it before it computes one of them: `killed NUMBER WORDS`, -1 for none."""

import itertools
import os
import signal
import sys
from typing import Any

from hat_fairseq import cli
from hat_fairseq.data import blocks

if __name__ == "__main__":
    kill_at = int(sys.argv.pop(1))
    blocks.SIZE, keep, numbers = 2000, blocks._keep, itertools.count()

    def killed(*arguments: Any) -> Any:
        if next(numbers) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return keep(*arguments)

    blocks._keep = killed
    sys.exit(cli.main())
