"""The iterators of a DataLoader and its workers: processes, or threads of this process."""
