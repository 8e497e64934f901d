"""`python hat_fairseq/doctor`: `hat doctor` where nothing is installed. This file runs on every Python since 3.6."""

import argparse
import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    print("PROBLEM  Python  {}.{}.{} is older than 3.11: {}".format(*sys.version_info[:3], sys.executable))
    print("                 -> make clean && make setup PYTHON=python3.12")
    sys.exit(1)

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from hat_fairseq.doctor import command  # noqa: E402

parser = argparse.ArgumentParser(prog="doctor", description=command.__doc__)
command.add_arguments(parser)
sys.exit(command.main(parser.parse_args()))
