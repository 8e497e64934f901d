"""What a training needs in memory, computed without data and without the memory."""
