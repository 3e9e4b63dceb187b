"""Earlier results: find them, evaluate them again, and read those of golden reports."""
