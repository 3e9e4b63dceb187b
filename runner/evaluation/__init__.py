"""One evaluation, from an experiment to a result, its record and its report."""
