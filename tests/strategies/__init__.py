"""The strategies of Hypothesis: a module for each subject; a strategy is named by what it draws, as Hypothesis does."""
