"""Every operator at a small, a cache-sized and a large shape, compared with PyTorch or memory bandwidth."""
