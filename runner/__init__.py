"""An application over the retrievers: datasets, measures, sweeps, tracking, reports."""
