"""Every operator at a small, a cache-sized and a large shape, beside PyTorch or the bandwidth of memory."""
