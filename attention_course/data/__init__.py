"""Small data that comes with the course. `SOURCES.md` says where each file is from."""
