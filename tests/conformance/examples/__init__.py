"""Runs PyTorch's example programs for torch.distributed, and nanoGPT's, with both packages, and compares their losses."""
