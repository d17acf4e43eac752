"""While a reference is infinite, nothing has been added to a state that the factor may lose.

The factor from minus infinity is exp(-inf) = 0. It loses nothing where each term of the state is zero as long as the
maximum is minus infinity: then the element that the term is relative to, one of those that the maximum is of, is minus
infinity itself, and exp(-inf) = 0.
"""

from __future__ import annotations

from autosched.ir.printer import print_value
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.separate import Mixed
from autosched.ir.rewrites.algebra.sums import Leaf, TooManyTerms, of_atom
from autosched.ir.rewrites.algebra.text import linear_in
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.rewrites.online.states import CarriedState, MemberStates
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import Condition, Read, Select, Value, map_value


def refuse_lost_terms(cascade: Cascade, carried: MemberStates, state: CarriedState, real: bool) -> None:
    """Raises NotRewritten where a term may be something while a reference is infinite."""
    for reference in state.references:
        of = cascade.member(reference.tensor)
        if not is_infinite(of.init):
            continue
        guarded = set(of.guards) <= set(carried.member.guards)
        if not guarded or not all(_vanishes(value, when, reference, of, real) for when, value in _cases(state)):
            name = carried.member.stage.name
            held, term = print_value(of.term), print_value(carried.member.term)
            text = (
                f"{reference.tensor} is the {of.op} of {held}, and the term {term} has other values relative to it: "
                f"it need not be 0 as long as {reference.tensor} is infinite, as the pass would take it to be"
            )
            raise NotRewritten("UNSUPPORTED", text, name)


def _cases(state: CarriedState) -> list[tuple[dict[Condition, bool], Value]]:
    return [(dict(case.when), value) for case, value in state.by_case]


def _vanishes(value: Value, when: dict[Condition, bool], reference: Read, of: Member, real: bool) -> bool:
    """Whether each product of a term has exp(a (X - M)) in it, X what M is the maximum of in the same case."""

    def taken(node: Value) -> Value:
        if isinstance(node, Select) and node.condition in when:
            return node.then if when[node.condition] else node.other
        return node

    element = map_value(of.term, taken)
    if isinstance(element, Select) or is_infinite(element):
        return False
    leaf = Leaf(reference)
    try:
        difference = normal(element, real) - of_atom(leaf)
        for monomial, _ in normal(value, real).terms:
            beside = linear_in(monomial.exponent, leaf)
            relative = difference * beside
            left = monomial.exponent + relative
            if not beside.terms or len(left.terms) != len(monomial.exponent.terms) - len(relative.terms):
                return False
    except (NoForm, TooManyTerms, Mixed):
        return False
    return True
