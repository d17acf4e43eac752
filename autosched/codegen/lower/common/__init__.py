"""What lowerings share: the context, operands, panels and copies of them, and the register tile. Read `context`,
then `register_tile`.
"""
