"""hat_fairseq: hierarchical, long-document transformers as a fairseq plugin.

`--user-dir hat_fairseq`, or `import hat_fairseq`, registers the models, tasks, criterions and output decoders with
fairseq and makes checkpoints load safely. That happens at once where fairseq is imported already, as with `--user-dir`,
and else as soon as it is: commands that need no fairseq, such as `hat preprocess`, do not wait for it. Importing it
twice does nothing.
"""

import importlib.abc
import importlib.util
import logging
import sys

__version__ = "0.3.0"

# What could not be imported. `hat doctor` has to work in a broken installation, so it is recorded here and not raised;
# fairseq's commands then say that they do not know the architecture.
import_error: ImportError | None = None

# On import fairseq advises to install tensorboardX, which has nothing to do with what was asked.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)


def _register() -> None:
    global import_error
    try:
        from . import register

        register.register()
    except ImportError as error:
        if (error.name or "").partition(".")[0] == __name__:  # a mistake of ours
            raise
        import_error = error
        logging.getLogger(__name__).warning("hat_fairseq is not registered with fairseq: %s; see `hat doctor`", error)


class _WhenFairseqIsImported(importlib.abc.MetaPathFinder):
    """Finds nothing of its own: it lets the others find fairseq, and has it followed by `_register`."""

    def find_spec(self, name, path, target=None):  # type: ignore[no-untyped-def]
        if name != "fairseq":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module):  # type: ignore[no-untyped-def]
                load(module)
                _register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "fairseq" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _WhenFairseqIsImported())
