"""Mine queries from benchmark definitions: extract, resolve, find hard negatives, check, save."""
