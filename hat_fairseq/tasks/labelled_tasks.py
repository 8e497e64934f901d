"""Registers a fairseq task for each kind with labels (`data/kinds/`); several kinds may share one."""

from fairseq.tasks import TASK_REGISTRY, register_task

from ..data.kinds import KINDS, LabelledKind
from .config import EncoderTaskConfig
from .encoder_task import EncoderTask


def register_tasks() -> None:
    """Registers the tasks that are not registered yet, also of kinds that other packages have added."""
    for kind in KINDS.values():
        if isinstance(kind, LabelledKind) and kind.task not in TASK_REGISTRY:
            name = "".join(word.capitalize() for word in kind.task.split("_")) + "Task"
            members = {"__doc__": type(kind).__doc__, "default_kind": kind, "default_criterion": kind.criterion}
            register_task(kind.task, dataclass=EncoderTaskConfig)(type(name, (EncoderTask,), members))


register_tasks()
