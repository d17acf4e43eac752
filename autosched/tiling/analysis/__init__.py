"""What is proved of a program's accesses before anything is laid out. Read `dependence`."""
