from runner.api.comparison import compare as compare
from runner.api.data import load_dataset as load_dataset
from runner.api.evaluation import evaluate as evaluate
from runner.api.experiment import load_experiment as load_experiment
from runner.api.explanation import explain as explain
from runner.api.sweep import run_sweep as run_sweep
from runner.datasets.dataset import Dataset as Dataset

__all__ = ["Dataset", "compare", "evaluate", "explain", "load_dataset", "load_experiment", "run_sweep"]
