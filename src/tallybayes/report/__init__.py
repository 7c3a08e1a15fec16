"""One page about a model and some data: facts first, page second."""

from .facts import report_facts
from .page import report

__all__ = ["report", "report_facts"]
