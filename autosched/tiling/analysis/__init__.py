"""What is proved of a program's accesses before anything is laid out: dependences, guards, windows. Read
`dependence`."""
