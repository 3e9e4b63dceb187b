"""Work that is costly to repeat, kept between runs: entries on disk, their lock, and the store that holds them."""
