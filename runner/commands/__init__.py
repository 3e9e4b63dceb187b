"""The verbs: each module reads like a story, and has one primary config, `conf/<verb>.yaml`."""
