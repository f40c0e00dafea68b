"""PyTorch's op_db and module_db samples inside compiled functions and exported programs, compared with eager calls."""
