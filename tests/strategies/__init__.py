"""The strategies of Hypothesis: a module for each subject; a strategy is named by what it draws, as Hypothesis does.

A strategy of a single test may be written in its `@given` or `data.draw` instead, as part of what the test claims.
"""
