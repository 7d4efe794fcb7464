"""The contract of docs/scheduling.md by brute force: every rule is evaluated anew from what is true now.

It shares nothing with the core, not even its types. Simple before fast, and exact: shares are fractions.
Whoever doubts the core reads this beside the contract, from `world`, `sums` and `order` over `rules` and
`reservation` to `look`.
"""
