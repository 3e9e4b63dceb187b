"""The verbs of the command line, one per module; the primary config of each is `conf/<verb>.yaml`."""
