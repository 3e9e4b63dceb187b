"""Generate datasets from existing material: mine them from definitions and packages, or synthesise them from chunks."""
