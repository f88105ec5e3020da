"""What lists and tables hold, in memory and in files; a lookup's cost does not grow with them."""
