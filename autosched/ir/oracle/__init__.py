"""What a program computes, exactly as the language says, in numpy: the oracle of every kernel. Read `interpreter`
(whole programs), then `blocks` (boxes of an output) and `error` (how far a kernel may be from it).
"""
