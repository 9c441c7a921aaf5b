"""The paper's experiments: what was published, what we measure, and the comparison."""

from drosurv.paper.alpha_figure import alpha_curves, alpha_figure, save_figure
from drosurv.paper.characteristics import characteristics, characteristics_table
from drosurv.paper.comparison import agreement, compare
from drosurv.paper.known_reasons import KNOWN_REASONS, Reason, known_reasons
from drosurv.paper.methods import METHODS, Method
from drosurv.paper.nearest import nearest_settings, nearest_table
from drosurv.paper.plan import EXPERIMENTS, Experiment, find_experiments, plan_units
from drosurv.paper.published import load_published
from drosurv.paper.reproduction import Reproduction, reproduce
from drosurv.paper.result import check_result, gather
from drosurv.paper.run import evaluate_unit
from drosurv.paper.selection import choose_settings
from drosurv.paper.shrinkage import gain_share
from drosurv.paper.summary import summarise
from drosurv.paper.table_metrics import TABLE_METRICS, TableMetric
from drosurv.paper.tables import agreement_table, comparison_table, result_table
from drosurv.paper.tabulation import Tabulation, tabulate, write_outputs, write_table
from drosurv.paper.unit import Protocol, Unit

__all__ = [
    "EXPERIMENTS",
    "KNOWN_REASONS",
    "METHODS",
    "TABLE_METRICS",
    "Experiment",
    "Method",
    "Protocol",
    "Reason",
    "Reproduction",
    "TableMetric",
    "Tabulation",
    "Unit",
    "agreement",
    "agreement_table",
    "alpha_curves",
    "alpha_figure",
    "characteristics",
    "characteristics_table",
    "check_result",
    "choose_settings",
    "compare",
    "comparison_table",
    "evaluate_unit",
    "find_experiments",
    "gain_share",
    "gather",
    "known_reasons",
    "load_published",
    "nearest_settings",
    "nearest_table",
    "plan_units",
    "reproduce",
    "result_table",
    "save_figure",
    "summarise",
    "tabulate",
    "write_outputs",
    "write_table",
]
