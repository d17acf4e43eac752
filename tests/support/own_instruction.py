"""An instruction of one's own, with its text of C open: it is checked, tuned with and exported in tests."""

OWN = """\
isa: {isa}
{more}
intrinsics:
  - name: axpy
    semantics: |
      def axpy(a: s32[4], b: s32[4], c: s32[4]):
          for i in range(4):
              c[i] += a[i] * b[i]
    numerics: {{accumulate: exact}}
    operands:
      a: {{register: {{c: unsigned __attribute__((vector_size(16)))}}, broadcast: {{over: i}}}}
      b: {{register: {{c: unsigned __attribute__((vector_size(16)))}}}}
      c: {{register: {{c: unsigned __attribute__((vector_size(16)))}}}}
    emit:
      llvm: |
        %{{t}} = mul <4 x i32> {{a}}, {{b}}
        add <4 x i32> %{{t}}, {{c}}
      c: "{text}"
"""
RIGHT = "{c} + {a} * {b}"
