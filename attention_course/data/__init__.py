"""Small data that comes with the course. `DATA.md` says where each file is from."""
